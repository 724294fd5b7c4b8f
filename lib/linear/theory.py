"""Closed forms of learning in deep linear networks (Saxe, McClelland and Ganguli 2014; Neural Race Eqs 7, 21; Make Haste
Slowly Eqs 4-7; Early Linearization Eqs 7, 13).

A network without non-linearities sees its data only through two correlation matrices. Their singular vectors split
learning into independent *modes*, each of which follows a curve; `chains` has the simulation that they predict.

Shapes: x is (features, items), y is (outputs, items); leading dimensions of weights are ensembles, (..., out, in).
Where a docstring says that arguments broadcast, each is a number, a tensor or a NumPy array.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lib.linear.shapes import WrongAxes, axes, reals

Real = float | Tensor | np.ndarray  # a number, or many that broadcast


def real(value: Real) -> Tensor:
    """A tensor as it is; a number or an array in double precision (torch alone would make a number single)."""
    return value if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64)


class Modes(NamedTuple):
    """The joint decomposition Sigma_yx = U S Vᵀ, Sigma_x ≈ V D Vᵀ of a data set."""

    u: Tensor  # (outputs, modes) what the mode predicts
    s: Tensor  # (modes,) input-output singular values, largest first
    v: Tensor  # (features, modes) what the mode looks at
    d: Tensor  # (modes,) variance of the input along v
    misalignment: float  # off-diagonal share of Vᵀ Sigma_x V: zero when the modes decouple exactly


@axes(x="features items", y="outputs items")
def correlations(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Sigma_yx = mean of y xᵀ, (..., outputs, features), and Sigma_x = mean of x xᵀ, (..., features, features)."""
    x, y = reals(x, y)
    items = x.shape[-1]
    return y @ x.mT / items, x @ x.mT / items


@axes(sigma_yx="outputs features", sigma_x="features features")
def modes(sigma_yx: Tensor, sigma_x: Tensor, rank: int | None = None) -> Modes:
    """Singular modes of a data set, with their input variances (Make Haste Slowly Eqs 4-5, Neural Race Eq. 7).

    Modes decouple when the right singular vectors also diagonalise the input correlations. They are not assumed to:
    `misalignment` is the largest off-diagonal entry of Vᵀ Sigma_x V relative to its largest diagonal entry.
    """
    if sigma_yx.ndim != 2 or sigma_x.ndim != 2:
        shapes = tuple(sigma_yx.shape), tuple(sigma_x.shape)
        raise WrongAxes(f"modes: one data set at a time; sigma_yx has shape {shapes[0]} and sigma_x {shapes[1]}")
    u, s, vt = torch.linalg.svd(sigma_yx, full_matrices=False)
    rounding = max(1e-12, max(sigma_yx.shape) * torch.finfo(s.dtype).eps)
    keep = rank if rank is not None else int((s > s[0] * rounding).sum())
    u, s, v = u[:, :keep], s[:keep], vt[:keep].mT
    # A mode's sign is free; let its output direction point up, so that pictures and runs on other machines agree.
    sign = u.sum(0).sign() + (u.sum(0) == 0)
    u, v = u * sign, v * sign
    projected = v.mT @ sigma_x @ v
    d = projected.diagonal()
    off = (projected - torch.diag(d)).abs().max() / d.max() if keep else 0.0  # outputs that no input predicts have no mode
    return Modes(u, s, v, d, float(off))


def mode_strength(t: Real, s: Real, d: Real, a0: Real, tau: Real = 1.0) -> Tensor:
    """Strength of one singular mode of a two-layer network after training for time `t`.

    Solves tau da/dt = 2a(s - ad) from a(0) = a0: a sigmoid that starts at `a0` and converges to s/d.
    `s` and `d` are the mode's input-output and input singular values; all arguments broadcast. For all modes at many
    times give the times an axis of their own: t[:, None] (times, 1) beside s, d, a0 (modes,) makes (times, modes).
    Neural Race Eq. 21 · Make Haste Slowly Eq. 7 · Early Linearization Eq. 7.
    """
    t, s, d, a0, tau = map(real, (t, s, d, a0, tau))
    return (s / d) / (1 - (1 - s / (d * a0)) * torch.exp(-2 * s * t / tau))


def mode_strength_discrete(steps: int, s: Real, d: Real, a0: Real, step: float) -> Tensor:
    """The same mode under gradient descent with a finite step, exactly: a ← a (1 + step (s - ad))².

    Returns (steps + 1, ...): the strength before training and after each of `steps` steps of a balanced mode.
    `step` is the learning rate on the mean loss, the counterpart of 1/tau.
    """
    if steps < 0:
        raise ValueError(f"steps must be at least 0, got {steps}")
    s, d = real(s), real(d)
    a = torch.broadcast_tensors(real(a0), s, d)[0].clone()
    path = [a]
    for _ in range(steps):
        a = a * (1 + step * (s - a * d)) ** 2
        path.append(a)
    return torch.stack(path)


def discrete_rate(s: Real, step: float) -> Tensor:
    """Growth rate per step of an emerging mode: ln(1 + step s) in place of step s, so big steps learn late.

    Use `s → discrete_rate(s, step) / step` in `time_to_fraction` to predict where gradient descent really is.
    """
    return torch.log1p(real(s) * step)


def time_to_fraction(fraction: Real, s: Real, d: Real, a0: Real, tau: Real = 1.0) -> Tensor:
    """Time at which a mode reaches `fraction` of its final strength s/d (inverse of `mode_strength`).

    Early Linearization Eq. 13: tau/(2s) · ln[f/(1-f) · (s/(d a0) - 1)].
    """
    fraction, s, d, a0, tau = map(real, (fraction, s, d, a0, tau))
    return tau / (2 * s) * torch.log(fraction / (1 - fraction) * (s / (d * a0) - 1))


def half_time(s: Real, d: Real, a0: Real, tau: Real = 1.0) -> Tensor:
    """Time at which a mode reaches half of its final strength: tau/(2s) · ln(s/(d a0) - 1)."""
    return time_to_fraction(0.5, s, d, a0, tau)


def deep_mode_velocity(a: Real, s: Real, d: Real, layers: int, tau: Real = 1.0) -> Tensor:
    """Right-hand side of a balanced mode spread over `layers` matrices: tau da/dt = N a^(2-2/N) (s - ad).

    For two layers this is `mode_strength`'s equation; more layers stay at the start for longer and then move faster
    (Saxe, McClelland and Ganguli 2014).
    """
    a, s, d, tau = map(real, (a, s, d, tau))
    return layers * a ** (2 - 2 / layers) * (s - a * d) / tau


def deep_mode_strength(t: Real, s: float, d: float, a0: float, layers: int, tau: float = 1.0) -> Tensor:
    """Strength of a balanced mode of a network of `layers` ≥ 1 matrices at the times `t`, (times,).

    Integrates `deep_mode_velocity` by inverting t(a) = ∫ da / velocity on a fine grid: exact to about 1e-5.
    """
    s, d, a0, t = float(s), float(d), float(a0), real(t)
    if layers < 1 or not 0 < a0 < s / d:
        raise ValueError(f"there must be at least 1 layer and a start between 0 and s/d = {s / d:g}, got {layers} and {a0:g}")
    # Spacing the grid evenly in the logit of a d/s puts points where a moves slowly, at both ends of the sigmoid.
    start = torch.logit(torch.tensor(a0 * d / s, dtype=torch.float64))
    logit = torch.linspace(float(start), 18.0, 20001, dtype=torch.float64)
    a = (s / d) * torch.sigmoid(logit)
    slope = a * torch.sigmoid(-logit) / deep_mode_velocity(a, s, d, layers, tau)  # dt/dlogit
    hit = torch.cat([torch.zeros(1, dtype=torch.float64), torch.cumulative_trapezoid(slope, logit)])
    i = torch.searchsorted(hit, t.double()).clamp(1, len(hit) - 1)
    share = ((t - hit[i - 1]) / (hit[i] - hit[i - 1])).clamp(0, 1)
    return a[i - 1] + share * (a[i] - a[i - 1])


@axes(w1="hidden features", w2="outputs hidden", u="outputs modes", v="features modes")
def initial_strength(w1: Tensor, w2: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The strength a0 from which each mode of a randomly initialised two-layer network grows: |W1 v + W2ᵀ u|²/4.

    Around zero, W1 v + W2ᵀ u grows while W1 v - W2ᵀ u shrinks; only the growing half reaches the sigmoid. Its mean is
    hidden · variance / 2. Returns (..., modes).
    """
    return (w1 @ v + w2.mT @ u).square().sum(-2) / 4


@axes(w1="hidden features", w2="outputs hidden", u="outputs modes", v="features modes")
def mode_overlap(w1: Tensor, w2: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Diagonal of Uᵀ W2 W1 V: how strongly the network's map already contains each mode, (..., modes)."""
    return torch.einsum("om,...oh,...hf,fm->...m", u, w2, w1, v)


@axes(a="modes", s="modes", d="modes")
def loss_of_modes(a: Tensor, s: Tensor, d: Tensor, power: float | Tensor) -> Tensor:
    """Mean squared error, halved, of a map with mode strengths a (..., modes); power is the mean of |y|².

    L = power/2 - Σ (s a - d a²/2): exact for decoupled modes.
    """
    return power / 2 - (s * a - d * a.square() / 2).sum(-1)

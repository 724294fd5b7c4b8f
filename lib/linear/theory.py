"""Closed forms of learning in deep linear networks, beside the simulation that they predict.

A network without non-linearities sees its data only through two correlation matrices. Their singular vectors split
learning into independent *modes*, and each mode follows a curve that can be written down. This module holds the
curves (`mode_strength`, `half_time`, `loss_of_modes`) and the simulation (`train_on_statistics`) under twin names.

Shapes: x is (features, items), y is (outputs, items); leading dimensions of weights are ensembles, (..., out, in).
"""

from typing import NamedTuple

import torch
from torch import Tensor


def real(value) -> Tensor:
    """A tensor as it is; a Python number in double precision (torch alone would make it single)."""
    return value if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64)


class Modes(NamedTuple):
    """The joint decomposition Sigma_yx = U S Vᵀ, Sigma_x ≈ V D Vᵀ of a data set."""

    u: Tensor  # (outputs, modes) what the mode predicts
    s: Tensor  # (modes,) input-output singular values, largest first
    v: Tensor  # (features, modes) what the mode looks at
    d: Tensor  # (modes,) variance of the input along v
    misalignment: float  # off-diagonal share of Vᵀ Sigma_x V: zero when the modes decouple exactly


def correlations(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Sigma_yx = mean of y xᵀ, (outputs, features), and Sigma_x = mean of x xᵀ, (features, features)."""
    items = x.shape[-1]
    return y @ x.mT / items, x @ x.mT / items


def modes(sigma_yx: Tensor, sigma_x: Tensor, rank: int | None = None) -> Modes:
    """Singular modes of a data set, with their input variances (Make Haste Slowly Eqs 4-5, Neural Race Eq. 7).

    Modes decouple when the right singular vectors also diagonalise the input correlations. They are not assumed to:
    `misalignment` is the largest off-diagonal entry of Vᵀ Sigma_x V relative to its largest diagonal entry.
    """
    u, s, vt = torch.linalg.svd(sigma_yx, full_matrices=False)
    keep = rank if rank is not None else int((s > s[0] * 1e-12).sum())
    u, s, v = u[:, :keep], s[:keep], vt[:keep].mT
    # A mode's sign is free; let its output direction point up, so that pictures and runs on other machines agree.
    sign = u.sum(0).sign() + (u.sum(0) == 0)
    u, v = u * sign, v * sign
    projected = v.mT @ sigma_x @ v
    d = projected.diagonal()
    off = (projected - torch.diag(d)).abs().max() / d.max()
    return Modes(u, s, v, d, float(off))


def mode_strength(t, s, d, a0, tau=1.0):
    """Strength of one singular mode of a two-layer network after training for time `t`.

    Solves tau da/dt = 2a(s - ad) from a(0) = a0: a sigmoid that starts at `a0` and settles at s/d.
    `s` and `d` are the mode's input-output and input singular values; all arguments broadcast.

    Neural Race Eq. 21 · Make Haste Slowly Eq. 7 · Early Linearization Eq. 7.
    """
    return (s / d) / (1 - (1 - s / (d * a0)) * torch.exp(-2 * s * real(t) / tau))


def mode_strength_discrete(steps: int, s, d, a0, step: float) -> Tensor:
    """The same mode under gradient descent with a finite step, exactly: a ← a (1 + step (s - ad))².

    Returns (steps + 1, ...): the strength before training and after each of `steps` steps of a balanced mode.
    `step` is the learning rate on the mean loss, the counterpart of 1/tau.
    """
    a = torch.broadcast_tensors(real(a0), real(s))[0].clone()
    path = [a]
    for _ in range(steps):
        a = a * (1 + step * (s - a * d)) ** 2
        path.append(a)
    return torch.stack(path)


def discrete_rate(s, step: float):
    """Growth rate per step of an emerging mode: ln(1 + step s) in place of step s, so big steps learn late.

    Use `s → discrete_rate(s, step) / step` in `time_to_fraction` to predict where gradient descent really is.
    """
    return torch.log1p(real(s) * step)


def time_to_fraction(fraction, s, d, a0, tau=1.0):
    """Time at which a mode reaches `fraction` of its final strength s/d (inverse of `mode_strength`).

    Early Linearization Eq. 13: tau/(2s) · ln[f/(1-f) · (s/(d a0) - 1)].
    """
    fraction = real(fraction)
    return tau / (2 * s) * torch.log(fraction / (1 - fraction) * (s / (d * a0) - 1))


def half_time(s, d, a0, tau=1.0):
    """Time at which a mode reaches half of its final strength: tau/(2s) · ln(s/(d a0) - 1)."""
    return time_to_fraction(0.5, s, d, a0, tau)


def deep_mode_velocity(a, s, d, layers: int, tau=1.0):
    """Right-hand side of a balanced mode spread over `layers` matrices: tau da/dt = N a^(2-2/N) (s - ad).

    For two layers this is `mode_strength`'s equation; more layers stay at the start for longer and then move faster
    (Saxe, McClelland and Ganguli 2014).
    """
    return layers * a ** (2 - 2 / layers) * (s - a * d) / tau


def deep_mode_strength(t: Tensor, s: float, d: float, a0: float, layers: int, tau: float = 1.0) -> Tensor:
    """Strength of a balanced mode of a network of `layers` ≥ 1 matrices at the times `t`, (times,).

    Integrates `deep_mode_velocity` by inverting t(a) = ∫ da / velocity on a fine grid: exact to about 1e-5.
    """
    # Spacing the grid evenly in the logit of a d/s puts points where a moves slowly, at both ends of the sigmoid.
    start = torch.logit(torch.tensor(a0 * d / s, dtype=torch.float64))
    logit = torch.linspace(float(start), 18.0, 20001, dtype=torch.float64)
    a = (s / d) * torch.sigmoid(logit)
    slope = a * torch.sigmoid(-logit) / deep_mode_velocity(a, s, d, layers, tau)  # dt/dlogit
    hit = torch.cat([torch.zeros(1, dtype=torch.float64), torch.cumulative_trapezoid(slope, logit)])
    i = torch.searchsorted(hit, t.double()).clamp(1, len(hit) - 1)
    share = ((t - hit[i - 1]) / (hit[i] - hit[i - 1])).clamp(0, 1)
    return a[i - 1] + share * (a[i] - a[i - 1])


def initial_strength(w1: Tensor, w2: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The strength a0 from which each mode of a randomly initialised two-layer network grows: |W1 v + W2ᵀ u|²/4.

    Around zero, W1 v + W2ᵀ u grows while W1 v - W2ᵀ u shrinks; only the growing half reaches the sigmoid. Its mean is
    hidden · variance / 2. The diagonal of Uᵀ W2 W1 V is not this number and may even be negative.
    w1 (..., hidden, features), w2 (..., outputs, hidden), u (outputs, modes), v (features, modes) -> (..., modes).
    """
    return (w1 @ v + w2.mT @ u).square().sum(-2) / 4


def mode_overlap(w1: Tensor, w2: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Diagonal of Uᵀ W2 W1 V: how strongly the network's map already contains each mode, (..., modes)."""
    return torch.einsum("om,...oh,...hf,fm->...m", u, w2, w1, v)


def loss_of_modes(a: Tensor, s: Tensor, d: Tensor, power: float) -> Tensor:
    """Mean squared error, halved, of a map with mode strengths a (..., modes); power is the mean of |y|².

    L = power/2 - Σ (s a - d a²/2): exact for decoupled modes.
    """
    return power / 2 - (s * a - d * a.square() / 2).sum(-1)

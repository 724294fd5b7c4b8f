"""Closed forms of the neural race's own examples: exclusive-or (Appendix A.1) and routing (Section 4, Appendix C)."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from lib.gated.dynamics import integrate
from lib.linear.shapes import axes
from lib.linear.theory import mode_strength

Number = float | Tensor

# ---- exclusive-or (Appendix A.1) --------------------------------------------------------------------------------

XOR_S, XOR_D = math.sqrt(2) / 4, 0.5  # singular value and input variance of a path that sees one of the four points


def xor_loss(t: float | Tensor, a0: float | Tensor, tau: float = 1.0) -> Tensor:
    """Loss of the four-path network on exclusive-or: 1/2 - √2 a + a² (Neural Race Eqs. 21 to 23)."""
    a = mode_strength(t, XOR_S, XOR_D, a0, tau)
    return 0.5 - math.sqrt(2) * a + a**2


def xor_fitted_strength(time: float | Tensor, tau: float = 1.0, level: float = 0.25) -> Tensor:
    """The start a0 for which `xor_loss` falls to `level` at `time`: for runs whose start is unknown."""
    reached = (math.sqrt(2) - math.sqrt(4 * level)) / 2  # the a at which 1/2 - √2 a + a² is `level`
    end = XOR_S / XOR_D
    return end / (1 + (end / reached - 1) * torch.exp(2 * XOR_S * torch.as_tensor(time) / tau))


def xor_initial_strength(hidden: int, std: float, samples: int = 200_000, seed: int = 0) -> float:
    """The strength a0 at which each path of a ReLU network with `hidden` Gaussian units starts (open in the paper).

    The mean of `xor_unit_strength` over random units, times the hidden / 4 units of each path: 0.166 hidden std².
    """
    generator = torch.Generator().manual_seed(seed)
    draw = std * torch.randn(3, samples, generator=generator, dtype=torch.float64)
    return float(hidden / 4 * xor_unit_strength(draw[:2], draw[2]).mean())


@axes(w="2 units", v="units")
def xor_unit_strength(w: Tensor, v: Tensor) -> Tensor:
    """What ReLU units with input weights w (2, units) and output weights v (units,) add to their path's a0, (units,).

    While the output is still zero every unit moves alone: it is on for two neighbouring corners and grows along that side of
    the square at rate 1/2 until it faces one corner, then along that diagonal at the path's own rate s = √2/4.
    """
    across = w.abs().max(0).values
    along = torch.where(w[0].abs() > w[1].abs(), -w[0].sign() * w[1], -w[1].sign() * w[0])
    growing, fading = (along + v) / 2, (along - v) / 2
    # the first phase ends when |growing e^{t/2} + fading e^{-t/2}| = across: a quadratic in e^{t/2}
    e = (across + torch.sqrt(across**2 - 4 * growing * fading)) / (2 * growing.abs())
    output = (growing * e - fading / e).abs()  # size of the output weight at that moment
    turning = 2 * torch.log(e)
    return ((math.sqrt(2) * across + output) / 2) ** 2 * torch.exp(-2 * XOR_S * turning)


# ---- routing (Section 4, Appendix C) ----------------------------------------------------------------------------


def routing_velocity(b1: Number, b2: Number, s: Number, d: Number, domains: int, tau: float = 1.0) -> tuple[Number, Number]:
    """Rates of the outer (b1) and the hidden (b2) singular values of a routing network (Neural Race Eqs. 13 and 14)."""
    error = s - b2 * b1**2 * d
    return b2 * b1 * error / (domains * tau), b1**2 * error / tau


def sharing_velocity(
    b1: Number, b2: Number, s: Number, d: Number, domains: int, shared: Number, tau: Number = 1.0
) -> tuple[Number, Number]:
    """The same when `shared` of the domains² routes run through each hidden matrix (Neural Race Eqs. 16 and 17)."""
    error = s - b2 * b1**2 * d
    return shared**0.5 / domains**2 * b2 * b1 * error / tau, shared / domains**2 * b1**2 * error / tau


def routing_flow(
    times: Sequence[float] | Tensor,
    s: Sequence[float] | Tensor,
    d: float,
    domains: int,
    start: float | tuple[float, float],
    shared: int | Sequence[int] | None = None,
    tau: float | Sequence[float] = 1.0,
) -> tuple[Tensor, Tensor]:
    """Outer and hidden singular values (times, modes) from b1 = b2 = `start`, or `start` = (b1, b2).

    Integrates Neural Race Eqs. 13 and 14; with `shared` routes per pathway Eqs. 16 and 17. `shared` and `tau` are one number or
    one for each of the modes `s`, so that several networks run as one system.
    """
    s, tau = np.asarray(s, dtype=float), np.asarray(tau, dtype=float)
    shared = None if shared is None else np.asarray(shared, dtype=float)

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        b1, b2 = flat.reshape(2, -1)
        if shared is None:
            return np.concatenate(routing_velocity(b1, b2, s, d, domains, tau))
        return np.concatenate(sharing_velocity(b1, b2, s, d, domains, shared, tau))

    b1, b2 = (np.full_like(s, value) for value in (start if isinstance(start, tuple) else (start, start)))
    path = integrate(velocity, np.concatenate([b1, b2]), times)
    return torch.as_tensor(path[:, : s.size]), torch.as_tensor(path[:, s.size :])


def routing_descent(
    steps: int, s: Sequence[float] | Tensor, d: float, domains: int, start: float, step: float
) -> tuple[Tensor, Tensor]:
    """Gradient descent on Eqs. 13 and 14 with a finite `step`, (steps + 1, modes) each: what decoupled networks do."""
    s = torch.as_tensor(s, dtype=torch.float64)
    b1, b2 = torch.full_like(s, start), torch.full_like(s, start)
    path = [(b1, b2)]
    for _ in range(steps):
        rate1, rate2 = routing_velocity(b1, b2, s, d, domains)
        b1, b2 = b1 + step * rate1, b2 + step * rate2
        path.append((b1, b2))
    return torch.stack([b1 for b1, _ in path]), torch.stack([b2 for _, b2 in path])


def routing_time(b: float, s: float, d: float, domains: int, start: float, tau: float = 1.0) -> float:
    """Time at which the hidden singular value has grown from `start` to `b`, when M b1² = b2²: Eq. 15 integrated.

    Eq. 15 is the rate of b = b2 alone, tau db/dt = b1² (s - b b1² d) with b1 eliminated by M b1² - b2² = C; here C = 0.
    With r³ = M s / d the equation reads tau M² db/dt = d b² (r³ - b³), which has an elementary integral.
    """
    r = (domains * s / d) ** (1 / 3)

    def integral(b: float) -> float:
        logs = -math.log(r - b) / 3 + math.log(r**2 + r * b + b**2) / 6
        return -1 / (r**3 * b) + (logs - math.atan((2 * b + r) / (math.sqrt(3) * r)) / math.sqrt(3)) / r**4

    return tau * domains**2 / d * (integral(b) - integral(start))


def routing_final(s: float, d: float, domains: int, conserved: float = 0.0) -> tuple[float, float]:
    """Outer and hidden singular values at the end of learning: b2 solves b2³ + C b2 = M s/d, and M b1² = b2² + C."""
    hidden = brentq(lambda b: b**3 + conserved * b - domains * s / d, 0, 10 * (domains * s / d) ** (1 / 3) + 10)
    return math.sqrt((hidden**2 + conserved) / domains), hidden


def routing_loss(b1: Tensor, b2: Tensor, s: Sequence[float] | Tensor, d: Number, yy: float) -> Tensor:
    """Loss of Eq. 1 for outer and hidden singular values (..., modes): ½⟨|y|²⟩ - Σ s a + ½ Σ d a² with a = b1² b2."""
    a = b2 * b1**2
    return 0.5 * yy - (torch.as_tensor(s) * a).sum(-1) + 0.5 * (torch.as_tensor(d) * a**2).sum(-1)

"""The learning curve of a ReLU network with a bias, in closed form, from its initial weights.

Why half: while answers are tiny, W1 v + W2ᵀ u of every mode (u, v) grows and W1 v - W2ᵀ u shrinks. A unit that is on for all
items obeys the same equation as in a linear network, and the bias mode comes first; so units in which its growing part
starts positive switch on and stay linear, the others switch off. The sign is a fair coin and independent of the other modes:
every mode starts from the strength in half of the units, and then follows the sigmoid of a linear network.
Early Linearization Sections 4 and 5.4, Appendix F.4 (which has the dead units in the place of the wrong sign).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.linear import theory
from lib.linear.shapes import axes


def growing_part(weights: Sequence[Tensor], mode: theory.Modes) -> Tensor:
    """W1 v + W2ᵀ u of each unit and mode, the part of random weights that grows; (..., hidden, modes)."""
    return weights[0] @ mode.v + weights[1].mT @ mode.u


def rectified_strength(weights: Sequence[Tensor], mode: theory.Modes) -> Tensor:
    """The strength from which each mode of a ReLU network with a bias grows, (..., modes): that of the right-sign units.

    |W1 v + W2ᵀ u|²/4 over the units in which this sum is positive for the first mode, the bias mode. Its mean over
    networks is half of `linear.initial_strength`, hidden · variance / 4.
    """
    part = growing_part(weights, mode)
    return (part.square() * (part[..., :1] > 0)).sum(-2) / 4


@axes(y="outputs items")
def predicted_loss(t: Tensor | float, mode: theory.Modes, a0: Tensor, y: Tensor) -> Tensor:
    """Loss, summed over items, at the times t (times, ...) of a network whose modes start from a0 (..., modes): Eq. 7.

    Time is steps times step on that loss; where `t` is negative the modes are still at a0. With a0 = `initial_strength` it is
    a linear network, with half of it or with `rectified_strength` a ReLU network with a bias. t (times,) or one clock for
    each network, (times, ...) -> (times, ...).
    """
    items = y.shape[-1]
    clock = theory.real(t).clamp(min=0)
    clock = clock.reshape(*clock.shape, *[1] * (a0.dim() - clock.dim() + 1)) if clock.dim() else clock
    a = theory.mode_strength(clock, mode.s, mode.d, a0, tau=1 / items)
    return items * theory.loss_of_modes(a, mode.s, mode.d, float(y.square().sum() / items))


def delay(s: Tensor | float, d: Tensor | float, a0: Tensor | float, active: Tensor | float, tau: float = 1.0) -> Tensor:
    """How much later a mode comes when only a share `active` of its start is there: it begins at active · a0.

    Eq. 14 of Early Linearization after cancelling: tau/2s · ln[(s - d g a0) / (g (s - d a0))], about tau/2s · ln(1/g).
    The threshold at which the two times are compared drops out (it has to lie below s/d, or it is never reached), and the
    delay is positive exactly when g < 1. All arguments broadcast.
    """
    active = theory.real(active)
    return tau / (2 * s) * torch.log((s - d * active * a0) / (active * (s - d * a0)))


def delay_as_printed(
    s: Tensor | float, d: Tensor | float, a0: Tensor | float, g: Tensor | float, threshold: Tensor | float, tau: float = 1.0
) -> Tensor:
    """Early Linearization Eq. 14 letter by letter, where g is called the rate of dead neurons."""
    s, d, a0, g = (theory.real(value) for value in (s, d, a0, g))
    above = s**2 * a0 - s * d * a0**2 * g - s * threshold * d * a0 + d**2 * a0**2 * g * threshold
    below = s**2 * a0 * g - s * d * a0 * g * threshold - s * d * a0**2 * g + d**2 * a0**2 * g * threshold
    return tau / (2 * s) * torch.log(above / below)

"""The race between a straight and a bent solution: two gated networks on the separability task, solved by hand.

Four points form an XOR of size `amplitude` in two dimensions and are pulled apart along a third by a `margin`
(`tasks.separability`). One gated network has a pathway per class (a straight boundary), the other a pathway per
point (a bent one). Both have a single mode, so both are one sigmoid. Make Haste Slowly, Section 3 and Appendix C.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lib import linear


class Pathways(NamedTuple):
    """One kind of gating: what each of its pathways learns from."""

    s: Tensor  # (...) input-output singular value of one pathway
    d: Tensor  # (...) variance of its input along that mode
    units: float  # share of a ReLU network's units that start out with this pathway's gate

    def initial_strength(self, hidden: int, variance: float) -> float:
        """a0 of a ReLU network's own units: units · hidden · variance / 2 (Early in training each mode sums them)."""
        return self.units * hidden * variance / 2


def line_pathways(margin: Tensor) -> Pathways:
    """A pathway per class sees two points whose XOR coordinates cancel: only the margin is left. Eqs 13-17."""
    return Pathways(margin / 2, margin.square() / 2, 1 / 2)


def xor_pathways(margin: Tensor, amplitude: float = 1.0) -> Pathways:
    """A pathway per point sees the whole vector to it, of length sqrt(2 amplitude² + margin²): s is 1/4 of that.

    d is the squared length over four. The paper prints s² in its place; see `printed_xor_variance`.
    """
    squared = 2 * amplitude**2 + margin.square()
    return Pathways(squared.sqrt() / 4, squared / 4, 1 / 4)


def printed_xor_variance(margin: Tensor) -> Tensor:
    """The input variance 1/8 + margin²/16 printed in Appendix C for a pathway per point: s², not a variance."""
    return 1 / 8 + margin.square() / 16


def crossover(amplitude: float = 1.0) -> float:
    """The margin at which both kinds of pathway have the same s: amplitude · sqrt(2/3). Eqs 24-26."""
    return amplitude * math.sqrt(2 / 3)


def loss(a: Tensor, s: Tensor, d: Tensor, pathways: int) -> Tensor:
    """Mean loss of `pathways` pathways with a mode of strength `a` each: 1/2 - pathways (s a - d a²/2). Eqs 22, 23."""
    return 0.5 - pathways * (s * a - d * a.square() / 2)


def loss_curve(steps: int, gating: Pathways, a0: float, step: float) -> Tensor:
    """Mean loss (steps + 1, ...) under gradient descent: half the squared distance to go, (1 - a d/s)²/2.

    Both gatings give this form once d is right. A finite step is followed exactly (`mode_strength_discrete`), because
    at the paper's 0.4 the continuous solution is up to a tenth too early.
    """
    a = linear.mode_strength_discrete(steps, gating.s, gating.d, torch.full_like(gating.s, a0), step)
    return 0.5 * (1 - a * gating.d / gating.s).square()


def time_to_loss(level: float, gating: Pathways, a0: float, step: float) -> Tensor:
    """Continuous-time prediction of when the mean loss reaches `level`, in steps; discrete growth rate included."""
    share = 1 - math.sqrt(2 * level)
    rate = linear.discrete_rate(gating.s, step) / step
    return torch.log(share / (1 - share) * (gating.s / (gating.d * a0) - 1)) / (2 * rate * step)


# The class of each point (-1, -1), (1, -1), (-1, 1), (1, 1): the same as `tasks.separability`'s y.
_POSITIVE = torch.tensor([False, True, True, False])


def kinds_of_gate(on: Tensor) -> dict[str, Tensor]:
    """Sorts gating patterns (..., units, 4) into the two stories: {"line", "xor", "other", "dead"}, boolean (..., units).

    line: on for exactly one whole class. xor: on for exactly one point. other: three points, one of each class, or all.
    """
    count = on.sum(-1)
    one_class = (on == _POSITIVE).all(-1) | (on == ~_POSITIVE).all(-1)
    kinds = {"line": one_class, "xor": count == 1, "dead": count == 0}
    return kinds | {"other": ~(kinds["line"] | kinds["xor"] | kinds["dead"])}

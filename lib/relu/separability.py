"""The race between a linear and a nonlinear solution: two gated networks on the separability task, solved by hand.

Four points form an XOR of size `amplitude` in two dimensions and are pulled apart along a third by a `margin`
(`tasks.separability`). One gated network has a pathway per class (a straight boundary), the other a pathway per
point (a bent one). Both have a single mode, so both are one sigmoid. Make Haste Slowly, Section 3 and Appendix C.

Margins are numbers, arrays or tensors of any shape (...). Losses are means over the four points; `step` is the size of a
step on that loss, the paper's 1/tau.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lib import linear
from lib.linear import axes

Real = float | np.ndarray | Tensor


class Gating(NamedTuple):
    """One way to cut the four points into groups, a linear pathway for each group: what one of them learns from."""

    s: Tensor  # (...) input-output singular value of one pathway
    d: Tensor  # (...) variance of its input along that mode
    groups: int  # how many groups, and so how many pathways

    def initial_strength(self, hidden: int, variance: float) -> float:
        """a0 of one pathway, to which a ReLU network gives hidden / groups units by symmetry: that many · variance / 2."""
        return hidden / self.groups * variance / 2


def line_pathways(margin: Real) -> Gating:
    """A pathway per class sees two points whose XOR coordinates cancel: only the margin is left. Eqs 13-17."""
    margin = linear.real(margin)
    return Gating(margin / 2, margin.square() / 2, groups=2)


def xor_pathways(margin: Real, amplitude: Real = 1.0) -> Gating:
    """A pathway per point sees the whole vector to it, of length sqrt(2 amplitude² + margin²): s is 1/4 of that.

    d is the squared length over four. The paper prints s² in its place; see `printed_xor_variance`.
    """
    squared = 2 * linear.real(amplitude).square() + linear.real(margin).square()
    return Gating(squared.sqrt() / 4, squared / 4, groups=4)


def printed_xor_variance(margin: Real) -> Tensor:
    """The input variance 1/8 + margin²/16 printed in Appendix C for a pathway per point: s², not a variance."""
    return 1 / 8 + linear.real(margin).square() / 16


def crossover(amplitude: float = 1.0) -> float:
    """The margin at which both kinds of pathway have the same s: amplitude · sqrt(2/3). Eqs 24-26."""
    return amplitude * math.sqrt(2 / 3)


def loss(a: Real, gating: Gating) -> Tensor:
    """Mean loss when every pathway has a mode of strength `a`: 1/2 - groups (s a - d a²/2). Eqs 22, 23."""
    a = linear.real(a)
    return 0.5 - gating.groups * (gating.s * a - gating.d * a.square() / 2)


def loss_curve(steps: int, gating: Gating, a0: Real, step: float) -> Tensor:
    """Mean loss (steps + 1, ...) under gradient descent from strength `a0`; 1/2 throughout where nothing can be learned.

    The finite step is followed exactly: at the paper's 0.4 the continuous solution is up to a tenth too early.
    """
    return loss(linear.mode_strength_discrete(steps, gating.s, gating.d, linear.real(a0), step), gating)


# The class of each point (-1, -1), (1, -1), (-1, 1), (1, 1): the same as `tasks.separability`'s y.
_POSITIVE = torch.tensor([False, True, True, False])


@axes(on="units 4")
def kinds_of_gate(on: Tensor) -> dict[str, Tensor]:
    """Sorts gating patterns (..., units, 4) into the two stories: {"line", "xor", "other", "dead"}, boolean (..., units).

    line: on for exactly one whole class. xor: on for exactly one point. other: three points, one of each class, or all.
    """
    count, positive = on.sum(-1), _POSITIVE.to(on.device)
    one_class = (on == positive).all(-1) | (on == ~positive).all(-1)
    kinds = {"line": one_class, "xor": count == 1, "dead": count == 0}
    return kinds | {"other": ~(kinds["line"] | kinds["xor"] | kinds["dead"])}

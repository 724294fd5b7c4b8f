"""Early linearisation: what a constant input does to ReLU units and to the modes of two-layer networks.

A bias is a constant input. `with_constant` appends it to the data, so that a network's first matrix carries the biases
in its last column and everything else (linear theory, gradients, gates) needs no special case; a constant of zero is a
network without biases. The networks are those of `relu.networks`: weights [w1 (..., hidden, features), w2 (..., outputs,
hidden)], x (..., features, items). The paper sums its loss over items: train with reduction="sum".
Bias-mediated early linearization, Sections 4 to 6 and Appendices B, C and F.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lib.linear import theory
from lib.linear.shapes import axes
from lib.relu import networks


@axes(x="features items")
def with_constant(x: Tensor, strength: Tensor | float = 1.0) -> Tensor:
    """The augmented inputs: `x` (..., features, items) over a last row that is `strength` for every item.

    The axes of `strength` are ensemble axes and broadcast against those of x: strengths of shape (conditions, 1) give
    (conditions, 1, features + 1, items), which goes with networks (conditions, seeds). Section 5.1 (where the row is first).
    """
    strength = torch.as_tensor(strength, dtype=x.dtype, device=x.device)
    ensemble = torch.broadcast_shapes(strength.shape, x.shape[:-2])
    row = strength[..., None, None].expand(*ensemble, 1, x.shape[-1])
    return torch.cat([x.expand(*ensemble, *x.shape[-2:]), row], -2)


# --- the bias mode ------------------------------------------------------------------------------------------------------


def input_spectrum(items: int, strength: float) -> Tensor:
    """Eigenvalues of the input correlations of one-hot items with a constant, largest first: c² + 1/P, 1/P, …, 0.

    Early Linearization Proposition 1.
    """
    return torch.tensor([strength**2 + 1 / items] + [1 / items] * (items - 1) + [0.0], dtype=torch.float64)


class BiasMode(NamedTuple):
    """The mode by which a constant input learns the mean label."""

    s: float  # its input-output strength, sqrt(c² + 1/P) |mean label|
    d: float  # its input variance, c² + 1/P
    v: Tensor  # (items + 1,) unit vector that it looks at; the constant comes last


@axes(y="outputs items")
def bias_mode(y: Tensor, strength: float) -> BiasMode:
    """The mode by which a constant input learns the mean label of one-hot items. Early Linearization Eq. 5.

    It is a singular mode of the data only if all labels have the same inner product with the mean label, and the first
    one only if no other is stronger; labels with non-negative inner products suffice for that.
    """
    items = y.shape[-1]
    d = strength**2 + 1 / items
    v = torch.cat([torch.full((items,), 1 / (strength * items), dtype=torch.float64), torch.ones(1, dtype=torch.float64)])
    return BiasMode(d**0.5 * float(y.mean(-1).norm()), d, v / v.norm())


@axes(answers="outputs items", x="features items")
def mode_strengths(answers: Tensor, x: Tensor, mode: theory.Modes) -> Tensor:
    """How much of each mode a network's answers (..., outputs, items) contain, (..., modes): uᵀ⟨ŷ xᵀ⟩v / d.

    For a linear network it is the mode's strength a = uᵀ W2 W1 v; unlike that, it also makes sense for a ReLU network.
    """
    seen = x.mT @ mode.v / (mode.d * x.shape[-1])  # (items, modes)
    return (mode.u.mT @ answers * seen.mT).sum(-1)


def delay(s: Tensor | float, d: Tensor | float, a0: Tensor | float, active: Tensor | float, tau: float = 1.0) -> Tensor:
    """How much later a mode comes when only a share `active` of the units carries it: its start is active · a0.

    Eq. 14 of Early Linearization after cancelling: tau/2s · ln[(s - d g a0) / (g (s - d a0))], about tau/2s · ln(1/g).
    The threshold at which the two times are compared drops out, and the delay is positive exactly when g < 1.
    All arguments broadcast.
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


# --- what the units do ----------------------------------------------------------------------------------------------------


@axes(w1="hidden features")
def kinks(w1: Tensor) -> Tensor:
    """Distance from the origin at which each unit switches on, -b/|w| with the bias in the last column; (..., hidden).

    Early Linearization Section 5.3. A negative kink means that the unit is on at the origin.
    """
    return -w1[..., -1] / w1[..., :-1].norm(dim=-1)


@axes(w1="hidden features")
def bias_ratio(w1: Tensor) -> Tensor:
    """Length of a layer's biases, its last column, relative to that of its weights: |b| / |W1|, (...).

    While the bias mode is alone, it is c sqrt(P) for P one-hot items. Early Linearization Fig. 3a.
    """
    return w1[..., -1].norm(dim=-1) / w1[..., :-1].norm(dim=(-2, -1))


def linearisation_time(on: Tensor) -> Tensor:
    """Index of the first maximum over time of the share of always-on units `on` (times, ...). Section 5.4's t*."""
    return on.argmax(0)


def at(recorded: Tensor, index: Tensor) -> Tensor:
    """Each member's record at its own time: recorded (times, seeds, ...), index (seeds,) -> (seeds, ...)."""
    return recorded[index, torch.arange(len(index))]


def keep_units(weights: Sequence[Tensor], kept: Tensor) -> list[Tensor]:
    """The network without the units where `kept` (..., hidden) is false; their weights, now zero, never come back.

    A linear network made this way is the gated one, W2 G W1, of Early Linearization Eq. 15.
    """
    return [weights[0] * kept[..., :, None], weights[1] * kept[..., None, :]]


def linear_preference(
    weights: Sequence[Tensor], margin: Tensor | float, constant: Tensor | float, activation: networks.Activation = "relu"
) -> Tensor:
    """Does a network trained on an XOR with a margin answer by the plane (1) or by the XOR (0)? One number each, (...).

    It is asked about all eight corners, half of which contradict the training data. Of the difference between its two
    outputs, the part that follows the third coordinate is divided by that plus the part that follows the XOR. Where the two
    parts have opposite signs, the network answers one of them against the labels, and the larger one takes all: a number
    in [0, 1] (NaN only where both parts are zero). `margin` and `constant` are numbers, or tensors that broadcast against
    the weights' ensemble.
    """
    like = weights[0]
    margin, constant = (torch.as_tensor(value, dtype=like.dtype, device=like.device) for value in (margin, constant))
    side = torch.tensor([-1.0, 1.0], dtype=like.dtype, device=like.device)
    corner = torch.cartesian_prod(side, side, side).T  # (3, 8)
    points = torch.cat([corner[:2].expand(*margin.shape, 2, 8), margin[..., None, None] * corner[2:]], -2)
    answer = networks.output(weights, with_constant(points, constant), activation=activation)
    difference = answer[..., 1, :] - answer[..., 0, :]
    plane, xor = (difference * corner[2]).mean(-1), -(difference * corner[0] * corner[1]).mean(-1)
    return (plane / (plane + xor)).clamp(0, 1)

"""What the units of a network with a constant do, and which solution they end up with. Early Linearization Sections 5.3 to 6."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.linear.shapes import axes
from lib.relu import networks
from lib.relu.linearization.constant import with_constant


@axes(w1="hidden features")
def kinks(w1: Tensor) -> Tensor:
    """Distance from the origin at which each unit switches on, -b/|w| with the bias in the last column; (..., hidden).

    Early Linearization Section 5.3. A negative kink means that the unit is on at the origin.
    """
    return -w1[..., -1] / w1[..., :-1].norm(dim=-1)


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
    weights: Sequence[Tensor], margin: Tensor | float, constant: Tensor | float, activation: str = "relu"
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

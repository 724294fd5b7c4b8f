"""Early linearisation: two-layer networks with a constant input, and what the constant does to their ReLU units.

A bias is a constant input. `with_constant` appends it to the data, so that a network's first matrix carries the biases
in its last column and everything else (linear theory, gradients, gates) needs no special case; a constant of zero is a
network without biases. Bias strengths, seeds and margins are leading tensor dimensions of one batched program.

Shapes: x (..., features, items), y (..., outputs, items); weights are [w1 (..., hidden, features), w2 (..., outputs,
hidden)]. The loss is half the squared error, summed over items as in the paper unless said otherwise.
Bias-mediated early linearization, Sections 4 to 6 and Appendices B, C and F.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lib import linear
from lib.linear.descent import Recording, descend

# --- networks with a constant input -------------------------------------------------------------------------------------


def with_constant(x: Tensor, strength: Tensor | float = 1.0) -> Tensor:
    """The augmented inputs: `x` (features, items) over a last row that is `strength` for every item.

    For strengths of shape (...) the result is (..., features + 1, items). Section 5.1 (which puts the row first).
    """
    strength = torch.as_tensor(strength, dtype=x.dtype, device=x.device)
    ensemble = strength.shape
    row = strength[..., None, None].expand(*ensemble, 1, x.shape[-1])
    return torch.cat([x.expand(*ensemble, *x.shape[-2:]), row], -2)


def start(x: Tensor, y: Tensor, hidden: int, std: float, seeds: int, seed: int = 0) -> list[Tensor]:
    """Small random weights for each ensemble member of `x` (..., features, items): (..., seeds, out, in).

    Seed k draws the same weights in every condition, so that conditions are compared network by network.
    """
    weights = linear.small_weights([(hidden, x.shape[-2]), (y.shape[-2], hidden)], std, seeds, seed, device=x.device)
    return [w.expand(*x.shape[:-2], *w.shape).clone() for w in weights]


def train(
    weights: list[Tensor],
    x: Tensor,
    y: Tensor,
    *,
    activation: str = "relu",
    step: float,
    steps: int,
    every: int = 10,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
    label: str = "",
) -> Recording:
    """Full-batch gradient descent on the summed loss, in place; records "loss" and what `observe(weights)` returns.

    `x` and `y` may have ensemble dimensions that broadcast against the weights' after a dimension for the seeds is put
    in: x (conditions, features, items) goes with weights (conditions, seeds, out, in). Times are steps; the paper's
    clock is step · steps, with tau = 1/items.
    """
    ensemble = weights[0].shape[:-2]
    rows, labels = _rows(x, ensemble), _rows(y, ensemble)  # (networks, items, features or outputs)
    # Hidden units last in memory: every product then runs over long contiguous rows, 3 times faster at this size.
    flat = [weights[0].mT.reshape(-1, *weights[0].mT.shape[-2:]).clone(), weights[1].reshape(-1, *weights[1].shape[-2:]).clone()]

    def shaped(w: list[Tensor]) -> list[Tensor]:
        return [w[0].mT.unflatten(0, ensemble), w[1].unflatten(0, ensemble)] if ensemble else [w[0][0].mT, w[1][0]]

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        error = torch.bmm(_hidden(rows, w[0], activation), w[1].mT).sub_(labels)
        seen = {"loss": error.square().sum((-2, -1)).div(2).reshape(ensemble)}
        return seen | observe(shaped(w)) if observe else seen

    slope = gradient(rows, labels, activation)
    recording = descend(flat, slope, step=step, steps=steps, every=every, observe=watch, label=label)
    for w, trained in zip(weights, shaped(flat), strict=True):
        w.copy_(trained)
    return recording


def gradient(rows: Tensor, labels: Tensor, activation: str = "relu", share: float = 1.0):
    """The function [w1ᵀ, w2] -> [dL/dw1ᵀ, dL/dw2] for rows (networks, items, features), labels (networks, items, outputs).

    By hand, with the first matrix transposed, (networks, features, hidden): see `train`. `share` scales the loss (one
    over the number of items makes it a mean). Early Linearization Eqs 8-10.
    """
    if activation not in ("relu", "linear"):
        raise ValueError(f'activation is "relu" or "linear", not {activation!r}')
    columns = rows.mT.contiguous() if rows[0].numel() < 4096 else rows.mT  # copying pays for small matrices only

    def slope(w: list[Tensor]) -> list[Tensor]:
        h = _hidden(rows, w[0], activation)  # (networks, items, hidden)
        error = torch.bmm(h, w[1].mT).sub_(labels)  # (networks, items, outputs)
        if share != 1.0:
            error.mul_(share)
        back = torch.bmm(error, w[1])  # (networks, items, hidden)
        if activation == "relu":
            back = torch.ops.aten.threshold_backward(back, h, 0)  # keeps it where the unit is on
        return [torch.bmm(columns, back), torch.bmm(error.mT, h)]

    return slope


def output(weights: list[Tensor], x: Tensor, activation: str = "relu") -> Tensor:
    """The network's answers, (..., outputs, items)."""
    return weights[1] @ hidden(weights, x, activation)


def hidden(weights: list[Tensor], x: Tensor, activation: str = "relu") -> Tensor:
    """The hidden activations, (..., hidden, items)."""
    z = weights[0] @ x
    return z.relu() if activation == "relu" else z


# --- the bias mode ------------------------------------------------------------------------------------------------------


def input_spectrum(items: int, strength: float) -> Tensor:
    """Eigenvalues of the input correlations of one-hot items with a constant, largest first: c² + 1/P, 1/P, …, 0.

    Early Linearization Proposition 1.
    """
    return torch.tensor([strength**2 + 1 / items] + [1 / items] * (items - 1) + [0.0], dtype=torch.float64)


class BiasMode(NamedTuple):
    s: float  # its input-output strength, sqrt(c² + 1/P) |mean label|
    d: float  # its input variance, c² + 1/P
    v: Tensor  # (items + 1,) unit vector that it looks at; the constant comes last


def bias_mode(y: Tensor, strength: float) -> BiasMode:
    """The mode by which a constant input learns the mean label of one-hot items. Early Linearization Eq. 5.

    It is a singular mode of the data only if all labels have the same inner product with the mean label, and the first
    one only if no other is stronger; labels with non-negative inner products suffice for that.
    """
    items = y.shape[-1]
    d = strength**2 + 1 / items
    v = torch.cat([torch.full((items,), 1 / (strength * items), dtype=torch.float64), torch.ones(1, dtype=torch.float64)])
    return BiasMode(d**0.5 * float(y.mean(-1).norm()), d, v / v.norm())


def mode_strengths(answers: Tensor, x: Tensor, mode: linear.Modes) -> Tensor:
    """How much of each mode a network's answers (..., outputs, items) contain, (..., modes): uᵀ⟨ŷ xᵀ⟩v / d.

    For a linear network it is the mode's strength a = uᵀ W2 W1 v; unlike that, it also makes sense for a ReLU network.
    """
    seen = x.mT @ mode.v / (mode.d * x.shape[-1])  # (items, modes)
    return (mode.u.mT @ answers * seen.mT).sum(-1)


def delay(s, d, a0, active, tau=1.0):
    """How much later a mode comes when only a share `active` of the units carries it: its start is active · a0.

    Eq. 14 of Early Linearization after cancelling: tau/2s · ln[(s - d g a0) / (g (s - d a0))], about tau/2s · ln(1/g).
    The threshold at which the two times are compared drops out, and the delay is positive exactly when g < 1.
    """
    active = linear.real(active)
    return tau / (2 * s) * torch.log((s - d * active * a0) / (active * (s - d * a0)))


def delay_as_printed(s, d, a0, g, threshold, tau=1.0):
    """Early Linearization Eq. 14 letter by letter, where g is called the rate of dead neurons."""
    above = s**2 * a0 - s * d * a0**2 * g - s * threshold * d * a0 + d**2 * a0**2 * g * threshold
    below = s**2 * a0 * g - s * d * a0 * g * threshold - s * d * a0**2 * g + d**2 * a0**2 * g * threshold
    return tau / (2 * s) * torch.log(above / below)


# --- what the units do ----------------------------------------------------------------------------------------------------


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


def keep_units(weights: list[Tensor], kept: Tensor) -> list[Tensor]:
    """The network without the units where `kept` (..., hidden) is false; their weights, now zero, never come back.

    A linear network made this way is the gated one, W2 G W1, of Early Linearization Eq. 15.
    """
    return [weights[0] * kept[..., :, None], weights[1] * kept[..., None, :]]


def linear_preference(weights: list[Tensor], margin: Tensor, constant: Tensor, activation: str = "relu") -> Tensor:
    """Does a network trained on an XOR with a margin answer by the plane (1) or by the XOR (0)? One number each, (...).

    It is asked about all eight corners, half of which contradict the training data. Of the difference between its two
    outputs the part that follows the third coordinate is divided by that plus the part that follows the XOR.
    `margin` (...) and `constant` (...) broadcast against the weights' ensemble.
    """
    side = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    corner = torch.cartesian_prod(side, side, side).T  # (3, 8)
    size = torch.ones(*torch.broadcast_shapes(margin.shape, constant.shape), 4, 1, dtype=torch.float64)
    size[..., 2, 0], size[..., 3, 0] = margin, constant
    x = size * torch.cat([corner, torch.ones(1, 8, dtype=torch.float64)])
    answer = output(weights, x, activation)
    difference = answer[..., 1, :] - answer[..., 0, :]
    plane, xor = (difference * corner[2]).mean(-1), -(difference * corner[0] * corner[1]).mean(-1)
    return plane / (plane + xor)


# --- helpers ---------------------------------------------------------------------------------------------------------------


def _rows(data: Tensor, ensemble: torch.Size) -> Tensor:
    """(..., features, items) -> contiguous (networks, items, features), with a dimension for the seeds put in."""
    rows = data.mT
    if ensemble:
        rows = rows.unsqueeze(-3) if rows.dim() > 2 else rows
        rows = rows.expand(*ensemble, *rows.shape[-2:])
    return rows.reshape(-1, *rows.shape[-2:]).contiguous()


def _hidden(rows: Tensor, w1t: Tensor, activation: str) -> Tensor:
    z = torch.bmm(rows, w1t)
    return z.relu_() if activation == "relu" else z

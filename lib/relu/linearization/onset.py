"""How strong must a constant be to be a bias? Two conditions: on for all items is where units go, and they get there in time.

While answers are tiny, units do not feel each other. A unit with incoming weights w and outgoing weights r obeys
w' = Σ (r·yᵢ) xᵢ and r' = Σ (w·xᵢ) yᵢ, summed over the items for which it is on (summed loss, time in steps times step). As
long as that set of items stays the same, this is linear, and the unit turns to the first singular pair of Σ yᵢ xᵢᵀ and
grows at its rate; if that pair switches on exactly this set, the unit may stay (`early_directions`).

A unit that is off for some item must be lifted over it before the task is learned. To the first order in c the lift is c² times
what a vanishing constant collects, ∫Σ (r·error) dt over the items for which the unit is on, and this can be read off networks
without a bias (`without_bias`, `predicted_on`). The twin of Early Linearization Fig. 10 and of the passages on "any c > 0".
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lib.linear.descent import Recording, crossing
from lib.linear.shapes import axes
from lib.relu import networks
from lib.relu.linearization.constant import with_constant

PROBE = 1e-6  # a constant that changes nothing and still collects what there is to collect


class Direction(NamedTuple):
    """A direction in which a small unit may grow: it is on for some items, and these items keep it there."""

    speed: float  # weights grow like exp(speed · time)
    on: tuple[bool, ...]  # for which items


def _sets(x: Tensor) -> Tensor:
    """Every set of the items of x but the empty one, (2^items - 1, items), as zeros and ones of its precision."""
    items = x.shape[-1]
    if items > 16:
        raise ValueError(f"there are 2^{items} sets of {items} items; at most 16 items can be gone through")
    codes = torch.arange(1, 2**items)
    return ((codes[:, None] >> torch.arange(items)) & 1).to(x)


@axes(x="features items", y="outputs items")
def early_directions(x: Tensor, y: Tensor) -> list[Direction]:
    """All directions in which small units may grow, the fastest first, for x (features, items), y (outputs, items).

    For each set of items the first singular pair of Σ yᵢ xᵢᵀ; it counts if its input vector is positive on the set and on no
    other item. With a constant, "on for all items" must be among them, and fast, for units to become linear.
    """
    found = []
    for chosen in _sets(x).split(1024):
        _, s, vt = torch.linalg.svd((y * chosen[:, None]) @ x.mT, full_matrices=False)
        z = vt[:, 0] @ x  # (sets, items)
        z = z * (z * chosen).sum(-1, keepdim=True).sign()
        rounding = max(1e-9, 10 * torch.finfo(z.dtype).eps) * z.abs().amax(-1, keepdim=True)
        fits = torch.where(chosen > 0, z > rounding, z <= rounding).all(-1)
        rows = zip(s[fits, 0].tolist(), chosen[fits].bool().tolist(), strict=True)
        found += [Direction(speed, tuple(on)) for speed, on in rows if speed > 0]
    return sorted(found, key=lambda direction: (-direction.speed, direction.on))


@axes(x="features items", y="outputs items")
def typical_speed(x: Tensor, y: Tensor) -> float:
    """Growth rate of a typical unit without a bias relative to the fastest one: median over all sets of items.

    Both start at the size σ. When the fast ones have learned the task, typical ones have grown to σ^(1 - ratio) only, and the
    constant that lifts them over a gate of size σ is c ~ σ^(ratio / 2); for the fast ones it is σ^(1/2). For one-hot items.
    """
    inner, speeds = y.mT @ y, []  # singular values by the Gram matrix: in half of the time
    for chosen in _sets(x).split(1024):
        gram = x @ (inner * chosen[:, None] * chosen[:, :, None]) @ x.mT  # (sets, features, features)
        speeds.append(torch.linalg.eigvalsh(gram)[:, -1].clamp(min=0).sqrt())
    speeds = torch.cat(speeds)
    return float(speeds.median() / speeds.max())


@axes(x="features items", y="outputs items")
def without_bias(weights: Sequence[Tensor], x: Tensor, y: Tensor, **schedule: float) -> Recording:
    """Train copies of ReLU networks on x (features, items) with a vanishing constant, and watch how near their gates are.

    `weights` have a column for the constant, as for `with_constant`; `schedule` is {step, steps, every}. Records, (times,
    seeds, hidden): "lowest", each unit's input for the item that excites it least, and "lift", what its bias has collected,
    per unit of the constant; and "loss", summed over items.
    """
    copies = [w.clone() for w in weights]
    before = copies[0][..., -1].clone()

    def look(w: list[Tensor]) -> dict[str, Tensor]:
        return {"lowest": (w[0][..., :-1] @ x).amin(-1), "lift": (w[0][..., -1] - before) / PROBE}

    return networks.train(copies, with_constant(x, PROBE), y, reduction="sum", observe=look, **schedule)


def predicted_on(run: Recording, strengths: Tensor) -> Tensor:
    """Largest share of always-on units that constants `strengths` (strengths,) should bring about; (strengths, seeds).

    From networks `without_bias`: a unit is on for all items when c² · lift exceeds what it lacks for the least exciting one.
    """
    lowest, lift = run["lowest"], run["lift"]
    return torch.stack([(lowest + c**2 * lift > 0).double().mean(-1).amax(0) for c in strengths])


def threshold(strengths: Tensor, on: Tensor, share: float = 0.5) -> Tensor:
    """The constant at which the largest share of always-on units, `on` (strengths, ...), reaches `share`: (...).

    Interpolated in ln c between the given `strengths` (strengths,); NaN where it does not get there. Half is the word "most"
    of Early Linearization Section 5.
    """
    return crossing(strengths.log(), on, share, rising=True).exp()

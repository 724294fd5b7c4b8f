"""Early linearisation: what a constant input does to ReLU units and to the modes of two-layer networks.

A bias is a constant input. `with_constant` appends it to the data, so that a network's first matrix carries the biases
in its last column and everything else (linear theory, gradients, gates) needs no special case; a constant of zero is a
network without biases. Weights are [w1 (..., hidden, features), w2 (..., outputs, hidden)], x (..., features, items). The
paper sums its loss over items: train with reduction="sum".

Bias-mediated early linearization, Sections 4 to 6 and Appendices B, C and F. (For the kernel limit see `relu.tangent`.)

    from lib import linear, relu
    from lib.data import tasks
    from lib.relu import linearization
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 1.0)
    weights = relu.initial_weights((9, 64, 15), std=2e-4, seeds=3)
    mode = linear.modes(*linear.correlations(x, y))
    print(linearization.rectified_strength(weights, mode) / linear.initial_strength(*weights, mode.u, mode.v))
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lib.linear import theory
from lib.linear.descent import Recording, crossing
from lib.linear.shapes import axes
from lib.relu import networks

Real = Tensor | float

# --- the constant, and the mode by which it learns the mean label (Sections 5.1 and 5.2) -------------------------------------


@axes(x="features items")
def with_constant(x: Tensor, strength: Tensor | float = 1.0) -> Tensor:
    """The augmented inputs: `x` (..., features, items) over a last row that is `strength` for every item.

    The axes of `strength` are ensemble axes and broadcast against those of x: strengths of shape (conditions, 1) give
    (conditions, 1, features + 1, items), which goes with networks (conditions, seeds). Section 5.1 (where the row is first).
    """
    strength = torch.as_tensor(strength, dtype=x.dtype, device=x.device)
    ensemble = np.broadcast_shapes(strength.shape, x.shape[:-2])  # torch's own loads its compiler
    row = strength[..., None, None].expand(*ensemble, 1, x.shape[-1])
    return torch.cat([x.expand(*ensemble, *x.shape[-2:]), row], -2)


class BiasMode(NamedTuple):
    """The mode by which a constant input learns the mean label."""

    s: float  # its input-output strength, sqrt(c² + 1/P) |mean label|
    d: float  # its input variance, c² + 1/P
    v: Tensor  # (items + 1,) unit vector that it looks at; the constant comes last


@axes(y="outputs items")
def bias_mode(y: Tensor, strength: float) -> BiasMode:
    """The mode by which a constant input learns the mean label of one-hot items. Early Linearization Eq. 5.

    It is a singular mode of the data only if all labels have the same inner product with the mean label (Eq. 4), and the
    first one if no other is stronger; labels with non-negative inner products suffice for that.
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


# --- what units do, and which solution they end up with (Sections 5.3 to 6) --------------------------------------------------


@axes(w1="hidden features")
def kinks(w1: Tensor) -> Tensor:
    """Distance from the origin at which each unit switches on, -b/|w| with the bias last; (..., hidden). Section 5.3."""
    return -w1[..., -1] / w1[..., :-1].norm(dim=-1)


def linearisation_time(on: Tensor) -> Tensor:
    """Index of the first maximum over time of the share of always-on units `on` (times, ...). Section 5.4's t*."""
    return on.argmax(0)


def at(recorded: Tensor, index: Tensor) -> Tensor:
    """Each member's record at its own time: recorded (times, seeds, ...), index (seeds,) -> (seeds, ...)."""
    return recorded[index, torch.arange(len(index))]


def keep_units(weights: Sequence[Tensor], kept: Tensor) -> list[Tensor]:
    """The network without the units where `kept` (..., hidden) is false: W2 G W1 of Early Linearization Eq. 15."""
    return [weights[0] * kept[..., :, None], weights[1] * kept[..., None, :]]


def linear_preference(
    weights: Sequence[Tensor], margin: Tensor | float, constant: Tensor | float, activation: str = "relu"
) -> Tensor:
    """Does a network trained on an XOR with a margin answer by the plane (1) or by the XOR (0)? One number each, (...).

    It is asked about all eight corners, half of which contradict the training data. Of the difference between its two
    outputs, the part that follows the third coordinate is divided by that plus the part that follows the XOR, clamped to
    [0, 1] where the signs differ; NaN only where both are zero. `margin` and `constant` broadcast against the ensemble.
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


# --- the learning curve in closed form, from the initial weights (Sections 4 and 5.4, Appendix F.4) --------------------------

# Why half: while answers are tiny, W1 v + W2ᵀ u of every mode (u, v) grows and W1 v - W2ᵀ u shrinks. The bias mode comes first;
# units in which its growing part starts positive switch on and are linear from then on. In the others the mode shrinks until they
# are nearly silent; many of them switch on later, but with so little weight that they do not count. The sign is a fair coin and
# independent of the other modes: every mode starts from the strength in half of the units, and then follows the sigmoid of a
# linear network. This holds where the bias mode is much the strongest. (Appendix F.4 has the dead units in place of the sign.)


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
    a linear network, with half of it or with `rectified_strength` a ReLU network with a bias. Returns (times, ...).
    """
    items = y.shape[-1]
    clock = theory.real(t).clamp(min=0)
    clock = clock.reshape(*clock.shape, *[1] * (a0.dim() - clock.dim() + 1)) if clock.dim() else clock
    a = theory.mode_strength(clock, mode.s, mode.d, a0, tau=1 / items)
    return items * theory.loss_of_modes(a, mode.s, mode.d, float(y.square().sum() / items))


def delay(s: Real, d: Real, a0: Real, active: Real, tau: float = 1.0) -> Tensor:
    """How much later a mode comes when only a share `active` of its start is there: it begins at active · a0.

    Eq. 14 of Early Linearization after cancelling: tau/2s · ln[(s - d g a0) / (g (s - d a0))], about tau/2s · ln(1/g).
    The threshold at which the two times are compared drops out. All arguments broadcast.
    """
    active = theory.real(active)
    return tau / (2 * s) * torch.log((s - d * active * a0) / (active * (s - d * a0)))


# --- how strong must a constant be? (Fig. 10) --------------------------------------------------------------------------------

# While answers are tiny, a unit with incoming weights w and outgoing weights r obeys w' = Σ (r·yᵢ) xᵢ and r' = Σ (w·xᵢ) yᵢ,
# summed over the items for which it is on. As long as these stay the same, the unit turns to the first singular pair of
# Σ yᵢ xᵢᵀ and grows at its rate; if that pair switches on exactly these items, the unit may stay (`early_directions`).
#
# A unit that is off for some item must be lifted over it before the task is learned. To the first order in c the lift is c² times
# what a vanishing constant collects, ∫Σ (r·error) dt over the items for which the unit is on, and this can be read off networks
# without a bias (`without_bias`, `predicted_on`). The twin of Early Linearization Fig. 10 and of the passages on "any c > 0".

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
def settled_sets(on: Tensor, x: Tensor, y: Tensor, rounds: int = 100) -> Tensor:
    """For which items are small units on in the end that begin on for `on` (units, items)? Same shape, true or false.

    Each unit turns to the first singular pair of Σ yᵢ xᵢᵀ over its items, is then on for others, and so on until nothing
    changes: `early_directions` for data whose sets of items are too many to list. Which sets are found depends on `on`.
    """
    on = on.to(x)
    for _ in range(rounds):
        _, _, vt = torch.linalg.svd((y * on[:, None]) @ x.mT, full_matrices=False)
        z = vt[:, 0] @ x  # (units, items)
        after = (z * (z * on).sum(-1, keepdim=True).sign() > 0).to(x)
        if (after == on).all():
            break
        on = after
    return on > 0


@axes(x="features items", y="outputs items")
def early_factor(
    x: Tensor, y: Tensor, units: int = 5000, growth: float = 14.0, steps: int = 400, seed: int = 0
) -> tuple[float, float]:
    """By which factor does the first mode start from less in a ReLU network than in a linear one? (factor, weight on).

    Random units follow the early flow w' = Σ (r·yᵢ) xᵢ, r' = Σ (w·xᵢ) yᵢ over the items for which they are on, until that mode
    has grown by exp(`growth`) in a linear network. What it is then in the units that are on for all items, relative to the
    linear network, is the factor: units that were off for some items have grown less. The flow is homogeneous, so the factor does
    not depend on the initial scale. It means something if nearly all weight is in these units, the second number.
    """
    yx, xx = theory.correlations(x, y)
    mode = theory.modes(yx, xx)
    rate = float(mode.s[0]) * x.shape[-1]
    step = growth / rate / steps
    generator = torch.Generator().manual_seed(seed)
    w = torch.randn(units, x.shape[0], generator=generator, dtype=x.dtype)
    r = torch.randn(y.shape[0], units, generator=generator, dtype=x.dtype)
    before = growing_part([w, r], mode)[:, 0].square().sum()
    for _ in range(steps):
        z = (w @ x).relu()
        w, r = w + step * (r.mT @ y * (z > 0)) @ x.mT, r + step * y @ z.mT
    on = (w @ x > 0).all(-1)
    after = (growing_part([w, r], mode)[:, 0].square() * on).sum() / (1 + step * rate) ** (2 * steps)
    size = w.square().sum(-1)
    return float(after / before), float((size * on).sum() / size.sum())


@axes(x="features items", y="outputs items")
def without_bias(weights: Sequence[Tensor], x: Tensor, y: Tensor, **schedule: float) -> Recording:
    """Train copies of ReLU networks on x (features, items) with a vanishing constant, for which `weights` have a column.

    `schedule` is {step, steps, every}. Records "lowest", each unit's input for the item that excites it least, and "lift",
    what its bias has collected per unit of the constant, (times, seeds, hidden) each; and the summed "loss".
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

    Interpolated in ln c between the given `strengths` (strengths,); NaN where it does not get there.
    """
    return crossing(strengths.log(), on, share, rising=True).exp()

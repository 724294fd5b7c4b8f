"""Closed forms for items asked about in contexts: how pathways that serve several contexts race each other.

`tasks.contexts(("tree",) * C)` asks the same question in every context, so that everything splits by *item mode* (a
singular direction of the item-centred tree, of singular value sigma) and within a mode only C + 1 numbers are left:
how strongly a pathway drives the common block of properties and each context's own block. Make Haste Slowly,
Section 5 and Appendices F, G, with their slips corrected; the printed forms are kept beside for comparison.

As in the paper, losses are *sums* over the data points (items · contexts of them, context by context), and `step` is the
size of a step on that sum: tau = 1 / (items · contexts · step).
"""

from itertools import combinations
from math import comb

import numpy as np
import torch
from torch import Tensor

from lib import linear
from lib.gated.architectures import pathways
from lib.linear import axes

Real = Tensor | float


def subsets(contexts: int, *sizes: int) -> Tensor:
    """All sets of `sizes` contexts, (sets, contexts) boolean, in the order of the sizes asked for."""
    rows = [s for size in sizes for s in combinations(range(contexts), size)]
    open_in = torch.zeros(len(rows), contexts, dtype=torch.bool)
    for row, members in enumerate(rows):
        open_in[row, list(members)] = True
    return open_in


@axes(open_in="pathways contexts")
def pathway_gates(open_in: Tensor, items: int) -> tuple[Tensor, Tensor]:
    """(gates, features) for `pathways.effective_inputs`, from the sets of contexts in which each pathway is open.

    A pathway that is always open also sees which context it is, as the paper's common pathway does; the others see the
    item only. gates is (pathways, items · contexts), features is (pathways, items + contexts), both boolean.
    """
    open_in = open_in.bool()
    always = open_in.all(-1, keepdim=True)
    features = torch.cat([torch.ones(len(open_in), items, dtype=torch.bool), always.expand(open_in.shape)], -1)
    return open_in.repeat_interleave(items, -1), features


@axes(x="features points", open_in="pathways contexts")
def pathway_inputs(x: Tensor, open_in: Tensor) -> Tensor:
    """What pathways open in the given sets of contexts see: (pathways, features, points); see `pathway_gates`.

    x (items + contexts, items · contexts) is what `tasks.contexts` returns.
    """
    contexts = open_in.shape[-1]
    items = x.shape[-2] - contexts
    if x.shape[-1] != items * contexts:
        raise ValueError(
            f"pathway_inputs: {items} items in {contexts} contexts make {items * contexts} points, not {x.shape[-1]}"
        )
    return pathways.effective_inputs(x, *pathway_gates(open_in, items))


@axes(on="units points")
def serves(on: Tensor, contexts: int) -> Tensor:
    """Which contexts each unit serves, (..., units, contexts): those in which it is on for more than half of the items.

    `on` (..., units, items · contexts) is what `relu.gates` returns, context by context.
    """
    return on.unflatten(-1, (contexts, -1)).double().mean(-1) > 0.5


@axes(x="features points", y="outputs points")
def residual(x: Tensor, y: Tensor) -> Tensor:
    """What the common pathway leaves to the others, (outputs, points): y minus its best linear prediction from x."""
    return y - y @ torch.linalg.pinv(x) @ x


@axes(block="properties items")
def item_modes(block: Tensor) -> Tensor:
    """Singular values sigma (modes,) of a block of properties (properties, items) after removing its mean over items."""
    sigma = torch.linalg.svdvals(block - block.mean(-1, keepdim=True))
    return sigma[sigma > sigma[0] * 1e3 * torch.finfo(sigma.dtype).eps]  # the rest is zero but for rounding


def residual_speed(sigma: Tensor | float, contexts: int, active: int, items: int) -> Tensor:
    """s of a pathway open in `active` contexts, once the common pathway has learned its part; as `sigma`, (modes,).

    What is left in context c is sigma (e_c - mean of all e): summed over the pathway's contexts its length is
    sigma sqrt(active (contexts - active) / contexts). As every correlation it is a mean over the items · contexts data
    points. Make Haste Slowly, Appendices F and G.
    """
    return linear.real(sigma) * (active * (contexts - active) / contexts) ** 0.5 / (items * contexts)


def overlap(contexts: int) -> float:
    """Cosine between what two pathways must still learn, each open in all contexts but one: -1/(C - 1)."""
    return -1 / (contexts - 1)


def context_mode_strength(t: Real, s: Real, d: Real, b0: Real, contexts: int, tau: float = 1.0) -> Tensor:
    """Strength of a mode in one of C pathways, each open in all contexts but one, after the common pathway.

    The others undo most of what one pathway adds, so it sees only 1/(C - 1) of its input variance `d`:
    tau dB/dt = 2B (s - B d / (C - 1)). Starts at `b0`, settles at (C - 1) s/d. Corrects Appendices F and G.
    """
    return linear.mode_strength(t, linear.real(s), linear.real(d) / (contexts - 1), b0, tau)


@axes(x="features points", y="outputs points")
def common_mean_modes(x: Tensor, y: Tensor, items: int) -> linear.Modes:
    """Modes of the common pathway that do not tell items apart: what all `items` share, overall and per context."""
    points = x.shape[-1]
    mean = torch.kron(torch.eye(points // items), torch.full((items, items), 1 / items)).to(x)
    sigma_yx, _ = linear.correlations(x, y @ mean)
    return linear.modes(sigma_yx, linear.correlations(x @ mean, y)[1])


@axes(sigma="modes", open_in="pathways contexts")
def vector_race_discrete(steps: int, sigma: Tensor, open_in: Tensor, a0: Tensor | float, step: float) -> Tensor:
    """Every pathway of every item mode as a vector that grows and turns: (steps + 1, modes, pathways, contexts + 1).

    Within one item mode (singular value `sigma`, (modes,)) a pathway, open in the contexts `open_in` (pathways, contexts),
    is a rank-one map with an output direction m (common block, then the contexts' own blocks), its "arrow". Small
    weights are balanced, |W1|² = |W2|² = |m|, so gradient flow on both layers is closed in m:

        tau dm/dt = |m| c + (m·c) m / |m|,     c = what is left to learn, summed over the pathway's open contexts,

    from m = a0 c/|c|. The common phase turns and grows all arrows before the contextual phase begins: this is the head
    start that the paper's closed form needs as a constant. Here the same for gradient descent with a finite step, exactly:
    one number for the way in and one vector for the way out per mode and pathway. a0 is one number or one per pathway.
    """
    gates, contexts = open_in.double().numpy(), open_in.shape[1]
    blocks = np.concatenate([np.ones((contexts, 1)), np.eye(contexts)], 1)
    target = sigma.numpy()[:, None, None] * blocks  # (modes, contexts, blocks)
    way_in = np.sqrt(np.broadcast_to(np.asarray(a0, float), len(gates)))[:, None]  # (pathways, 1)
    way_out = way_in * (gates @ target) / np.linalg.norm(gates @ target, axis=-1, keepdims=True)
    path = [way_in * way_out]
    for _ in range(steps):
        c = gates @ (target - gates.T @ path[-1])
        way_in, way_out = way_in + step * (way_out * c).sum(-1, keepdims=True), way_out + step * way_in * c
        path.append(way_in * way_out)
    return torch.as_tensor(np.stack(path))


@axes(sigma="modes")
def race_of_all_sets(steps: int, sigma: Tensor, contexts: int, a0: Tensor | float, step: float) -> Tensor:
    """Lengths |m| of the arrows when a pathway for every non-empty set of contexts takes part: (modes, contexts).

    Entry k - 1 belongs to each pathway that serves k contexts, after `steps` steps. It is `vector_race_discrete` with all
    2^C - 1 pathways, made small by symmetry: the common block, the own contexts' blocks and the others' need a number each.
    """
    k = np.arange(1, contexts + 1)
    holding, both = (np.array([comb(contexts - j, size - j) if size >= j else 0 for size in k], float) for j in (1, 2))
    copies = np.stack([np.ones(contexts), k, contexts - k], -1)  # how many blocks share a component
    top = sigma.double().numpy()[:, None]  # (modes, 1)

    def missing(m: np.ndarray) -> np.ndarray:
        """What is left to learn, summed over a pathway's contexts; m and this are (modes, sizes, 3)."""
        common, own = (top - (holding * m[..., j]).sum(-1, keepdims=True) for j in (0, 1))
        other = -(both * m[..., 1] + (holding - both) * m[..., 2]).sum(-1, keepdims=True)
        return np.stack([k * common, own + (k - 1) * other, k * other], -1)

    c = missing(np.zeros((len(top), contexts, 3)))
    way_in = np.broadcast_to(np.sqrt(np.broadcast_to(np.asarray(a0, float), contexts))[:, None], (len(top), contexts, 1))
    way_out = way_in * c / np.sqrt((copies * c**2).sum(-1, keepdims=True))
    for _ in range(steps):
        c = missing(way_in * way_out)
        way_in, way_out = way_in + step * (copies * way_out * c).sum(-1, keepdims=True), way_out + step * way_in * c
    return torch.as_tensor(np.sqrt((copies * (way_in * way_out) ** 2).sum(-1)))


@axes(m="modes pathways blocks", sigma="modes", open_in="pathways contexts")
def vector_race_loss(m: Tensor, sigma: Tensor, open_in: Tensor) -> Tensor:
    """Summed loss (...) that arrows (..., modes, pathways, contexts + 1) leave in the item modes.

    Times may stand in front, as `vector_race_discrete` puts them. What all items share is not included: see `common_mean_modes`.
    """
    contexts = open_in.shape[1]
    target = torch.cat([torch.ones(contexts, 1), torch.eye(contexts)], 1).to(m) * sigma[:, None, None]
    answer = torch.einsum("pc,...mpb->...mcb", open_in.to(m), m)
    return 0.5 * (target - answer).square().sum((-3, -2, -1))


@axes(m="pathways blocks", open_in="pathways contexts")
def residual_part(m: Tensor, open_in: Tensor) -> Tensor:
    """How far each arrow has grown along what its pathway will have to learn in the contextual phase: (..., pathways).

    NaN for a pathway open in all contexts, which has nothing to learn there.
    """
    own = open_in.to(m) - open_in.to(m).mean(-1, keepdim=True)  # sum over the set of (e_c - mean)
    direction = torch.cat([torch.zeros(len(own), 1).to(m), own], -1)
    return (m * direction / direction.norm(dim=-1, keepdim=True)).sum(-1)

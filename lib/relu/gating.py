"""Which items switch which units on: gating patterns, unit states, and their clusters (Make Haste Slowly, Algorithm 1).

Patterns are booleans (..., units, items), of the networks of this package (`gates`) and of any torch module (`gates_of`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lib.linear import axes
from lib.relu.networks import preactivation


def gates(weights: Sequence[Tensor], x: Tensor, layer: int = 0, **kind: Any) -> Tensor:
    """Which items switch which units of hidden layer `layer` on, z > 0: (..., units, items), boolean.

    Make Haste Slowly's step(h). The options are those of `preactivation`.
    """
    return preactivation(weights, x, layer, **kind) > 0


def gates_of(module: nn.Module, x: Tensor | np.ndarray | Sequence) -> dict[str, Tensor]:
    """The same for any torch module: {name of each `nn.ReLU` inside: (units, items), boolean}, in the order of use.

    `x` is what the module takes, items first, (items, ...); it is brought to the module's precision and device. Every number
    that goes through a ReLU counts as a unit. A ReLU that is used again appears as "name (2)", "name (3)", …; ReLUs that are
    called as functions cannot be seen. The module is looked at in `eval` mode and left as it was.
    """
    names = {part: name for name, part in module.named_modules() if isinstance(part, nn.ReLU)}
    if not names:
        raise ValueError(f"gates_of: {type(module).__name__} has no nn.ReLU inside; a ReLU called as a function is not seen")
    x = x.detach().clone() if isinstance(x, Tensor) else torch.tensor(np.asarray(x))
    like = next((p for p in module.parameters() if p.is_floating_point()), x)
    x = x.to(like) if x.is_floating_point() else x.to(like.device)  # whole numbers stay whole
    found: dict[str, Tensor] = {}
    uses = dict.fromkeys(names, 0)

    def note(part: nn.Module, _: Any, out: Tensor) -> None:
        uses[part] += 1
        found[names[part] + (f" ({uses[part]})" if uses[part] > 1 else "")] = (out > 0).flatten(1).mT

    modes = {part: part.training for part in module.modules()}
    hooks = [part.register_forward_hook(note) for part in names]
    try:
        module.eval()
        with torch.no_grad():
            module(x)
    finally:
        for hook in hooks:
            hook.remove()
        for part, training in modes.items():
            part.training = training
    return found


def unit_weight(weights: Sequence[Tensor], layer: int = 0) -> Tensor:
    """How much a unit of hidden layer `layer` matters: |incoming weights| |outgoing weights|, (..., units)."""
    return weights[layer].norm(dim=-1) * weights[layer + 1][..., : weights[layer].shape[-2]].norm(dim=-2)


def share(weights: Sequence[Tensor], mask: Tensor, layer: int = 0) -> Tensor:
    """The share of hidden layer `layer`, by `unit_weight`, that is in units for which `mask` (..., units) holds: (...).

    If `mask` has a number for each unit, it is their weighted mean.
    """
    return _weighted(mask, unit_weight(weights, layer))


@axes(on="units items", weight="units")
def unit_states(on: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
    """Shares of units that are on for every item, off for every item, or gating (on for some): (...) each; they add to one.

    `on` is what `gates` returns; `weight` (..., units) counts units by what they contribute instead of by number.
    """
    weight = torch.ones(on.shape[:-1], dtype=torch.float64, device=on.device) if weight is None else weight
    always, never = on.all(-1), ~on.any(-1)
    states = {"on": always, "off": never, "gating": ~(always | never)}
    return {name: _weighted(state, weight) for name, state in states.items()}


@axes(on="units items", weight="units")
def effective_gates(on: Tensor, weight: Tensor) -> Tensor:
    """Effective number of different gates in a layer, (...): exp of the entropy of the distribution of weight over gates.

    `on` (..., units, items) is what `gates` returns, `weight` (..., units) what `unit_weight` returns, for instance. Units
    with the same gate count as one: n gates of equal weight give n.
    """
    _, code = on.reshape(-1, on.shape[-1]).unique(dim=0, return_inverse=True)  # a number for each different gate
    code, order = code.reshape(on.shape[:-1]).sort(dim=-1, stable=True)  # units with the same gate side by side
    group = torch.nn.functional.pad((code[..., 1:] != code[..., :-1]).cumsum(-1), (1, 0))
    each = torch.zeros_like(weight).scatter_add(-1, group, weight.gather(-1, order))  # (..., units), zero beyond the last gate
    return torch.special.entr(each / each.sum(-1, keepdim=True)).sum(-1).exp()


def _weighted(mask: Tensor, weight: Tensor) -> Tensor:
    if mask.shape[-1] != weight.shape[-1]:
        raise ValueError(f"mask has {mask.shape[-1]} units (shape {tuple(mask.shape)}), the layer has {weight.shape[-1]}")
    return (weight / weight.sum(-1, keepdim=True) * mask).sum(-1)


@axes(samples="items")
def cluster_gates(samples: Tensor, clusters: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Algorithm 1 of Make Haste Slowly: k-means on the binary gating patterns of many units, runs and moments.

    `samples` (..., items) are the patterns that `gates` returns, stacked in any way; units that are on for no item gate
    nothing and are left out. Returns the centroids (clusters, items), those on for most items first, and each cluster's
    share of the patterns.
    """
    from sklearn.cluster import KMeans  # slow to import, and needed only here
    from threadpoolctl import threadpool_limits

    points, counts = distinct_gates(samples)
    alive = points.any(-1)
    points, counts = points[alive], counts[alive]
    if clusters > len(points):
        raise ValueError(f"cluster_gates: {clusters} clusters, but only {len(points)} different patterns that are ever on")
    with threadpool_limits(1):  # threads wait for each other longer than they work, and change the order of sums
        fit = KMeans(clusters, n_init=10, random_state=seed).fit(points.double().numpy(), sample_weight=counts.numpy())
    centroids = torch.as_tensor(fit.cluster_centers_)
    size = torch.zeros(clusters, dtype=torch.float64).index_add(0, torch.as_tensor(fit.labels_).long(), counts.double())
    order = centroids.round(decimals=6).sum(-1).argsort(descending=True, stable=True)
    return centroids[order], size[order] / size.sum()


@axes(samples="items")
def distinct_gates(samples: Tensor) -> tuple[Tensor, Tensor]:
    """The different patterns among `samples` (..., items) and how often each occurs: (patterns, items), (patterns,)."""
    items = samples.shape[-1]
    if items > 62:
        raise ValueError(f"patterns over more than 62 items do not fit into an integer, got {items}")
    place = 2 ** torch.arange(items)
    pieces = samples.reshape(-1, items).split(1_000_000)  # as integers a pattern takes eight times the memory
    codes, counts = torch.cat([(piece.long() * place).sum(-1) for piece in pieces]).unique(return_counts=True)
    return (codes[:, None] & place).bool(), counts

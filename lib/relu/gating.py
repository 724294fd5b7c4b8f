"""Which items switch which units on: gating patterns, unit states, and their clusters (Make Haste Slowly, Algorithm 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.relu.networks import preactivations

# --- what single units do -------------------------------------------------------------------------------------------


def gates(weights: Sequence[Tensor], x: Tensor, layer: int = 0, **kind) -> Tensor:
    """Which items switch which units on: (..., units, items), boolean. Make Haste Slowly's step(h)."""
    return preactivations(weights, x, **kind)[layer] > 0


def unit_weight(weights: Sequence[Tensor], layer: int = 0) -> Tensor:
    """How much a hidden unit matters: |incoming weights| |outgoing weights|, (..., units)."""
    return weights[layer].norm(dim=-1) * weights[layer + 1][..., : weights[layer].shape[-2]].norm(dim=-2)


def unit_states(on: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
    """Shares of units that are on for every item, off for every item, or gating (on for some); they add to one.

    `on` is what `gates` returns; `weight` (..., units) counts units by what they contribute instead of by number.
    """
    weight = torch.ones(on.shape[:-1], dtype=torch.float64, device=on.device) if weight is None else weight
    share = weight / weight.sum(-1, keepdim=True)
    always, never = on.all(-1), ~on.any(-1)
    return {
        "on": (share * always).sum(-1),
        "off": (share * never).sum(-1),
        "gating": (share * ~(always | never)).sum(-1),
    }


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
    with threadpool_limits(1):  # threads wait for each other longer than they work, and change the order of sums
        fit = KMeans(clusters, n_init=10, random_state=seed).fit(points.double().numpy(), sample_weight=counts.numpy())
    centroids = torch.as_tensor(fit.cluster_centers_)
    size = torch.zeros(clusters, dtype=torch.float64).index_add(0, torch.as_tensor(fit.labels_).long(), counts.double())
    order = centroids.round(decimals=6).sum(-1).argsort(descending=True, stable=True)
    return centroids[order], size[order] / size.sum()


def distinct_gates(samples: Tensor) -> tuple[Tensor, Tensor]:
    """The different patterns among `samples` (..., items) and how often each occurs: (patterns, items), (patterns,).

    Hundreds of thousands of units share a few thousand patterns, so whatever follows costs that much less.
    """
    items = samples.shape[-1]
    if items > 62:
        raise ValueError(f"patterns over more than 62 items do not fit into an integer, got {items}")
    place = 2 ** torch.arange(items)
    pieces = samples.reshape(-1, items).split(1_000_000)  # as integers a pattern takes eight times the memory
    codes, counts = torch.cat([(piece.long() * place).sum(-1) for piece in pieces]).unique(return_counts=True)
    return (codes[:, None] & place).bool(), counts

"""The geometry of hidden activations: Gram matrices, distances between items, maps by multi-dimensional scaling, R².

Activations are h (..., units, items); leading dimensions are ensembles. Make Haste Slowly, Fig. 4; Early Linearization,
Appendix D (`variance_explained`).
"""

import torch
from torch import Tensor

from lib.linear import axes


@axes(h="units items")
def gram(h: Tensor, centred: bool = False) -> Tensor:
    """hᵀh, (..., items, items); `centred` takes each unit's mean over the items away first."""
    h = h - h.mean(-1, keepdim=True) if centred else h
    return h.mT @ h


@axes(gram="items items")
def distances(gram: Tensor) -> Tensor:
    """Euclidean distances between items from their Gram matrix, (..., items, items)."""
    square = gram.diagonal(dim1=-2, dim2=-1)
    return (square[..., :, None] + square[..., None, :] - 2 * gram).clamp(min=0).sqrt()


@axes(first="items items", second="items items")
def similarity(first: Tensor, second: Tensor) -> Tensor:
    """Correlation between two matrices of distances (..., items, items), over all pairs of different items; (...)."""
    i, j = torch.triu_indices(first.shape[-1], first.shape[-1], 1)
    a, b = first[..., i, j], second[..., i, j]
    a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


@axes(h="units items")
def scaled(h: Tensor, dims: int = 2) -> Tensor:
    """Classical multi-dimensional scaling of h (units, items): a place for every item in the plane, (dims, items).

    Signs are fixed so that the last item lies on the positive side of each axis.
    """
    points = h.mT - h.mT.mean(0)
    u, s, _ = torch.linalg.svd(points, full_matrices=False)
    place = (u[:, :dims] * s[:dims]).mT
    return place * torch.where(place[:, -1:] < 0, -1.0, 1.0)


@axes(h="units items", features="number items")
def variance_explained(h: Tensor, features: Tensor) -> Tensor:
    """R² of a linear regression of all activations h (..., units, items) on `features` (number, items), both centred: (...).

    Features are counted by the space that they span, so repeated or constant ones add nothing. Early Linearization App. D.
    """
    h = h - h.mean(-1, keepdim=True)
    rounding = max(features.shape) * torch.finfo(features.dtype).eps
    f = features - features.mean(-1, keepdim=True)
    size, noise = f.norm(dim=-1, keepdim=True), rounding * features.norm(dim=-1, keepdim=True)
    f = f / torch.where(size > noise, size, torch.inf)  # length one each, or zero where only rounding is left
    _, s, vt = torch.linalg.svd(f, full_matrices=False)
    basis = vt[s > rounding].mT  # (items, rank), orthonormal
    return (h @ basis).square().sum((-2, -1)) / h.square().sum((-2, -1))

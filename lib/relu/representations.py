"""What hidden activations look like: their dimension, their geometry, and what explains them.

Activations are h (..., units, items). Leading dimensions are ensembles.
"""

import torch
from torch import Tensor


def gram(h: Tensor, centred: bool = False) -> Tensor:
    """hᵀh, (..., items, items); `centred` takes each unit's mean over the items away first."""
    h = h - h.mean(-1, keepdim=True) if centred else h
    return h.mT @ h


def distances(gram: Tensor) -> Tensor:
    """Euclidean distances between items from their Gram matrix, (..., items, items)."""
    square = gram.diagonal(dim1=-2, dim2=-1)
    return (square[..., :, None] + square[..., None, :] - 2 * gram).clamp(min=0).sqrt()


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """Correlation between two matrices of distances (..., items, items), over all pairs of different items; (...)."""
    i, j = torch.triu_indices(first.shape[-1], first.shape[-1], 1)
    a, b = first[..., i, j], second[..., i, j]
    a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def scaled(points: Tensor, dims: int = 2) -> Tensor:
    """Classical multi-dimensional scaling of points (points, features): their coordinates in the plane, (points, dims).

    Signs are fixed so that the last point lies on the positive side of each axis.
    """
    centred = points - points.mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    place = u[:, :dims] * s[:dims]
    return place * torch.where(place[-1] < 0, -1.0, 1.0)


def variance_explained(h: Tensor, features: Tensor) -> Tensor:
    """R² of a linear regression of all activations h (..., units, items) on `features` (number, items), both centred.

    Early Linearization Appendix D (which does not say that the tilde stands for centring).
    """
    h = h - h.mean(-1, keepdim=True)
    f = features - features.mean(-1, keepdim=True)
    basis = torch.linalg.qr(f.mT)[0]  # (items, number), orthonormal
    return (h @ basis).square().sum((-2, -1)) / h.square().sum((-2, -1))

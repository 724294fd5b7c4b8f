"""Representational geometry: how far apart a layer holds its items, whatever its units are called.

Two networks represent the data alike when the distances between items agree; rotations and relabelled units do not
matter. h is (..., units, items) throughout.
"""

import torch
from torch import Tensor


def pairwise_distances(h: Tensor) -> Tensor:
    """Euclidean distances between the columns of h, upper triangle: (..., items (items - 1) / 2)."""
    gram = h.mT @ h
    norm = gram.diagonal(dim1=-2, dim2=-1)
    i, j = torch.triu_indices(h.shape[-1], h.shape[-1], 1)
    return (norm[..., i] + norm[..., j] - 2 * gram[..., i, j]).clamp_min(0).sqrt()


def distance_correlation(a: Tensor, b: Tensor) -> Tensor:
    """Pearson correlation (...) of two sets of pairwise distances (..., pairs): 1 when the geometries are alike."""
    a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def scaling(distances: Tensor, items: int, dimensions: int = 2) -> Tensor:
    """Classical multi-dimensional scaling: coordinates (items, dimensions) whose distances come nearest to the given.

    Deterministic; each axis is turned so that its largest entry is positive.
    """
    square = distances.new_zeros(items, items)
    i, j = torch.triu_indices(items, items, 1)
    square[i, j] = square[j, i] = distances.square()
    centre = torch.eye(items, dtype=square.dtype) - 1 / items
    values, vectors = torch.linalg.eigh(-0.5 * centre @ square @ centre)
    axes = vectors[:, -dimensions:].flip(1)
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return axes * values[-dimensions:].flip(0).clamp_min(0).sqrt()


def onto(points: Tensor, reference: Tensor) -> Tensor:
    """`points` (items, dimensions) rotated or reflected (not scaled) to lie as near as possible to `reference`."""
    u, _, vt = torch.linalg.svd(points.mT @ reference)
    return points @ (u @ vt)

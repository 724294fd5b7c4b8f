"""The effective rank of a representation: how many directions it really uses (Early Linearization Eq. 1)."""

import torch
from torch import Tensor

from lib.linear.shapes import axes


@axes(matrix="rows columns")
def effective_rank(matrix: Tensor) -> Tensor:
    """exp of the entropy of the normalised singular values of `matrix` (..., rows, columns): n for n equal ones, 0 for a
    matrix of zeros; shape (...). Early Linearization Eq. 1, without the minus sign that is printed in front of it."""
    return _rank_of(torch.linalg.svdvals(matrix))


@axes(h="units items")
def effective_rank_of_gram(h: Tensor, centred: bool = False) -> Tensor:
    """`effective_rank` of the Gram matrix of h (..., units, items), without that matrix: its singular values are the
    squares of h's; shape (...). `centred` takes each unit's mean over items away first."""
    h = h - h.mean(-1, keepdim=True) if centred else h
    return _rank_of(torch.linalg.svdvals(h).square())


def _rank_of(spectrum: Tensor) -> Tensor:
    total = spectrum.sum(-1, keepdim=True)
    p = spectrum / torch.where(total == 0, 1, total)
    return torch.exp(-torch.special.xlogy(p, p).sum(-1)) * (total[..., 0] > 0)

"""Random numbers that depend on the seed alone, and the laws from which networks start.

Every network of an ensemble has a stream of its own (`Streams`). So the first four of eight networks are the same as four,
and neither the size of a chunk or a grid nor the device changes a draw: numbers are drawn on the processor in double
precision and moved afterwards.
"""

import math

import numpy as np
import torch
from torch import Tensor

from lib.linear.shapes import axes

LAWS = ("gaussian", "orthogonal", "xavier")


class Streams:
    """Independent streams of random numbers for the networks `first`, …, `first + seeds - 1` of the ensemble `seed`.

    Each method returns (seeds, *shape); what network k gets depends on `seed`, on k and on its earlier draws, on nothing
    else. Ensembles with different `seed` share practically no network (generators have 32-bit seeds).
    """

    def __init__(self, seeds: int, seed: int = 0, first: int = 0):
        if seeds < 1 or seed < 0 or first < 0:
            raise ValueError(f"seeds must be at least 1, seed and first at least 0, got {seeds}, {seed} and {first}")
        self.generators = [torch.Generator().manual_seed(_hash(seed, first + k)) for k in range(seeds)]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, float64."""
        return torch.stack([torch.randn(shape, generator=g, dtype=torch.float64) for g in self.generators])

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Uniform numbers in [low, high), float64."""
        drawn = torch.empty(len(self), *shape, dtype=torch.float64)
        for own, g in zip(drawn, self.generators, strict=True):
            torch.rand(shape, generator=g, out=own)
        return drawn.mul_(high - low).add_(low)

    def integers(self, high: int, *shape: int) -> Tensor:
        """Whole numbers from 0 to high - 1, int64."""
        return torch.stack([torch.randint(high, shape, generator=g) for g in self.generators])

    def permutation(self, length: int) -> Tensor:
        """An order of `length` things, (seeds, length), int64."""
        return torch.stack([torch.randperm(length, generator=g) for g in self.generators])


def _hash(seed: int, k: int) -> int:
    """One 32-bit seed for network k of ensemble `seed`: all that torch's generator takes."""
    return int(np.random.SeedSequence([seed, k]).generate_state(1)[0])


@axes(normal="rows columns")
def random_matrix(normal: Tensor, scale: float | Tensor, law: str = "gaussian") -> Tensor:
    """Weights (..., rows, columns) of one of the LAWS, made of standard normal numbers of the same shape.

    "gaussian": entries of standard deviation `scale`; "xavier": entries of variance scale² · 2 / (rows + columns);
    "orthogonal": all singular values equal to `scale`, uniform over such matrices.
    """
    rows, columns = normal.shape[-2:]
    if law == "gaussian":
        return scale * normal
    if law == "xavier":
        return scale * math.sqrt(2 / (rows + columns)) * normal
    if law == "orthogonal":
        q, r = torch.linalg.qr(normal if rows >= columns else normal.mT)
        q = q * torch.sign(torch.diagonal(r, dim1=-2, dim2=-1)).unsqueeze(-2)  # makes the law uniform
        return scale * (q if rows >= columns else q.mT)
    raise ValueError(f"unknown law {law!r}; choose {', '.join(LAWS)}")

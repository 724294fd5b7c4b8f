"""Values of functions on a regular grid: what every measure takes, and what it does with them first."""

import numpy as np
import torch
from torch import Tensor

from lib.linear.shapes import WrongAxes


def values_on_grid(caller: str, y: Tensor | np.ndarray, dims: int) -> Tensor:
    """`y` as a floating-point tensor (..., m1, ..., m_dims) with at least two points along each axis of the grid."""
    y = torch.as_tensor(y)
    if y.is_complex():
        raise WrongAxes(f"{caller}: y is complex; a real function is needed, for example y.real or y.abs()")
    if dims < 1 or y.ndim < dims:
        raise WrongAxes(f"{caller}: y has shape {tuple(y.shape)}; with dims={dims} its last {dims} axes must be the grid")
    for axis in range(-dims, 0):
        if y.shape[axis] < 2:
            raise WrongAxes(f"{caller}: axis {axis} of y, a side of the grid, has {y.shape[axis]} points; two are needed")
    return y if y.is_floating_point() else y.double()


def value_range(y: Tensor, dims: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Lowest and highest value of each function, and whether they differ by no more than rounding errors: (..., 1, 1)."""
    axes = tuple(range(-dims, 0))
    low, high = y.amin(dim=axes, keepdim=True), y.amax(dim=axes, keepdim=True)
    return low, high, high - low <= 8 * torch.finfo(y.dtype).eps * torch.maximum(low.abs(), high.abs())


def centred(y: Tensor, dims: int = 2) -> Tensor:
    """Functions without their mean, which would leave rounding errors in every coefficient; exactly 0 where constant."""
    _, _, flat = value_range(y, dims)
    return (y - y.mean(dim=tuple(range(-dims, 0)), keepdim=True)).masked_fill_(flat, 0)


def along_each_axis(y: Tensor, matrices: list[Tensor]) -> Tensor:
    """y (..., m1, ..., m_dims) with each of its last axes multiplied by a matrix (n_i, m_i): (..., n1, ..., n_dims)."""
    for axis, matrix in zip(range(-len(matrices), 0), matrices, strict=True):
        y = torch.movedim(torch.movedim(y, axis, -1) @ matrix.to(y).T, -1, axis)
    return y


def norm_on_grid(axes: list[Tensor]) -> Tensor:
    """Euclidean norm on the grid spanned by one-dimensional coordinates."""
    return torch.stack(torch.meshgrid(*[a.double() for a in axes], indexing="ij")).square().sum(0).sqrt()


def weighted_mean(magnitude: Tensor, weight: Tensor, frequency: Tensor) -> Tensor:
    """Sum of magnitude * frequency over sum of magnitude, both weighted, over the axes of `weight`; 0 for an all-zero
    spectrum."""
    axes, weight, frequency = tuple(range(-weight.ndim, 0)), weight.to(magnitude), frequency.to(magnitude)
    total = (magnitude * weight).sum(dim=axes)
    return (magnitude * (weight * frequency)).sum(dim=axes) / torch.where(total == 0, 1, total)

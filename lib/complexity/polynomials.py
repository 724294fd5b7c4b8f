"""Mean order in a basis of orthogonal polynomials: Chebyshev, Legendre (Neural Redshift Section 2 and Appendix D)."""

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.polynomial import chebyshev as _chebyshev
from numpy.polynomial import hermite_e as _hermite
from numpy.polynomial import legendre as _legendre
from torch import Tensor

from lib.complexity._values import along_each_axis, centred, norm_on_grid, values_on_grid, weighted_mean

BASES = ("chebyshev", "legendre", "hermite")


def polynomial(
    y: Tensor | np.ndarray, basis: str = "chebyshev", order: int | None = None, constant: bool = False, dims: int = 2
) -> Tensor:
    """Mean order of a function of `dims` variables in a basis of orthogonal polynomials; (..., m, m) to (...).

    The coefficients are the least-squares fit under the weight for which the basis is orthogonal, 1/sqrt(1 - x^2) for
    Chebyshev and 1 for Legendre, integrated over each grid cell; it is exact for polynomials up to `order`, by default
    `default_order` of each side. Neural Redshift Section 2 (C_Chebyshev), Appendix D; weight and order corrected.
    """
    y = values_on_grid("polynomial", y, dims)
    fits = [_fit_matrix(m, basis, default_order(m) if order is None else order) for m in y.shape[-dims:]]
    return _mean_order(along_each_axis(y if constant else centred(y, dims), fits), constant, dims)


def chebyshev(y: Tensor | np.ndarray, order: int | None = None, constant: bool = False, dims: int = 2) -> Tensor:
    """`polynomial` in the Chebyshev basis."""
    return polynomial(y, "chebyshev", order, constant, dims)


def legendre(y: Tensor | np.ndarray, order: int | None = None, constant: bool = False, dims: int = 2) -> Tensor:
    """`polynomial` in the Legendre basis."""
    return polynomial(y, "legendre", order, constant, dims)


def polynomial_as_printed(
    y: Tensor | np.ndarray, basis: str = "chebyshev", order: int = 100, border: int = 3, constant: bool = True, dims: int = 2
) -> Tensor:
    """The polynomial measure exactly as printed: c_n = (2n+1)/2 times the trapezoid integral of f P_n, for either
    basis, with a border of the grid left out; (..., m, m) to (...). Neural Redshift Appendix D.

    The prefactor is Legendre's, and 58 samples cannot resolve order 100: kept to show what it does.
    """
    y = values_on_grid("polynomial_as_printed", y, dims)
    sides = y.shape[-dims:]
    if min(sides) < 2 * border + 2:
        raise ValueError(f"a grid of {tuple(sides)} points leaves fewer than two inside a border of {border}")
    inner = y[(..., *[slice(border, m - border) for m in sides])]
    return _mean_order(along_each_axis(inner, [_printed_matrix(m, basis, order, border) for m in sides]), constant, dims)


def default_order(m: int) -> int:
    """The highest polynomial order that m equispaced samples tell apart: 2.5 sqrt(m), where `condition` is below 3."""
    return int(2.5 * math.sqrt(m))


def condition(m: int, basis: str, order: int) -> float:
    """Condition number of the least-squares fit behind `polynomial` (columns normalised): 1 is perfect."""
    design = _design(m, basis, order)
    return float(np.linalg.cond(design / np.linalg.norm(design, axis=0)))


def _basis(name: str, x: np.ndarray, order: int) -> np.ndarray:
    """Values of the polynomials 0 .. order at x: (samples, order + 1)."""
    vandermonde = {"chebyshev": _chebyshev.chebvander, "legendre": _legendre.legvander, "hermite": _hermite.hermevander}
    if name not in vandermonde:
        raise ValueError(f"basis is one of {', '.join(BASES)}, not {name!r}")
    return vandermonde[name](x, order)


def _design(m: int, basis: str, order: int) -> np.ndarray:
    """Basis functions on the grid times the root of their weight, integrated over each grid cell: (m, order + 1)."""
    x = np.linspace(-1, 1, m)
    edges = np.concatenate([[-1], (x[1:] + x[:-1]) / 2, [1]])
    weight = np.diff(np.arcsin(edges) if basis == "chebyshev" else edges)
    return _basis(basis, x, order) * np.sqrt(weight)[:, None]


@lru_cache(maxsize=32)
def _fit_matrix(m: int, basis: str, order: int) -> Tensor:
    """The linear map from samples to least-squares coefficients: (order + 1, m)."""
    design = _design(m, basis, order)
    return torch.from_numpy(np.linalg.pinv(design) * design[:, 0])  # order 0 is 1: its column is the root of the weight


@lru_cache(maxsize=32)
def _printed_matrix(m: int, basis: str, order: int, border: int) -> Tensor:
    """The linear map from samples inside the border to the printed coefficients: (order + 1, m - 2 border)."""
    x = np.linspace(-1, 1, m)[border : m - border]
    trapezoid = np.full(len(x), x[1] - x[0])
    trapezoid[[0, -1]] /= 2
    return torch.from_numpy((np.arange(order + 1)[:, None] + 0.5) * (_basis(basis, x, order) * trapezoid[:, None]).T)


def _mean_order(coefficients: Tensor, constant: bool, dims: int) -> Tensor:
    order = norm_on_grid([torch.arange(n) for n in coefficients.shape[-dims:]])
    weight = torch.ones_like(order)
    if not constant:
        weight[(0,) * dims] = 0
    return weighted_mean(coefficients.abs(), weight, order)

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
    Chebyshev and 1 for Legendre, integrated over each grid cell. The fit is exact for polynomials up to `order`. On an
    equispaced grid only about 2.5 sqrt(m) orders can be told apart (the default, for each side by itself: the fit's
    condition number stays below 3); above that, high orders pass for low ones.

    Neural Redshift Section 2 (C_Chebyshev) and Appendix D, with the weight and the order corrected.
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
    basis, with a border of the grid left out; (..., m, m) to (...).

    The prefactor is Legendre's, and 58 samples cannot resolve order 100: kept to show what it does. Neural Redshift
    Appendix D.
    """
    y = values_on_grid("polynomial_as_printed", y, dims)
    for axis in range(-dims, 0):
        if y.shape[axis] < 2 * border + 2:
            raise ValueError(
                f"axis {axis} of y has {y.shape[axis]} points, which leaves fewer than two inside a border of {border}"
            )
    inner = y[(..., *[slice(border, m - border) for m in y.shape[-dims:]])]
    return _mean_order(
        along_each_axis(inner, [_printed_matrix(m, basis, order, border) for m in y.shape[-dims:]]), constant, dims
    )


def default_order(m: int) -> int:
    """The highest polynomial order that m equispaced samples tell apart: 2.5 sqrt(m), 20 for 64 samples."""
    return int(2.5 * math.sqrt(m))


def condition(m: int, basis: str, order: int) -> float:
    """Condition number of the least-squares fit behind `polynomial` (columns normalised): 1 is perfect, above 1e16 all
    digits are lost."""
    design = _design(m, basis, order)
    return float(np.linalg.cond(design / np.linalg.norm(design, axis=0)))


def _basis(name: str, x: np.ndarray, order: int) -> np.ndarray:
    """Values of the polynomials 0 .. order at x: (samples, order + 1)."""
    vandermonde = {"chebyshev": _chebyshev.chebvander, "legendre": _legendre.legvander, "hermite": _hermite.hermevander}
    if name not in vandermonde:
        raise ValueError(f"basis is one of {', '.join(BASES)}, not {name!r}")
    return vandermonde[name](x, order)


def _design(m: int, basis: str, order: int) -> np.ndarray:
    """Basis functions on the grid, times the square root of the weight that makes them orthogonal, integrated over each
    grid cell."""
    x = np.linspace(-1, 1, m)
    edges = np.concatenate([[-1], (x[1:] + x[:-1]) / 2, [1]])
    weight = np.diff(np.arcsin(edges) if basis == "chebyshev" else edges)
    return _basis(basis, x, order) * np.sqrt(weight)[:, None]


@lru_cache(maxsize=32)
def _fit_matrix(m: int, basis: str, order: int) -> Tensor:
    """The linear map from samples to least-squares coefficients: (order + 1, m)."""
    design = _design(m, basis, order)
    x = np.linspace(-1, 1, m)
    root_weight = design[:, 0] / _basis(basis, x, 0)[:, 0]
    return torch.from_numpy(np.linalg.pinv(design) * root_weight)


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

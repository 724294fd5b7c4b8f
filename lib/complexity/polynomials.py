"""Mean order in a basis of orthogonal polynomials: Chebyshev, Legendre (Neural Redshift Section 2 and Appendix D)."""

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.polynomial import chebyshev as _chebyshev
from numpy.polynomial import hermite_e as _hermite
from numpy.polynomial import legendre as _legendre

from lib.complexity.spectra import _centred, _norm, weighted_mean


def polynomial(y, basis="chebyshev", order=None, constant=False):
    """Mean order of a function of two variables in a basis of orthogonal polynomials; shape (...).

    The coefficients are the least-squares fit under the weight for which the basis is orthogonal, 1/sqrt(1 - x^2) for
    Chebyshev and 1 for Legendre, integrated over each grid cell. The fit is exact for polynomials up to `order`. On an
    equispaced grid only about 2.5 sqrt(m) orders can be told apart (the default: the fit's condition number stays below
    3); above that, high orders pass for low ones.

    Neural Redshift Section 2 (C_Chebyshev) and Appendix D, with the weight and the order corrected.
    """
    m1, m2 = y.shape[-2:]
    first, second = (_fit_matrix(m, basis, order or default_order(m)).to(y) for m in (m1, m2))
    coefficients = first @ (y if constant else _centred(y)) @ second.T  # (..., order + 1, order + 1)
    return _mean_order(coefficients, constant)


def chebyshev(y, order=None, constant=False):
    """`polynomial` in the Chebyshev basis."""
    return polynomial(y, "chebyshev", order, constant)


def legendre(y, order=None, constant=False):
    """`polynomial` in the Legendre basis."""
    return polynomial(y, "legendre", order, constant)


def polynomial_as_printed(y, basis="chebyshev", order=100, border=3, constant=True):
    """The polynomial measure exactly as printed: c_n = (2n+1)/2 times the trapezoid integral of f P_n, for either
    basis, with a border of the grid left out; shape (...).

    The prefactor is Legendre's, and 58 samples cannot resolve order 100: kept to show what it does. Neural Redshift
    Appendix D.
    """
    m = y.shape[-1]
    x = np.linspace(-1, 1, m)[border : m - border]
    trapezoid = np.full(len(x), x[1] - x[0])
    trapezoid[[0, -1]] /= 2
    coefficient = (np.arange(order + 1)[:, None] + 0.5) * (_basis(basis, x, order) * trapezoid[:, None]).T  # (order + 1, samples)
    matrix = torch.from_numpy(coefficient).to(y)
    inner = y[..., border : m - border, border : m - border]
    return _mean_order(matrix @ inner @ matrix.T, constant)


def default_order(m):
    """The highest polynomial order that m equispaced samples tell apart: 2.5 sqrt(m), 20 for 64 samples."""
    return int(2.5 * math.sqrt(m))


def condition(m, basis, order):
    """Condition number of the least-squares fit behind `polynomial` (columns normalised): 1 is perfect, above 1e16 all
    digits are lost."""
    design = _design(m, basis, order)
    return float(np.linalg.cond(design / np.linalg.norm(design, axis=0)))


def _basis(name, x, order):
    """Values of the polynomials 0 .. order at x: (samples, order + 1)."""
    vandermonde = {"chebyshev": _chebyshev.chebvander, "legendre": _legendre.legvander, "hermite": _hermite.hermevander}
    return vandermonde[name](x, order)


def _design(m, basis, order):
    """Basis functions on the grid, times the square root of the weight that makes them orthogonal, integrated over each
    grid cell."""
    x = np.linspace(-1, 1, m)
    edges = np.concatenate([[-1], (x[1:] + x[:-1]) / 2, [1]])
    weight = np.diff(np.arcsin(edges) if basis == "chebyshev" else edges)
    return _basis(basis, x, order) * np.sqrt(weight)[:, None]


@lru_cache(maxsize=32)
def _fit_matrix(m, basis, order):
    """The linear map from samples to least-squares coefficients: (order + 1, m)."""
    design = _design(m, basis, order)
    x = np.linspace(-1, 1, m)
    root_weight = design[:, 0] / _basis(basis, x, 0)[:, 0]
    return torch.from_numpy(np.linalg.pinv(design) * root_weight)


def _mean_order(coefficients, constant):
    magnitude = coefficients.abs()
    order = _norm([torch.arange(n) for n in magnitude.shape[-2:]]).to(magnitude)
    weight = torch.ones_like(order)
    if not constant:
        weight[0, 0] = 0
    return weighted_mean(magnitude, weight, order, 2)

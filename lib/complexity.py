"""How complex is a function? Measures of a function from its values on a regular grid, many functions at once.

Every measure takes `y` of shape (..., m, m): the leading dimensions are an ensemble of functions, the trailing `dims`
(two unless said otherwise) are the grid on [-1, 1]; one number per function comes back. The definitions are those of
Neural Redshift, Section 2 and Appendix D; where the printed form misleads, the printed form is kept beside the
corrected one, so that a reader can run both.
"""

import math
from functools import lru_cache

import numba
import numpy as np
import torch
from numpy.polynomial import chebyshev as _chebyshev
from numpy.polynomial import hermite_e as _hermite
from numpy.polynomial import legendre as _legendre


def fourier(y, region="quadrant", constant=False, dims=2):
    """Mean frequency of a function, each frequency weighted by the magnitude of its Fourier coefficient; shape (...).

    `region="quadrant"` sums over k in [0, m/2]^dims as Neural Redshift prints it: it is blind to waves whose wave
    vector has components of opposite sign. `region="half plane"` counts every wave once (k and -k are the same wave).
    `constant=True` keeps k = 0 in the denominator (Appendix D), which makes the result depend on the function's mean;
    the main text leaves it out, and so do we.

    Neural Redshift Section 2 (C_Fourier) and Appendix D.
    """
    weight, frequency = _fourier_weights(tuple(y.shape[-dims:]), region, constant, y.device)
    y = y if constant else _centred(y, dims)
    spectrum = torch.fft.rfftn(y, dim=tuple(range(-dims, 0))).abs()
    if region == "quadrant":
        spectrum = spectrum[(..., *[slice(0, m // 2 + 1) for m in y.shape[-dims:]])]
    return _weighted_mean(spectrum, weight.to(spectrum), frequency.to(spectrum), dims)


def cosine(y, dims=2):
    """Mean frequency in the cosine transform (DCT-II), in cycles per domain; shape (...).

    The cosine transform continues a function by its mirror image instead of repeating it, so a function that ends at
    another value than it began with has no jump at the edge. A plane gets 1.04 on a 64 x 64 grid where `fourier` gives
    8.73. Ours, not the paper's.
    """
    y = _centred(y, dims)
    for axis in range(-dims, 0):
        m = y.shape[axis]
        y = torch.movedim(torch.movedim(y, axis, -1) @ _dct_matrix(m).to(y).T, -1, axis)
    frequency = _norm([torch.arange(m) / 2 for m in y.shape[-dims:]])
    weight = (frequency > 0).double()
    return _weighted_mean(y.abs(), weight.to(y), frequency.to(y), dims)


def energy_above(y, frequency):
    """Share of variance in cosine waves of more than `frequency` cycles per domain; (..., m, m) to (...)."""
    y = _centred(y)
    spectrum = _dct_matrix(y.shape[-2]).to(y) @ y @ _dct_matrix(y.shape[-1]).to(y).T
    high = _norm([torch.arange(m) / 2 for m in y.shape[-2:]]).to(y) > frequency
    total = spectrum.square().sum((-2, -1))
    return (spectrum.square() * high).sum((-2, -1)) / torch.where(total == 0, 1, total)


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


def lempel_ziv(y, levels=10, traversal="columns"):
    """Lempel-Ziv complexity of functions: quantise, read the grid as one sequence, count the phrases; shape (...),
    int64.

    Neural Redshift Section 2 (C_LZ) and Appendix D.
    """
    return phrases(traverse(quantise(y, levels), traversal), levels)


def quantise(y, levels=10, dims=2):
    """Each function rounded to the nearest of `levels` values spaced regularly over its own range, as int16; same shape
    as `y`.

    A function whose range is below rounding error counts as constant. Neural Redshift Appendix D.
    """
    low, high, flat = _range(y, dims)
    scaled = (y - low) * ((levels - 1) / torch.where(flat, 1, high - low))
    return torch.where(flat, 0, scaled.round()).to(torch.int16)


def traverse(y, order="columns"):
    """Read m x m grids as sequences: "columns", "rows", "snake" (rows back and forth), "zigzag" (antidiagonals) or
    "spiral" (from the rim inwards); (..., m, m) becomes (..., m * m). Neural Redshift Appendix D."""
    return y.flatten(-2)[..., _traversal(y.shape[-1], order).to(y.device)]


def phrases(symbols, alphabet=None):
    """Number of phrases into which LZ78 cuts each sequence of integers 0 <= symbol < alphabet; (..., length) becomes
    (...), int64.

    A phrase is the shortest piece not seen before; an unfinished last phrase is not counted.
    """
    flat = symbols.reshape(-1, symbols.shape[-1])
    length = flat.shape[1]
    if alphabet is None:
        alphabet = int(flat.max()) + 1 if flat.numel() else 1
    if flat.numel() and not 0 <= int(flat.min()) <= int(flat.max()) < alphabet:
        raise ValueError(f"symbols must lie between 0 and {alphabet - 1}")
    if alphabet <= 256:  # a table of all possible branches is fastest, but too large for a vocabulary
        trees = np.zeros((4, (length + 1) * alphabet), np.uint16 if length < 2**16 else np.int32)
        rows = np.zeros((-(-len(flat) // 4) * 4, length), np.uint8)
        rows[: len(flat)] = flat.cpu().numpy()
        counts = _phrases_dense(rows, alphabet, trees)[: len(flat)]
    else:
        counts = _phrases_hashed(np.ascontiguousarray(flat.cpu().numpy()), alphabet)
    return torch.from_numpy(counts).reshape(symbols.shape[:-1]).to(symbols.device)


# Closed forms: what the measures give for functions that need no computer.


def fourier_flat(m, region="quadrant"):
    """`fourier` of a spectrum whose magnitudes are all equal (white noise, on average): the highest value a typical
    function gets."""
    weight, frequency = _fourier_weights((m, m), region, False, "cpu")
    return float((weight * frequency).sum() / weight.sum())


def fourier_plane(m):
    """`fourier` of any plane a x1 + b x2: sum k / sin(pi k/m) over sum 1 / sin(pi k/m), k = 1 .. m/2.

    The transform repeats the plane, so it sees a sawtooth, whose coefficients fall off as 1 / sin(pi k/m); both axes
    give the same mean.
    """
    k = np.arange(1, m // 2 + 1)
    magnitude = 1 / np.sin(math.pi * k / m)
    return float((magnitude * k).sum() / magnitude.sum())


def phrases_of_constant(n):
    """`phrases` of n equal symbols: the largest p with 1 + 2 + ... + p <= n."""
    return (math.isqrt(8 * n + 1) - 1) // 2


# Private helpers


def _range(y, dims=2):
    """Lowest and highest value of each function, and whether they differ by no more than rounding errors; shapes (...,
    1, 1)."""
    axes = tuple(range(-dims, 0))
    low, high = y.amin(dim=axes, keepdim=True), y.amax(dim=axes, keepdim=True)
    return low, high, high - low <= 8 * torch.finfo(y.dtype).eps * torch.maximum(low.abs(), high.abs())


def _centred(y, dims=2):
    """Functions with their mean removed (a large mean leaves rounding errors in every coefficient); exactly 0 where
    they are constant."""
    _, _, flat = _range(y, dims)
    return torch.where(flat, 0, y - y.mean(dim=tuple(range(-dims, 0)), keepdim=True))


def _weighted_mean(magnitude, weight, frequency, dims):
    """Sum of magnitude * frequency over sum of magnitude, both weighted, over the trailing dimensions; 0 for an
    all-zero spectrum."""
    axes = tuple(range(-dims, 0))
    total = (magnitude * weight).sum(dim=axes)
    return (magnitude * (weight * frequency)).sum(dim=axes) / torch.where(total == 0, 1, total)


def _norm(axes):
    """Euclidean norm on the grid spanned by one-dimensional coordinates."""
    return torch.stack(torch.meshgrid(*[a.double() for a in axes], indexing="ij")).square().sum(0).sqrt()


@lru_cache(maxsize=32)
def _fourier_weights(shape, region, constant, device):
    """Weights (how often a coefficient counts) and frequencies |k| on the part of the rfftn grid that `region` uses."""
    half = [torch.arange(m // 2 + 1) for m in shape]
    if region == "quadrant":
        axes, weight_last = half, torch.ones(shape[-1] // 2 + 1)
    elif region == "half plane":
        axes = [torch.fft.fftfreq(m, 1 / m) for m in shape[:-1]] + [half[-1]]
        weight_last = torch.ones(shape[-1] // 2 + 1)
        weight_last[0] = 0.5  # k and -k are both present where the last component is 0 or the Nyquist frequency
        if shape[-1] % 2 == 0:
            weight_last[-1] = 0.5
    else:
        raise ValueError(f"region is 'quadrant' or 'half plane', not {region!r}")
    frequency = _norm(axes)
    weight = weight_last.double().expand(frequency.shape).clone()
    if not constant:
        weight[(0,) * len(shape)] = 0
    return weight.to(device), frequency.to(device)


@lru_cache(maxsize=32)
def _dct_matrix(m):
    """Orthonormal DCT-II: rows are the half-waves cos(pi n (i + 1/2) / m)."""
    n, i = torch.arange(m, dtype=torch.float64)[:, None], torch.arange(m, dtype=torch.float64)
    matrix = torch.cos(math.pi * n * (i + 0.5) / m) * math.sqrt(2 / m)
    matrix[0] /= math.sqrt(2)
    return matrix


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
    return _weighted_mean(magnitude, weight, order, 2)


@lru_cache(maxsize=32)
def _traversal(m, order):
    grid = np.arange(m * m).reshape(m, m)
    if order == "rows":
        path = grid.ravel()
    elif order == "columns":
        path = grid.T.ravel()
    elif order == "snake":
        path = np.concatenate([row[:: 1 if i % 2 == 0 else -1] for i, row in enumerate(grid)])
    elif order == "zigzag":
        diagonals = [np.diagonal(grid[::-1], offset) for offset in range(1 - m, m)]
        path = np.concatenate([d[:: 1 if i % 2 == 0 else -1] for i, d in enumerate(diagonals)])
    elif order == "spiral":
        rings = []
        while grid.size:
            rings.append(grid[0])
            grid = np.rot90(grid[1:])
        path = np.concatenate(rings)
    else:
        raise ValueError(f"order is columns, rows, snake, zigzag or spiral, not {order!r}")
    return torch.from_numpy(np.ascontiguousarray(path))


@numba.njit
def _phrases_dense(sequences, alphabet, trees):
    """LZ78 on rows of `sequences` (a multiple of four), four at a time: each step of one sequence waits for a memory
    access of the step before, and four independent sequences hide that wait. trees[row, node * alphabet + symbol] is a
    node's child; node 0 is the root."""
    phrase_counts = np.zeros(len(sequences), np.int64)
    for row in range(0, len(sequences), 4):
        a = b = c = d = 0
        made_a = made_b = made_c = made_d = 0
        for i in range(sequences.shape[1]):
            a, made_a = _descend(trees[0], a * alphabet + sequences[row, i], made_a)
            b, made_b = _descend(trees[1], b * alphabet + sequences[row + 1, i], made_b)
            c, made_c = _descend(trees[2], c * alphabet + sequences[row + 2, i], made_c)
            d, made_d = _descend(trees[3], d * alphabet + sequences[row + 3, i], made_d)
        phrase_counts[row : row + 4] = made_a, made_b, made_c, made_d
        trees[:, : (max(made_a, made_b, made_c, made_d) + 1) * alphabet] = 0
    return phrase_counts


@numba.njit
def _descend(tree, branch, made):
    """Follow a branch; if nothing is there, a new phrase ends here: note it, and go back to the root. Free of jumps for
    speed."""
    node = np.int64(tree[branch])
    new = np.int64(node == 0)
    tree[branch] = node + new * (made + 1)
    return node, made + new


@numba.njit
def _phrases_hashed(sequences, alphabet):
    count, length = sequences.shape
    phrase_counts = np.zeros(count, np.int64)
    for row in range(count):
        child = {np.int64(0): np.int64(0)}
        node, made = np.int64(0), np.int64(0)
        for symbol in sequences[row]:
            branch = node * alphabet + symbol + 1
            if branch in child:
                node = child[branch]
            else:
                made += 1
                child[branch] = made
                node = np.int64(0)
        phrase_counts[row] = made
    return phrase_counts

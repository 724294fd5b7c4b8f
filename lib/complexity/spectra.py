"""How complex is a function? Measures of a function from its values on a regular grid, many functions at once.

Every measure takes `y` of shape (..., m, m): the leading dimensions are an ensemble of functions, the trailing `dims`
(two unless said otherwise) are the grid on [-1, 1]; one number per function comes back. The definitions are those of
Neural Redshift, Section 2 and Appendix D; where the printed form misleads, the printed form is kept beside the
corrected one, so that a reader can run both.
"""

import math
from functools import lru_cache

import numpy as np
import torch


def fourier(y, region="quadrant", constant=False, dims=2):
    """Mean frequency of a function, each frequency weighted by the magnitude of its Fourier coefficient; shape (...).

    `region="quadrant"` sums over k in [0, m/2]^dims as Neural Redshift prints it: it is blind to waves whose wave
    vector has components of opposite sign. `region="half plane"` counts every wave once (k and -k are the same wave).
    `constant=True` keeps k = 0 in the denominator (Appendix D), which makes the result depend on the function's mean;
    the main text leaves it out, and so do we.

    Neural Redshift Section 2 (C_Fourier) and Appendix D.
    """
    weight, frequency = fourier_weights(tuple(y.shape[-dims:]), region, constant, y.device)
    y = y if constant else _centred(y, dims)
    spectrum = torch.fft.rfftn(y, dim=tuple(range(-dims, 0))).abs()
    if region == "quadrant":
        spectrum = spectrum[(..., *[slice(0, m // 2 + 1) for m in y.shape[-dims:]])]
    return weighted_mean(spectrum, weight.to(spectrum), frequency.to(spectrum), dims)


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
    return weighted_mean(y.abs(), weight.to(y), frequency.to(y), dims)


def energy_above(y, frequency):
    """Share of variance in cosine waves of more than `frequency` cycles per domain; (..., m, m) to (...)."""
    y = _centred(y)
    spectrum = _dct_matrix(y.shape[-2]).to(y) @ y @ _dct_matrix(y.shape[-1]).to(y).T
    high = _norm([torch.arange(m) / 2 for m in y.shape[-2:]]).to(y) > frequency
    total = spectrum.square().sum((-2, -1))
    return (spectrum.square() * high).sum((-2, -1)) / torch.where(total == 0, 1, total)


# Closed forms: what the measures give for functions that need no computer.


def fourier_flat(m, region="quadrant"):
    """`fourier` of a spectrum whose magnitudes are all equal (white noise, on average): the highest value a typical
    function gets."""
    weight, frequency = fourier_weights((m, m), region, False, "cpu")
    return float((weight * frequency).sum() / weight.sum())


def fourier_plane(m):
    """`fourier` of any plane a x1 + b x2: sum k / sin(pi k/m) over sum 1 / sin(pi k/m), k = 1 .. m/2.

    The transform repeats the plane, so it sees a sawtooth, whose coefficients fall off as 1 / sin(pi k/m); both axes
    give the same mean.
    """
    k = np.arange(1, m // 2 + 1)
    magnitude = 1 / np.sin(math.pi * k / m)
    return float((magnitude * k).sum() / magnitude.sum())


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


def weighted_mean(magnitude, weight, frequency, dims):
    """Sum of magnitude * frequency over sum of magnitude, both weighted, over the trailing dimensions; 0 for an
    all-zero spectrum."""
    axes = tuple(range(-dims, 0))
    total = (magnitude * weight).sum(dim=axes)
    return (magnitude * (weight * frequency)).sum(dim=axes) / torch.where(total == 0, 1, total)


def _norm(axes):
    """Euclidean norm on the grid spanned by one-dimensional coordinates."""
    return torch.stack(torch.meshgrid(*[a.double() for a in axes], indexing="ij")).square().sum(0).sqrt()


@lru_cache(maxsize=32)
def fourier_weights(shape, region, constant, device):
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

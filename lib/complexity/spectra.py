"""Mean frequency in the Fourier and the cosine transform.

Every measure takes `y` of shape (..., m, m): the leading dimensions are an ensemble of functions, the trailing `dims`
(two unless said otherwise) are the grid on [-1, 1]; one number per function comes back. Sides may differ in length:
frequencies count cycles per domain along each. Neural Redshift, Section 2 and Appendix D.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from lib.complexity._values import along_each_axis, centred, norm_on_grid, values_on_grid, weighted_mean

REGIONS = ("half plane", "quadrant")


def fourier(y: Tensor | np.ndarray, region: str = "half plane", constant: bool = False, dims: int = 2) -> Tensor:
    """Mean frequency of a function, each frequency weighted by the magnitude of its Fourier coefficient; shape (...).

    `region="half plane"` counts every wave once (k and -k are the same wave). `region="quadrant"` sums over k in
    [0, m/2]^dims as Neural Redshift prints it (C_Fourier, Section 2): it is blind to waves whose wave vector has
    components of opposite sign. `constant=True` keeps k = 0 in the denominator, as Appendix D does and Section 2 does
    not, which makes the result depend on the function's mean.
    """
    y = values_on_grid("fourier", y, dims)
    spectrum = torch.fft.rfftn(y if constant else centred(y, dims), dim=tuple(range(-dims, 0))).abs()
    return fourier_of_magnitudes(spectrum, y.shape[-1], region, constant, dims)


def cosine(y: Tensor | np.ndarray, dims: int = 2) -> Tensor:
    """Mean frequency in the cosine transform (DCT-II), in cycles per domain; shape (...).

    The cosine transform continues a function by its mirror image instead of repeating it, so there is no jump at the
    edge: a plane gets 1.04 on a 64 x 64 grid where `fourier` gives 8.59. Ours, not the paper's.
    """
    return cosine_of_magnitudes(cosine_transform(centred(values_on_grid("cosine", y, dims), dims), dims).abs(), dims)


def energy_above(y: Tensor | np.ndarray, frequency: float, dims: int = 2) -> Tensor:
    """Share of variance in cosine waves of more than `frequency` cycles per domain; (..., m, m) to (...)."""
    power = cosine_transform(centred(values_on_grid("energy_above", y, dims), dims), dims).square()
    high = _cosine_frequencies(tuple(power.shape[-dims:])).to(power.device) > frequency
    axes = tuple(range(-dims, 0))
    total = power.sum(axes)
    return (power * high).sum(axes) / torch.where(total == 0, 1, total)


def cosine_transform(y: Tensor | np.ndarray, dims: int = 2) -> Tensor:
    """The orthonormal cosine transform (DCT-II) along the last `dims` axes; same shape. Index n is n/2 cycles."""
    y = values_on_grid("cosine_transform", y, dims)
    return along_each_axis(y, [_dct_matrix(m) for m in y.shape[-dims:]])


# The measures of magnitudes that are already there: measured ones above, predicted ones in `redshift.infinite_width`.


def fourier_of_magnitudes(magnitude: Tensor, m: int, region: str = "half plane", constant: bool = False, dims: int = 2) -> Tensor:
    """`fourier` of the magnitudes of all coefficients that `rfftn` returns, (..., m1, ..., m // 2 + 1); shape (...).

    `m` is the number of points along the last axis, of which `rfftn` keeps the lower half of the frequencies.
    """
    weight, frequency = _fourier_weights((*magnitude.shape[-dims:-1], m), region, constant)
    if region == "quadrant":
        magnitude = magnitude[(..., *[slice(0, n) for n in weight.shape])]
    return weighted_mean(magnitude, weight, frequency)


def cosine_of_magnitudes(magnitude: Tensor, dims: int = 2) -> Tensor:
    """`cosine` of the magnitudes of all coefficients of `cosine_transform`, (..., m, m); shape (...)."""
    frequency = _cosine_frequencies(tuple(magnitude.shape[-dims:]))
    return weighted_mean(magnitude, (frequency > 0).double(), frequency)


# Closed forms: what the measures give for functions that need no computer.


def fourier_flat(m: int, region: str = "half plane") -> float:
    """`fourier` of a spectrum whose magnitudes are all equal (white noise, on average)."""
    weight, frequency = _fourier_weights((m, m), region, False)
    return float((weight * frequency).sum() / weight.sum())


def fourier_plane(m: int, region: str = "half plane") -> float:
    """`fourier` of any plane a x1 + b x2: sum k / sin(pi k/m) over sum 1 / sin(pi k/m), k = 1 .. m/2.

    The transform repeats the plane, so it sees a sawtooth, whose coefficients fall off as 1 / sin(pi k/m); both axes
    give the same mean. On the half plane the wave with k = m/2 counts half: unlike the others it has no partner -k.
    """
    k = np.arange(1, m // 2 + 1)
    magnitude = 1 / np.sin(math.pi * k / m)
    if _known(region) == "half plane" and m % 2 == 0:
        magnitude[-1] /= 2
    return float((magnitude * k).sum() / magnitude.sum())


def _known(region: str) -> str:
    if region not in REGIONS:
        raise ValueError(f"region is one of {', '.join(REGIONS)}, not {region!r}")
    return region


@lru_cache(maxsize=32)
def _fourier_weights(shape: tuple[int, ...], region: str, constant: bool) -> tuple[Tensor, Tensor]:
    """Weights (how often a coefficient counts) and frequencies |k| on the part of the rfftn grid that `region` uses."""
    half = [torch.arange(m // 2 + 1) for m in shape]
    weight_last = torch.ones(shape[-1] // 2 + 1, dtype=torch.float64)
    if _known(region) == "quadrant":
        axes = half
    else:
        axes = [torch.fft.fftfreq(m, 1 / m) for m in shape[:-1]] + [half[-1]]
        weight_last[0] = 0.5  # k and -k are both present where the last component is 0 or the Nyquist frequency
        if shape[-1] % 2 == 0:
            weight_last[-1] = 0.5
    frequency = norm_on_grid(axes)
    weight = weight_last.expand(frequency.shape).clone()
    if not constant:
        weight[(0,) * len(shape)] = 0
    return weight, frequency


def _cosine_frequencies(shape: tuple[int, ...]) -> Tensor:
    return norm_on_grid([torch.arange(m) / 2 for m in shape])


@lru_cache(maxsize=32)
def _dct_matrix(m: int) -> Tensor:
    """Orthonormal DCT-II: rows are the half-waves cos(pi n (i + 1/2) / m)."""
    n, i = torch.arange(m, dtype=torch.float64)[:, None], torch.arange(m, dtype=torch.float64)
    matrix = torch.cos(math.pi * n * (i + 0.5) / m) * math.sqrt(2 / m)
    matrix[0] /= math.sqrt(2)
    return matrix

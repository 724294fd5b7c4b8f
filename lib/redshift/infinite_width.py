"""Random networks of infinite width are Gaussian processes: their mean complexity without drawing a single network.

The theory beside Neural Redshift, Sections 2 and 3; kernels of Cho and Saul (2009, ReLU) and C. K. I. Williams (1997, erf).
`fourier` and `cosine` are the twins of `random_networks.images` followed by `complexity.fourier` and `complexity.cosine`,
for Gaussian weights and biases: whatever its shape, a prior enters by its variances alone.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from scipy.special import ellipe
from torch import Tensor

from lib import complexity
from lib.linear import axes
from lib.redshift.random_networks import Prior

ACTIVATIONS = ("relu", "erf", "gaussian", "sine")
TINY = 1e-300


def kernel_step(activation: str, k: Tensor, diagonal_1: Tensor, diagonal_2: Tensor) -> Tensor:
    """E[phi(u) phi(v)] for jointly Gaussian u, v with variances `diagonal_1`, `diagonal_2` and covariance `k`, which
    broadcast: arc-cosine kernel (ReLU), arcsine kernel (erf), and the Gaussian integrals of sin and exp(-x^2/2)."""
    if activation == "relu":
        scale = torch.sqrt(diagonal_1 * diagonal_2)
        cosine = (k / scale.clamp(min=TINY)).clamp(-1, 1)  # without biases the origin has variance 0
        return scale * (torch.sqrt(1 - cosine.square()) + (math.pi - torch.arccos(cosine)) * cosine) / (2 * math.pi)
    if activation == "erf":
        return 2 / math.pi * torch.arcsin(2 * k / torch.sqrt((1 + 2 * diagonal_1) * (1 + 2 * diagonal_2)))
    if activation == "sine":  # exp(-mean) sinh(k), written so that nothing overflows
        mean = (diagonal_1 + diagonal_2) / 2
        return (torch.exp(k - mean) - torch.exp(-k - mean)) / 2
    if activation == "gaussian":
        return torch.rsqrt((1 + diagonal_1) * (1 + diagonal_2) - k.square())
    raise ValueError(f"the closed form is known here for {', '.join(ACTIVATIONS)}, not {activation!r}")


@axes(x1="points1 inputs", x2="points2 inputs")
def kernel(
    activation: str,
    x1: Tensor,
    x2: Tensor,
    depth: int = 3,
    width: int = 64,
    prior: Prior | None = None,
    *,
    layer_norm: bool = False,
) -> Tensor:
    """E[phi(u) phi(v)] of the units in the last hidden layer of an infinitely wide random network, at points x1 (points1,
    inputs) and x2 (points2, inputs): (points1, points2).

    The outputs' covariance is a multiple of it plus the variance of the readout's bias, which the measures of complexity
    do not see. `width` enters through the prior alone, which scales the first layer by its fan_out. Layer normalisation
    divides by the standard deviation across channels, here the square root of the diagonal.
    """
    prior = prior or Prior()
    inputs = x1.shape[1]
    bias, first = prior.bias_std**2, prior.weight_std(inputs, width, first=True) ** 2
    hidden = width * prior.weight_std(width, width) ** 2
    k, one, two = first * x1 @ x2.T + bias, first * x1.square().sum(1) + bias, first * x2.square().sum(1) + bias
    for layer in range(depth):
        if layer > 0:
            k, one, two = (hidden * each + bias for each in (k, one, two))
        if layer_norm:
            k = k / (one[:, None] * two).sqrt().clamp(min=TINY)
            one, two = one / one.clamp(min=TINY), two / two.clamp(min=TINY)
        k = kernel_step(activation, k, one[:, None], two)
        one, two = kernel_step(activation, one, one, one), kernel_step(activation, two, two, two)
    return k


def fourier(
    activation: str,
    depth: int = 3,
    width: int = 64,
    prior: Prior | None = None,
    *,
    m: int = 64,
    region: str = "half plane",
    layer_norm: bool = False,
) -> float:
    """Mean `complexity.fourier` of infinitely wide random networks on an m x m grid.

    A Fourier coefficient of a Gaussian process is a complex Gaussian number z with E|z|^2 = S and E z^2 = T; its mean
    magnitude is an elliptic integral. With the kernel K, S(k) = sum_d e^{-ikd} sum_{x-x'=d} K(x, x') and
    T(k) = sum_s e^{-iks} sum_{x+x'=s} K(x, x'), so that two m x m transforms replace the m^2 x m^2 one. The grid is
    mirror-symmetric, so a quarter of its points suffices. The mean of the ratio is approximated by the ratio of the means.
    """
    difference, total = (torch.zeros(m * m, dtype=torch.float64) for _ in range(2))
    i = torch.arange(m)
    for row, column, weight, k in _kernel_parts(activation, depth, width, prior, m, layer_norm):
        # The mean over the grid adds to k = 0 alone, which the measure leaves out: no need to subtract it.
        for sign, target in ((-1, difference), (1, total)):
            along = (i[:, None] + sign * i) % m  # of two places on an axis
            index = (m * along[row])[:, :, None] + along[column][:, None]  # (rows, m, m)
            target.index_add_(0, index.flatten(), (k * weight[:, None]).flatten())
    difference, total = difference.reshape(m, m), total.reshape(m, m)
    for axis in (0, 1):  # the other corners: mirrored, a difference d becomes -d, a sum s becomes -2 - s
        difference = (difference + difference.flip(axis).roll(1, axis)) / 2
        total = (total + total.flip(axis).roll(-1, axis)) / 2
    s = torch.fft.fft2(difference).real.clamp(min=0)
    t = torch.fft.fft2(total).abs()
    magnitude = _mean_magnitude(s, torch.minimum(t, s))
    return float(complexity.fourier_of_magnitudes(magnitude[:, : m // 2 + 1], m, region))


def cosine(
    activation: str, depth: int = 3, width: int = 64, prior: Prior | None = None, *, m: int = 64, layer_norm: bool = False
) -> float:
    """Mean `complexity.cosine` of infinitely wide random networks on an m x m grid.

    A cosine coefficient of a Gaussian process is a real Gaussian number; its variance v is the diagonal of C K C', with K
    the kernel and C the cosine transform of the grid, and its mean magnitude sqrt(2 v / pi). The mean of the ratio is
    approximated by the ratio of the means.
    """
    waves = complexity.cosine_transform(torch.eye(m, dtype=torch.float64), dims=1)  # (place, frequency)
    variance = torch.zeros(m, m, dtype=torch.float64)
    for row, column, weight, k in _kernel_parts(activation, depth, width, prior, m, layer_norm):
        half = complexity.cosine_transform(k.reshape(-1, m, m))  # (rows, frequency, frequency): K C'
        variance += torch.einsum("rab,ra,rb->ab", half, waves[row] * weight[:, None], waves[column])
    return float(complexity.cosine_of_magnitudes((variance.clamp(min=0) * (2 / math.pi)).sqrt()))


def _kernel_parts(
    activation: str, depth: int, width: int, prior: Prior | None, m: int, layer_norm: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """`kernel` between a quarter of the grid's points and all points, in parts of 256 points: row and column of each point,
    how many points of the grid it stands for, and the kernel (256, points). The kernel is the same for both points mirrored,
    so a point stands for two along each axis, or for one on the middle line."""
    i = torch.arange((m + 1) // 2)
    stands_for = torch.where(2 * i == m - 1, 1.0, 2.0).double()
    points = complexity.grid(m)
    for part in torch.cartesian_prod(i, i).split(256):
        row, column = part.T
        k = kernel(activation, points[m * row + column], points, depth, width, prior, layer_norm=layer_norm)
        yield row, column, stands_for[row] * stands_for[column], k


def _mean_magnitude(s: Tensor, t: Tensor) -> Tensor:
    """E|z| of a complex Gaussian z with E|z|^2 = s and |E z^2| = t <= s: sqrt(2 a/pi) E(1 - b/a) with variances a, b =
    (s ± t)/2 along the ellipse's axes; sqrt(pi s/4) if t = 0, sqrt(2 s/pi) if t = s (a real number)."""
    a, b = (s + t) / 2, (s - t) / 2
    return torch.from_numpy(np.sqrt(2 * a.numpy() / math.pi) * ellipe(1 - b.numpy() / np.maximum(a.numpy(), TINY)))

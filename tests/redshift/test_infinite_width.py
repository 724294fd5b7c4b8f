"""Networks of infinite width: kernels against quadrature, the predicted Fourier complexity against sampled networks."""

import math

import numpy as np
import pytest
import torch

from lib import complexity
from lib.redshift import activations, infinite_width, random_networks
from lib.redshift.random_networks import Prior


@pytest.mark.parametrize("activation", infinite_width.ACTIVATIONS)
def test_kernel_step_is_the_gaussian_expectation(activation):
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = weights / weights.sum()
    phi = activations.ACTIVATIONS[activation]
    for a, b, c in ((1.0, 0.5, 0.3), (0.7, 0.7, -0.6), (0.4, 1.1, 0.0)):
        u = math.sqrt(a) * nodes[:, None] + 0 * nodes
        v = c / math.sqrt(a) * nodes[:, None] + math.sqrt(b - c * c / a) * nodes
        products = (phi(torch.from_numpy(u)) * phi(torch.from_numpy(v))).numpy()
        expected = float(weights @ products @ weights)
        closed = float(infinite_width.kernel_step(activation, *(torch.tensor(t, dtype=torch.float64) for t in (c, a, b))))
        assert closed == pytest.approx(expected, abs=2e-3 if activation == "relu" else 1e-8)  # quadrature of a kink


def test_the_kernel_is_the_covariance_of_wide_networks():
    prior = Prior(2.0, shape="gaussian", first_fan=64)
    x = random_networks.grid(3)
    h = x.float()
    for layer in random_networks.draw(1000, (2, 128, 128, 1), prior, dtype=torch.float32)[:-1]:
        h = random_networks.hidden_layer(layer, h, "sine")  # (seeds, points, width)
    h = h.transpose(1, 2).reshape(-1, len(x)).double()
    sampled = h.T @ h / len(h)  # over all units: the readout adds nothing but noise
    predicted = infinite_width.kernel("sine", x, x, 2, 64, prior)
    assert (sampled - predicted).abs().max() < 0.01 * predicted.diagonal().max()  # 1000 networks, width 128


@pytest.mark.parametrize(
    ("activation", "magnitude", "layer_norm"),
    [
        ("relu", 4.0, False),
        ("erf", 8.0, False),
        ("gaussian", 12.0, False),
        ("sine", 6.0, False),
        ("sine", 0.5, False),
        ("sine", 6.0, True),
    ],
)
def test_predicted_complexity_is_that_of_sampled_networks(activation, magnitude, layer_norm):
    prior = Prior(magnitude, shape="gaussian", first_fan=64)
    predicted = infinite_width.fourier(activation, 3, 64, prior, m=32, layer_norm=layer_norm)
    variant = "layer norm" if layer_norm else "plain"
    sampled = complexity.fourier(random_networks.images(activation, 60, 3, 128, prior, variant=variant, m=32))
    error = float(sampled.std()) / math.sqrt(len(sampled))
    # 1.5 %: finite width, and the mean of a ratio replaced by the ratio of means
    assert abs(float(sampled.mean()) - predicted) < 4 * error + 0.015 * predicted


@pytest.mark.parametrize(
    ("activation", "magnitude", "layer_norm"),
    [("relu", 1.0, False), ("erf", 8.0, False), ("gaussian", 4.0, False), ("sine", 4.0, False), ("sine", 6.0, True)],
)
def test_predicted_cosine_complexity_is_that_of_sampled_networks(activation, magnitude, layer_norm):
    prior = Prior(magnitude, shape="gaussian", first_fan=64)
    predicted = infinite_width.cosine(activation, 3, 64, prior, m=32, layer_norm=layer_norm)
    variant = "layer norm" if layer_norm else "plain"
    y = random_networks.images(activation, 100, 3, 256, prior, variant=variant, m=32)
    each = complexity.cosine(y)
    error = float(each.std()) / math.sqrt(len(each))
    means = complexity.cosine_of_magnitudes(complexity.cosine_transform(y).abs().mean(0))
    assert abs(float(means) - predicted) < 4 * error + 0.01 * predicted  # 1 %: finite width
    # A function with few strong waves may be much simpler or more complex than the mean: up to a twentieth more.
    assert abs(float(each.mean()) - predicted) < 4 * error + 0.05 * predicted


@pytest.mark.parametrize("m", (7, 8))  # an odd grid has a middle
def test_cosine_variances_are_those_of_the_full_transform(m):
    """diag(C K C') from the whole matrix, in the mean magnitude of a real Gaussian."""
    prior = Prior(5.0)
    points = random_networks.grid(m)
    k = infinite_width.kernel("sine", points, points, 2, 64, prior).numpy()
    n = np.arange(m)
    c = np.cos(np.pi * np.outer(n, n + 0.5) / m) * np.where(n == 0, np.sqrt(1 / m), np.sqrt(2 / m))[:, None]
    transform = np.kron(c, c)
    magnitude = np.sqrt(2 / np.pi * np.diag(transform @ k @ transform.T)).reshape(m, m)
    frequency = np.hypot(n[:, None], n) / 2
    magnitude[0, 0] = 0
    expected = (magnitude * frequency).sum() / magnitude.sum()
    assert infinite_width.cosine("sine", 2, 64, prior, m=m) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("m", (7, 8))
@pytest.mark.parametrize("region", complexity.REGIONS)
def test_lag_sums_equal_the_full_transform(region, m):
    """S = diag(F K F*) and the mean magnitude, computed from the whole matrix."""
    prior = Prior(5.0)
    points = random_networks.grid(m)
    k = infinite_width.kernel("gaussian", points, points, 2, 64, prior).numpy()
    i = np.arange(m)
    f = np.exp(-2j * np.pi * np.outer(i, i) / m)
    transform = np.kron(f, f)
    s = np.real(np.diag(transform @ k @ transform.conj().T)).reshape(m, m).copy()
    t = np.abs(np.diag(transform @ k @ transform.T)).reshape(m, m)
    magnitude = infinite_width._mean_magnitude(torch.from_numpy(s), torch.from_numpy(np.minimum(t, s)))
    expected = float(complexity.fourier_of_magnitudes(magnitude[:, : m // 2 + 1], m, region))
    assert infinite_width.fourier("gaussian", 2, 64, prior, m=m, region=region) == pytest.approx(expected, rel=1e-9)


def test_mean_magnitude_of_an_elliptic_gaussian():
    generator = torch.Generator().manual_seed(0)
    for a, b in ((1.0, 1.0), (1.0, 0.2), (1.0, 0.0)):
        z = torch.randn(200_000, 2, generator=generator, dtype=torch.float64) * torch.tensor([a, b]).sqrt()
        closed = infinite_width._mean_magnitude(
            torch.tensor([a + b], dtype=torch.float64), torch.tensor([a - b], dtype=torch.float64)
        )
        assert float(closed) == pytest.approx(float(z.norm(dim=1).mean()), rel=5e-3)


def test_two_layers_of_one_point_by_hand():
    """A ReLU halves a variance. |x|² = 25, magnitude 3/2, biases of variance 0.12, width 64: the first layer has 25 · 9/4 · 2/66
    + 0.12, the second 9/4 of half of that + 0.12, and the output sees half of it."""
    x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    first = 25 * 2.25 / 33 + 0.12
    for depth, expected in ((1, first / 2), (2, (2.25 * first / 2 + 0.12) / 2)):
        found = infinite_width.kernel("relu", x, x, depth, 64, Prior(1.5, 0.6))
        assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", infinite_width.ACTIVATIONS)
def test_the_origin_without_biases_is_a_point_like_others(activation, layer_norm):
    none = random_networks.Prior(bias=0.0)
    x = complexity.grid(3)  # its middle point is the origin, where a network without biases has variance 0
    k = infinite_width.kernel(activation, x, x, prior=none, layer_norm=layer_norm)
    assert k.isfinite().all()
    if activation in ("relu", "erf", "sine"):  # these map 0 to 0
        assert (k[4] == 0).all() and (k[:, 4] == 0).all()
    even, odd, next_even = (infinite_width.fourier(activation, prior=none, m=m, layer_norm=layer_norm) for m in (8, 9, 10))
    assert even < odd < next_even

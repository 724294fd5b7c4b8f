"""Random networks: the ensemble against single networks written out plainly, priors, invariances, the unbiased
model."""

import math

import pytest
import torch
from scipy import stats

from lib import complexity
from lib.redshift import random_networks
from lib.redshift.random_networks import Prior


def plain_network(layers, network, x, activation, variant):
    """One network, one hidden layer after the other, as Neural Redshift Section 3 writes it."""
    phi = random_networks.ACTIVATIONS[activation]
    for layer in layers[:-1]:
        w, b = layer["weight"][network], layer["bias"][network, 0]
        z = x @ w + b
        if variant == "layer norm":
            z = (z - z.mean(1, keepdim=True)) / (z.var(1, unbiased=False, keepdim=True)).sqrt()
        out = phi(z)
        if variant == "residual":
            out = z + out
        if variant == "gated":
            out = out / (1 + torch.exp(-(x @ layer["gate weight"][network] + layer["gate bias"][network, 0])))
        x = out
    return x @ layers[-1]["weight"][network] + layers[-1]["bias"][network, 0]


@pytest.mark.parametrize("variant", random_networks.VARIANTS)
@pytest.mark.parametrize("activation", random_networks.ACTIVATIONS)
def test_an_ensemble_is_its_networks(activation, variant):
    generator = torch.Generator().manual_seed(1)
    layers = random_networks.draw(3, (2, 10, 10, 1), Prior(2.0), "hidden" if variant == "gated" else "none", generator)
    x = random_networks.grid(6)
    together = random_networks.forward(layers, x, activation, variant)
    expanded = random_networks.forward(layers, x.expand(3, -1, -1), activation, variant)
    for network in range(3):
        alone = plain_network(layers, network, x, activation, variant)
        assert torch.allclose(together[network], alone, atol=1e-12)
        assert torch.allclose(expanded[network], alone, atol=1e-12)


def test_the_gaussian_is_one_and_has_its_gradient():
    x = torch.linspace(-3, 3, 13, dtype=torch.float64, requires_grad=True)
    gaussian = random_networks.ACTIVATIONS["gaussian"]
    assert torch.allclose(gaussian(x), torch.exp(-x.square() / 2))
    assert torch.autograd.gradcheck(gaussian, x)


@pytest.mark.parametrize("variant", random_networks.VARIANTS)
def test_all_depths_of_one_pass_are_networks_of_that_depth(variant):
    """The functions of depth l from one pass of depth 4 have the same distribution of complexity as networks of depth l
    alone."""
    options = {"width": 16, "prior": Prior(6.0), "variant": variant, "m": 16}
    one_pass = random_networks.images("tanh", 300, 4, depths=True, seed=0, **options)
    for depth in (1, 3):
        alone = random_networks.images("tanh", 300, depth, seed=1, **options)
        p = stats.ks_2samp(complexity.fourier(one_pass[depth - 1]), complexity.fourier(alone)).pvalue
        assert p > 1e-3  # fixed seeds: one of a thousand correct programs would fail, and this one does not


def test_images_are_the_forward_pass():
    generator = torch.Generator().manual_seed(5)
    layers = random_networks.draw(2, (2, 8, 8), Prior(3.0), generator=generator)
    readout = random_networks.draw(2, (8, 1), Prior(3.0), generator=generator)
    expected = random_networks.forward(layers + readout, random_networks.grid(12), "sine").reshape(2, 12, 12)
    made = random_networks.images("sine", 2, 2, 8, Prior(3.0), m=12, seed=5, dtype=torch.float64)
    assert torch.allclose(made, expected, atol=1e-12)


def test_nearly_constant_networks_are_evaluated_in_double_precision():
    options = {"prior": Prior(0.5), "variant": "gated", "depths": True, "m": 32}
    double = complexity.fourier(random_networks.images("tanh", 6, 6, dtype=torch.float64, **options))
    single = complexity.fourier(random_networks.images("tanh", 6, 6, dtype=torch.float32, **options))
    automatic = complexity.fourier(random_networks.images("tanh", 6, 6, **options))
    assert (single - double).abs().max() > 0.1  # rounding noise looks complex
    assert (automatic - double).abs().max() < 0.02  # networks that vary by a thousandth and more stay in float32


@pytest.mark.parametrize("shape", random_networks.PRIORS)
def test_priors_have_the_same_variance(shape):
    generator = torch.Generator().manual_seed(0)
    layer = random_networks.draw(400, (30, 20, 1), Prior(1.5, 0.7, shape), generator=generator)[0]
    assert float(layer["weight"].std()) == pytest.approx(1.5 * math.sqrt(2 / 50), rel=0.01)  # 240,000 samples
    assert float(layer["bias"].std()) == pytest.approx(0.7 / math.sqrt(3), rel=0.05)  # 8,000 samples, long tails
    if shape == "uniform":
        assert float(layer["weight"].abs().max()) == pytest.approx(1.5 * math.sqrt(6 / 50), rel=1e-3)
    if shape == "ball":
        radius = math.sqrt(600 + 2) * 1.5 * math.sqrt(2 / 50)
        assert float(layer["weight"].square().sum((1, 2)).sqrt().max()) <= radius


def test_the_first_fan_fixes_the_first_layer():
    narrow, wide = Prior(first_fan=64).weight_std(2, 16, first=True), Prior(first_fan=64).weight_std(2, 256, first=True)
    assert narrow == wide == Prior().weight_std(2, 64, first=True)
    assert Prior().weight_std(2, 16, first=True) > Prior().weight_std(2, 256, first=True)


@pytest.mark.parametrize(("activation", "variant"), [("relu", "plain"), ("tanh", "layer norm"), ("sine", "layer norm")])
def test_without_biases_the_magnitude_is_irrelevant(activation, variant):
    """ReLU networks are homogeneous, and layer normalisation divides by the scale; a power of two costs no rounding."""
    made = [
        complexity.fourier(
            random_networks.images(activation, 4, 3, prior=Prior(a, 0.0), variant=variant, m=32, dtype=torch.float64)
        )
        for a in (1.0, 4.0)
    ]
    assert torch.allclose(*made, rtol=1e-12)


def test_a_traversal_walks_from_corner_to_corner():
    walk = random_networks.traversal(5, 8, torch.Generator().manual_seed(0), torch.float64).reshape(8, 8, 5)
    assert walk.shape == (8, 8, 5) and (walk[:, 0].abs() == 1).all()
    steps = walk.diff(dim=1)
    assert torch.allclose(steps, steps[:, :1].expand_as(steps))  # straight, at constant speed
    assert torch.allclose(walk[:-1, -1] + steps[:-1, 0], walk[1:, 0])  # the next walk starts where this one ends


def test_the_unbiased_model_is_a_sum_of_sines():
    m = 8
    frequencies = random_networks.unbiased_frequencies(m)
    assert len(frequencies) == (m * m - 4) // 2 + 3  # pairs k, -k, and the three waves that are their own partner
    generator = torch.Generator().manual_seed(3)
    amplitude = 2 * (2 * torch.rand(2, len(frequencies), generator=generator, dtype=torch.float64) - 1)
    phase = 2 * math.pi * torch.rand(2, len(frequencies), generator=generator, dtype=torch.float64)
    points = torch.cartesian_prod(torch.arange(m), torch.arange(m)).double()
    angle = 2 * math.pi / m * points @ frequencies.double().T
    expected = (amplitude[:, None] * torch.sin(angle + phase[:, None])).sum(-1).reshape(2, m, m)
    assert torch.allclose(random_networks.unbiased_images(2, m, 2.0, seed=3), expected, atol=1e-10)


def test_the_unbiased_model_has_a_flat_spectrum():
    measured = complexity.fourier(random_networks.unbiased_images(100))
    assert float(measured.mean()) == pytest.approx(complexity.fourier_flat(64), abs=0.1)


def test_unknown_priors_are_refused():
    with pytest.raises(ValueError, match="one of"):
        random_networks.draw(1, (2, 3), Prior(shape="cauchy"))

"""Random networks: the ensemble against single networks written out plainly, priors, invariances, the unbiased
model."""

import math

import pytest
import torch
from scipy import stats

from lib import complexity
from lib.linear import Streams, WrongAxes
from lib.redshift import activations, random_networks
from lib.redshift.random_networks import Prior


def plain_network(layers, network, x, activation, variant):
    """One network, one hidden layer after the other, as Neural Redshift Section 3 writes it."""
    phi = activations.ACTIVATIONS[activation]
    for layer in layers[:-1]:
        w, b = layer["weight"][network], layer["bias"][network, 0]
        z = x @ w.T + b
        if variant == "layer norm":
            z = (z - z.mean(1, keepdim=True)) / (z.var(1, unbiased=False, keepdim=True)).sqrt()
        out = phi(z)
        if variant == "residual":
            out = z + out
        if variant == "gated":
            out = out / (1 + torch.exp(-(x @ layer["gate weight"][network].T + layer["gate bias"][network, 0])))
        x = out
    return x @ layers[-1]["weight"][network].T + layers[-1]["bias"][network, 0]


@pytest.mark.parametrize("variant", random_networks.VARIANTS)
@pytest.mark.parametrize("activation", activations.ACTIVATIONS)
def test_an_ensemble_is_its_networks(activation, variant):
    layers = random_networks.draw(3, (2, 10, 7, 1), Prior(2.0), gates="hidden" if variant == "gated" else "none", seed=1)
    x = random_networks.grid(6)
    together = random_networks.forward(layers, x, activation, variant=variant)
    expanded = random_networks.forward(layers, x.expand(3, -1, -1), activation, variant=variant)
    for network in range(3):
        alone = plain_network(layers, network, x, activation, variant)
        assert torch.allclose(together[network], alone, atol=1e-12)
        assert torch.allclose(expanded[network], alone, atol=1e-12)


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
    streams = Streams(2, 5)
    layers = random_networks.draw(2, (2, 8, 8), Prior(3.0), seed=streams)
    readout = random_networks.draw(2, (8, 1), Prior(3.0), seed=streams)
    expected = random_networks.forward(layers + readout, random_networks.grid(12), "sine").reshape(2, 12, 12)
    made = random_networks.images("sine", 2, 2, 8, Prior(3.0), m=12, seed=5, dtype=torch.float64)
    assert torch.allclose(made, expected, atol=1e-12)


def test_the_first_layer_has_its_own_fan_at_every_depth():
    """Once images of networks with a single hidden layer forgot it."""
    prior = Prior(3.0, first_fan=64)
    streams = Streams(2, 5)
    layers = random_networks.draw(2, (2, 8), prior, seed=streams)
    assert float(layers[0]["weight"].abs().max()) <= 3 * math.sqrt(6 / 66)
    readout = random_networks.draw(2, (8, 1), Prior(3.0), seed=streams)
    expected = random_networks.forward(layers + readout, random_networks.grid(6), "sine").reshape(2, 6, 6)
    assert torch.allclose(random_networks.images("sine", 2, 1, 8, prior, m=6, seed=5, dtype=torch.float64), expected, atol=1e-12)


def test_nearly_constant_networks_are_evaluated_in_double_precision():
    options = {"prior": Prior(0.5), "variant": "gated", "depths": True, "m": 32}
    double = complexity.fourier(random_networks.images("tanh", 6, 6, dtype=torch.float64, **options))
    single = complexity.fourier(random_networks.images("tanh", 6, 6, dtype=torch.float32, **options))
    automatic = complexity.fourier(random_networks.images("tanh", 6, 6, **options))
    assert (single - double).abs().max() > 0.1  # rounding noise looks complex
    assert (automatic - double).abs().max() < 0.02  # networks that vary by a thousandth and more stay in float32


@pytest.mark.parametrize("shape", random_networks.PRIORS)
def test_priors_have_the_same_variance(shape):
    """Mean 0 and variance 1 but for four standard errors over 1.2 million weights and 40,000 biases."""
    layer = random_networks.draw(2000, (30, 20, 1), Prior(1.5, 0.7, shape))[0]
    for values, std in ((layer["weight"], 1.5 * math.sqrt(2 / 50)), (layer["bias"], 0.7 / math.sqrt(3))):
        unit = values.flatten() / std
        assert abs(float(unit.mean())) < 4 / math.sqrt(len(unit))
        assert abs(float(unit.square().mean()) - 1) < 4 * math.sqrt(5 / len(unit))  # 5: the variance of a Laplace's square
    if shape == "uniform":
        assert float(layer["weight"].abs().max()) == pytest.approx(1.5 * math.sqrt(6 / 50), rel=1e-3)
    if shape == "ball":
        radius = math.sqrt(600 + 2) * 1.5 * math.sqrt(2 / 50)
        assert float(layer["weight"].square().sum((1, 2)).sqrt().max()) <= radius


def test_the_printed_prior_by_hand():
    """U(-s, s) with s = 3 sqrt(6 / (2 + 16)) = sqrt(3), whose deviation is 1; biases in ±1/2. The first layer by its fan_out."""
    prior = Prior(3.0, 0.5)
    assert prior.weight_std(2, 16, first=True) == pytest.approx(1, rel=1e-12)
    assert prior.weight_std(16, 16) == pytest.approx(0.75, rel=1e-12) and prior.bias_std == pytest.approx(0.5 / 3**0.5, rel=1e-12)


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
    walk = random_networks.traversal(5, 8, dtype=torch.float64).reshape(8, 8, 5)
    assert walk.shape == (8, 8, 5) and (walk[:, 0].abs() == 1).all()
    steps = walk.diff(dim=1)
    assert torch.allclose(steps, steps[:, :1].expand_as(steps))  # straight, at constant speed
    assert torch.allclose(walk[:-1, -1] + steps[:-1, 0], walk[1:, 0])  # the next walk starts where this one ends


def test_the_unbiased_model_is_a_sum_of_sines():
    m = 8
    frequencies, amplitude, phase = random_networks.unbiased_parameters(2, m, 2.0, seed=3)
    assert len(frequencies) == (m * m - 4) // 2 + 3  # pairs k, -k, and the three waves that are their own partner
    points = torch.cartesian_prod(torch.arange(m), torch.arange(m)).double()
    angle = 2 * math.pi / m * points @ frequencies.double().T
    expected = (amplitude[:, None] * torch.sin(angle + phase[:, None])).sum(-1).reshape(2, m, m)
    assert torch.allclose(random_networks.unbiased_images(2, m, 2.0, seed=3), expected, atol=1e-10)


def test_the_unbiased_model_has_a_flat_spectrum():
    measured = complexity.fourier(random_networks.unbiased_images(100))
    assert float(measured.mean()) == pytest.approx(complexity.fourier_flat(64), abs=0.1)


@pytest.mark.parametrize("variant", ["plain", "gated"])
@pytest.mark.parametrize("depths", [False, True])
def test_a_network_depends_on_its_seed_alone(variant, depths):
    """Not on how many are drawn, nor on the chunks in which they are evaluated, nor on the grid."""
    options = {"depth": 3, "width": 64, "prior": Prior(3.0), "variant": variant, "depths": depths, "seed": 4}
    eight = random_networks.images("sine", 8, m=65, **options)  # one network at a time
    few = random_networks.images("sine", 5, m=65, **options)
    coarse = random_networks.images("sine", 8, m=33, **options)  # chunks of seven; every second point of the fine grid
    assert torch.allclose(few, eight[..., :5, :, :], atol=1e-5)
    assert torch.allclose(coarse, eight[..., ::2, ::2], atol=1e-4)
    assert not torch.allclose(eight[..., 0, :, :], eight[..., 1, :, :], atol=0.1)
    assert not torch.allclose(eight, random_networks.images("sine", 8, m=65, **(options | {"seed": 5})), atol=0.1)


def test_the_first_of_many_are_the_same():
    four, eight = random_networks.draw(4, (2, 5, 1), seed=2), random_networks.draw(8, (2, 5, 1), seed=2)
    single = random_networks.draw(4, (2, 5, 1), seed=2, dtype=torch.float32)
    for a, b, c in zip(four, eight, single, strict=True):
        for name in a:
            assert torch.equal(a[name], b[name][:4]) and torch.equal(a[name].float(), c[name])
    assert torch.equal(random_networks.unbiased_images(2, 16), random_networks.unbiased_images(5, 16)[:2])
    corners = [random_networks.traversal(3, m).reshape(m, m, 3)[:4, 0] for m in (4, 6)]
    assert torch.equal(*corners)  # more walks, the same first corners


def test_unknown_words_and_wrong_shapes_are_refused():
    layers = random_networks.draw(1, (2, 3, 1))
    with pytest.raises(ValueError, match="one of uniform, gaussian, ball, long-tailed"):
        Prior(shape="cauchy")
    with pytest.raises(ValueError, match="activation is one of relu"):
        random_networks.forward(layers, random_networks.grid(3), "cube")
    with pytest.raises(ValueError, match="variant is one of plain"):
        random_networks.forward(layers, random_networks.grid(3), "relu", variant="dense")
    with pytest.raises(ValueError, match="gates is one of"):
        random_networks.draw(1, (2, 3), gates="some")
    with pytest.raises(WrongAxes, match=r"networks have 2 inputs; points are rows"):
        random_networks.forward(layers, random_networks.grid(3).T, "relu")
    with pytest.raises(WrongAxes, match=r"x is torch.float32"):
        random_networks.forward(layers, random_networks.grid(3).float(), "relu")

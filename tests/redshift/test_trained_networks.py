"""Training ensembles: each network as if alone, gradients that fit, shuffles that keep the distribution."""

import math

import pytest
import torch

from lib import complexity
from lib.data import tasks
from lib.linear import Streams, WrongAxes
from lib.redshift import random_networks, trained_networks
from lib.redshift.random_networks import Prior


def ensemble(seeds=3, sizes=(2, 12, 12, 1), dtype=torch.float64, seed=0):
    return random_networks.draw(seeds, sizes, Prior(2.0, 0.3), seed=seed, dtype=dtype)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_networks_of_an_ensemble_learn_as_if_alone(loss):
    layers = ensemble()
    alone = [{k: v[1:2].clone() for k, v in layer.items()} for layer in layers]
    x = random_networks.grid(5)
    y = (x.prod(1) > 0).double()
    prefactor = torch.tensor([0.5, 2.0, 3.0]).double()[:, None, None]
    options = {"rate": 0.01, "steps": 25, "loss": loss}
    together = trained_networks.fit_network(layers, x, y, "tanh", prefactor=prefactor, **options)
    single = trained_networks.fit_network(alone, x, y, "tanh", prefactor=2.0, **options)
    assert torch.allclose(together["loss"][:, 1], single["loss"][:, 0], rtol=1e-9)
    for a, b in zip(layers, alone, strict=True):
        assert torch.allclose(a["weight"][1], b["weight"][0], atol=1e-9)


def test_fit_is_adam_on_the_mean_loss():
    """Two steps by hand."""
    layers = ensemble(1, (2, 4, 1))
    twin = trained_networks.copied(layers)
    x, y = random_networks.grid(3), torch.arange(9).double() / 9
    trained_networks.fit_network(layers, x, y, "sine", rate=0.1, steps=2)
    parameters = [t.requires_grad_() for layer in twin for t in layer.values()]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
    for step in (1, 2):
        out = torch.sin(x @ twin[0]["weight"][0].T + twin[0]["bias"][0]) @ twin[1]["weight"][0].T + twin[1]["bias"][0]
        gradients = torch.autograd.grad((out[:, 0] - y).square().mean(), parameters)
        with torch.no_grad():
            for p, g, (first, second) in zip(parameters, gradients, moments, strict=True):
                first.mul_(0.9).add_(0.1 * g)
                second.mul_(0.999).add_(0.001 * g * g)
                p -= 0.1 * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
    for a, b in zip(layers, twin, strict=True):
        assert torch.allclose(a["weight"], b["weight"].detach(), atol=1e-10)


def test_a_training_that_diverges_says_so():
    with pytest.raises(FloatingPointError, match="diverged"):
        target = torch.full((9,), torch.nan).double()
        trained_networks.fit_network(ensemble(), random_networks.grid(3), target, "relu", rate=0.1, steps=1)


def test_shuffling_keeps_each_layers_values_and_loses_the_function():
    layers = ensemble()
    mixed = trained_networks.shuffled(layers, seed=1)
    for a, b in zip(layers, mixed, strict=True):
        for name in a:
            assert torch.equal(a[name].flatten(1).sort(1)[0], b[name].flatten(1).sort(1)[0])
    assert not torch.allclose(trained_networks.render(layers, "tanh", 8), trained_networks.render(mixed, "tanh", 8), atol=0.01)


def test_a_shuffle_depends_on_the_seed_alone():
    three, two = (trained_networks.shuffled(ensemble(n), seed=1) for n in (3, 2))
    twice = trained_networks.shuffled(trained_networks.repeated(ensemble(3), 2), seed=1, seeds=3)
    for a, b, c in zip(three, two, twice, strict=True):
        assert torch.equal(a["weight"][:2], b["weight"])
        assert torch.equal(c["weight"], torch.cat([a["weight"], a["weight"]]))
    with pytest.raises(ValueError, match="6 networks are not a multiple of 4 seeds"):
        trained_networks.shuffled(trained_networks.repeated(ensemble(3), 2), seeds=4)


def test_kurtosis_of_known_distributions():
    uniform = torch.rand(400_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(trained_networks.excess_kurtosis(uniform)) == pytest.approx(-1.2, abs=0.02)
    laplace = -torch.log(uniform) * torch.where(torch.arange(len(uniform)) % 2 == 0, 1.0, -1.0)
    assert float(trained_networks.excess_kurtosis(laplace)) == pytest.approx(3, abs=0.2)


def test_the_unbiased_model_fits_its_pixels_with_white_noise():
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randperm(16 * 16, generator=generator)[:60]
    target = torch.rand(60, generator=generator)
    _, after, run = trained_networks.fit_unbiased(pixels, target, 16, seeds=2, steps=300)
    assert (run["loss"][-1] < 1e-3).all()
    assert torch.allclose(after.flatten(1)[:, pixels], target.expand(2, -1), atol=0.15)
    assert (complexity.fourier(after) > 0.9 * complexity.fourier_flat(16)).all()


def test_the_unbiased_model_is_trained_as_a_sum_of_sines():
    """Before training it is the random one, and after it is still a sum of sines: a step of Adam by autograd on the plain sum."""
    m, pixels = 8, torch.arange(0, 64, 3)
    target = torch.linspace(0, 1, len(pixels))
    before, after, _ = trained_networks.fit_unbiased(pixels, target, m, seeds=2, magnitude=0.5, steps=1, rate=0.02, seed=3)
    assert torch.allclose(before.double(), random_networks.unbiased_images(2, m, 0.5, seed=3), atol=1e-4)
    k, amplitude, phase = random_networks.unbiased_parameters(2, m, 0.5, seed=3)
    points = torch.cartesian_prod(torch.arange(m), torch.arange(m)).double()
    angle = 2 * math.pi / m * points @ k.double().T  # (pixels of the image, waves)

    def plain(amplitude, phase):
        return (amplitude[:, None] * torch.sin(angle + phase[:, None])).sum(-1)  # (seeds, pixels of the image)

    parameters = [amplitude.requires_grad_(), phase.requires_grad_()]
    optimiser = torch.optim.Adam(parameters, lr=0.02)
    (plain(*parameters)[:, pixels] - target).square().mean(1).sum().backward()
    optimiser.step()
    assert torch.allclose(after.double().flatten(1), plain(*parameters).detach(), atol=1e-3)


def test_targets_of_the_wrong_shape_are_refused():
    with pytest.raises(WrongAxes, match=r"target has shape \(9, 1\) and the networks answer \(3, 9\)"):
        trained_networks.fit_network(ensemble(), random_networks.grid(3), torch.zeros(9, 1), "relu", rate=0.1, steps=1)
    with pytest.raises(ValueError, match="loss is one of squared, logistic"):
        trained_networks.fit_network(ensemble(), random_networks.grid(3), torch.zeros(9), "relu", rate=0.1, steps=1, loss="mean")


def test_modulo_sums_are_learned_by_every_member_as_if_alone():
    options = {"numbers": 16, "width": 12, "steps": 40, "rate": 0.01, "every": 20, "bias": 0.0}
    test, train, times = trained_networks.learn_modulo_sums("tanh", [1.0, 3.0], (10, 4), 0.75, seeds=2, **options)
    assert test.shape == train.shape == (3, 2, 2, 2) and times.tolist() == [0, 20, 40]
    alone, _, _ = trained_networks.learn_modulo_sums("tanh", [3.0], (4,), 0.75, seeds=1, **options)
    assert torch.allclose(test[:, 1, 1, :1], alone[:, 0, 0], atol=0.04)  # float32: a point or two on the boundary
    assert (train[-1, 0] > train[0, 0]).all()


def test_modulo_sums_of_any_size():
    """Three numbers below five, one hidden layer, biases: the accuracy at the start is that of the drawn networks."""
    options = {"numbers": 5, "dims": 3, "depth": 1, "width": 20, "bias": 0.5, "seeds": 2, "seed": 7, "steps": 30}
    test, train, _ = trained_networks.learn_modulo_sums(torch.sin, [1.0], (3,), 0.8, rate=0.01, **options)
    streams = Streams(2, 7)
    order = streams.permutation(125)
    layers = random_networks.draw(2, (3, 20, 1), Prior(bias=0.5), seed=streams, dtype=torch.float32)
    x, y = tasks.as_rows(*tasks.modulo_sums(3, 5, 3))
    right = (random_networks.forward(layers, x, "sine")[..., 0] > 0) == (y[:, 0] > 0.5)  # (2, 125)
    for seed in range(2):
        assert float(train[0, 0, 0, seed]) == pytest.approx(float(right[seed, order[seed, :100]].double().mean()))
        assert float(test[0, 0, 0, seed]) == pytest.approx(float(right[seed, order[seed, 100:]].double().mean()))

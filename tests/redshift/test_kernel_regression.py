"""Regression with a network's kernel: against a plain solve, against drawn networks, and on the tasks of Figure 7."""

import pytest
import torch

from lib.data import tasks
from lib.linear import Streams, WrongAxes
from lib.redshift import infinite_width, kernel_regression, random_networks
from lib.redshift.random_networks import Prior


def points(n=40, seed=0):
    return 2 * torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1


def hidden(seeds, width, depth=2, bias=1.0, seed=0):
    """Hidden layers of drawn networks with two inputs."""
    return random_networks.draw(seeds, (2, *[width] * depth), Prior(bias=bias), seed=seed)


def test_all_splits_and_tasks_at_once_are_single_solves():
    x = points()
    k = kernel_regression.prefactor_kernel("gaussian", x, 3.0, depth=2, width=32)
    target = torch.stack([x[:, 0].sign(), (3 * x[:, 1]).sin()])
    order = Streams(3, 1).permutation(40)
    train, test = order[:, :15], order[:, 15:]
    out = kernel_regression.interpolate(k, target, train, test)
    for s in range(3):
        a, b = train[s], test[s]
        among = k[a][:, a] + 1e-10 * k[a, a].mean() * torch.eye(15)
        plain = k[b][:, a] @ torch.linalg.inv(among) @ target[:, a].T
        assert torch.allclose(out[s], plain.T, atol=1e-6)
    again = kernel_regression.interpolate(k, target, train, train)
    assert torch.allclose(again, target[:, train].transpose(0, 1), atol=1e-3)  # it passes through what it was shown


def test_a_prefactor_multiplies_weights_and_biases_of_the_hidden_layers():
    """The drawn features have the prefactor before the activation; the kernel has it in the prior."""
    x = points(6)
    drawn = kernel_regression.feature_kernel(hidden(8, 2048), x, "sine", 1.7).mean(0)
    assert torch.allclose(drawn, kernel_regression.prefactor_kernel("sine", x, 1.7, 2, 2048), atol=0.03)
    prior = Prior(1.7, bias=1.7 * 1.0)
    assert torch.equal(
        kernel_regression.prefactor_kernel("sine", x, 1.7, 2, 64), infinite_width.kernel("sine", x, x, 2, 64, prior)
    )


def test_a_wide_network_with_a_trained_readout_follows_the_kernel():
    x = points(30)
    target = (4 * x.sum(1)).sin()[None]
    order = Streams(4, 2).permutation(30)
    train, test = order[:, :20], order[:, 20:]
    k = kernel_regression.prefactor_kernel("gaussian", x, 2.0, 2, 4096)
    wide = kernel_regression.feature_kernel(hidden(4, 4096), x, "gaussian", 2.0)
    theory, drawn = (kernel_regression.interpolate(each, target, train, test) for each in (k, wide))
    narrow = kernel_regression.feature_kernel(hidden(4, 64), x, "gaussian", 2.0)
    miss = (drawn - theory).square().mean().sqrt()
    assert miss < 0.15 * theory.std()
    assert miss < 0.5 * (kernel_regression.interpolate(narrow, target, train, test) - theory).square().mean().sqrt()


def test_the_splits_are_those_of_the_trained_networks():
    """One prefactor by hand, with the points that `learn_modulo_sums` would train on."""
    accuracy = kernel_regression.modulo_accuracy("gaussian", [3.0], (5, 3), 0.75, numbers=8, width=32, splits=2, seed=7)
    assert accuracy.shape == (2, 1, 2)
    features, labels = tasks.modulo_sums(3, 8, 2)
    x, y = tasks.as_rows(features).double(), 2 * labels[0].double() - 1
    order = Streams(2, 7).permutation(64)[1]
    a, b = order[:48], order[48:]
    k = kernel_regression.prefactor_kernel("gaussian", x, 3.0, 3, 32)
    out = k[b][:, a] @ torch.linalg.solve(k[a][:, a] + 1e-10 * k.diagonal().mean() * torch.eye(48), y[a])
    assert float(accuracy[1, 0, 1]) == pytest.approx(float(((out > 0) == (y[b] > 0)).double().mean()))


def test_drawn_networks_are_those_from_which_the_trained_ones_start():
    """Splits and weights come one after the other from the same streams; once they shared random bits."""
    options = {"numbers": 8, "depth": 2, "width": 16, "bias": 0.7, "seed": 7}
    accuracy = kernel_regression.modulo_accuracy("sine", [1.0, 2.0], (3,), 0.75, splits=2, drawn=True, **options)
    features, labels = tasks.modulo_sums(3, 8, 2)
    x, y = tasks.as_rows(features).double(), 2 * labels.double() - 1
    streams = Streams(2, 7)
    order = streams.permutation(64)
    layers = random_networks.draw(2, (2, 16, 16, 1), Prior(bias=0.7), seed=streams)[:-1]  # as `learn_modulo_sums` draws them
    k = kernel_regression.feature_kernel(layers, x, "sine", 2.0)
    out = kernel_regression.interpolate(k, y, order[:, :48], order[:, 48:])[:, 0]
    right = ((out > 0) == (y[0][order[:, 48:]] > 0)).double().mean(1)
    assert torch.allclose(accuracy[0, 1], right)


def test_finer_stripes_want_larger_prefactors():
    prefactors = [1.5, 2.1, 3.0, 4.2, 6.0]
    accuracy = kernel_regression.modulo_accuracy("sine", prefactors, (10, 4), 0.75, splits=4).mean(-1)
    best = accuracy.argmax(1)
    assert best[1] > best[0]
    assert accuracy.amax() > 0.9
    drawn = kernel_regression.modulo_accuracy("sine", prefactors, (10, 4), 0.75, splits=2, width=1024, drawn=True).mean(-1)
    assert drawn[1].argmax() > drawn[0].argmax()


def test_wrong_shapes_are_refused():
    with pytest.raises(WrongAxes, match="interpolate"):
        kernel_regression.interpolate(torch.eye(5), torch.zeros(1, 6), torch.zeros(1, 2).long(), torch.zeros(1, 2).long())

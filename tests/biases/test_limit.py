"""The kernel limit of bias learning: kernel against gates, formula against simulated networks, solutions against plain ones."""

import math

import pytest
import torch

from lib import biases
from lib.biases import limit


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gaussian_network(units, inputs, outputs, seed):
    """Frozen networks for which the gate kernel is exact."""
    return biases.Frozen(normal(units, inputs, seed=seed).float(), normal(outputs, units, seed=seed + 10_000).float())


def test_the_kernel_is_the_share_of_gates_that_two_images_open():
    x, other = normal(4, 6), normal(3, 6, seed=1)
    network = gaussian_network(200_000, 6, 2, seed=2)
    one, two = (v.float() @ network.w[0].T > 0 for v in (x, other))  # (items, units)
    assert ((one[:, None] & two).double().mean(-1) - limit.gate_kernel(x, other)).abs().max() < 0.005
    assert torch.allclose(limit.gate_kernel(x, x).diagonal(), torch.tensor(0.5, dtype=torch.float64))
    straight = limit.gate_kernel(torch.tensor([[1.0, 0]]), torch.tensor([[0, 2.0], [-3.0, 0]]))
    assert torch.allclose(straight, torch.tensor([[0.25, 0]], dtype=torch.float64))
    many = normal(300, 7, seed=3)  # rounding takes some of their cosines beyond ±1
    assert torch.allclose(limit.gate_kernel(many, 3 * many).diagonal(), torch.tensor(0.5, dtype=torch.float64), atol=1e-7)
    assert torch.allclose(limit.gate_kernel(many, -3 * many).diagonal(), torch.tensor(0.0, dtype=torch.float64), atol=1e-7)


@pytest.mark.parametrize("units", [7, 60])
def test_linearised_is_ridge_regression_on_gates_times_output_weights(units):
    network = gaussian_network(units, 5, 3, seed=3)
    x, x_test, y, ridge = normal(10, 5).float(), normal(4, 5, seed=1).float(), normal(10, 3, seed=2), 0.7
    size = network.a.double().square().mean().sqrt() * math.sqrt(units)

    def features(points):  # (points · classes, units)
        gates = (points @ network.w[0].T > 0).double()
        return (gates[:, None] * network.a[0].double() / size).flatten(0, 1)

    left = torch.cat([features(x), math.sqrt(ridge) * torch.eye(units, dtype=torch.float64)])
    right = torch.cat([y.flatten(), torch.zeros(units, dtype=torch.float64)])
    plain = torch.linalg.lstsq(left, right).solution
    bias, outputs = limit.linearised(network, x, y, x_test, ridge)
    known = (biases.PreActivations(network, v, "float32") for v in (x, x_test))
    assert torch.equal(limit.linearised(network, next(known), y, next(known), ridge)[1], outputs)
    assert torch.allclose(outputs.flatten(), features(x_test) @ plain, atol=1e-8)
    assert torch.allclose(bias, plain / size, atol=1e-8)
    tiny = 1e-4 / float(bias.abs().max())  # the network itself, where no gate turns
    before, after = (biases.answers(network, b.float()[None], x_test)[0] for b in (0 * bias, tiny * bias))
    assert torch.allclose(((after - before) / tiny).double(), outputs, atol=0.02 * float(outputs.abs().max()))


def test_linearised_takes_one_network():
    with pytest.raises(ValueError, match="one network at a time"):
        limit.linearised(biases.frozen(5, 4, 2, seeds=2), normal(3, 4).float(), normal(3, 2), normal(3, 4).float(), 1.0)


def test_infinitely_many_units_are_the_kernel_machine():
    x, x_test, y = normal(12, 5), normal(6, 5, seed=1), normal(12, 3, seed=2)
    machine = limit.predicted(limit.Kernel.of_gates(x, x_test), y, math.inf, 0.2)
    square = limit.gate_kernel(x, x) + 0.2 * torch.eye(12, dtype=torch.float64)
    assert torch.allclose(machine.mean, limit.gate_kernel(x_test, x) @ torch.linalg.solve(square, y))
    assert machine.variance.max() == 0 and machine.ridge == 0.2
    near = limit.predicted(limit.Kernel.of_gates(x, x_test), y, 1e9, 0.2)
    assert torch.allclose(near.mean, machine.mean, atol=1e-6) and near.variance.max() < 1e-6


def test_the_effective_ridge_counts_degrees_of_freedom():
    values = torch.logspace(-3, 1, 40, dtype=torch.float64)
    m = limit.effective_ridge(values, units=50, outputs=4, ridge=1e-9)
    assert abs(4 * float((values / (values + m)).sum()) - 50) < 1e-5  # fewer units than the 160 targets: all are used


@pytest.mark.parametrize("units", [150, 600])
def test_the_formula_predicts_linear_networks(units):
    """Mean, scatter, error and accuracy of many simulated networks, with fewer units than targets (600) and as many."""
    labels, labels_test = (torch.arange(n) % 10 for n in (60, 80))
    centres = normal(10, 30)
    x, x_test = centres[labels] + 0.7 * normal(60, 30, seed=1), centres[labels_test] + 0.7 * normal(80, 30, seed=2)
    y, y_test = (torch.nn.functional.one_hot(v, 10).double() - 0.1 for v in (labels, labels_test))
    nets = [biases.frozen(units, 30, 10, seed=3, first=k) for k in range(100)]
    nets = [biases.Frozen(normal(units, 30, seed=100 + k).float(), net.a[0]) for k, net in enumerate(nets)]
    outputs = torch.stack([limit.linearised(net, x.float(), y, x_test.float(), 0.3)[1] for net in nets])
    theory = limit.predicted(limit.Kernel.of_gates(x, x_test), y, units, 0.3)
    assert (outputs.mean(0) - theory.mean).abs().max() < 5 * outputs.std(0).max() / math.sqrt(100) + 0.01
    assert abs(float(outputs.var(0).mean() / theory.variance.mean()) - 1) < 0.1
    error = (outputs - y_test).square().sum(2).mean()
    assert abs(float(error) / theory.error(y_test) - 1) < 0.03
    right = (outputs.argmax(2) == labels_test).double().mean()
    assert abs(float(right) - theory.accuracy(labels_test)) < 0.02


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3, 1e6])
def test_the_effective_ridge_solves_its_equation_whatever_the_ridge(ridge):
    """ridge = m (1 - 2/5 · Σ v / (v + m)); a ridge that is large beside the kernel is its own effective one."""
    values = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
    m = limit.effective_ridge(values, units=5, outputs=2, ridge=ridge)
    assert m * (1 - 0.4 * sum(v / (v + m) for v in (4.0, 1.0, 0.25))) == pytest.approx(ridge, rel=1e-6)
    assert ridge < 1e3 or m == pytest.approx(ridge, rel=0.01)

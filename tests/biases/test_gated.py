"""Fixed gates: the closed form against gradient descent, and the two networks against each other where they must agree."""

import pytest
import torch

from lib import biases
from lib.biases import gated
from lib.linear.descent import descend


@pytest.fixture(scope="module")
def task():
    generator = torch.Generator().manual_seed(3)
    x, y = torch.rand(40, 12, generator=generator), torch.randn(40, 3, generator=generator)
    return biases.frozen(25, 12, 3, scale=0.5, seeds=2, seed=1), x, y


def squared(network, bias, x, y):
    return biases.LOSSES["squared"](biases.answers(network, bias, x), y)[0]


def test_gates_are_those_of_the_network(task):
    network, x, _ = task
    bias = 0.3 * torch.randn(2, 25, generator=torch.Generator().manual_seed(0))
    on = gated.gates(network, bias, x)
    assert 0.2 < on.double().mean() < 0.8
    torch.testing.assert_close(
        gated.gated_answers(network, bias, x, on), biases.answers(network, bias, x).double(), rtol=0, atol=1e-6
    )


def test_descent_is_descent_on_the_loss(task):
    network, x, y = task
    run = gated.descend_biases(network, x, y, step=0.05, steps=3)
    torch.testing.assert_close(run["loss"][-1], squared(network, run["bias"][-1].float(), x, y).double(), rtol=1e-5, atol=0)
    bias = torch.zeros(2, 25, requires_grad=True)
    for _ in range(3):
        (slope,) = torch.autograd.grad(squared(network, bias, x, y).sum(), bias)
        bias = (bias - 0.05 * slope).detach().requires_grad_()
    torch.testing.assert_close(run["bias"][-1], bias.detach().double(), rtol=0, atol=1e-6)


def test_every_network_has_a_step_of_its_own(task):
    """And a recording that does not divide the steps."""
    network, x, y = task
    both = gated.descend_biases(network, x, y, step=torch.tensor([[0.02], [0.01]], dtype=torch.float64), steps=50, every=8)
    assert both.time.tolist() == [0, 8, 16, 24, 32, 40, 48, 50] and (both["loss"][-1] < both["loss"][0]).all()
    for k, step in enumerate((0.02, 0.01)):
        alone = gated.descend_biases(biases.Frozen(network.w[k], network.a[k]), x, y, step=step, steps=50)
        torch.testing.assert_close(both["bias"][-1, k], alone["bias"][-1, 0], rtol=1e-9, atol=1e-12)
    nothing = gated.descend_biases(network, x, y, step=0.001, steps=0)
    assert nothing.time.tolist() == [0] and not nothing["bias"].any()


def test_cached_pre_activations_stand_for_images(task):
    network, x, y = task
    cache, bias = (
        biases.PreActivations(network, x, "float64"),
        0.3 * torch.randn(2, 25, generator=torch.Generator().manual_seed(0)),
    )
    on = gated.gates(network, bias, x)
    assert torch.equal(gated.gates(network, bias, cache), on)
    torch.testing.assert_close(gated.gated_answers(network, bias, cache, on), gated.gated_answers(network, bias, x, on))
    torch.testing.assert_close(gated.hold(network, cache, y, on).bias_at(2.0), gated.hold(network, x, y, on).bias_at(2.0))


def test_closed_form_is_gradient_flow_with_fixed_gates(task):
    network, x, y = task
    on = torch.rand(2, 40, 25, generator=torch.Generator().manual_seed(5)) < 0.5
    held = gated.hold(network, x, y, on)
    start = 0.2 * torch.randn(2, 25, generator=torch.Generator().manual_seed(6)).double()

    def loss(bias):
        return (gated.gated_answers(network, bias, x, on) - y.double()).square().sum(-1).mean(-1) / 2

    def slope(weights):
        bias = weights[0].detach().requires_grad_()
        with torch.enable_grad():
            return list(torch.autograd.grad(loss(bias).sum(), bias))

    weights = [start.clone()]
    descend(weights, slope, step=0.002, steps=1500)
    said = held.bias_at([0.0, 3.0], start)
    torch.testing.assert_close(said[0], start, rtol=0, atol=1e-12)
    torch.testing.assert_close(said[1], weights[0], rtol=0, atol=2e-3 * float((weights[0] - start).abs().max()))
    torch.testing.assert_close(held.loss(said), torch.stack([loss(b) for b in said]), rtol=1e-10, atol=0)
    end = held.bias_at(1e9)[0]
    assert slope([end])[0].abs().max() < 1e-9  # at rest where the gradient is zero


def test_a_direction_without_curvature_moves_as_far_as_it_is_pulled(task):
    network, x, y = task
    on = torch.ones(2, 40, 25, dtype=torch.bool)  # all units on: 25 biases act through 3 outputs, 22 directions are flat
    held = gated.hold(network, x, y, on)
    assert (held.rates > 1e-9).sum(-1).tolist() == [3, 3]
    far = held.bias_at([1e3, 1e6])
    torch.testing.assert_close(far[0], far[1], rtol=0, atol=1e-6)


def test_while_no_gate_moves_the_network_is_its_gated_twin(task):
    network, x, y = task
    run = gated.descend_biases(network, x, y, step=1e-4, steps=20)
    on = gated.gates(network, torch.zeros(2, 25), x)
    held = gated.hold(network, x, y, on)
    assert torch.equal(gated.gates(network, run["bias"][-1], x), on)
    torch.testing.assert_close(held.bias_at(20e-4)[0], run["bias"][-1], rtol=2e-3, atol=1e-9)
    torch.testing.assert_close(held.loss(run["bias"]), run["loss"], rtol=1e-9, atol=0)


def test_gates_of_other_images_are_refused(task):
    network, x, y = task
    with pytest.raises(ValueError, match="gates have shape"):
        gated.hold(network, x, y, torch.ones(2, 39, 25, dtype=torch.bool))


def test_a_wide_network_is_solved_from_the_smaller_side(task):
    _, x, y = task
    network, x, y = biases.frozen(60, 12, 3, scale=0.5, seeds=2, seed=4), x[:10], y[:10]  # 60 biases, 30 numbers to learn
    on = gated.gates(network, torch.zeros(2, 60), x)
    wide = gated.hold(network, x, y, on)
    twice = gated.hold(network, x.repeat(3, 1), y.repeat(3, 1), on.repeat(1, 3, 1))  # the same loss, from the other side
    assert wide.axes.shape == (2, 60, 30) and twice.axes.shape == (2, 60, 60)
    start = 0.1 * torch.randn(2, 60, generator=torch.Generator().manual_seed(2)).double()
    for t in (0.5, 20.0):
        torch.testing.assert_close(wide.bias_at(t, start), twice.bias_at(t, start), rtol=0, atol=1e-9)
        torch.testing.assert_close(wide.loss(start), twice.loss(start), rtol=1e-9, atol=0)

"""Recurrent networks: gradients by hand against automatic differentiation, forecasts against a plain loop, the Lorenz system."""

import pytest
import torch

from lib.biases import recurrent
from lib.data import tasks


def double(network):
    return recurrent.Recurrent(*(p.double() for p in (network.w, network.b_in, network.bias, network.c)), network.leak)


@pytest.fixture
def small():
    return double(recurrent.recurrent(7, members=2, seed=3))


def plain(network, k, x):
    """One member on one window, step by step."""
    r, out = torch.zeros(network.w.shape[1], dtype=torch.float64), []
    for value in x:
        r = (1 - network.leak) * r + network.leak * torch.relu(network.w[k] @ r + network.b_in[k] * value + network.bias[k])
        out.append(network.c[k] @ r)
    return torch.stack(out)


def test_predictions_are_those_of_a_plain_loop(small):
    x = torch.randn(3, 11, generator=torch.Generator().manual_seed(0))
    expected = torch.stack([torch.stack([plain(small, k, row.double()) for row in x]) for k in range(2)])
    assert torch.allclose(recurrent.predict(small, x.double()), expected, atol=1e-12)


@pytest.mark.parametrize("skip", [0, 4])
def test_gradients_are_those_of_autograd(small, skip):
    generator = torch.Generator().manual_seed(1)
    x, target = torch.randn(2, 3, 9, generator=generator, dtype=torch.float64)
    names = ["w", "b_in", "bias", "c"]
    loss, by_hand = recurrent.loss_and_gradients(small, x, target, names, skip)
    leaves = [getattr(small, name).requires_grad_() for name in names]
    outputs = torch.stack([torch.stack([plain(small, k, row) for row in x]) for k in range(2)])
    losses = (outputs - target)[..., skip:].square().mean((1, 2))
    assert torch.allclose(loss, losses.detach(), atol=1e-12)
    for g, expected in zip(by_hand, torch.autograd.grad(losses.sum(), leaves), strict=True):
        assert torch.allclose(g, expected, atol=1e-12)


def test_only_biases_move_when_only_biases_are_learned():
    signal = torch.sin(torch.arange(800) / 10)
    start = recurrent.recurrent(30, members=2)
    trained, losses = recurrent.train(start, signal, lead=5, steps=40, batch=8, window=30)
    assert torch.equal(trained.w, start.w) and torch.equal(trained.c, start.c) and torch.equal(trained.b_in, start.b_in)
    assert not torch.equal(trained.bias, start.bias)
    assert (losses[-5:].mean(0) < 0.5 * losses[:5].mean(0)).all()
    everything, _ = recurrent.train(start, signal, lead=5, learn="all", steps=3, rate=0.001)
    assert all(not torch.equal(getattr(everything, n), getattr(start, n)) for n in ("w", "b_in", "bias", "c"))
    with pytest.raises(ValueError, match="bias"):
        recurrent.train(start, signal, lead=5, learn="weights")


def test_members_train_as_if_alone():
    signal = torch.sin(torch.arange(500) / 7)
    together, _ = recurrent.train(recurrent.recurrent(12, members=2, seed=4), signal, lead=3, steps=5, window=30)
    alone, _ = recurrent.train(recurrent.recurrent(12, seed=5), signal, lead=3, steps=5, window=30)
    assert torch.allclose(together.bias[1], alone.bias[0], atol=1e-5)


def test_closed_loop_feeds_forecasts_back():
    network = recurrent.recurrent(9, seed=2)
    lead, x = 4, torch.randn(20, generator=torch.Generator().manual_seed(3))
    free = recurrent.closed_loop(network, x, 10, lead)
    assert free.shape == (1, 14)
    open_loop = recurrent.predict(network, x[None])[0, 0]
    assert torch.allclose(free[0, :lead], open_loop[-lead:], atol=1e-5)  # these rest on true inputs alone
    again = recurrent.predict(network, torch.cat([x, free[0, :10]])[None])[0, 0]  # inputs after x are the forecasts
    assert torch.allclose(free[0], again[-14:], atol=1e-4)


def test_r_squared():
    target = torch.tensor([1.0, 2, 3, 4])
    assert recurrent.r_squared(target, target) == 1
    assert recurrent.r_squared(target.mean().expand(4), target) == 0
    assert recurrent.r_squared(torch.tensor([9.0, 2, 3, 4]), target, skip=1) == 1


def test_autocorrelation_of_a_sine():
    values = recurrent.autocorrelation(torch.sin(torch.arange(60000) * 2 * torch.pi / 60).double(), 30)
    assert torch.allclose(values[[0, 15, 30]], torch.tensor([1.0, 0.0, -1.0]).double(), atol=1e-3)


def test_lorenz_steps_and_limits():
    path = tasks.lorenz(3, dt=0.01)
    first = torch.tensor([0.0, 1.0, 0.0]) + 0.01 * torch.tensor([10.0, -1.0, 0.0])
    assert torch.allclose(path[1], first.double()) and torch.equal(path[0], torch.tensor([0.0, 1.0, 0.0]).double())
    exact = tasks.lorenz(1001, dt=0.0001, method="runge-kutta")[-1]
    coarse = tasks.lorenz(11, dt=0.01, method="runge-kutta")[-1]
    euler = [(tasks.lorenz(int(0.1 / dt) + 1, dt=dt)[-1] - exact).abs().max() for dt in (0.01, 0.001)]
    assert (coarse - exact).abs().max() < 1e-4 < euler[1] < 0.2 * euler[0]  # order four, and order one
    rest = torch.tensor([72**0.5, 72**0.5, 27.0], dtype=torch.float64)  # a fixed point stays
    assert torch.allclose(tasks.lorenz(50, start=tuple(rest.tolist()))[-1], rest, atol=1e-6)

"""Finite-step training of gated networks against autograd and torch.optim.SGD, and against the flow."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import gated
from lib.gated import random_graphs


def leaves_of(weights):
    return {name: weight.clone().requires_grad_() for name, weight in weights.items()}


def farthest(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def plain_training(network, start, data, *, step, steps, momentum=0.0):
    """Autograd and SGD."""
    weights = leaves_of(start)
    optimiser = torch.optim.SGD(weights.values(), lr=step, momentum=momentum)
    for _ in range(steps):
        optimiser.zero_grad()
        gated.loss(network, weights, data).sum().backward()
        optimiser.step()
    return {name: weight.detach() for name, weight in weights.items()}


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.9]), st.booleans())
def test_training_is_sgd(seed, momentum, by_paths):
    network, data, start = random_graphs.random_example(seed)
    weights = {name: 0.5 * w for name, w in start.items()}
    plan = dict(step=0.02, steps=12, momentum=momentum)
    plain = plain_training(network, weights, data, **plan)
    run = gated.train(network, weights, gated.effective_datasets(network, data) if by_paths else data, every=5, **plan)
    assert farthest(weights, plain) < 1e-9
    assert run.time.tolist() == [0, 5, 10, 12]
    torch.testing.assert_close(run["loss"][-1], gated.loss(network, plain, data), rtol=1e-8, atol=1e-10)


def common_and_contextual():
    """A deep path that is always open beside one that is open in half of the examples, as in Make Haste Slowly."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, 10, generator=generator, dtype=torch.float64).split((4, 2))
    sizes = {"x": 4, "common": 5, "deep": 5, "context": 3, "y": 2}
    edges = [("x", "common"), ("common", "deep"), ("deep", "y"), ("x", "context"), ("context", "y")]
    network = gated.Network(sizes, edges)
    return network, gated.Data({"x": x}, {"y": y}, {"context": [1.0] * 5 + [0.0] * 5})


def test_networks_may_have_steps_of_their_own():
    network, data = common_and_contextual()
    scale, step = torch.tensor([0.2, 0.4]).double(), torch.tensor([0.1, 0.02]).double()
    start = gated.initial_weights(network, scale, seeds=2, seed=5)
    whole = {name: w.clone() for name, w in start.items()}
    seen = gated.train(
        network, whole, data, step=step, steps=60, momentum=0.9, observe=lambda w: {"size": w["x→context"].norm(dim=(-2, -1))}
    )
    assert seen["size"].shape == (61, 2)
    for k in range(2):
        alone = gated.initial_weights(network, float(scale[k]), seeds=2, seed=5)
        gated.train(network, alone, data, step=float(step[k]), steps=60, momentum=0.9)
        assert max(float((alone[name][k] - whole[name][k]).abs().max()) for name in alone) < 1e-12
    with pytest.raises(ValueError, match="2 numbers were given for 3 seeds"):
        gated.initial_weights(network, scale, seeds=3)


def test_training_approaches_the_flow_as_the_step_shrinks():
    network, data = common_and_contextual()
    start = gated.initial_weights(network, 0.4, seeds=2)
    exact = {name: w[-1] for name, w in gated.flow(network, start, data, [0.0, 10.0]).items()}
    gaps = []
    for step in (0.1, 0.05):
        weights = {name: w.clone() for name, w in start.items()}
        gated.train(network, weights, data, step=step, steps=round(10 / step))
        gaps.append(farthest(weights, exact))
    assert gaps[0] > 1e-4
    assert 1.8 < gaps[0] / gaps[1] < 2.2  # first order in the step


def test_drift_of_the_balance_by_hand():
    """2² - 1² = 3 becomes 3² - 1² = 8; the largest square is 9."""
    network = gated.Network({"x": 1, "h": 1, "y": 1}, [("x", "h"), ("h", "y")])
    first, second = network.edges
    start = {first: torch.tensor([[2.0]]), second: torch.tensor([[1.0]])}
    assert gated.dynamics.balance_drift(network, start, start | {first: torch.tensor([[-3.0]])}) == pytest.approx(5 / 9)


def test_the_time_constant_stretches_time():
    """tau dW/dt = -dL/dW: with tau = 2.5 the flow is where it is without at time t / 2.5."""
    network, data = common_and_contextual()
    start = gated.initial_weights(network, 0.4, seeds=2)
    plain = gated.flow(network, start, data, [0.0, 1.0, 4.0])
    slow = gated.flow(network, start, data, [0.0, 2.5, 10.0], tau=2.5)
    assert farthest(slow, plain) < 1e-8
    first = {name: w[:1] for name, w in plain.items()}
    assert farthest({name: w[1:2] for name, w in plain.items()}, first) > 0.01  # something moves


def test_integrating_one_number_by_hand():
    """x' = -2 x from 3: 3 e^{-2t}. Nothing at all stays nothing."""
    times = [0.0, 0.5, 1.5]
    found = gated.dynamics.integrate(lambda t, x: -2 * x, np.array([3.0]), times, 1e-11)
    assert found[:, 0].tolist() == pytest.approx([3, 3 * math.exp(-1), 3 * math.exp(-3)], rel=1e-9)
    assert gated.dynamics.integrate(lambda t, x: -2 * x, np.array([]), times, 1e-11).shape == (3, 0)

"""Gated networks as modules: the same function, the same gradients, and back again."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import gated
from lib.gated import random_graphs


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_a_module_is_the_network(seed):
    network, data, weights = random_graphs.random_example(seed)
    module = gated.to_module(network, weights)
    answer = module(data.x, data.gates)
    activity = gated.forward(network, weights, data)
    for node in network.outputs:
        torch.testing.assert_close(answer[node], activity[node], rtol=1e-12, atol=1e-12)
    asked = {node: data.gate(node) != 0 for node in network.outputs}
    errors = ((asked[node] * (data.y[node] - answer[node])).square().sum(-2) for node in network.outputs)
    sum((0.5 * error * data.probability).sum() for error in errors).backward()
    by_hand = gated.backpropagate(network, weights, data)
    for name, parameter in zip(network.edges, module.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, by_hand[name], rtol=1e-10, atol=1e-11)


def test_there_and_back():
    network, data, weights = random_graphs.random_example(4)
    module = gated.to_module(network, weights)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(5):
        optimiser.zero_grad()
        answer = module(data.x, data.gates)
        half = sum(0.5 * ((data.y[v] - answer[v]).square().sum(-2) * data.probability).sum() for v in network.outputs)
        half.backward()
        optimiser.step()
    same, trained = gated.from_module(module)
    mine = {name: w.clone() for name, w in weights.items()}
    gated.train(network, mine, data, step=0.05, steps=5)
    assert same is network
    for name in network.edges:
        torch.testing.assert_close(trained[name], mine[name], rtol=1e-10, atol=1e-11)
        assert not trained[name].requires_grad
    again = gated.to_module(network, trained)
    again.load_state_dict(module.state_dict())  # it is an ordinary module


def test_a_stack_of_linear_layers_becomes_a_chain():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*(torch.nn.Linear(a, b, bias=False) for a, b in ((4, 6), (6, 5), (5, 2))))
    network, weights = gated.from_module(layers)
    assert [str(path) for path in network.paths] == ["x → h1 → h2 → y"]
    x = torch.randn(4, 7)
    torch.testing.assert_close(gated.to_module(network, weights)({"x": x})["y"], layers(x.T).T)
    with pytest.raises(TypeError, match="only Linear layers with bias=False; this is Sequential"):
        gated.from_module(torch.nn.Sequential(torch.nn.Linear(2, 2)))


def test_a_module_checks_what_it_is_given():
    network = gated.Network({"x": 2, "h": 3, "y": 1}, [("x", "h"), ("h", "y")])
    module = gated.to_module(network, gated.initial_weights(network, 1.0))
    with pytest.raises(ValueError, match=r"input node 'x' have shape \(5, 2\).*swapped"):
        module({"x": torch.ones(5, 2).double()})
    with pytest.raises(ValueError, match="weights of 'x→h' are float64 on cpu, the inputs float32"):
        module({"x": torch.ones(2, 5)})
    with pytest.raises(ValueError, match="no such node or edge"):
        module({"x": torch.ones(2, 5).double()}, {"g": torch.ones(5)})

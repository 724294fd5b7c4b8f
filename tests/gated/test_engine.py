"""The gated-network engine: path form against autograd, statistics against data, conservation, clear errors."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import gated
from lib.gated import random_graphs


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_path_form_is_the_gradient(seed):
    network, data, weights = random_graphs.random_example(seed)
    statistics = gated.effective_datasets(network, data)
    leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    gated.loss(network, leaves, data).sum().backward()
    by_paths = gated.gradient(network, weights, statistics)
    by_chain = gated.backpropagate(network, weights, data)
    for name, leaf in leaves.items():
        exact = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        size = 1 + exact.abs().max()
        assert (by_paths[name] - exact).abs().max() / size < 1e-12
        assert (by_chain[name] - exact).abs().max() / size < 1e-12


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_statistics_know_the_loss_and_flow_keeps_the_balance(seed):
    network, data, weights = random_graphs.random_example(seed)
    statistics = gated.effective_datasets(network, data)
    exact = gated.loss(network, weights, data)
    assert torch.allclose(gated.loss_of_statistics(network, weights, statistics), exact, rtol=1e-12, atol=1e-12)
    if network.hidden:
        later = gated.flow(network, weights, data, [0.0, 0.5])
        end = {name: weight[-1] for name, weight in later.items()}
        if len(network.paths) < 6:  # by paths it is the same flow, slower the more paths there are
            by_paths = gated.flow(network, weights, statistics, [0.0, 0.5])
            assert max((by_paths[name][-1] - end[name]).abs().max() for name in end) < 1e-8
        assert gated.balance_drift(network, weights, end) < 1e-10  # the integration runs at 1e-11
        assert (gated.loss(network, end, data) <= exact + 1e-12).all()


def test_examples_are_equally_likely_unless_told():
    data = gated.Data({"x": torch.ones(1, 3).double()}, {"y": torch.ones(1, 3).double()})
    assert (data.probability == 1 / 3).all()  # in double precision: a third rounded to single would show


def test_outputs_that_are_off_are_not_asked():
    network = gated.Network({"x": 2, "h": 3, "a": 1, "b": 1}, [("x", "h"), ("h", "a"), ("h", "b")])
    one = torch.ones(2, 1, dtype=torch.float64)
    data = gated.Data({"x": one}, {"a": one[:1], "b": 100 * one[:1]}, {"b": [0.0]})
    zero = {name: 0 * weight for name, weight in gated.initial_weights(network, 1.0).items()}
    assert gated.loss(network, zero, data).item() == 0.5


def test_paths_of_a_graph_with_parallel_and_skip_edges():
    network = gated.Network({"x": 1, "h": 2, "y": 1}, [("x", "h"), ("x", "h"), ("h", "y"), ("x", "y")])
    assert [path.edges for path in network.paths] == [("x→h", "h→y"), ("x→h (2)", "h→y"), ("x→y",)]
    assert [str(path) for path in network.paths] == ["x → h → y", "x → h → y", "x → y"]
    assert network.count_paths() == 3


def chain(length, width):
    nodes = [f"n{i}" for i in range(length)]
    return {node: 1 for node in nodes}, [(a, b) for a, b in itertools.pairwise(nodes) for _ in range(width)]


def test_a_path_explosion_says_how_many_and_what_to_do():
    network = gated.Network(*chain(12, 3))
    with pytest.raises(gated.TooManyPaths, match=r"177147 paths.*max_paths.*backpropagate"):
        _ = network.paths
    data = gated.Data({"n0": torch.ones(1, 2).double()}, {"n11": torch.ones(1, 2).double()})
    assert len(gated.backpropagate(network, gated.initial_weights(network, 0.5), data)) == 33


@pytest.mark.parametrize(
    ("sizes", "edges", "message"),
    [
        ({"a": 1, "b": 1, "c": 1}, [("a", "b"), ("b", "c"), ("c", "b")], r"cycle, . → . → "),
        ({"a": 1, "b": 0}, [("a", "b")], "size 0"),
        ({"a": 1, "b": 2.5}, [("a", "b")], "whole number"),
        ({"a": 1}, [("a", "b")], "'b', which has no size"),
        ({"a": 1, "b": 1, "c": 1}, [("a", "b")], "'c' has no edges"),
        ({"a": 1, "b": 1}, [("a", "b", "w"), ("a", "b", "w")], "used twice"),
    ],
)
def test_bad_graphs_are_refused_by_name(sizes, edges, message):
    with pytest.raises(ValueError, match=message):
        gated.Network(sizes, edges)


@pytest.mark.parametrize(
    ("x", "y", "gates", "message"),
    [
        ({"x": torch.ones(3, 4)}, {"y": torch.ones(1, 4)}, {}, r"'x' have shape \(3, 4\); expected .*\(2, 4\)"),
        ({"x": torch.ones(2, 4)}, {"y": torch.ones(1, 5)}, {}, r"'y' have shape \(1, 5\)"),
        ({"x": torch.ones(4, 2)}, {"y": torch.ones(4, 1)}, {}, r"'x' have shape \(4, 2\); .*\(2, items\).*swapped"),
        ({"x": torch.ones(2, 4)}, {"y": torch.ones(1, 4).double()}, {}, "'y' are float64 on cpu, the inputs float32"),
        ({"x": torch.ones(2, 4)}, {"z": torch.ones(1, 4)}, {}, r"output nodes are \['y'\].*\['z'\]"),
        ({"x": torch.ones(2, 4)}, {"y": torch.ones(1, 4)}, {"h": torch.ones(3)}, r"gate of 'h' has shape \(3,\)"),
        ({"x": torch.ones(2, 4)}, {"y": torch.ones(1, 4)}, {"g": torch.ones(4)}, "no such node or edge"),
        ({"x": torch.ones(2, 4)}, {"y": torch.ones(1, 4)}, {"x": torch.ones(4)}, "cannot be gated"),
    ],
)
def test_bad_data_are_refused_by_name(x, y, gates, message):
    network = gated.Network({"x": 2, "h": 3, "y": 1}, [("x", "h"), ("h", "y")])
    with pytest.raises(ValueError, match=message):
        gated.forward(network, gated.initial_weights(network, 1.0, dtype=torch.float32), gated.Data(x, y, gates))


def test_bad_weights_are_refused_by_name():
    network = gated.Network({"x": 2, "h": 3, "y": 1}, [("x", "h"), ("h", "y")])
    data = gated.Data({"x": torch.ones(2, 4)}, {"y": torch.ones(1, 4)})
    with pytest.raises(ValueError, match=r"'x→h' have shape \(2, 3\); expected \(3, 2\)"):
        gated.forward(network, {"x→h": torch.ones(2, 3), "h→y": torch.ones(1, 3)}, data)
    with pytest.raises(ValueError, match="'h→y' is only one of the two"):
        gated.forward(network, {"x→h": torch.ones(3, 2)}, data)

"""Backpropagation by hand, against automatic differentiation: deep networks, constants, gates, detached units."""

import pytest
import torch

from lib.linear import Streams
from lib.linear.backpropagation import Program, rows_of

NETWORKS, ITEMS = 3, 7
SIZES = (4, 6, 5, 2)
KINDS = {
    "ReLU": ["relu", "relu"],
    "gated": ["gated", "gated"],
    "linear": ["linear", "linear"],
    "mixed": [torch.tanh, "relu"],
}


def drawn(biases, seed=0):
    """Weights with a column for the constant where there is one, rows, labels, and gates of both hidden layers."""
    streams = Streams(NETWORKS, seed)
    weights = [streams.normal(o, i + bool(b)) for i, o, b in zip(SIZES[:-1], SIZES[1:], biases, strict=True)]
    gates = [streams.integers(2, ITEMS, units).double() for units in SIZES[1:-1]]
    return weights, streams.normal(ITEMS, SIZES[0]), streams.normal(ITEMS, SIZES[-1]), gates


def answer(weights, rows, kinds, biases, gates):
    """The network as one would write it down."""
    h = rows
    for layer, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = h @ w[..., :-1].mT + b * w[..., None, :, -1] if b else h @ w.mT
        if layer == len(kinds):
            return z
        kind = kinds[layer]
        h = torch.relu(z) if kind == "relu" else kind(z) if callable(kind) else z if gates[layer] is None else z * gates[layer]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("biases", [(0.0, 0.0, 0.0), (0.0, 0.5, 2.0)], ids=["no constants", "constants"])
@pytest.mark.parametrize("share", [1.0, 1 / ITEMS])
def test_loss_and_slope_are_those_of_automatic_differentiation(kind, biases, share):
    weights, rows, labels, gates = drawn(biases)
    gates = gates if kind == "gated" else [None, None]
    program = Program(rows, labels, KINDS[kind], list(biases), gates, share)
    for again in range(2):  # the second time into the memory of the first
        leaves = [(w + 0.1 * again).requires_grad_() for w in weights]
        expected = 0.5 * share * (answer(leaves, rows, KINDS[kind], biases, gates) - labels).square().sum((1, 2))
        slopes = torch.autograd.grad(expected.sum(), leaves)
        plain = [leaf.detach() for leaf in leaves]
        assert torch.allclose(program.loss(program.answer(plain)), expected.detach(), rtol=1e-12)
        found = program.slope(plain)
        assert [g.shape for g in found] == [w.shape for w in weights]
        assert all(torch.allclose(a, b, rtol=1e-11, atol=1e-12) for a, b in zip(found, slopes, strict=True))


@pytest.mark.parametrize("kinds", [["linear", "relu"], ["gated", "gated"]], ids=str)
@pytest.mark.parametrize("biases", [(0.0, 0.0, 0.0), (0.7, 0.0, 2.0)], ids=["no constants", "constants"])
@pytest.mark.parametrize("detached", [0, 2])
def test_a_linear_first_layer_is_never_applied_to_the_items(kinds, biases, detached):
    biases = (*biases[:2], 0.0) if detached else biases  # detached units go with a readout that has no constant
    weights, rows, labels, gates = drawn((0.0, *biases[1:]))
    about = (kinds, list(biases), [None, gates[1] if kinds[1] == "gated" else None], 0.5, detached)
    fast, plain = Program(rows, labels, *about), Program(rows, labels, *about)
    assert fast.through
    assert not Program(rows[:, :4], labels[:, :4], *about).through  # as many features as items: nothing would be saved
    plain.through = False
    for _ in range(2):
        assert torch.allclose(fast.answer(weights), plain.answer(weights), rtol=1e-12)
        slopes = zip(fast.slope(weights), plain.slope(weights), strict=True)
        assert all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-11, atol=1e-12) for a, b in slopes)


def test_other_rows_in_the_same_memory_want_renewal():
    weights, rows, labels, _ = drawn((0.0, 0.0, 0.0))
    program = Program(rows.clone(), labels, KINDS["ReLU"], [0.0] * 3, [None, None], 1.0)
    program.rows.copy_(2 * rows)
    program.renew()
    fresh = Program(2 * rows, labels, KINDS["ReLU"], [0.0] * 3, [None, None], 1.0)
    assert all(torch.equal(a, b) for a, b in zip(program.slope(weights), fresh.slope(weights), strict=True))


@pytest.mark.parametrize("share", [1.0, 1 / ITEMS])
def test_detached_units_hear_the_whole_error_and_the_others_their_own(share):
    weights, rows, labels, _ = drawn((0.0, 0.0, 0.0))
    late = 2  # of the five units of the last hidden layer
    kinds, none = KINDS["ReLU"], [None, None]
    found = Program(rows, labels, kinds, [0.0] * 3, none, share, late).slope(weights)
    leaves = [w.clone().requires_grad_() for w in weights]
    first, second, third = leaves
    early, whole = SIZES[2] - late, answer(leaves, rows, kinds, (0, 0, 0), none)
    hidden = torch.relu(torch.relu(rows @ first.mT) @ second.mT)
    alone = hidden[..., :early] @ third[..., :early].mT
    own = 0.5 * share * (alone - labels).square().sum()  # what all but the detached units learn from
    both = 0.5 * share * (whole - labels).square().sum()
    by_own, by_both = torch.autograd.grad(own, leaves, retain_graph=True), torch.autograd.grad(both, leaves)
    assert torch.allclose(found[2][..., :early], by_own[2][..., :early], rtol=1e-11)
    assert torch.allclose(found[2][..., early:], by_both[2][..., early:], rtol=1e-11)
    assert torch.allclose(found[1][:, :early], by_own[1][:, :early], rtol=1e-11)
    assert torch.allclose(found[1][:, early:], by_both[1][:, early:], rtol=1e-11)


def test_data_become_rows_for_every_network():
    data = Streams(1, 0).normal(4, 7)[0]
    rows = rows_of(data, torch.Size((2, 3)))
    assert rows.shape == (6, 7, 4) and rows.is_contiguous() and torch.equal(rows[5], data.mT)
    assert rows_of(data, torch.Size((2, 3)), spread=False).shape == (1, 7, 4)
    own = Streams(6, 0).normal(4, 7).reshape(2, 3, 4, 7)
    assert torch.equal(rows_of(own, torch.Size((2, 3)))[4], own[1, 1].mT)

"""The networks of Make Haste Slowly's Figure 4 at the paper's size, equal to a plain program: autograd and torch.optim.SGD."""

import pytest
import torch

from lib import relu
from lib.data import tasks
from lib.gated.architectures import pathways
from lib.linear import Streams
from lib.relu import contexts

STEP, STD = 0.001, 0.005 / 700
X, Y = tasks.contexts(("tree", "ring", "cross"), 8)
BASIS, SHORT = relu.into_column_space(Y)
GATED = {"two contexts": (3, 2), "one context": (3, 1)}


def inputs(name):
    return contexts.pathway_inputs(X, contexts.subsets(3, *GATED[name]))


def plain_relu(start, epochs, every):
    """Autograd and torch.optim.SGD on all 60 outputs."""
    weights = [torch.nn.Parameter(w.clone()) for w in start]
    optimiser, losses = torch.optim.SGD(weights, lr=STEP), []
    for epoch in range(epochs + 1):
        loss = 0.5 * (weights[1] @ torch.relu(weights[0] @ X) - Y).square().sum()
        if epoch % every == 0:
            losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return torch.tensor(losses, dtype=torch.float64)


def plain_gated(start, seen, epochs, every):
    """The same for gated pathways: one pair of matrices each, a gate that multiplies, and a sum."""
    pairs = [[torch.nn.Parameter(w[p].clone()) for w in start] for p in range(len(seen))]
    optimiser, losses = torch.optim.SGD([w for pair in pairs for w in pair], lr=STEP), []
    for epoch in range(epochs + 1):
        answer = sum(w2 @ (w1 @ x) for (w1, w2), x in zip(pairs, seen, strict=True))
        loss = 0.5 * (answer - Y).square().sum()
        if epoch % every == 0:
            losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return torch.tensor(losses, dtype=torch.float64)


def test_the_fast_relu_network_is_the_plain_one():
    """700 units through the first two drops of the loss: rounding only, when the readout starts in the targets' span."""
    w1, w2 = relu.initial_weights([11, 700, 24], STD, seed=3)
    fast = relu.train([w1.clone(), w2.clone()], X, SHORT, step=STEP, steps=700, every=50, reduction="sum")
    plain = plain_relu([w1, BASIS @ w2], 700, 50)
    assert plain[-1] < 0.65 * plain[0]
    torch.testing.assert_close(fast["loss"], plain, rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", GATED)
def test_the_fast_gated_networks_are_the_plain_ones(name):
    """100 units per pathway, all 60 outputs, against 35 units and 24 outputs; the readout starts in the span."""
    streams = Streams(1, seed=5)
    wide = [STD * streams.normal(4, 100, 11)[0], STD * streams.normal(4, 24, 100)[0]]
    small = list(pathways.compressed(*wide))
    fast = pathways.train(small, inputs(name), SHORT, step=STEP, steps=700, every=50, reduction="sum")
    plain = plain_gated([wide[0], BASIS @ wide[1]], inputs(name), 700, 50)
    assert plain[-1] < 0.7 * plain[0]
    torch.testing.assert_close(fast["loss"], plain, rtol=1e-7, atol=0)

"""The tangent kernel against automatic differentiation, and its flow against training where weights hardly move."""

import pytest
import torch

from lib import relu
from lib.linear.shapes import WrongAxes
from lib.relu import tangent


def task():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, 6, generator=generator).double(), torch.randn(1, 6, generator=generator).double()


def test_kernel_is_the_product_of_gradients():
    x, _ = task()
    weights = relu.initial_weights((3, 7, 1), 0.8, seed=2)

    def gradients(points):
        rows = []
        for k in range(points.shape[1]):
            leaves = [w.clone().requires_grad_() for w in weights]
            slopes = torch.autograd.grad(relu.output(leaves, points[:, k : k + 1]).sum(), leaves)
            rows.append(torch.cat([s.flatten() for s in slopes]))
        return torch.stack(rows)

    torch.testing.assert_close(tangent.kernel(weights, x, x[:, :4]), gradients(x) @ gradients(x[:, :4]).T, rtol=1e-12, atol=1e-12)


def test_flow_is_training_while_weights_hardly_move():
    x, y = task()
    other = torch.randn(3, 5, generator=torch.Generator().manual_seed(3)).double()
    start = relu.initial_weights((3, 4000, 1), 1.0, seeds=2, seed=4)
    weights = [w.clone() for w in start]
    before = relu.output(weights, other)[:, 0]
    # Output of order sqrt(4000), target of order one: the network unlearns its start, by a small part of each weight.
    relu.train(weights, x, y, step=2e-6, steps=500)
    moved = relu.output(weights, other)[:, 0] - before
    said = tangent.flow(start, x, y, torch.tensor([1e-3, 1e-3]), other)
    assert moved.abs().min() > 0
    assert (said - moved).norm() / moved.norm() < 0.02
    half = tangent.flow(start, x, y, torch.tensor([1e-3, 0.5e-3]), other)
    assert torch.equal(half[0], said[0]) and not torch.allclose(half[1], said[1], rtol=0.05)


def test_flow_ends_at_the_interpolant_and_starts_at_zero():
    x, y = task()
    start = relu.initial_weights((3, 200, 1), 0.5, seeds=1, seed=5)
    there = tangent.flow(start, x, y, torch.tensor([1e9]), x) + relu.output(start, x)[:, 0]
    torch.testing.assert_close(there, y, rtol=0, atol=1e-8)
    assert tangent.flow(start, x, y, torch.tensor([0.0]), x).abs().max() == 0
    slope = tangent.flow(start, x, y, torch.tensor([1e-9]), x) / 1e-9
    first = tangent.kernel(start, x, x) @ (y - relu.output(start, x)).mT / 6
    torch.testing.assert_close(slope, first[..., 0], rtol=1e-5, atol=1e-9)


def test_only_one_output_and_one_hidden_layer():
    x, _ = task()
    with pytest.raises(WrongAxes, match="one hidden layer"):
        tangent.kernel(relu.initial_weights((3, 4, 2), 1.0), x, x)

"""What the library's few economies buy: each beside the plain program for the same numbers, which must agree.

`make bench` times them and records the result for the page *Performance*; `make test` runs each once and compares.
"""

import pytest
import torch

from lib import biases, complexity, linear, relu
from lib.biases import _fast
from lib.data import tasks
from lib.gated.architectures import rivals, routing

torch.set_num_threads(1)


def timed(benchmark, group: str, way: str, ways: dict, tolerance: float) -> None:
    """Time one way and hold its numbers to those of the other."""
    benchmark.group = group
    other = ways["plain" if way == "fast" else "fast"]()
    torch.testing.assert_close(benchmark(ways[way]), other, rtol=tolerance, atol=tolerance)


both = pytest.mark.parametrize("way", ["plain", "fast"])


@both
def test_statistics(benchmark, way):
    """A linear network on its two correlation matrices, and on its thousand items."""
    x, y = torch.randn(8, 1000, dtype=torch.float64), torch.randn(5, 1000, dtype=torch.float64)

    def fast():
        weights = linear.small_weights([(16, 8), (5, 16)], 0.1, seeds=10, seed=0)
        linear.train_on_statistics(weights, x, y, step=0.02, steps=100)
        return weights[0]

    def plain():
        weights = linear.small_weights([(16, 8), (5, 16)], 0.1, seeds=10, seed=0)
        for _ in range(100):
            w1, w2 = (w.requires_grad_() for w in weights)
            error = (y - w2 @ w1 @ x).square().sum() / 2 / x.shape[1]
            weights = [(w - 0.02 * g).detach() for w, g in zip(weights, torch.autograd.grad(error, (w1, w2)), strict=True)]
        return weights[0]

    timed(benchmark, "sufficient statistics instead of 1,000 items", way, {"fast": fast, "plain": plain}, 1e-9)


@both
def test_relu_gradient(benchmark, way):
    """The gradient of a two-layer ReLU network written out (Early Linearization Eqs 8-10), and by autograd."""
    x, y = tasks.hierarchy(8)

    def fast():
        weights = relu.initial_weights([8, 64, len(y)], 0.01, seeds=8)
        relu.train(weights, x, y, step=0.05, steps=200, every=200)
        return weights[0]

    def plain():
        weights = relu.initial_weights([8, 64, len(y)], 0.01, seeds=8)
        for _ in range(200):
            w1, w2 = (w.requires_grad_() for w in weights)
            error = (w2 @ (w1 @ x).relu() - y).square().sum() / 2 / x.shape[1]
            weights = [(w - 0.05 * g).detach() for w, g in zip(weights, torch.autograd.grad(error, (w1, w2)), strict=True)]
        return weights[0]

    timed(benchmark, "ReLU gradient written out, in NumPy", way, {"fast": fast, "plain": plain}, 1e-9)


@both
def test_ensemble(benchmark, way):
    """Fifty networks as a tensor dimension, and one after the other."""
    x, y = tasks.hierarchy(8)

    def train(weights):
        relu.train(weights, x, y, step=0.05, steps=100, every=100)
        return weights[0]

    def start():
        return relu.initial_weights([8, 16, len(y)], 0.01, seeds=50)

    def plain():
        return torch.stack([train([w[k].clone() for w in start()]) for k in range(50)])

    timed(benchmark, "ensembles as a tensor dimension (50 networks)", way, {"fast": lambda: train(start()), "plain": plain}, 1e-9)


@both
def test_cached_layer(benchmark, way):
    """The hidden activity of a network that learns biases: from cached pre-activations, and from the images."""
    network = biases.frozen(2000, inputs=784, outputs=10)
    x = torch.rand(500, 784)
    values = (x @ network.w.mT).reshape(-1, 500, 2000)
    one, bias, chosen = torch.ones(len(values), 500, 1), torch.zeros(len(values), 2000), torch.arange(500)

    def plain():
        return ((x @ network.w.mT).reshape(-1, 500, 2000) + bias[:, None]).relu()

    fast = {"fast": lambda: _fast.activity(values, one, bias, chosen), "plain": plain}
    timed(benchmark, "frozen layers computed once", way, fast, 1e-5)


@both
def test_compiled_activity(benchmark, way):
    """The activity of hidden units on a random batch of cached pre-activations: compiled, and in torch."""
    torch.manual_seed(0)
    values = (1000 * torch.randn(1, 2000, 4000)).to(torch.int16)  # as `PreActivations` keeps them
    scale, bias = torch.full((1, 2000, 1), 1e-3), torch.randn(1, 4000)
    chosen = torch.randperm(2000)[:200]
    ways = {name: lambda f=f: f(values, scale, bias, chosen) for name, f in (("fast", _fast.activity), ("plain", _fast.plain))}
    timed(benchmark, "one compiled loop for learned biases", way, ways, 1e-5)


@both
def test_moving_directions(benchmark, way, monkeypatch):
    """Wide routing networks in the few directions in which they move, and in all of them."""
    x, y = tasks.hierarchy(4)
    task = routing.shared_task(x, y, 4)
    mask = torch.ones(1, 4, 4, dtype=torch.bool)
    part = rivals._moving_part

    def train(directions):
        monkeypatch.setattr(rivals, "_moving_part", directions)
        weights = routing.initial_weights(task, 256, 0.2, 1, 0, "orthogonal", torch.float64)
        return rivals.train_to_the_end(weights, task, mask, steps=200)["trained"]

    ways = {"fast": lambda: train(part), "plain": lambda: train(lambda weights: (weights, 0.0, lambda moved: None))}
    timed(benchmark, "only the directions that move", way, ways, 1e-6)


@both
def test_lempel_ziv(benchmark, way):
    """Phrases of quantised pictures: compiled, and as a textbook writes LZ78."""
    torch.manual_seed(0)
    symbols = complexity.traverse(complexity.quantise(torch.rand(8, 32, 32, dtype=torch.float64)))

    def plain():
        counts = []
        for sequence in symbols.tolist():
            seen, phrase = set(), ()
            for symbol in sequence:
                phrase += (symbol,)
                if phrase not in seen:
                    seen.add(phrase)
                    phrase = ()
            counts.append(len(seen))
        return torch.tensor(counts)

    ways = {"fast": lambda: torch.as_tensor(complexity.phrases(symbols, 10)), "plain": plain}
    timed(benchmark, "Lempel-Ziv phrases, compiled", way, ways, 0)

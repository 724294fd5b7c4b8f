"""Frozen networks and what is learned on them: against automatic differentiation, and against the plain loop."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from lib import biases
from lib.biases import _fast, training
from lib.data import datasets
from lib.linear import Streams


@pytest.fixture(scope="module")
def digits():
    return datasets.load("mnist", train=2000, test=1000, seed=1)


def rows_and_labels(items, inputs, outputs, seed=0):
    streams = Streams(1, seed)
    return streams.uniform(items, inputs)[0].float(), streams.integers(outputs, items)[0]


def plain_loop(model, parameters, x, y, epochs, batch, rate, seed):
    """What one would write without thinking: automatic differentiation, torch's Adam, a rate along half a cosine."""
    optimiser = torch.optim.Adam(parameters, lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * -(-len(x) // batch))
    for chosen in training.batches(len(x), batch, epochs, seed):
        optimiser.zero_grad()
        functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimiser.step()
        schedule.step()


def test_a_network_is_its_formula(monkeypatch):
    """Answers, accuracies and variances of an ensemble, also where images come in several chunks or as pictures."""
    network = biases.frozen(30, 12, 3, scale=0.5, seeds=2, seed=1)
    x, y = rows_and_labels(50, 12, 3)
    bias, mask = 0.3 * Streams(2, 1).normal(30).float(), (Streams(2, 2).uniform(30) > 0.4).float()
    c = Streams(2, 3).normal(3).float()
    monkeypatch.setattr(biases.networks, "CHUNK", 20)
    for k in range(2):
        h = (x @ network.w[k].T + bias[k]).relu() * mask[k]
        outputs = h @ network.a[k].T + c[k]
        said = biases.answers(network, bias, x.view(50, 3, 4), mask, c)
        assert torch.allclose(said[k], outputs, atol=1e-6)
        assert biases.accuracy(network, bias, x, y, mask, c)[k] == (outputs.argmax(1) == y).double().mean()
        variance = biases.unit_variance(network, bias, x, mask)[k]
        assert torch.allclose(variance, h.double().var(0, correction=0), atol=1e-6)


@pytest.mark.parametrize("loss", biases.LOSSES)
def test_derivatives_of_the_losses_are_those_of_autograd(loss):
    outputs = Streams(2, 4).normal(7, 3).requires_grad_()
    y = Streams(1, 5).integers(3, 7)[0] if loss == "cross-entropy" else Streams(1, 5).normal(7, 3)[0]
    value, error = biases.LOSSES[loss](outputs, y)
    (expected,) = torch.autograd.grad(value.sum(), outputs)
    plain = functional.cross_entropy(outputs[1], y) if loss == "cross-entropy" else (outputs[1] - y).square().sum(1).mean() / 2
    assert value.shape == (2,) and torch.allclose(value[1], plain) and torch.allclose(error, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["int16", "float32", "float64"])
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_the_compiled_loop_is_the_plain_one(kind, precision):
    network = biases.frozen(37, 5, 2, seeds=3)
    known = biases.PreActivations(network, rows_and_labels(20, 5, 2)[0], kind)
    bias, chosen = 0.1 * Streams(3, 1).normal(37).to(precision), torch.tensor([3, 3, 19, 0])
    fast, plain = (f(known.values, known.scale, bias, chosen) for f in (_fast.activity, _fast.plain))
    assert fast.dtype == precision and fast.shape == (3, 4, 37) and (fast > 0).any() and (fast == 0).any()
    assert torch.allclose(fast, plain, rtol=1e-6, atol=1e-7)


def test_learned_biases_are_those_of_the_plain_loop(digits, seed=0):
    """To rounding. (In longer training some pre-activation comes within rounding of its threshold.)"""
    x, y = digits.x_train.flatten(1), digits.y_train
    network, bias = biases.frozen(1000, 784, 10, seed=seed), torch.zeros(1000, requires_grad=True)
    plain_loop(lambda x: (x @ network.w[0].T + bias).relu() @ network.a[0].T, [bias], x, y, 2, 200, 0.02, 5)
    cache = biases.PreActivations(network, x, "float32")
    learned = biases.train_biases(network, cache, y, epochs=2, batch=200, rate=0.02, seed=5)
    assert bias.abs().mean() > 0.05  # it went somewhere, else equality says little
    assert (learned.bias[0] - bias).abs().max() < 2e-6
    in_16_bits = biases.train_biases(network, x, y, epochs=2, batch=200, rate=0.02, seed=5)
    right = [float(biases.accuracy(network, way.bias, digits.x_test, digits.y_test)) for way in (learned, in_16_bits)]
    assert right[0] > 0.15 and abs(right[0] - right[1]) <= 0.005


@pytest.mark.parametrize("given", [True, False])
def test_mask_training_follows_autograd(given):
    network = biases.frozen(50, 8, 4, scale=0.5)
    x, y = rows_and_labels(40, 8, 4)
    start = (Streams(1, 5) if given else Streams(1, 0, training.STARTS)).uniform(50, low=-0.1, high=0.1).float()
    cache = biases.PreActivations(network, x, "float32")
    learned = biases.train_masks(network, cache, y, epochs=6, batch=20, slopes=(2, 40), start=start if given else None)
    s, now = start[0].clone().requires_grad_(), iter(range(12))

    def model(x):
        soft = torch.sigmoid(2 * 20 ** (next(now) / 12) * s)
        return (x @ network.w[0].T).relu() * soft @ network.a[0].T

    plain_loop(model, [s], x, y, 6, 20, 0.03, 0)
    assert (learned.mask[0] == (s > 0)).all() and 0 < learned.mask.sum() < 50
    assert torch.allclose(learned.soft[0], torch.sigmoid(40 * s), atol=1e-4)


def test_full_training_is_that_of_a_plain_loop():
    """For each network of an ensemble; weights of inputs that are always zero stay as they were."""
    network, (x, y) = biases.frozen(20, 6, 3, scale=0.5, seeds=2), rows_and_labels(50, 6, 3)
    x[:, [1, 4]] = 0
    full = biases.train_fully(network, x, y, epochs=4, batch=20, rate=0.02, seed=3)
    assert torch.equal(full.network.w[..., [1, 4]], network.w[..., [1, 4]])
    for k in range(2):
        model = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3))
        with torch.no_grad():
            for p, value in zip(model.parameters(), (network.w[k], 0, network.a[k], 0), strict=True):
                p.copy_(torch.as_tensor(value))
        plain_loop(model, model.parameters(), x, y, 4, 20, 0.02, 3)
        found = full.network.w[k], full.bias[k], full.network.a[k], full.output_bias[k]
        for p, value in zip(model.parameters(), found, strict=True):
            assert torch.allclose(p, value, atol=1e-5)


def test_products_in_16_bits_learn_the_same():
    """Weights stay in 32 bits; what is learned differs by rounding of the products, a few thousandths."""
    x, network = torch.rand(200, 30, generator=torch.Generator().manual_seed(0)), biases.frozen(50, 30, 3)
    y = (x[:, :3]).argmax(1)
    exact, short = (biases.train_fully(network, x, y, epochs=5, batch=20, precision=p) for p in ("float32", "bfloat16"))
    assert short.network.w.dtype == torch.float32 and not torch.equal(short.network.w, exact.network.w)
    moved = (exact.network.w - network.w).norm()
    assert (short.network.w - exact.network.w).norm() < 0.15 * moved
    assert torch.allclose(short.loss, exact.loss, rtol=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_regression_in_any_precision(dtype):
    """Arrays of NumPy, one output or two: biases fit waves, and the loss that is reported is the one of the answers."""
    x = np.linspace(-1, 1, 100)[:, None]
    both = np.concatenate([np.sin(3 * x), np.cos(2 * x)], 1)
    for y, outputs in ((both, 2), (both[:, 0], 1)):
        network = biases.frozen(300, 1, outputs, scale=1.0, output_scale=0.3, seeds=2, dtype=dtype)
        learned = biases.train_biases(network, x, y, loss="squared", epochs=150, batch=50)
        assert learned.bias.dtype == learned.loss.dtype == dtype
        said = biases.answers(network, learned.bias, x)
        assert said.dtype == dtype and said.shape == (2, 100, outputs)
        error = (said - torch.as_tensor(y).view(100, -1)).square().sum(-1).mean(-1) / 2
        assert (error < 0.3 * np.square(y).sum() / 200).all()
        full = biases.train_fully(network, x, y, loss="squared", epochs=60, batch=50, rate=0.01)
        said = biases.answers(full.network, full.bias, x, output_bias=full.output_bias)
        assert ((said - torch.as_tensor(y).view(100, -1)).square().sum(-1).mean(-1) < 0.04).all()
    whole = biases.train_biases(network, x, np.arange(100) // 50, loss="squared", epochs=1)  # whole numbers are numbers, too
    assert whole.loss.shape == (1, 2)


@pytest.mark.parametrize("train", [biases.train_biases, biases.train_masks, biases.train_fully])
def test_data_that_are_not_numbers_are_not_learned_in_silence(train):
    x, y = rows_and_labels(8, 4, 3)
    x[3, 2] = torch.nan
    with pytest.raises(FloatingPointError, match="look for NaN or infinity in x and y, or try a smaller rate"):
        train(biases.frozen(20, 4, 3), x, y, epochs=2)


def test_networks_are_the_same_in_any_ensemble_and_train_as_if_alone(digits):
    together = biases.frozen(300, 784, 10, seeds=3, seed=7)
    x, y = digits.x_train[:600], digits.y_train[:600]
    for train in (biases.train_biases, biases.train_masks):
        all_three = train(together, x, y, epochs=2)
        for k in range(3):
            alone = biases.frozen(300, 784, 10, seed=7, first=k)
            assert torch.equal(alone.w[0], together.w[k]) and torch.equal(alone.a[0], together.a[k])
            one = train(alone, x, y, epochs=2)
            assert torch.allclose(one.bias[0], all_three.bias[k], atol=1e-5)
            assert torch.allclose(one.soft[0], all_three.soft[k], atol=1e-4)
            assert torch.allclose(one.loss[:, 0], all_three.loss[:, k], atol=1e-5)
    other = biases.frozen(300, 784, 10, seeds=3, seed=8)
    assert not any(torch.equal(together.w[i], other.w[k]) for i in range(3) for k in range(3))


def test_weights_fill_their_range():
    network = biases.frozen(500, 40, 7, scale=0.2, output_scale=3.0, seeds=2)
    for values, size in ((network.w, 0.2), (network.a, 3.0)):
        assert 0.995 * size < values.abs().max() <= size and abs(values.std() / (size / 3**0.5) - 1) < 0.02
    assert network.w.shape == (2, 500, 40) and network.a.shape == (2, 7, 500)
    assert (network.seeds, network.units, network.inputs, network.outputs) == (2, 500, 40, 7)
    single = biases.Frozen(network.w[0], network.a[0])
    assert torch.equal(single.w, network.w[:1]) and torch.equal(single.a, network.a[:1])


def test_cached_pre_activations_stand_for_inputs(digits):
    """Exactly stored ones to rounding, those in 16 bits nearly."""
    network, x = biases.frozen(300, 784, 10, seeds=2), digits.x_test
    bias, mask = Streams(2, 1).normal(300).float(), (Streams(2, 2).uniform(300) > 0.4).float()
    for dtype, near in (("float64", 1e-5), ("float32", 1e-5), ("int16", 1e-3)):
        cache = biases.PreActivations(network, x, dtype)
        said = biases.answers(network, bias, x, mask)
        assert torch.allclose(biases.answers(network, bias, cache, mask), said, atol=near * 10)
        assert torch.allclose(
            biases.unit_variance(network, bias, cache, mask), biases.unit_variance(network, bias, x, mask), rtol=near, atol=near
        )
        assert torch.allclose(cache.restored().float(), x.flatten(1) @ network.w.mT, atol=near)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_sixteen_bits_are_near(units, size, seed):
    x = torch.randn(20, 5, generator=torch.Generator().manual_seed(seed)) * size
    x[3] = 0  # a black image has no range of its own
    network = biases.frozen(units, 5, 2)
    exact = x @ network.w.mT
    restored = biases.PreActivations(network, x).restored()
    # half a step of the fixed point, and the rounding of float32 itself
    assert ((restored - exact).abs() <= exact.abs().amax(-1, keepdim=True) * (0.5 / 32767 + 1e-5)).all()


SMALL = biases.frozen(3, 4, 2)
ZERO, X, Y = torch.zeros(1, 3), torch.rand(5, 4), torch.tensor([0, 1, 0, 1, 1])


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: biases.PreActivations(SMALL, X, "float16"), "int16"),
        (lambda: biases.train_biases(SMALL, X, Y - 1), "labels y run from -1 to 0, the network has outputs 0 to 1"),
        (lambda: biases.train_fully(SMALL, X, Y, precision="float16"), "float32, bfloat16"),
        (lambda: biases.accuracy(SMALL, ZERO, X, Y.float()), "whole numbers from 0 to 1, not torch.float32"),
        (lambda: biases.train_biases(SMALL, X, Y[:4]), "must be 5 labels"),
        (lambda: biases.answers(SMALL, ZERO, X.T), "x has 5 inputs .* the network has 4; are rows and columns swapped"),
        (lambda: biases.answers(SMALL, ZERO[0], X), "bias has shape .3,., it must be .seeds, units."),
        (lambda: biases.answers(SMALL, ZERO, X, mask=torch.ones(1, 2)), "mask has shape"),
        (lambda: biases.train_biases(SMALL, X, Y, start=torch.zeros(2)), "start has shape"),
        (lambda: biases.train_biases(SMALL, X, Y, loss="hinge"), "cross-entropy, squared"),
        (lambda: biases.train_biases(SMALL, X, Y, loss="squared"), r"here \(5, 2\), not \(5,\)"),
        (lambda: biases.answers(SMALL, ZERO, biases.PreActivations(biases.frozen(3, 4, 2), X)), "answers: these .* another"),
        (lambda: biases.Frozen(SMALL.w, SMALL.a.mT), "Frozen: a has"),
    ],
)  # fmt: skip
def test_refusals(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()

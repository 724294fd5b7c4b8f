"""Learning biases and masks on cached pre-activations: against automatic differentiation, and against the plain loop."""

import importlib.util
import time
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from torch.nn import functional

from lib import biases, complexity
from lib.biases import kernels, networks, training
from lib.data import datasets, files
from lib.linear import Streams

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def digits():
    return datasets.load("mnist", train=2000, test=1000, seed=1)


def network_of(units, **options):
    """Frozen weights for the digits."""
    return biases.frozen(units, 784, 10, **options)


def rows_and_labels(items, pixels, classes, seed=0):
    streams = Streams(1, seed)
    return streams.uniform(items, pixels)[0].float(), streams.integers(classes, items)[0]


def plain_loop(x, y, network, bias, epochs, batch, rate, seed):
    """What one would write without thinking: nn.Linear with frozen weights, autograd, Adam. The reference."""
    hidden = torch.nn.Linear(x.shape[1], network.units)
    output = torch.nn.Linear(network.units, len(network.a), bias=False)
    with torch.no_grad():
        hidden.weight.copy_(network.w), hidden.bias.copy_(bias), output.weight.copy_(network.a)
    hidden.weight.requires_grad_(False)
    output.weight.requires_grad_(False)
    optimiser = torch.optim.Adam([hidden.bias], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * -(-len(x) // batch))
    order = Streams(1, seed, training.ORDER)
    for _ in range(epochs):
        for chosen in order.permutation(len(x))[0].split(batch):
            optimiser.zero_grad()
            functional.cross_entropy(output(hidden(x[chosen]).relu()), y[chosen]).backward()
            optimiser.step()
            schedule.step()
    return hidden.bias.detach()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_float32_biases_are_those_of_the_plain_loop(digits, seed):
    """To 1e-6, which is rounding. (In longer training some pre-activation comes within rounding of its threshold.)"""
    x, y = digits.x_train.flatten(1), digits.y_train
    network = network_of(1000, seed=seed)
    reference = plain_loop(x, y, network, torch.zeros(1000), epochs=2, batch=200, rate=0.02, seed=5)
    cache = biases.PreActivations(network, x, "float32")
    learned = biases.train_biases(network, cache, y, epochs=2, batch=200, rate=0.02, seed=5)
    assert reference.abs().mean() > 0.05  # it went somewhere, else equality says little
    assert (learned.bias[0] - reference).abs().max() < 1e-6


def test_accuracy_is_that_of_the_plain_loop(digits):
    x, y = digits.x_train.flatten(1), digits.y_train
    network = network_of(2000, seed=3)
    reference = plain_loop(x, y, network, torch.zeros(2000), epochs=10, batch=200, rate=0.02, seed=5)
    right = biases.accuracy(network, reference[None], digits.x_test, digits.y_test)
    assert right > 0.6
    for dtype in ("float32", "int16"):
        learned = biases.train_biases(network, biases.PreActivations(network, x, dtype), y, epochs=10, seed=5)
        assert (biases.accuracy(network, learned.bias, digits.x_test, digits.y_test) - right).abs() <= 0.002, dtype


@pytest.mark.parametrize("kernel", ["fused", "plain"])
@pytest.mark.parametrize("loss", networks.LOSSES)
@pytest.mark.parametrize("classes", [1, 3, 10, 23])
def test_gradients_are_those_of_autograd(kernel, classes, loss):
    """Both gradients, for any number of classes, in an ensemble whose tiles are not all full."""
    generator = torch.Generator().manual_seed(0)
    network = biases.frozen(kernels.TILE + 37, pixels=12, classes=classes, scale=0.5, seeds=2, seed=4)
    x, y = rows_and_labels(30, 12, classes)
    y = y if loss == "cross-entropy" else torch.randn(30, classes, generator=generator)
    bias = (0.3 * torch.randn(network.a.shape[1], generator=generator)).requires_grad_()
    gain = torch.rand(network.a.shape[1], generator=generator).requires_grad_()
    chosen = torch.randperm(30, generator=generator)[:17]
    _, work, y = training._prepare("test", network, biases.PreActivations(network, x, "float32"), y, loss, kernel)

    def step(chosen, bias, a, gain):
        return training._step(work, chosen, y, loss, bias, a, gain)

    outputs = biases.answers(network, bias.view(2, -1), x[chosen], gain.view(2, -1))
    by_torch = functional.cross_entropy if loss == "cross-entropy" else lambda out, y: (out - y).square().sum(1).mean() / 2
    losses = torch.stack([by_torch(out, y[chosen]) for out in outputs])
    towards_bias, towards_gain = torch.autograd.grad(losses.sum(), [bias, gain])
    size = max(1.0, float(losses.detach().max()))  # squared errors of 23 outputs are larger numbers
    with torch.no_grad():
        now, by_hand = step(chosen, bias, network.a * gain, False)
        assert torch.allclose(now, losses, atol=1e-6 * size)
        assert torch.allclose(by_hand, towards_bias, atol=2e-7 * size)
        _, by_hand = step(chosen, bias, network.a * gain, True)
        assert torch.allclose(by_hand, towards_gain * gain, atol=2e-7 * size)
        whole = biases.mean_loss(network, bias.view(2, -1), x[chosen], y[chosen], mask=gain.view(2, -1), loss=loss)
        assert torch.allclose(whole, losses, atol=1e-6 * size)


@pytest.mark.parametrize("classes", [13, 40])
def test_many_classes_are_learned_by_both_kernels_alike(classes):
    network = biases.frozen(1500, pixels=20, classes=classes, scale=0.5)
    x, y = rows_and_labels(80, 20, classes)
    ways = [biases.train_biases(network, x, y, epochs=40, batch=40, rate=0.05, kernel=kernel) for kernel in ("fused", "plain")]
    assert torch.allclose(ways[0].loss, ways[1].loss, rtol=1e-3)
    assert (biases.accuracy(network, ways[0].bias, x, y) > 5 / classes).all()  # random labels, five times better than chance


def test_numbers_are_learned():
    """Regression: biases fit two waves, and the squared error that is reported is the one of the answers."""
    x = torch.linspace(-1, 1, 100)[:, None]
    y = torch.cat([torch.sin(3 * x), torch.cos(2 * x)], 1)
    network = biases.frozen(300, pixels=1, classes=2, scale=1.0, output_scale=0.3, seeds=2)
    learned = biases.train_biases(network, x, y, loss="squared", epochs=150, batch=50, validation=(x, y))
    error = (biases.answers(network, learned.bias, x) - y).square().sum(-1).mean(-1) / 2
    assert (error < 0.15 * y.square().sum(-1).mean() / 2).all()
    assert torch.allclose(error, learned.validation[-1], rtol=1e-4)
    full = biases.train_fully(network.only(0), x, y, loss="squared", epochs=60, batch=50, rate=0.01)
    assert biases.mean_loss(full.network, full.bias, x, y, output_bias=full.output_bias, loss="squared") < 0.02


def test_epsilon_is_adams():
    """With a huge epsilon Adam's step is rate · gradient / epsilon: the first bias is the gradient."""
    network = biases.frozen(50, pixels=8, classes=4)
    x, y = rows_and_labels(40, 8, 4)
    start = torch.zeros(1, 50, requires_grad=True)
    (slope,) = torch.autograd.grad(biases.mean_loss(network, start, x, y).sum(), start)
    cache = biases.PreActivations(network, x, "float32")
    moved = biases.train_biases(network, cache, y, epochs=1, batch=40, rate=1.0, epsilon=1e4, constant_rate=True).bias
    assert torch.allclose(moved, -slope / 1e4, rtol=1e-3, atol=1e-12)
    full = biases.train_fully(network, x, y, epochs=1, batch=40, rate=1.0, epsilon=1e4, constant_rate=True).bias
    assert torch.allclose(full, moved, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("train", [biases.train_biases, biases.train_masks, biases.train_fully])
def test_validation_is_recorded_and_the_best_epoch_kept(train):
    """Few images and long training: the validation loss has its minimum on the way, for every network elsewhere."""
    full = train is biases.train_fully
    network = biases.frozen(150, pixels=6, classes=3, scale=0.5, output_scale=0.3, seeds=1 if full else 2)
    x, y = rows_and_labels(30, 6, 3)
    x_new, y_new = rows_and_labels(200, 6, 3, seed=1)
    options = dict(epochs=40, batch=10, rate=0.03, validation=(x_new, y_new), constant_rate=True)
    last, best = train(network, x, y, **options), train(network, x, y, **options, keep="best")
    assert last.validation.shape == (40, network.seeds) and torch.equal(last.validation, best.validation)

    def loss(way):
        return biases.mean_loss(way.network, way.bias, x_new, y_new, mask=way.mask, output_bias=way.output_bias)

    assert torch.allclose(loss(last), last.validation[-1], atol=1e-6)
    assert torch.allclose(loss(best), last.validation.amin(0), atol=1e-6)
    assert (loss(best) < loss(last)).all()
    assert train(network, x, y, epochs=1).validation is None


def mask_loop(network, x, y, start, epochs, batch, slopes, rate):
    """Soft masks by automatic differentiation; returns s of the end."""
    s, steps = start.clone().requires_grad_(), epochs * -(-len(x) // batch)
    optimiser = torch.optim.Adam([s], lr=rate)
    order, now = Streams(1, 0, training.ORDER), 0
    for _ in range(epochs):
        for chosen in order.permutation(len(x))[0].split(batch):
            optimiser.param_groups[0]["lr"] = rate * training._cosine(now / steps)
            soft = torch.sigmoid(slopes[0] * (slopes[1] / slopes[0]) ** (now / steps) * s)
            optimiser.zero_grad()
            functional.cross_entropy((x[chosen] @ network.w.T).relu() * soft @ network.a.T, y[chosen]).backward()
            optimiser.step()
            now += 1
    return s.detach()


@pytest.mark.parametrize("given", [True, False])
def test_mask_training_follows_autograd(given):
    network = biases.frozen(50, pixels=8, classes=4, scale=0.5)
    x, y = rows_and_labels(40, 8, 4)
    start = Streams(1, 5).uniform(50, low=-0.1, high=0.1).float() if given else training.first_masks(network)
    cache = biases.PreActivations(network, x, "float32")
    learned = biases.train_masks(network, cache, y, epochs=6, batch=20, slopes=(2, 40), start=start if given else None)
    s = mask_loop(network, x, y, start[0], 6, 20, (2, 40), 0.03)
    assert (learned.mask[0] == (s > 0)).all()
    assert torch.allclose(learned.soft[0], torch.sigmoid(40 * s), atol=1e-4)
    assert 0 < learned.mask.sum() < 50


def test_masks_start_between_minus_and_plus_a_tenth():
    network = biases.frozen(4000, pixels=2, classes=2, seeds=2)
    start = training.first_masks(network)
    assert start.shape == (2, 4000) and start.abs().max() <= 0.1 and start.min() < -0.099 and start.max() > 0.099
    assert abs(start.mean()) < 0.003 and not torch.equal(start[0], start[1])
    assert torch.equal(training.first_masks(network.only(1))[0], start[1])
    held = biases.train_masks(network, *rows_and_labels(4, 2, 2), epochs=1, rate=0.0, slopes=(1.0, 1.0))
    assert torch.equal(held.mask, (start > 0).float()) and torch.allclose(held.soft, torch.sigmoid(start))


def test_networks_are_the_same_in_any_ensemble_and_train_as_if_alone(digits):
    together = network_of(300, seeds=3, seed=7)
    x, y = digits.x_train[:600], digits.y_train[:600]
    all_three = biases.train_biases(together, biases.PreActivations(together, x, "float32"), y, epochs=2)
    for k in range(3):
        alone = network_of(300, seed=7, first=k)
        assert torch.equal(alone.w, together.only(k).w) and torch.equal(alone.a, together.only(k).a)
        one = biases.train_biases(alone, biases.PreActivations(alone, x, "float32"), y, epochs=2)
        assert torch.allclose(one.bias[0], all_three.bias[k], atol=1e-5)
        assert torch.allclose(one.loss[:, 0], all_three.loss[:, k], atol=1e-5)
    other = network_of(300, seeds=3, seed=8)
    assert not any(torch.equal(together.only(i).w, other.only(k).w) for i in range(3) for k in range(3))


def test_weights_fill_their_range():
    network = biases.frozen(500, 40, 7, scale=0.2, output_scale=3.0, seeds=2)
    for values, size in ((network.w, 0.2), (network.a, 3.0)):
        assert 0.995 * size < values.abs().max() <= size and abs(values.std() / (size / 3**0.5) - 1) < 0.02
    assert network.w.shape == (1000, 40) and network.a.shape == (7, 1000) and (network.units, network.classes) == (500, 7)


@pytest.mark.parametrize("train", [biases.train_biases, biases.train_masks])
def test_threads_do_not_change_a_bit(digits, train):
    """Several threads are called at every step, one alone has whole epochs compiled: the same numbers, also in short batches."""
    network = network_of(3000)
    cache = biases.PreActivations(network, digits.x_train[:400])
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(train(network, cache, digits.y_train[:400], epochs=2, batch=90))
    finally:
        torch.set_num_threads(1)
    for other in results[1:]:
        assert torch.equal(results[0].bias, other.bias) and torch.equal(results[0].soft, other.soft)
        assert torch.equal(results[0].loss, other.loss)


@pytest.mark.parametrize("kind, loss", [("biases", "cross-entropy"), ("biases", "squared"), ("masks", "cross-entropy")])
@pytest.mark.parametrize("classes", [3, 13])
def test_compiled_epochs_are_steps_of_torchs_adam(kind, loss, classes):
    """A step of the plain kernels with torch's Adam, for a last batch that is short and an ensemble whose tiles are not full."""
    network = biases.frozen(kernels.TILE + 21, pixels=12, classes=classes, scale=0.5, seeds=2, seed=4)
    x, y = rows_and_labels(50, 12, classes)
    y = y if loss == "cross-entropy" else Streams(1, 3).normal(50, classes)[0].float()
    cache, train = biases.PreActivations(network, x, "float32"), getattr(biases, f"train_{kind}")
    fast, plain = (train(network, cache, y, epochs=3, batch=20, loss=loss, kernel=k, rate=1e-3) for k in ("fused", "plain"))
    assert torch.allclose(fast.loss, plain.loss, rtol=1e-5)
    assert torch.allclose(fast.bias, plain.bias, atol=1e-6) and torch.allclose(fast.soft, plain.soft, atol=1e-5)
    assert kind == "masks" or fast.bias.abs().mean() > 1e-3


def test_cached_pre_activations_stand_for_images(digits):
    """Answers, accuracies, losses and variances; exactly stored ones to rounding, those in 16 bits nearly."""
    network, x, y = network_of(kernels.TILE + 37, seeds=2), digits.x_test, digits.y_test
    generator = torch.Generator().manual_seed(0)
    bias = torch.randn(2, network.units, generator=generator)
    mask = (torch.rand(2, network.units, generator=generator) > 0.4).float()
    for dtype, near in (("float32", 1e-5), ("int16", 1e-3)):
        cache = biases.PreActivations(network, x, dtype)
        for one in (mask, None):
            said = biases.answers(network, bias, x, one, output_bias=torch.arange(10.0))
            assert torch.allclose(biases.answers(network, bias, cache, one, torch.arange(10.0), chunk=300), said, atol=near * 10)
            right, variance = biases.examine(network, bias, cache, y, one)
            assert torch.allclose(right, biases.accuracy(network, bias, x, y, one), atol=0.003)
            assert torch.allclose(variance, biases.unit_variance(network, bias, x, one), rtol=near, atol=near)
            loss, exact = (biases.mean_loss(network, bias, v, y, mask=one) for v in (cache, x))
            assert torch.allclose(loss, exact, rtol=near)
        assert torch.allclose(cache.restored(), x.flatten(1) @ network.w.T, atol=near)
        plain, fused = kernels.of(cache.values, cache.scale, 2, "plain"), kernels.of(cache.values, cache.scale, 2)
        sums = [work.moments(bias.flatten(), mask.flatten()) for work in (plain, fused)]
        assert torch.allclose(*sums, rtol=1e-6, atol=1e-4)


def test_cache_spills_to_disk_and_says_the_same(digits):
    network = network_of(500)
    x = digits.x_train[:300]
    kept, spilled = biases.PreActivations(network, x), biases.PreActivations(network, x, limit=1e5)
    assert not kept.spilled and spilled.spilled and spilled.bytes == 300 * 500 * 2
    assert torch.equal(kept.values, spilled.values)
    kinds = [biases.train_biases(network, c, digits.y_train[:300], epochs=1).bias for c in (kept, spilled)]
    assert torch.equal(*kinds)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_sixteen_bits_are_near(units, size, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(20, 5, generator=generator) * size
    x[3] = 0  # a black image has no range of its own
    network = biases.frozen(units, pixels=5, classes=2)
    cache = biases.PreActivations(network, x, chunk=7)
    exact = x @ network.w.T
    restored = cache.values.float() * cache.scale[:, None]
    # half a step of the fixed point, and the rounding of float32 itself
    assert ((restored - exact).abs() <= exact.abs().amax(1, keepdim=True) * (0.5 / 32767 + 1e-5)).all()


@pytest.mark.parametrize("still", [0.0, -0.4])
def test_pixels_that_never_change_are_left_out(still):
    """Dark ones, and those of standardised images; what they hand to a unit is the same for all images."""
    x, network = rows_and_labels(60, 30, 3)[0], biases.frozen(20, 30, 3)
    x[:, :12] = still
    fewer, w, offset = networks.varied(x.double(), network.w.double(), enough=50)
    assert fewer.shape == (60, 18) and w.shape == (20, 18)
    assert torch.allclose(fewer @ w.T + offset, x.double() @ network.w.double().T, atol=1e-12)
    assert networks.varied(x, network.w)[0] is x  # too few of them to be worth it
    many, bias = x.repeat(30, 1), torch.rand(1, 20)
    known = biases.PreActivations(network, many, "float64").values
    assert torch.allclose(known, many.double() @ network.w.double().T, atol=1e-12)
    expected = (many @ network.w.T + bias).relu() @ network.a.T
    assert torch.allclose(biases.answers(network, bias, many)[0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["int16", "float32"])
def test_narrow_networks_share_the_pre_activations_of_wide_ones(kind):
    x, y = rows_and_labels(50, 6, 3)
    wide, narrow = (biases.frozen(n, 6, 3, seed=2, first=1) for n in (40, 12))
    known = biases.PreActivations(wide, x, kind)
    shared, alone = known.narrowed(narrow), biases.PreActivations(narrow, x, kind)
    assert shared.values.data_ptr() == known.values.data_ptr() and shared.values.shape == (50, 12)
    near = dict(atol=1e-4 if kind == "int16" else 1e-6)
    for kernel in ("fused", "plain"):
        runs = [biases.train_biases(narrow, cache, y, epochs=3, batch=20, kernel=kernel) for cache in (shared, alone)]
        assert torch.allclose(runs[0].bias, runs[1].bias, **near)
    bias = runs[0].bias
    for function in (biases.answers, biases.unit_variance):
        assert torch.allclose(*(function(narrow, bias, cache) for cache in (shared, alone)), **near)
    with pytest.raises(ValueError, match="first ones of the network"):
        known.narrowed(biases.frozen(12, 6, 3, seed=3))


def test_parameter_counts_by_counting():
    network, pixels = biases.frozen(6, pixels=4, classes=3), 4
    everything = network.w.numel() + network.a.numel() + 6 + 3
    assert biases.parameter_counts(6, pixels, 3) == {"bias": 6, "full": everything}


def test_full_training_beats_biases_and_returns_its_weights(digits):
    x, y = digits.x_train, digits.y_train
    network = network_of(200)
    full = biases.train_fully(network, x, y, epochs=3, rate=3e-3)
    right = biases.accuracy(full.network, full.bias, digits.x_test, digits.y_test, output_bias=full.output_bias)
    only = biases.train_biases(network, x, y, epochs=3)
    assert right > 0.8 > biases.accuracy(network, only.bias, digits.x_test, digits.y_test)
    assert not torch.equal(full.network.w, network.w) and (full.bias != 0).any() and (full.output_bias != 0).any()
    assert only.network is network and (only.output_bias == 0).all()


@pytest.mark.parametrize("dark", [[], [1, 4]])
def test_full_training_is_that_of_a_plain_loop(dark):
    """Also where some pixels are dark in all training images, and light up in others."""
    network, (x, y) = biases.frozen(20, 6, 3, scale=0.5), rows_and_labels(50, 6, 3)
    x_new, y_new = rows_and_labels(30, 6, 3, seed=1)
    x[:, dark] = 0
    full = biases.train_fully(network, x, y, epochs=4, batch=20, rate=0.02, seed=3, validation=(x_new, y_new))
    model = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3))
    with torch.no_grad():
        for p, value in zip(model.parameters(), (network.w, 0, network.a, 0), strict=True):
            p.copy_(torch.as_tensor(value))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 4 * 3)
    order = Streams(1, 3, training.ORDER)
    for _ in range(4):
        for chosen in order.permutation(50)[0].split(20):
            optimiser.zero_grad()
            functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimiser.step()
            schedule.step()
    for p, value in zip(model.parameters(), (full.network.w, full.bias[0], full.network.a, full.output_bias), strict=True):
        assert torch.allclose(p, value, atol=1e-5)
    assert torch.equal(full.network.w[:, dark], network.w[:, dark])
    assert torch.allclose(full.validation[-1, 0], functional.cross_entropy(model(x_new), y_new), rtol=1e-4)


def test_products_in_16_bits_learn_the_same():
    """Weights stay in 32 bits; what is learned differs by rounding of the products, a few thousandths."""
    x, network = torch.rand(200, 30, generator=torch.Generator().manual_seed(0)), biases.frozen(50, 30, 3)
    y = (x[:, :3]).argmax(1)
    exact, short = (biases.train_fully(network, x, y, epochs=5, batch=20, precision=p) for p in ("float32", "bfloat16"))
    assert short.network.w.dtype == torch.float32 and not torch.equal(short.network.w, exact.network.w)
    moved = (exact.network.w - network.w).norm()
    assert (short.network.w - exact.network.w).norm() < 0.15 * moved
    assert torch.allclose(short.loss, exact.loss, rtol=0.02)
    with pytest.raises(ValueError, match="float32, bfloat16"):
        biases.train_fully(network, x, y, precision="float16")


def test_unit_variance_is_the_variance(digits):
    network = network_of(50, seeds=2)
    bias = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(50) % 3 > 0).float().expand(2, 50)
    h = torch.stack([(digits.x_test.flatten(1) @ network.only(k).w.T + bias[k]).relu() * mask[k] for k in range(2)])
    expected = h.double().var(1, correction=0)
    assert torch.allclose(biases.unit_variance(network, bias, digits.x_test, mask), expected, atol=1e-6)
    accuracy, variance = biases.examine(network, bias, digits.x_test, digits.y_test, mask, chunk=300)
    assert torch.allclose(variance, expected, atol=1e-6)
    assert torch.equal(accuracy, biases.accuracy(network, bias, digits.x_test, digits.y_test, mask))


def test_examine_hears_the_output_bias(digits):
    """One that is large decides every answer."""
    network, zero = network_of(50, seeds=2), torch.zeros(2, 50)
    output_bias = 1e3 * functional.one_hot(torch.tensor(4), 10).float()
    accuracy, _ = biases.examine(network, zero, digits.x_test, digits.y_test, output_bias=output_bias)
    share = (digits.y_test == 4).double().mean()
    assert torch.allclose(accuracy, share.expand(2))
    assert torch.equal(accuracy, biases.accuracy(network, zero, digits.x_test, digits.y_test, output_bias=output_bias))


SMALL = biases.frozen(3, 4, 2)
ZERO, X, Y = torch.zeros(1, 3), torch.rand(5, 4), torch.tensor([0, 1, 0, 1, 1])


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: biases.PreActivations(SMALL, X, "float16"), "int16"),
        (lambda: biases.train_fully(biases.frozen(3, 4, 2, seeds=2), X, Y), "trained alone"),
        (lambda: biases.train_biases(SMALL, X, Y - 1), "labels y run from -1 to 0, the network has classes 0 to 1"),
        (lambda: biases.train_masks(SMALL, X, Y + 1), "labels y run from 1 to 2"),
        (lambda: biases.train_fully(SMALL, X, Y + 1), "labels y run from 1 to 2"),
        (lambda: biases.accuracy(SMALL, ZERO, X, Y.float()), "whole numbers from 0 to 1, not float32"),
        (lambda: biases.train_biases(SMALL, X, Y.float()), "whole numbers from 0 to 1, not float32"),
        (lambda: biases.examine(SMALL, ZERO, X, Y[:4]), "shape .4,. for 5 items"),
        (lambda: biases.train_biases(SMALL, X, Y[:4]), "shape .4,. for 5 items"),
        (lambda: biases.train_biases(SMALL, X, Y[:, None]), "labels are .items,."),
        (lambda: biases.answers(SMALL, ZERO, X.T), "x has 5 pixels .* the network has 4; are rows and columns swapped"),
        (lambda: biases.train_biases(SMALL, X.T, Y), "are rows and columns swapped"),
        (lambda: biases.unit_variance(SMALL, ZERO, X.double()), "x is float64 and the network is float32"),
        (lambda: biases.train_biases(SMALL, X.double(), Y), "x is float64"),
        (lambda: biases.answers(SMALL, ZERO[0], X), "bias has shape .3,., it must be .seeds, units."),
        (lambda: biases.answers(SMALL, ZERO, X, mask=torch.ones(1, 2)), "mask has shape"),
        (lambda: biases.train_biases(SMALL, X, Y, start=torch.zeros(2)), "start has shape"),
        (lambda: biases.train_biases(SMALL, X, Y, loss="hinge"), "cross-entropy, squared"),
        (lambda: biases.train_biases(SMALL, X, Y, loss="squared"), "floating-point"),
        (lambda: biases.train_biases(SMALL, X, torch.zeros(5, 3), loss="squared"), "y has 3 classes"),
        (lambda: biases.train_biases(SMALL, X, torch.zeros(4, 2), loss="squared"), "x has 5 items"),
        (lambda: biases.train_biases(SMALL, X, Y, keep="best"), "validation set"),
        (lambda: biases.train_biases(SMALL, X, Y, kernel="fast"), "'fused' or 'plain'"),
        (lambda: biases.train_biases(SMALL, biases.PreActivations(biases.frozen(3, 4, 2), X), Y), "another network"),
        (lambda: biases.answers(SMALL, ZERO, biases.PreActivations(biases.frozen(3, 4, 2), X)), "answers: these .* another"),
        (lambda: biases.unit_variance(SMALL, ZERO[0], biases.PreActivations(SMALL, X)), "bias has shape .3,."),
        (lambda: biases.Frozen(SMALL.w, SMALL.a.T), "Frozen: a has"),
    ],
)  # fmt: skip
def test_refusals(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


def test_numpy_arrays_are_welcome():
    x, y = X.numpy(), Y.numpy()
    learned = biases.train_biases(SMALL, x, y, epochs=2)
    assert torch.equal(learned.bias, biases.train_biases(SMALL, X, Y, epochs=2).bias)
    assert biases.accuracy(SMALL, learned.bias, x, y.astype(np.uint8)).shape == (1,)


def test_compiled_kernels_stay_out_of_the_checkout(tmp_path, monkeypatch):
    """Compiled code is kept for the next time, in the user's own folder; where there can be none, it is not kept.

    All loops say where they will be kept; the smallest of each kind are compiled, and lie there.
    """

    def tree():
        return {path for path in (ROOT / "lib").rglob("*") if path.suffix != ".pyc"}

    def anew(module):
        """The module as an interpreter would import it that knows of no folder yet."""
        about = importlib.util.spec_from_file_location("anew", module.__file__)
        made = importlib.util.module_from_spec(about)
        about.loader.exec_module(made)
        return made

    before = tree()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    loops, sequences = anew(kernels.loops), anew(complexity.sequences)
    loops.numbers(np.zeros(10)), loops.in_fours(np.arange(5), 0, 5), loops.soften(1.0, *np.zeros((2, 3), np.float32))
    sequences._descend(np.zeros(4, np.int64), 0, 1)
    every = [one for module in (loops, sequences) for one in vars(module).values() if isinstance(one, Dispatcher)]
    assert len(every) >= 15 and all(one._cache.cache_path.startswith(str(tmp_path)) for one in every)
    assert len(list(tmp_path.rglob("*.nbc"))) >= 4 and tree() <= before
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert not files.keeps_compiled_code() and not numba.config.CACHE_DIR


@pytest.mark.parametrize("units, bound", [(8000, 10), (32000, 8)])
def test_epoch_is_cheaper_than_the_plain_loop(units, bound, digits, capsys):
    """Seconds per image of the plain loop and of the cached one, in one run; prints the ratio.

    The numbers to reach are 10 (8,000 units) and 8 (32,000), and 20 or so are usual. Both are the best of several passes, so
    that another process on the same machine disturbs the ratio little; half the bound is asserted to stay clear of the rest.
    """
    x, y = digits.x_train[:1000].flatten(1), digits.y_train[:1000]
    network = network_of(units)
    cache = biases.PreActivations(network, x)
    zero = torch.zeros(units)

    def best(run, passes):
        seconds = []
        for _ in range(passes):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    cached = best(lambda: biases.train_biases(network, cache, y, epochs=1), 5)
    plain = best(lambda: plain_loop(x[:400], y[:400], network, zero, 1, 200, 0.02, 0), 3) * len(x) / 400
    with capsys.disabled():
        print(f"\n{units:,} units: plain {plain:.2f} s, cached {cached:.3f} s per 1,000 images, {plain / cached:.1f} times")
    assert plain / cached > bound / 2

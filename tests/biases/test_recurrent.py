"""Recurrent networks: forecasts and training against a plain loop."""

import math

import pytest
import torch

from lib.biases import recurrent
from lib.linear import WrongAxes


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(inputs=2, outputs=3, seeds=2):
    """Networks with a memory, a start, and neither keep + beta = 1 nor one input."""
    made = recurrent.recurrent(7, inputs=inputs, outputs=outputs, seeds=seeds, seed=3, dtype=torch.float64)
    made.r0, made.keep, made.beta = normal(seeds, 7, seed=9), 0.3, 0.8
    return made


def plain(network, k, x):
    """One network on one window, step by step."""
    r, out = network.r0[k], []
    for now in x:
        r = network.keep * r + network.beta * torch.relu(network.w[k] @ r + network.b_in[k] @ now + network.bias[k])
        out.append(network.c[k] @ r)
    return torch.stack(out)


@pytest.mark.parametrize("inputs", [0, 1, 2])
def test_predictions_are_those_of_a_plain_loop(inputs):
    network, x = small(inputs=inputs), normal(3, 11, inputs)
    expected = torch.stack([torch.stack([plain(network, k, row) for row in x]) for k in range(2)])
    assert torch.allclose(recurrent.predict(network, x), expected, atol=1e-12)
    assert torch.allclose(recurrent.predict(network, x[1])[:, 0], recurrent.predict(network, x)[:, 1], atol=1e-12)


def wave(steps=800, lead=5):
    signal = torch.sin(torch.arange(steps) / 10)[:, None]
    return signal[:-lead], signal[lead:]


def test_only_what_is_named_is_learned():
    start = recurrent.recurrent(30, seeds=2)
    trained, losses = recurrent.train(start, *wave(), steps=40, batch=8, window=30)
    assert all(torch.equal(getattr(trained, n), getattr(start, n)) for n in ("w", "c", "b_in", "r0"))
    assert not torch.equal(trained.bias, start.bias)
    assert (losses[-5:].mean(0) < 0.5 * losses[:5].mean(0)).all()
    everything, _ = recurrent.train(start, *wave(), learn="all", steps=3, rate=0.001)
    assert all(not torch.equal(getattr(everything, n), getattr(start, n)) for n in recurrent.PARAMETERS)


@pytest.mark.parametrize("learn", ["bias", "all"])
def test_training_is_that_of_a_plain_loop(learn):
    """Adam, clipping and the rate along half a cosine, which is next to zero in the end."""
    x, y = (part.double() for part in wave(300))
    start = recurrent.recurrent(8, seed=1, dtype=torch.float64)
    steps, rate = 30, 0.05
    options = dict(learn=learn, steps=steps, batch=4, window=20, rate=rate, clip=0.5, seed=2)
    trained, losses = recurrent.train(start, x, y, **options)
    names = recurrent.PARAMETERS if learn == "all" else ("bias",)
    leaves = {name: getattr(start, name).clone().requires_grad_() for name in names}
    network = recurrent.replace(start, **leaves)
    optimiser = torch.optim.Adam(list(leaves.values()), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    order = recurrent.Streams(1, 2, recurrent.WINDOWS)
    for now in range(steps):
        index = order.integers(len(x) - 20 + 1, 4)[0][:, None] + torch.arange(20)
        guess = torch.stack([plain(network, 0, row) for row in x[index]])
        loss = (guess - y[index]).square().mean()
        assert abs(float(loss.detach()) - float(losses[now, 0])) < 1e-5  # clip_grad_norm_ adds 1e-6 to the norm
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(leaves.values(), 0.5)
        optimiser.step()
        schedule.step()
    assert all(torch.allclose(getattr(trained, name), leaf.detach(), atol=1e-5) for name, leaf in leaves.items())


def test_networks_train_as_if_alone_and_are_the_same_in_any_ensemble():
    together = recurrent.recurrent(12, seeds=3, seed=4)
    alone = recurrent.recurrent(12, seed=4, first=1)
    assert all(torch.equal(getattr(together, n)[1:2], getattr(alone, n)) for n in recurrent.PARAMETERS)
    options = dict(steps=5, window=30)
    one, _ = recurrent.train(alone, *wave(500), **options)
    all_three, _ = recurrent.train(together, *wave(500), **options)
    assert torch.allclose(all_three.bias[1], one.bias[0], atol=1e-5)


def test_sizes_of_the_random_parameters():
    made = recurrent.recurrent(400, gain=0.9, input_scale=2.0, bias_scale=0.5, output_scale=0.3, seeds=2)
    assert abs(made.w.std() / (0.9 * math.sqrt(2 / 400)) - 1) < 0.005
    for values, size in ((made.b_in, 2.0), (made.bias, 0.5), (made.c, 0.3)):
        assert 0.98 * size < values.abs().max() <= size and abs(values.mean()) < 0.1 * size
    assert (made.keep, made.beta) == (1 - 0.6, 0.6)


def test_closed_loop_feeds_forecasts_back():
    network = recurrent.recurrent(9, inputs=2, outputs=2, seed=2)
    lead, x = 4, normal(20, 2, seed=3).float()
    free = recurrent.closed_loop(network, x, 10, lead)
    assert free.shape == (1, 14, 2)
    open_loop = recurrent.predict(network, x)[0, 0]
    assert torch.allclose(free[0, :lead], open_loop[-lead:], atol=1e-5)  # these rest on true inputs alone
    again = recurrent.predict(network, torch.cat([x, free[0, :10]]))[0, 0]  # inputs after x are the forecasts
    assert torch.allclose(free[0], again[-14:], atol=1e-4)


def test_r_squared():
    target = torch.tensor([1.0, 2, 3, 4])[:, None]
    assert recurrent.r_squared(target, target) == 1
    assert recurrent.r_squared(target.mean().expand(4, 1), target) == 0
    assert recurrent.r_squared(torch.tensor([[9.0], [2], [3], [4]]), target, skip=1) == 1


def test_autocorrelation_of_a_sine():
    values = recurrent.autocorrelation(torch.sin(torch.arange(60000) * 2 * torch.pi / 60).double(), 30)
    assert torch.allclose(values[[0, 15, 30]], torch.tensor([1.0, 0.0, -1.0]).double(), atol=1e-3)
    assert recurrent.half_width(values) == 11  # cos(2 pi k / 60) is one half at k = 10, and below from 11 on
    with pytest.raises(ValueError, match="take more"):
        recurrent.half_width(values[:5])


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda n: recurrent.predict(n, torch.zeros(4, 9, 3)), "x has 3 inputs .* the network has 1"),
        (lambda n: recurrent.predict(n, torch.zeros(9, 1).double()), "float64"),
        (lambda n: recurrent.train(n, torch.zeros(90, 1), torch.zeros(90, 2)), "y has 2 outputs"),
        (lambda n: recurrent.train(n, torch.zeros(90, 1), torch.zeros(80, 1)), "80 steps"),
        (lambda n: recurrent.train(n, torch.zeros(90, 1), torch.zeros(90, 1)), "window of 120 steps"),
        (lambda n: recurrent.train(n, *wave(), learn="weights"), "learn is 'bias'"),
        (lambda n: recurrent.closed_loop(n, torch.zeros(5, 1), 3, 9), "closed loop"),
        (lambda n: recurrent.Recurrent(n.w, n.b_in, n.bias[:, :3], n.c), "bias has 3 units"),
        (lambda n: recurrent.autocorrelation(torch.zeros(5), 9), "lags from 0 to 4"),
    ],
)
def test_refusals(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong(recurrent.recurrent(6))
    assert issubclass(WrongAxes, ValueError)

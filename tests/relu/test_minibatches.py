"""lib.minibatches: batches, the constant pixel, and training against plain autograd."""

import pytest
import torch

from lib.data.datasets import Images
from lib.relu import minibatches


def images(n=60, tests=20, side=4):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(n + tests, side, side, generator=generator)
    y = torch.arange(n + tests) % 3
    x[torch.arange(n + tests), 0, y] += 1.0  # something to learn
    return Images("toy", x[:n], y[:n], x[n:], y[n:], ("a", "b", "c"), "")


def test_preparations_take_away_what_they_say():
    x, y, x_test, y_test = minibatches.prepared(images(), "pixel mean")
    assert x.shape == (60, 16) and y.shape == (60, 3) and x_test.shape == (20, 16) and y_test.shape == (20, 3)
    assert x.mean(0).abs().max() < 1e-6
    raw = images().x_train.flatten(1)
    assert torch.allclose(x, raw - raw.sum(0) / 60, atol=1e-6)  # nothing is scaled
    assert torch.equal(y.argmax(1), images().y_train)
    standard = minibatches.prepared(images(), "standard")[0]
    assert abs(float(standard.mean())) < 1e-6 and float(standard.std()) == pytest.approx(1, abs=1e-5)
    assert standard.mean(0).abs().max() > 0.1  # the mean image stays in
    with pytest.raises(ValueError, match="pixel mean"):
        minibatches.prepared(images(), "none")


def test_every_image_comes_once_an_epoch_and_seeds_differ():
    batches = minibatches.batches(12, 4, 2)
    epoch = torch.cat([next(batches) for _ in range(3)], 1)
    assert [sorted(row.tolist()) for row in epoch] == [list(range(12))] * 2
    assert not torch.equal(epoch[0], epoch[1])
    again = torch.cat([next(batches) for _ in range(3)], 1)
    assert sorted(again[0].tolist()) == list(range(12)) and not torch.equal(epoch, again)
    with pytest.raises(ValueError, match="between 1 and all 12"):
        next(minibatches.batches(12, 13, 2))


def test_networks_and_batches_depend_on_the_seed_and_their_number_alone():
    """The first 2 of 4 are the same 2; before, a third network changed the weights of the second matrix and all batches."""
    few, many = (minibatches.draw(16, 3, 5, 0.3, (2.0, 0.0), seeds) for seeds in (2, 4))
    for a, b in zip(few.weights, many.weights, strict=True):
        assert torch.equal(a.unflatten(0, (2, 2)), b.unflatten(0, (2, 4))[:, :2])
        assert torch.equal(a[:2], a[2:])  # the same in both conditions
    few, many = minibatches.batches(12, 4, 2), minibatches.batches(12, 4, 4)
    for _ in range(5):
        assert torch.equal(next(few), next(many)[:2])
    other = minibatches.draw(16, 3, 5, 0.3, (2.0, 0.0), 2, seed=7)
    assert not torch.equal(other.weights[0], minibatches.draw(16, 3, 5, 0.3, (2.0, 0.0), 2).weights[0])
    assert not torch.equal(next(minibatches.batches(12, 4, 2, seed=7)), next(minibatches.batches(12, 4, 2)))
    with pytest.raises(ValueError, match="relu or linear"):
        minibatches.draw(16, 3, 5, 0.3, (2.0, 0.0), 2, activation="tanh")


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_steps_equal_autograd(activation):
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    x, y = x.double(), y.double()
    networks = minibatches.draw(16, 3, 5, 0.3, (2.0, 0.0), 2, activation=activation)
    networks.weights = [w.double() for w in networks.weights]
    networks.constant = networks.constant.double()
    plain = [[w[k].clone().requires_grad_() for w in networks.weights] for k in range(4)]
    minibatches.train(networks, x, y, step=0.1, steps=30, batch=8)
    batches = minibatches.batches(60, 8, 2)
    for _ in range(30):
        chosen = next(batches)
        for k, (first, second) in enumerate(plain):
            rows = x[chosen[k % 2]]
            z = rows @ first[:, :-1].T + (2.0, 0.0)[k // 2] * first[:, -1]
            answer = (z.relu() if activation == "relu" else z) @ second.T
            loss = 0.5 * (answer - y[chosen[k % 2]]).square().sum(1).mean()
            for w, g in zip((first, second), torch.autograd.grad(loss, (first, second)), strict=True):
                w.data -= 0.1 * g
    for k in range(4):
        assert all((w[k] - p).abs().max() < 1e-10 for w, p in zip(networks.weights, plain[k], strict=True))


def test_units_that_no_image_switches_off_are_counted():
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    networks = minibatches.draw(16, 3, 40, 0.1, (50.0, 0.0), 2)  # a constant so large that it alone decides
    run = minibatches.train(networks, x, y, step=0.0, steps=10, batch=8)
    lifted = (networks.weights[0][:2, :, -1] > 0).double().mean(-1)
    assert torch.allclose(run["on"][0, :2], lifted, atol=0.06)
    plain = (torch.bmm(with_constant(networks, x), networks.weights[0].mT) > 0).all(1).double().mean(-1)
    assert torch.equal(run["on"][-1], plain)
    assert ((run["open"] > 0.3) & (run["open"] < 0.7)).all()  # half of random units, weighted or not
    for k, share in enumerate(run["open"][-1].tolist()):  # unit by unit
        w, r = (part[k].double() for part in networks.weights)
        open_for = [(with_constant(networks, x)[k].double() @ unit > 0).double().mean() for unit in w]
        size = [unit.norm() * out.norm() for unit, out in zip(w, r.T, strict=True)]
        assert share == pytest.approx(float(sum(o * z for o, z in zip(open_for, size, strict=True)) / sum(size)), rel=1e-5)


def test_networks_are_examined_at_each_level_and_leave_at_the_last():
    x, y, x_test, y_test = minibatches.prepared(images(), "pixel mean")
    seen_at = []

    def examine(networks):
        seen_at.append(networks.loss(x, y))
        loss, error = networks.loss_and_error(x_test, y_test)
        assert torch.equal(loss, networks.loss(x_test, y_test))
        return {"rank": networks.effective_rank(x_test), "error": error}

    networks = minibatches.draw(16, 3, 12, 0.1, (1.0, 0.0), 3)
    found = minibatches.train_to(networks, x, y, (0.3, 0.1), examine, step=0.2, batch=10, every=5)
    assert found["rank"].shape == (2, 6) and torch.isfinite(found["rank"]).all()
    assert (found["steps"][1] > found["steps"][0]).all()
    assert (found["error"][1] <= 0.35).all()  # two thirds would be chance
    assert all((loss <= 0.3).all() for loss in seen_at) and sum(len(loss) for loss in seen_at) == 12
    short = minibatches.train_to(minibatches.draw(16, 3, 12, 0.1, (1.0,), 2), x, y, (0.3, 1e-9), examine,
                                 step=0.2, batch=10, every=5, limit=400)  # fmt: skip
    assert torch.isfinite(short["rank"][0]).all() and torch.isnan(short["rank"][1]).all()


def test_looks_grow_rare_and_see_only_the_watched_images():
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    looks, look = [], 0
    while look < 2000:
        looks.append(look)
        look += max(5, int(0.1 * look))
    examine = lambda networks: {"loss": networks.loss(x[:20], y[:20])}  # noqa: E731
    found = minibatches.train_to(minibatches.draw(16, 3, 12, 0.1, (1.0,), 3), x, y, (0.3, 0.1), examine,
                                 step=0.2, batch=10, every=5, growth=0.1, watched=20)  # fmt: skip
    assert set(found["steps"].flatten().tolist()) <= set(looks)
    assert (found["loss"][0] <= 0.3).all() and (found["loss"][1] <= 0.1).all()
    torch.testing.assert_close(found["training loss"], found["loss"], rtol=1e-5, atol=0)  # recomputed at the stop


def test_a_network_stops_at_the_first_look_below_the_level():
    """Against the curve of the same networks: the look before was above, and a level 1 % higher stops no later."""
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    curve = minibatches.train(minibatches.draw(16, 3, 12, 0.1, (1.0,), 3), x, y, step=0.2, steps=400, batch=10, every=5)
    level = float(curve["loss"][40].mean())
    below = curve["loss"] <= level  # (times, networks)
    first = curve.time[below.int().argmax(0)].double()
    found = minibatches.train_to(minibatches.draw(16, 3, 12, 0.1, (1.0,), 3), x, y, (level,), lambda n: {},
                                 step=0.2, batch=10, every=5)  # fmt: skip
    assert torch.equal(found["steps"][0], first)
    reached = curve["loss"][below.int().argmax(0), torch.arange(3)]
    torch.testing.assert_close(found["training loss"][0], reached, rtol=1e-5, atol=0)


def with_constant(networks, x):
    """(networks, images, pixels + 1)"""
    return torch.stack([torch.cat([x, torch.full((len(x), 1), float(c))], 1) for c in networks.constant])


def test_hidden_layer_without_copying_equals_augmented_rows():
    x = minibatches.prepared(images(), "standard")[0]
    networks = minibatches.draw(16, 3, 7, 0.5, (3.0, 0.0), 2)
    plain = torch.bmm(with_constant(networks, x), networks.weights[0].mT).relu()
    assert torch.allclose(networks.hidden(x), plain, atol=1e-5)
    assert networks.effective_rank(x).shape == (4,)
    assert not torch.allclose(networks.effective_rank(x), networks.effective_rank(x, centred=True))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, about the same numbers
def test_a_training_that_diverges_says_so():
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    networks = minibatches.draw(16, 3, 7, 0.5, (1.0,), 2)
    with pytest.raises(FloatingPointError, match="the loss is not finite at step .*; try a smaller step"):
        minibatches.train_to(networks, x, y, (1e-9,), lambda _: {}, step=1e6, batch=10, every=5)

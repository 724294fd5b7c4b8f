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
    assert torch.equal(y.argmax(1), images().y_train)
    standard = minibatches.prepared(images(), "standard")[0]
    assert abs(float(standard.mean())) < 1e-6 and float(standard.std()) == pytest.approx(1, abs=1e-5)
    assert standard.mean(0).abs().max() > 0.1  # the mean image stays in
    with pytest.raises(ValueError, match="pixel mean"):
        minibatches.prepared(images(), "none")


def test_every_image_comes_once_an_epoch_and_seeds_differ():
    batches = minibatches.Batches(12, 4, 2)
    epoch = torch.cat([batches.next() for _ in range(3)], 1)
    assert [sorted(row.tolist()) for row in epoch] == [list(range(12))] * 2
    assert not torch.equal(epoch[0], epoch[1])
    again = torch.cat([batches.next() for _ in range(3)], 1)
    assert sorted(again[0].tolist()) == list(range(12)) and not torch.equal(epoch, again)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_steps_equal_autograd(activation):
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    x, y = x.double(), y.double()
    networks = minibatches.Ensemble(16, 3, 5, 0.3, (2.0, 0.0), 2, activation)
    networks.weights = [w.double() for w in networks.weights]
    networks.constant = networks.constant.double()
    plain = [[w[k].clone().requires_grad_() for w in networks.weights] for k in range(4)]
    minibatches.train(networks, x, y, step=0.1, steps=30, batch=8)
    batches = minibatches.Batches(60, 8, 2)
    for _ in range(30):
        chosen = batches.next()
        for k, (first, second) in enumerate(plain):
            rows = x[chosen[k % 2]]
            z = rows @ first[:-1] + (2.0, 0.0)[k // 2] * first[-1]
            answer = (z.relu() if activation == "relu" else z) @ second.T
            loss = 0.5 * (answer - y[chosen[k % 2]]).square().sum(1).mean()
            for w, g in zip((first, second), torch.autograd.grad(loss, (first, second)), strict=True):
                w.data -= 0.1 * g
    for k in range(4):
        assert all((w[k] - p).abs().max() < 1e-10 for w, p in zip(networks.weights, plain[k], strict=True))


def test_training_lowers_the_loss_and_reruns_are_identical():
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")

    def run():
        return minibatches.train(minibatches.Ensemble(16, 3, 12, 0.1, (1.0, 0.0), 2), x, y, step=0.2, steps=200, batch=10)["loss"]

    first = run()
    assert torch.equal(first, run()) and first.shape == (21, 4)
    assert (first[-1] < 0.5 * first[0]).all()


def test_units_that_no_image_switches_off_are_counted():
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    networks = minibatches.Ensemble(16, 3, 40, 0.1, (50.0, 0.0), 2)  # a constant so large that it alone decides
    run = minibatches.train(networks, x, y, step=0.0, steps=10)
    lifted = (networks.weights[0][:2, -1] > 0).double().mean(-1)
    assert torch.allclose(run["on"][0, :2], lifted, atol=0.06)
    plain = (torch.bmm(networks.rows(x), networks.weights[0]) > 0).all(1).double().mean(-1)
    assert torch.equal(run["on"][-1], plain)
    assert ((run["open"] > 0.3) & (run["open"] < 0.7)).all()  # half of random units, weighted or not


def test_networks_are_examined_at_each_level_and_leave_at_the_last():
    x, y, x_test, y_test = minibatches.prepared(images(), "pixel mean")
    seen_at = []

    def examine(networks):
        seen_at.append(networks.loss(x, y))
        loss, error = networks.loss_and_error(x_test, y_test)
        assert torch.equal(loss, networks.loss(x_test, y_test))
        return {"rank": networks.effective_rank(x_test), "error": error}

    networks = minibatches.Ensemble(16, 3, 12, 0.1, (1.0, 0.0), 3)
    found = minibatches.train_to(networks, x, y, (0.3, 0.1), examine, step=0.2, batch=10, every=5)
    assert found["rank"].shape == (2, 6) and torch.isfinite(found["rank"]).all()
    assert (found["steps"][1] > found["steps"][0]).all()
    assert (found["error"][1] <= 0.35).all()  # two thirds would be chance
    assert all((loss <= 0.3).all() for loss in seen_at) and sum(len(loss) for loss in seen_at) == 12
    short = minibatches.train_to(minibatches.Ensemble(16, 3, 12, 0.1, (1.0,), 2), x, y, (0.3, 1e-9), examine,
                                 step=0.2, batch=10, every=5, limit=400)  # fmt: skip
    assert torch.isfinite(short["rank"][0]).all() and torch.isnan(short["rank"][1]).all()


def test_looks_grow_rare_and_see_only_the_watched_images():
    x, y, _, _ = minibatches.prepared(images(), "pixel mean")
    looks, look = [], 0
    while look < 2000:
        looks.append(look)
        look += max(5, int(0.1 * look))
    examine = lambda networks: {"loss": networks.loss(x[:20], y[:20])}  # noqa: E731
    found = minibatches.train_to(minibatches.Ensemble(16, 3, 12, 0.1, (1.0,), 3), x, y, (0.3, 0.1), examine,
                                 step=0.2, batch=10, every=5, growth=0.1, watched=20)  # fmt: skip
    assert set(found["steps"].flatten().tolist()) <= set(looks)
    assert (found["loss"][0] <= 0.3).all() and (found["loss"][1] <= 0.1).all()


def test_hidden_layer_without_copying_equals_augmented_rows():
    x = minibatches.prepared(images(), "standard")[0]
    networks = minibatches.Ensemble(16, 3, 7, 0.5, (3.0, 0.0), 2)
    plain = torch.bmm(networks.rows(x), networks.weights[0]).relu()
    assert torch.allclose(networks.hidden(x), plain, atol=1e-5)
    assert networks.effective_rank(x).shape == (4,)
    assert not torch.allclose(networks.effective_rank(x), networks.effective_rank(x, centred=True))

"""Rivals of the shared code: the closed form of the race against simulation, and codes that wind around the ring."""

import math

import numpy as np
import pytest
import torch

from lib.data import tasks
from lib.gated.architectures import closed_forms, rivals, routing
from lib.gated.dynamics import integrate

X, Y = tasks.routing_items((6.0, 4.0, 3.0))
ONE = torch.ones(1, 1).double()  # a dataset of one item and one property


def test_the_start_of_a_wide_network_is_the_planar_flow():
    """dp/dt = N p, dN/dt = p pᵀ, integrated, against the solution of its Riccati equation."""

    def velocity(_, flat):
        p, n = flat[:2], flat[2:].reshape(2, 2)
        return np.concatenate([n @ p, np.outer(p, p).ravel()])

    times = [0.0, 0.3, 0.8, 1.1, 1.19]
    path = integrate(velocity, np.array([1.0, 0, 0, 1, 1, 0]), times, 1e-11)  # N swaps p and its complement
    strength = [row[:2] @ row[2:].reshape(2, 2) @ row[:2] for row in path]
    assert np.allclose(rivals.strength_before(times), strength, rtol=1e-7, atol=1e-12)
    assert math.tanh(rivals.ESCAPE) * rivals.ESCAPE == pytest.approx(1, rel=1e-12)
    assert abs(rivals.ESCAPE - 1.1996786402577338) < 1e-12


def test_the_start_is_that_of_a_wide_random_network():
    """All weights of networks with 100 units against one number: the strength of their only mode before it saturates."""
    task, scale = routing.Task(ONE[None], ONE, 1.0), 1e-3  # one domain, far from saturation
    weights = routing.initial_weights(task, 100, scale, 64, seed=1)
    mask, steps = torch.ones(1, 1, dtype=torch.bool), 120
    for part in (0.4, 0.8):
        routing.train(weights, task, mask, step=0.4 / steps / scale, steps=steps, every=steps)
        strength = (weights[2] @ weights[1] @ weights[0]).median() / scale**3
        assert strength.item() == pytest.approx(rivals.strength_before(part).item(), rel=0.04)  # the start adds 1/√100 to each


@pytest.mark.parametrize("domains", [2, 7, 30])
def test_the_effective_start_escapes_when_random_weights_do(domains):
    """Eqs. 13 and 14 from the effective start reach a large value when the planar flow diverges."""
    scale, s = 1e-3, 1.0
    b0 = rivals.effective_start(scale, domains)
    end = rivals.ESCAPE / (scale * s / domains)  # the first mode grows at rate s/M
    _, hidden = closed_forms.routing_flow([0.0, 0.999 * end], [s], 1e-9, domains, b0)
    assert hidden[-1, 0].item() == pytest.approx(scale / rivals.ESCAPE / 0.001, rel=0.01)
    assert 0.2 / rivals.effective_start(0.2, 7) == pytest.approx(2.483, abs=1e-3)


def test_what_rivals_leave_behind_is_what_wide_networks_leave_behind():
    """One dataset mode, width 128, no fitted number: the table of routes in the singular vectors of the mask, and its loss."""
    domains, target = 8, 6.0
    task = routing.shared_task(ONE, target * ONE, domains)
    for mask, scale in ((routing.circulant(8, 4), 0.2), (routing.scattered(8, 5, seed=1), 0.1)):
        weights = routing.initial_weights(task, 128, scale, 16, seed=2)
        run = rivals.train_to_the_end(weights, task, mask, steps=320, pace=0.01, last=0.3)
        assert (run["trained"][-1] < 1e-3 * run["trained"][0]).all()
        u, _, vt = torch.linalg.svd(mask.double())
        table = routing.route_maps(weights, task)[..., 0, 0] / target / domains
        left = (u.mT @ table @ vt.mT).diagonal(dim1=-2, dim2=-1)[:, 1:3].mean()  # the two fastest rivals
        predicted = rivals.rival_strengths(rivals.spectrum(mask)[:2], scale, domains * target).mean()
        assert (left / predicted).item() ** (1 / 3) == pytest.approx(1, abs=0.07)  # how long their weights are
        loss = (run["untrained"][-1] / run["untrained"][0]).log().mean().exp()
        assert (loss / rivals.predicted_loss(mask, task, scale)).item() ** (1 / 6) == pytest.approx(1, abs=0.08)


def test_rival_strengths_in_the_limit_of_small_weights():
    speed, target = torch.tensor([0.5, 0.9]).double(), 72.0
    assert torch.allclose(rivals.rival_strengths(torch.tensor([1.0]).double(), 1e-4, target), ONE[0], rtol=1e-3)
    near = torch.tensor([0.999, 0.9999]).double()  # close rivals forget how they started
    x = 1 / (near + (1 - near) * rivals.ESCAPE * target ** (1 / 3) / 1e-3)
    assert torch.allclose(rivals.rival_strengths(near, 1e-3, target), x**3, rtol=0.02)
    halved = rivals.rival_strengths(speed, 1e-3, target) / rivals.rival_strengths(speed, 5e-4, target)
    assert torch.allclose(halved, torch.full_like(halved, 8.0), rtol=0.01)  # so the loss falls by 64
    with pytest.raises(ValueError, match="not small"):
        rivals.rival_strengths(speed, 9.0, target)


def test_the_boundary_is_where_the_predicted_loss_is():
    task, mask = routing.shared_task(ONE, 6 * ONE, 12), routing.circulant(12, 4)
    exact = rivals.rival_strengths(rivals.spectrum(mask)[:2], 0.3, 72.0)
    level = float((exact**2).sum() + (rivals.spectrum(mask)[:2] * exact).sum() ** 2) / (1 - 4 / 12)
    assert rivals.boundary(0.3, 72.0, 4 / 12, level=level) == pytest.approx(routing.rivalry(mask).item(), rel=1e-9)
    assert level < rivals.predicted_loss(mask, task, 0.3) < 1.6 * level  # the slower rivals add a little
    assert math.isnan(rivals.boundary(0.01, 72.0, 0.3, level=10.0))


def test_irregular_masks_have_no_flat_code():
    with pytest.raises(ValueError, match="numbers of trained routes"):
        rivals.spectrum(routing.star(6))
    assert rivals.spectrum(routing.circulant(6, 6)).abs().max() < 1e-12


@pytest.mark.parametrize(("domains", "winding"), [(5, 1), (12, 5)])
def test_a_code_that_winds_around_the_ring_fits_all_trained_routes(domains, winding):
    task, mask = routing.shared_task(X, Y, domains), routing.circulant(domains, 2)
    weights = rivals.winding_weights(task, 20, winding, seed=3)
    assert [tuple(w.shape) for w in weights] == [(1, 20, 4 * domains), (1, 20, 20), (1, 7 * domains, 20)]
    losses = routing.route_losses(weights, task)[0] / (task.yy / 2)
    assert losses[mask].abs().max() < 1e-12
    assert max(g.abs().max() for g in routing.all_routes(task.yx, task.variance, mask, weights[0])(weights)) < 1e-12
    out, into = torch.meshgrid(torch.arange(domains), torch.arange(domains), indexing="ij")
    turn = torch.arange(domains).double() - 0.5  # on the route from i to i + k the code is turned by this too much or too little
    answered = torch.cos(2 * math.pi * winding / domains * turn) / math.cos(math.pi * winding / domains)
    by_hand = (1 - answered) ** 2
    assert torch.allclose(losses, by_hand[(out - into) % domains], atol=1e-10)
    assert losses[~mask].mean().item() == pytest.approx(rivals.winding_loss(domains, winding), rel=1e-9)
    encoders, middle, decoders = weights
    assert (encoders @ encoders.mT - middle.mT @ middle).abs().max() < 1e-9  # balanced
    assert (middle @ middle.mT - decoders.mT @ decoders).abs().max() < 1e-9
    maps = routing.route_maps(weights, task)[0, ..., 0, 0] / Y[0, 0]
    assert rivals.harmonics(maps)[winding].item() == pytest.approx(1.0)


def test_winding_numbers_and_widths_that_do_not_fit_are_refused():
    task = routing.shared_task(X, Y, 6)
    with pytest.raises(ValueError, match="from 1 to 2"):
        rivals.winding_weights(task, 20, 3)
    with pytest.raises(ValueError, match="needs 8 hidden units"):
        rivals.winding_weights(task, 7)


def test_settling_follows_the_flow_of_plain_descent():
    """Large early steps do not change where the network ends."""
    task, mask = routing.shared_task(ONE, 6 * ONE, 6), routing.circulant(6, 3)
    start = routing.initial_weights(task, 24, 0.2, 3, seed=4)
    plain, paced = [w.clone() for w in start], [w.clone() for w in start]
    routing.train(plain, task, mask, step=0.02, steps=6000, every=6000)
    rivals.train_to_the_end(paced, task, mask, steps=800, pace=0.003, last=0.1)
    a, b = (routing.route_maps(w, task) for w in (plain, paced))
    assert (a - b).abs().max() < 0.01 * 6


@pytest.mark.parametrize("hidden", [9, 40])
def test_wide_networks_train_in_the_directions_in_which_they_move(hidden, monkeypatch):
    """All weights at the end against a training that moves every hidden unit; nine units are too few to leave any out."""
    task = routing.shared_task(X[:2, :2], Y[:3, :2] / 3, 3)  # spans up to 3 · (2 + 3) directions
    masks = torch.stack([routing.circulant(3, 2), routing.star(3)])
    start = routing.initial_weights(task, hidden, torch.tensor([0.3, 0.1]), 2, seed=4)
    fast, plain = ([w.clone() for w in start] for _ in range(2))
    few, at_rest, _ = rivals._moving_part(start)
    assert few[1].shape[-1] == min(hidden, 15)
    if hidden > 15:
        whole = sum((w**2).sum((-2, -1)) for w in start)
        torch.testing.assert_close(sum((w**2).sum((-2, -1)) for w in few) + at_rest, whole)
    run = rivals.train_to_the_end(fast, task, masks, steps=400, every=50)
    monkeypatch.setattr(rivals, "_moving_part", lambda weights: (weights, 0.0, lambda moved: None))
    slow = rivals.train_to_the_end(plain, task, masks, steps=400, every=50)
    assert slow["trained"][-1].max() < 0.2 * slow["trained"][0].min()
    torch.testing.assert_close(run["untrained"], slow["untrained"], rtol=1e-9, atol=1e-12)
    for mine, theirs in zip(fast, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_other_hidden_matrices_move_in_all_directions():
    task = routing.shared_task(ONE, 6 * ONE, 4)
    start = routing.initial_weights(task, 30, 0.2, 2, law="xavier")
    assert all(a is b for a, b in zip(rivals._moving_part(start)[0], start, strict=True))

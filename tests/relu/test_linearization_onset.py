"""How strong must a constant be? Directions of small units, the vanishing constant, the threshold."""

import math

import pytest
import torch

from lib import relu
from lib.data import tasks
from lib.relu import linearization


def margin_task(margin, constant):
    x, sign = tasks.separability(margin)
    return linearization.with_constant(x, constant), tasks.one_row_per_class(sign)


def test_on_a_tree_any_constant_leaves_one_direction_only():
    """On for all items, at the speed P s0; without a constant every set of items is a direction of its own."""
    x, y = tasks.hierarchy(8)
    for c in (1e-3, 0.1, 1.0):
        (only,) = linearization.early_directions(linearization.with_constant(x, c), y)
        assert all(only.on) and only.speed == pytest.approx(8 * linearization.bias_mode(y, c).s, rel=1e-9)
    assert len(linearization.early_directions(x, y)) == 255


def test_on_the_margin_task_all_on_is_the_fastest_above_one_over_root_three():
    """2 sqrt(2) c for all items, sqrt(2 + 2 c²) for two items of one side, equal at c = 1/sqrt(3)."""
    for c, wins in ((1 / math.sqrt(3) + 0.005, True), (1 / math.sqrt(3) - 0.005, False)):
        found = linearization.early_directions(*margin_task(0.5, c))
        speed = {sum(d.on): d.speed for d in reversed(found)}
        assert speed[4] == pytest.approx(2 * math.sqrt(2) * c, rel=1e-9)
        assert speed[2] == pytest.approx(math.sqrt(2 + 2 * c**2), rel=1e-9)
        assert all(found[0].on) == wins
    assert not any(all(d.on) for d in linearization.early_directions(*margin_task(0.5, 0.3)))


def test_sets_settle_in_directions_of_the_list():
    """Started from every set of items, the iteration ends in early directions; on a tree with a constant, on for all items."""
    every = ((torch.arange(1, 16)[:, None] >> torch.arange(4)) & 1).bool()
    for c in (0.4, 1.0):
        x, y = margin_task(0.25, c)
        listed = {d.on for d in linearization.early_directions(x, y)}
        assert {tuple(on) for on in linearization.settled_sets(every, x, y).tolist() if any(on)} <= listed
    x, y = tasks.hierarchy(4)
    assert linearization.settled_sets(every, linearization.with_constant(x, 0.1), y).all()


def test_directions_are_where_small_units_go():
    """Single units under the early flow end up in one of the directions and grow at its speed."""
    x, y = margin_task(0.5, 0.65)
    directions = {d.on: d.speed for d in linearization.early_directions(x, y)}
    w, r = relu.initial_weights([4, 40, 2], 1e-12, seeds=1, seed=3)
    step, seen = 0.005, 0
    for _ in range(5000):
        z = w @ x
        dw, dr = ((r.mT @ y) * (z > 0)) @ x.mT, y @ z.relu().mT
        w, r = w + step * dw, r + step * dr
    before, z = w.norm(dim=-1)[0], (w @ x)[0]
    for _ in range(100):
        dw, dr = ((r.mT @ y) * (w @ x > 0)) @ x.mT, y @ (w @ x).relu().mT
        w, r = w + step * dw, r + step * dr
    rate = torch.log(w.norm(dim=-1)[0] / before) / 0.5
    for unit in range(40):
        on = tuple((z[unit] > 1e-6 * z[unit].abs().max()).tolist())
        if any(on):
            seen += 1
            assert on in directions
            assert float(rate[unit]) == pytest.approx(
                math.log1p(step * directions[on]) / step, rel=2e-3
            )  # a finite step grows late
    assert seen > 15


def test_a_vanishing_constant_collects_what_the_weights_collect():
    """For one-hot items every step gives the bias c times what it gives to all weights: b - c Σ w is conserved."""
    x, y = tasks.hierarchy(4)
    weights = relu.initial_weights([5, 16, 7], 1e-3, seeds=3)
    kept = [w.clone() for w in weights]
    run = linearization.without_bias(weights, x, y, step=0.005, steps=1000, every=100)
    assert all(torch.equal(a, b) for a, b in zip(weights, kept, strict=True))  # copies were trained
    bare = [weights[0][..., :-1].clone(), weights[1].clone()]
    plain = relu.train(bare, x, y, reduction="sum", step=0.005, steps=1000, every=100, observe=lambda w: {"w1": w[0]})
    assert torch.allclose(run["loss"], plain["loss"], rtol=1e-6)
    grown = (plain["w1"] - weights[0][..., :-1]).sum(-1)
    assert torch.allclose(run["lift"], grown, rtol=1e-4, atol=1e-6) and grown.max() > 0.1
    assert torch.allclose(run["lowest"], plain["w1"].amin(-1), rtol=1e-4, atol=1e-6)
    # the same law holds for any constant
    strong = [w.clone() for w in weights]
    relu.train(strong, linearization.with_constant(x, 0.5), y, reduction="sum", step=0.005, steps=1000)
    change = [strong[0][..., k] - weights[0][..., k] for k in (slice(None, -1), -1)]
    assert torch.allclose(change[1], 0.5 * change[0].sum(-1), atol=1e-12)


def test_the_threshold_is_predicted_within_a_factor_of_three_over_two_decades():
    x, y = tasks.hierarchy(8)
    strengths = 10 ** torch.arange(-2.75, 0.3, 0.25).double()
    inputs = linearization.with_constant(x, strengths[:, None])
    found = {}
    for std in (2e-3, 2e-5):
        plan = relu.schedule(8.0 if std > 1e-3 else 12.0, 0.01, 100)
        start = lambda std=std, **more: relu.initial_weights([9, 64, 15], std, seeds=4, **more)  # noqa: E731
        look = lambda w: {"on": relu.gates(w, inputs).all(-1).double().mean(-1)}  # noqa: E731
        run = relu.train(start(conditions=strengths.shape), inputs, y, reduction="sum", observe=look, **plan)
        measured = linearization.threshold(strengths, run["on"].amax(0))
        said = linearization.threshold(
            strengths, linearization.predicted_on(linearization.without_bias(start(), x, y, **plan), strengths)
        )
        assert ((measured > said) & (measured < 3 * said)).all()
        found[std] = measured.log().mean(), said.log().mean()
    slope = [(found[2e-3][k] - found[2e-5][k]) / math.log(100) for k in (0, 1)]
    assert abs(slope[0] - slope[1]) < 0.05  # the same power of the initial scale
    speeds = torch.linalg.svdvals((y * linearization._sets(x)[:, None]) @ x.mT)[:, 0]  # of units without a bias
    assert speeds.median() / speeds.max() / 2 - 0.02 < slope[0] < 0.5  # typical units have grown by this power when fast ones win


def test_the_threshold_is_interpolated_in_the_logarithm():
    strengths = torch.tensor([0.01, 0.1, 1.0], dtype=torch.float64)
    on = torch.tensor([[0.0, 0.0], [0.25, 0.1], [0.75, 0.3]], dtype=torch.float64)
    found = linearization.threshold(strengths, on)
    assert float(found[0]) == pytest.approx(10**-0.5, rel=1e-9) and math.isnan(found[1])
    assert linearization.PROBE < 1e-4


def test_a_direction_is_on_where_its_own_items_are_however_strong_the_others():
    """Items 1, -1, -2, -3 on a line, with an answer for the first alone: its unit points to it, at speed 1."""
    x = torch.tensor([[1.0, -1.0, -2.0, -3.0]], dtype=torch.float64)
    y = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    found = linearization.early_directions(x, y)
    assert [(d.on, d.speed) for d in found] == [((True, False, False, False), pytest.approx(1))]

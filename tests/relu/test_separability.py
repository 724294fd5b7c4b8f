"""The two gated networks of the separability task: formulas against simulated gated and ReLU networks."""

import math

import pytest
import torch

from lib import linear, relu
from lib.data import tasks
from lib.gated.architectures import pathways
from lib.linear import crossing
from lib.relu import separability

MARGIN = torch.tensor([0.2, 0.5, 0.8165, 1.2, 2.0], dtype=torch.float64)


def effective(margin, gates):
    x, y = tasks.separability(margin)
    return pathways.effective_correlations(pathways.effective_inputs(x, gates), y)


@pytest.mark.parametrize("margin", MARGIN.tolist())
def test_speeds_and_variances_come_from_the_data(margin):
    classes = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1]])
    for gates, formula in ((classes, separability.line_pathways), (torch.eye(4).bool(), separability.xor_pathways)):
        yx, xx = effective(margin, gates)
        expected = formula(torch.tensor(margin, dtype=torch.float64))
        for p in range(len(gates)):
            mode = linear.modes(yx[p], xx[p, p])
            assert mode.s[0] == pytest.approx(float(expected.s)) and mode.d[0] == pytest.approx(float(expected.d))
            assert mode.misalignment == pytest.approx(0, abs=1e-12)


def test_crossover_for_any_amplitude():
    for amplitude in (0.5, 1.0, 2.0):
        margin = torch.tensor(separability.crossover(amplitude), dtype=torch.float64)
        line, xor = separability.line_pathways(margin), separability.xor_pathways(margin, amplitude)
        assert float(line.s) == pytest.approx(float(xor.s))
        # and the head starts cancel: twice the units, half the variance, so the whole race is tied
        assert float(line.d / line.groups) == pytest.approx(float(xor.d / xor.groups))
    assert separability.crossover() == pytest.approx(math.sqrt(2 / 3))


def test_loss_curve_is_that_of_a_simulated_gated_network():
    """Discrete map against gradient descent of aligned gated pathways at the paper's big step: rounding only."""
    for gates, formula in (
        (torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1]]), separability.line_pathways),
        (torch.eye(4).bool(), separability.xor_pathways),
    ):
        margin = torch.tensor(0.7, dtype=torch.float64)
        x, y = tasks.separability(margin)
        inputs = pathways.effective_inputs(x, gates)
        gating, a0 = formula(margin), 1e-7
        run = pathways.train(pathways.aligned_pathways(inputs, y, a0), inputs, y, step=0.4, steps=120)
        curve = separability.loss_curve(120, gating, a0, 0.4)
        torch.testing.assert_close(run["loss"], curve, rtol=0, atol=1e-9)


def test_without_a_margin_a_line_learns_nothing():
    margin = torch.tensor([0.0, 0.5], dtype=torch.float64)
    line = separability.line_pathways(margin)
    curve = separability.loss_curve(200, line, 1e-7, 0.4)
    assert (curve[:, 0] == 0.5).all() and curve[-1, 1] < 0.01 and curve.isfinite().all()


def test_loss_is_half_the_squared_distance_to_go():
    """Eqs 22 and 23 in another form, which holds because groups · s²/d is 1 for both gatings."""
    for gating in (separability.line_pathways(0.7), separability.xor_pathways(0.7, 1.3)):
        a = torch.linspace(0, 2, 9, dtype=torch.float64)
        torch.testing.assert_close(separability.loss(a, gating), 0.5 * (1 - a * gating.d / gating.s) ** 2)


def test_initial_strength_counts_the_units_of_a_group():
    assert separability.line_pathways(1.0).initial_strength(100, 0.04) == pytest.approx(1.0)  # 50 units · 0.04 / 2
    assert separability.xor_pathways(1.0).initial_strength(100, 0.04) == pytest.approx(0.5)


def test_printed_variance_cannot_be_a_variance():
    xor = separability.xor_pathways(MARGIN)
    printed = separability.printed_xor_variance(MARGIN)
    torch.testing.assert_close(printed, xor.s.square())
    assert float(separability.printed_xor_variance(2.0)) == 1 / 8 + 1 / 4  # by hand
    wrong = separability.loss(xor.s / printed, xor._replace(d=printed))
    right = separability.loss(xor.s / xor.d, xor)
    torch.testing.assert_close(wrong, torch.full_like(wrong, -1.5))
    torch.testing.assert_close(right, torch.zeros_like(right), rtol=0, atol=1e-12)


def test_relu_networks_run_the_race():
    """Far from the crossover the ReLU network's learning time is that of the faster gating: 3 % over 4 seeds."""
    margin = torch.tensor([0.4, 1.8], dtype=torch.float64)
    x, y = tasks.separability(margin)
    hidden, variance = 128, 4e-8 / 128
    weights = relu.initial_weights([3, hidden, 1], variance**0.5, seeds=4, conditions=(2,))
    run = relu.train(weights, x[:, None], y, step=0.4, steps=110)
    measured = run.time_to(0.2).mean(1)
    for k, gating in enumerate((separability.xor_pathways(margin), separability.line_pathways(margin))):
        curve = separability.loss_curve(110, gating, gating.initial_strength(hidden, variance), 0.4)
        assert float(measured[k]) == pytest.approx(float(crossing(run.time, curve, 0.2)[k]), rel=0.03)
    kinds = separability.kinds_of_gate(relu.gates(weights, x[:, None]))
    share = {n: relu.share(weights, k) for n, k in kinds.items()}
    assert share["xor"][0].min() > 0.95 and share["line"][1].min() > 0.95


def test_kinds_of_gate_are_a_partition():
    codes = torch.arange(16)
    on = ((codes[:, None] >> torch.arange(4)) & 1).bool()
    kinds = separability.kinds_of_gate(on)
    assert (torch.stack(list(kinds.values())).sum(0) == 1).all()
    assert {n: int(k.sum()) for n, k in kinds.items()} == {"line": 2, "xor": 4, "dead": 1, "other": 9}

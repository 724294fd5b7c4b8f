"""The two gated networks of the separability task: formulas against simulated gated and ReLU networks."""

import math

import pytest
import torch

from lib import linear, relu
from lib.data import tasks
from lib.gated import pathways
from lib.linear import crossing
from lib.relu import separability

MARGIN = torch.tensor([0.2, 0.5, 0.8165, 1.2, 2.0], dtype=torch.float64)


def effective(margin, gates):
    x, y = tasks.separability(margin)
    return pathways.effective_correlations(pathways.effective_inputs(x, gates), y)


@pytest.mark.parametrize("margin", MARGIN.tolist())
def test_speeds_and_variances_come_from_the_data(margin):
    classes = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1]])
    for gates, formula in ((classes, separability.line_pathways), (torch.eye(4), separability.xor_pathways)):
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
        assert float(line.d * line.units) == pytest.approx(float(xor.d * xor.units))
    assert separability.crossover() == pytest.approx(math.sqrt(2 / 3))


def test_loss_curve_is_that_of_a_simulated_gated_network():
    """Discrete map against gradient descent of aligned gated pathways at the paper's big step: rounding only."""
    for gates, formula in (
        (torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1]]), separability.line_pathways),
        (torch.eye(4), separability.xor_pathways),
    ):
        margin = torch.tensor(0.7, dtype=torch.float64)
        x, y = tasks.separability(margin)
        inputs = pathways.effective_inputs(x, gates)
        gating, a0 = formula(margin), 1e-7
        run = pathways.train(pathways.aligned_pathways(inputs, y, a0), inputs, y, step=0.4 / 4, steps=120)
        curve = separability.loss_curve(120, gating, a0, 0.4)
        torch.testing.assert_close(run["loss"] / 4, curve, rtol=0, atol=1e-9)
        time = separability.time_to_loss(0.2, gating, a0, 0.4)
        assert float(crossing(run.time, curve, 0.2)) == pytest.approx(float(time), rel=0.02)  # the rise itself is a flow


def test_printed_variance_cannot_be_a_variance():
    xor = separability.xor_pathways(MARGIN)
    printed = separability.printed_xor_variance(MARGIN)
    torch.testing.assert_close(printed, xor.s.square())
    wrong = separability.loss(xor.s / printed, xor.s, printed, 4)
    right = separability.loss(xor.s / xor.d, xor.s, xor.d, 4)
    torch.testing.assert_close(wrong, torch.full_like(wrong, -1.5))
    torch.testing.assert_close(right, torch.zeros_like(right), rtol=0, atol=1e-12)


def test_relu_networks_run_the_race():
    """Far from the crossover the ReLU network's learning time is that of the faster gating: 3 % over 4 seeds."""
    margin = torch.tensor([0.4, 1.8], dtype=torch.float64)
    x, y = tasks.separability(margin)
    hidden, variance = 128, 4e-8 / 128
    weights = relu.initial_weights([3, hidden, 1], variance**0.5, ensemble=(2, 4))
    run = relu.train(weights, x[:, None], y, step=0.4, steps=110, reduction="mean")
    measured = run.time_to(0.2).mean(1)
    for k, gating in enumerate((separability.xor_pathways(margin), separability.line_pathways(margin))):
        curve = separability.loss_curve(110, gating, gating.initial_strength(hidden, variance), 0.4)
        assert float(measured[k]) == pytest.approx(float(crossing(run.time, curve, 0.2)[k]), rel=0.03)
    kinds = separability.kinds_of_gate(relu.gates(weights, x[:, None]))
    share = {n: (relu.unit_weight(weights) * k).sum(-1) / relu.unit_weight(weights).sum(-1) for n, k in kinds.items()}
    assert share["xor"][0].min() > 0.95 and share["line"][1].min() > 0.95


def test_kinds_of_gate_are_a_partition():
    codes = torch.arange(16)
    on = ((codes[:, None] >> torch.arange(4)) & 1).bool()
    kinds = separability.kinds_of_gate(on)
    assert (torch.stack(list(kinds.values())).sum(0) == 1).all()
    assert {n: int(k.sum()) for n, k in kinds.items()} == {"line": 2, "xor": 4, "dead": 1, "other": 9}

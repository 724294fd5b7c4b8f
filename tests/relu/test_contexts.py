"""The contextual task, its closed forms for any number of contexts, and the vector race."""

import pytest
import torch

from lib import linear, relu
from lib.data import tasks
from lib.gated import pathways
from lib.linear import crossing
from lib.relu import contexts

SIGMA = contexts.item_modes(tasks.tree(8))
STEP, STD, WIDTH = 0.004, 1e-5, 300
A0 = WIDTH * STD**2 / 2


def test_the_data_are_those_of_figure_3():
    x, y = tasks.contexts()
    assert x.shape == (11, 24) and y.shape == (60, 24) and torch.linalg.matrix_rank(y) == 24
    assert 0.5 * y.square().sum() == pytest.approx(105.623, abs=5e-4)
    linear = y @ torch.linalg.pinv(x) @ x
    assert 0.5 * (y - linear).square().sum() == pytest.approx(16.5084, abs=5e-5)
    s = torch.linalg.svdvals(y @ x.T / 24)
    assert s.tolist() == pytest.approx(
        [1.1427, 0.6104, 0.4564, 0.3797, 0.2581, 0.2320, 0.1555, 0.1502, 0.1440, 0.1382, 0], abs=6e-5
    )
    with pytest.raises(ValueError):
        tasks.ring(16)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_all_tree_data(count):
    x, y = tasks.contexts(("tree",) * count)
    assert y.shape == ((count + 1) * 15, 8 * count)
    assert 0.5 * y.square().sum() == 32 * count
    linear = y @ torch.linalg.pinv(x) @ x
    assert 0.5 * (y - linear).square().sum() == pytest.approx(8.5 * (count - 1))


def test_item_modes_of_the_tree():
    assert SIGMA.tolist() == pytest.approx([7**0.5, 3**0.5, 3**0.5, 1, 1, 1, 1])


def test_subsets_and_gates():
    open_in = contexts.subsets(3, 3, 2)
    assert open_in.tolist() == [[True] * 3, [True, True, False], [True, False, True], [False, True, True]]
    gates, features = contexts.pathway_gates(open_in)
    assert gates.shape == (4, 24) and features.sum(1).tolist() == [11, 8, 8, 8]
    assert len(contexts.subsets(5, *range(1, 6))) == 31


def residual(count):
    """Sigma_yx(p) and Sigma_x(j, p) of the residual, built from the data and not from the formulas."""
    x, y = tasks.contexts(("tree",) * count)
    left = y - y @ torch.linalg.pinv(x) @ x
    gates, features = contexts.pathway_gates(contexts.subsets(count, count - 1, 1))
    return pathways.effective_correlations(pathways.effective_inputs(x, gates, features), left)


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_residual_statistics_match_the_data(count):
    yx, xx = residual(count)
    for pathway, active in ((0, count - 1), (count, 1)):
        s = torch.linalg.svdvals(yx[pathway])[:7]
        torch.testing.assert_close(s, contexts.residual_speed(SIGMA, count, active), rtol=1e-10, atol=1e-12)
    first, second = (torch.linalg.svd(yx[p], full_matrices=False)[0][:, 0] for p in (0, 1))
    assert -abs(float(first @ second)) == pytest.approx(contexts.overlap(count), abs=1e-9)
    ratio = xx[0, 1, :8, :8].diagonal() / xx[0, 0, :8, :8].diagonal()
    assert ratio.tolist() == pytest.approx([(count - 2) / (count - 1)] * 8)
    assert xx[0, 0, 0, 0] == pytest.approx((count - 1) / (8 * count))


@pytest.mark.parametrize("count", [3, 4, 5])
def test_closed_form_matches_pathways_trained_on_the_residual(count):
    """B(t) from a known start, against gradient descent on the residual: 1 % is the finite step."""
    x, y = tasks.contexts(("tree",) * count)
    left = y - y @ torch.linalg.pinv(x) @ x
    gates, features = contexts.pathway_gates(contexts.subsets(count, count - 1))
    inputs = pathways.effective_inputs(x, gates, features)
    b0 = 1e-3
    weights = pathways.aligned_pathways(inputs, left, b0)
    run = pathways.train(weights, inputs, left, step=STEP, steps=2500, every=10,
                         observe=lambda w: {"s": torch.linalg.svdvals(pathways.maps(w))[..., :7]})  # fmt: skip
    points = 8 * count
    s, d = contexts.residual_speed(SIGMA, count, count - 1), (count - 1) / points
    theory = contexts.context_mode_strength(run.time[:, None].double(), s, d, b0, count, tau=1 / (points * STEP))
    final = theory[-1].max()
    assert ((run["s"].mean(1) - theory).abs().max() / final) < 0.01
    assert theory[-1].tolist() == pytest.approx((((count - 1) / count) ** 0.5 * SIGMA).tolist(), rel=0.01)
    printed = contexts.printed_context_mode_strength(run.time[:, None].double(), s, d, b0, count, tau=1 / (points * STEP))
    assert printed[-1].abs().max() < 0.05  # as printed it starts at (C - 1) b0 and dies out


def test_vector_race_discrete_is_the_aligned_network():
    """One item mode of the balanced network and its arrow: the same numbers, apart from the mean modes' rounding."""
    count = 3
    x, y = tasks.contexts(("tree",) * count)
    mean = torch.kron(torch.eye(count), torch.full((8, 8), 1 / 8)).double()
    centred = y - y @ mean  # without the mean over items only item modes are left
    open_in = contexts.subsets(count, 3, 2, 1)
    gates, _ = contexts.pathway_gates(open_in)
    items_only = torch.cat([torch.ones(7, 8), torch.zeros(7, 3)], 1)
    inputs = pathways.effective_inputs(x, gates, items_only)
    run = pathways.train(pathways.aligned_pathways(inputs, centred, A0), inputs, centred, step=STEP, steps=1500, every=50)
    arrows = contexts.vector_race_discrete(1500, SIGMA, open_in, A0, STEP)[::50]
    torch.testing.assert_close(contexts.vector_race_loss(arrows, SIGMA, open_in), run["loss"], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("count", [3, 5])
def test_vector_race_flow_is_the_limit_of_small_steps(count):
    open_in = contexts.subsets(count, count, count - 1)
    coarse = contexts.vector_race_discrete(1000, SIGMA, open_in, A0, 0.008)[::100]
    fine = contexts.vector_race_discrete(8000, SIGMA, open_in, A0, 0.001)[::800]
    flow = contexts.vector_race(torch.arange(0, 8001, 800), SIGMA, open_in, A0, 0.001)
    error = [(run - flow).abs().max().item() for run in (coarse, fine)]
    assert error[1] < 0.02 and error[1] < 0.2 * error[0]  # the error of a first-order step falls with the step


@pytest.mark.parametrize("count", [3, 4, 5])
def test_vector_race_predicts_when_contexts_are_learned(count):
    """Half-rise of the top contextual mode without a fitted constant, against random networks: 3 % over 3 draws."""
    x, y = tasks.contexts(("tree",) * count)
    basis, short = relu.into_column_space(y)
    open_in = contexts.subsets(count, count, count - 1)
    inputs = pathways.effective_inputs(x, *contexts.pathway_gates(open_in))
    weights = pathways.initial_pathways([WIDTH] * (count + 1), 8 + count, len(short), STD, ensemble=(3,))
    levels = torch.tensor([0.6, 0.3, 0.15]) * 32 * count
    run = pathways.train(weights, inputs, short, step=0.008, steps=600)
    arrows = contexts.vector_race_discrete(600, SIGMA, open_in, A0, 0.008)
    means = contexts.common_mean_modes(x, short)
    strength = linear.mode_strength_discrete(600, means.s, means.d, torch.full_like(means.s, A0), 8 * count * 0.008)
    power = 32 - 8.5 * 2  # per context: |y|²/2 minus the item modes of two blocks, each worth 17/2
    rest = 8 * count * linear.loss_of_modes(strength, means.s, means.d, 2 * power / 8)
    predicted = contexts.vector_race_loss(arrows, SIGMA, open_in) + rest
    assert predicted[0] == pytest.approx(32 * count, rel=1e-6)
    for level in levels:
        ours = crossing(run.time, predicted, level)
        assert run.time_to(level).mean() == pytest.approx(float(ours), rel=0.03)


def test_residual_part_needs_a_residual():
    with pytest.raises(ValueError):
        contexts.residual_part(torch.zeros(7, 1, 4), contexts.subsets(3, 3))

"""The contextual task, its closed forms for any number of contexts, and the vector race."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from lib import linear, relu
from lib.data import tasks
from lib.gated.architectures import pathways
from lib.linear import crossing
from lib.relu import contexts

SIGMA = contexts.item_modes(tasks.tree(8))
STEP, STD, WIDTH = 0.004, 1e-5, 300
A0 = WIDTH * STD**2 / 2


def test_the_data_are_those_of_figure_3():
    x, y = tasks.contexts(("tree", "ring", "cross"), 8)
    assert x.shape == (11, 24) and y.shape == (60, 24) and torch.linalg.matrix_rank(y) == 24
    assert 0.5 * y.square().sum() == pytest.approx(105.623, abs=5e-4)
    linear = y @ torch.linalg.pinv(x) @ x
    assert 0.5 * (y - linear).square().sum() == pytest.approx(16.5084, abs=5e-5)
    s = torch.linalg.svdvals(y @ x.T / 24)
    assert s.tolist() == pytest.approx(
        [1.1427, 0.6104, 0.4564, 0.3797, 0.2581, 0.2320, 0.1555, 0.1502, 0.1440, 0.1382, 0], abs=6e-5
    )


def test_subsets_and_gates():
    open_in = contexts.subsets(3, 3, 2)
    assert open_in.tolist() == [[True] * 3, [True, True, False], [True, False, True], [False, True, True]]
    gates, features = contexts.pathway_gates(open_in, items=8)
    assert gates.shape == (4, 24) and features.sum(1).tolist() == [11, 8, 8, 8]
    x, _ = tasks.contexts(("tree",) * 3, items=4)
    seen = contexts.pathway_inputs(x, open_in)  # the number of items comes from the data
    assert torch.equal(seen, pathways.effective_inputs(x, *contexts.pathway_gates(open_in, items=4)))
    assert seen[1, :, :8].sum() == 8 and seen[1, :, 8:].sum() == 0 and seen[0].sum() == 24
    with pytest.raises(ValueError, match="points"):
        contexts.pathway_inputs(x, contexts.subsets(2, 2))
    assert len(contexts.subsets(5, *range(1, 6))) == 31


def residual(count, items):
    """Sigma_yx(p) and Sigma_x(j, p) of the residual, built from the data and not from the formulas."""
    x, y = tasks.contexts(("tree",) * count, items=items)
    left = y - y @ torch.linalg.pinv(x) @ x
    gates, features = contexts.pathway_gates(contexts.subsets(count, count - 1, 1), items)
    return pathways.effective_correlations(pathways.effective_inputs(x, gates, features), left)


@pytest.mark.parametrize(("count", "items"), [(3, 8), (6, 8), (4, 4)])
def test_residual_statistics_match_the_data(count, items):
    yx, xx = residual(count, items)
    sigma = contexts.item_modes(tasks.tree(items))
    for pathway, active in ((0, count - 1), (count, 1)):
        s = torch.linalg.svdvals(yx[pathway])[: items - 1]
        torch.testing.assert_close(s, contexts.residual_speed(sigma, count, active, items), rtol=1e-10, atol=1e-12)
    first, second = (torch.linalg.svd(yx[p], full_matrices=False)[0][:, 0] for p in (0, 1))
    assert -abs(float(first @ second)) == pytest.approx(contexts.overlap(count), abs=1e-9)
    printed = {3: -1 / 2, 4: -1 / 6, 5: -1 / 12}  # Appendices F and G, right for three contexts only
    assert (printed.get(count) == contexts.overlap(count)) == (count == 3)
    ratio = xx[0, 1, :items, :items].diagonal() / xx[0, 0, :items, :items].diagonal()
    assert ratio.tolist() == pytest.approx([(count - 2) / (count - 1)] * items)
    assert xx[0, 0, 0, 0] == pytest.approx((count - 1) / (items * count))


@pytest.mark.parametrize(("count", "items"), [(3, 8), (5, 4), (3, 16)])
def test_mean_modes_hold_all_that_items_share(count, items):
    """Context alone gives the means over items, so that their modes leave nothing: points · sum of s²/d is all of |mean|²."""
    x, y = tasks.contexts(("tree",) * count, items)
    mode = contexts.common_mean_modes(x, y, items)
    mean = y.unflatten(-1, (count, items)).mean(-1)
    power = items * mean.square().sum()
    assert float(items * count * (mode.s**2 / mode.d).sum()) == pytest.approx(float(power), rel=1e-9)
    plain = torch.linalg.svdvals(mean.repeat_interleave(items, -1) @ x.mT / (items * count))[: len(mode.s)]
    torch.testing.assert_close(mode.s, plain, rtol=1e-9, atol=1e-12)


def printed_mode_strength(t, s, d, b0, contexts, tau):
    """As printed in Appendices F and G: the exponential grows, and one factor C - 1 is missing."""
    return ((contexts - 1) * s / d) / (1 - (1 - s / (d * b0)) * torch.exp(2 * s * torch.as_tensor(t) / tau))


def test_closed_form_by_hand_beside_the_printed_one():
    """C = 4, s = 1, d = 2, B0 = 1/4, 2st/tau = ln 2."""
    time = math.log(2)
    at = dict(s=1.0, d=2.0, b0=0.25, contexts=4, tau=2.0)
    printed = printed_mode_strength
    assert float(printed(time, **at)) == pytest.approx(1.5 / (1 + 2))
    assert float(printed(0.0, **at)) == pytest.approx(3 * 0.25)  # starts at (C - 1) B0
    assert float(printed(1e2, **at)) == pytest.approx(0)
    corrected = contexts.context_mode_strength
    assert float(corrected(time, **at)) == pytest.approx(1.5 / (1 + 5 / 2))
    assert float(corrected(0.0, **at)) == pytest.approx(0.25) and float(corrected(1e3, **at)) == pytest.approx(3 / 2)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_closed_form_matches_pathways_trained_on_the_residual(count):
    """B(t) from a known start, against gradient descent on the residual: 1 % is the finite step."""
    x, y = tasks.contexts(("tree",) * count, 8)
    left = y - y @ torch.linalg.pinv(x) @ x
    gates, features = contexts.pathway_gates(contexts.subsets(count, count - 1), items=8)
    inputs = pathways.effective_inputs(x, gates, features)
    b0 = 1e-3
    weights = pathways.aligned_pathways(inputs, left, b0)
    run = pathways.train(weights, inputs, left, step=STEP, steps=2500, every=10, reduction="sum",
                         observe=lambda w: {"s": torch.linalg.svdvals(pathways.maps(w))[..., :7]})  # fmt: skip
    points = 8 * count
    s, d = contexts.residual_speed(SIGMA, count, count - 1, items=8), (count - 1) / points
    theory = contexts.context_mode_strength(run.time[:, None].double(), s, d, b0, count, tau=1 / (points * STEP))
    final = theory[-1].max()
    assert ((run["s"].mean(1) - theory).abs().max() / final) < 0.01
    assert theory[-1].tolist() == pytest.approx((((count - 1) / count) ** 0.5 * SIGMA).tolist(), rel=0.01)
    printed = printed_mode_strength(run.time[:, None].double(), s, d, b0, count, tau=1 / (points * STEP))
    assert printed[-1].abs().max() < 0.05  # as printed it starts at (C - 1) b0 and dies out


def test_vector_race_discrete_is_the_aligned_network():
    """One item mode of the balanced network and its arrow: the same numbers, apart from the mean modes' rounding."""
    count = 3
    x, y = tasks.contexts(("tree",) * count, 8)
    mean = torch.kron(torch.eye(count), torch.full((8, 8), 1 / 8)).double()
    centred = y - y @ mean  # without the mean over items only item modes are left
    open_in = contexts.subsets(count, 3, 2, 1)
    gates, _ = contexts.pathway_gates(open_in, items=8)
    items_only = torch.cat([torch.ones(7, 8), torch.zeros(7, 3)], 1).bool()
    inputs = pathways.effective_inputs(x, gates, items_only)
    run = pathways.train(
        pathways.aligned_pathways(inputs, centred, A0), inputs, centred, step=STEP, steps=1500, every=50, reduction="sum"
    )
    arrows = contexts.vector_race_discrete(1500, SIGMA, open_in, A0, STEP)[::50]
    torch.testing.assert_close(contexts.vector_race_loss(arrows, SIGMA, open_in), run["loss"], rtol=1e-7, atol=1e-9)


def vector_flow(times, sigma, open_in, a0, step):
    """tau dm/dt = |m| c + (m·c) m / |m| from m = a0 c/|c|: (times, modes, pathways, contexts + 1)."""
    gates, count = open_in.double().numpy(), open_in.shape[1]
    target = sigma.numpy()[:, None, None] * np.concatenate([np.ones((count, 1)), np.eye(count)], 1)
    first = gates @ target
    start = a0 * first / np.linalg.norm(first, axis=-1, keepdims=True)

    def velocity(_, flat):
        m = flat.reshape(start.shape)
        c, length = gates @ (target - gates.T @ m), np.linalg.norm(m, axis=-1, keepdims=True)
        return (step * (length * c + (m * c).sum(-1, keepdims=True) * m / length)).ravel()

    path = solve_ivp(velocity, (0.0, float(times[-1])), start.ravel(), "LSODA", times.double().numpy(), rtol=1e-8, atol=1e-14)
    return torch.as_tensor(path.y.T.reshape(len(times), *start.shape))


@pytest.mark.parametrize("count", [3, 5])
def test_small_steps_approach_the_flow(count):
    open_in = contexts.subsets(count, count, count - 1)
    coarse = contexts.vector_race_discrete(1000, SIGMA, open_in, A0, 0.008)[::100]
    fine = contexts.vector_race_discrete(8000, SIGMA, open_in, A0, 0.001)[::800]
    flow = vector_flow(torch.arange(0, 8001, 800), SIGMA, open_in, A0, 0.001)
    error = [(run - flow).abs().max().item() for run in (coarse, fine)]
    assert error[1] < 0.02 and error[1] < 0.2 * error[0]  # the error of a first-order step falls with the step


@pytest.mark.parametrize("count", [3, 4, 5])
def test_vector_race_predicts_when_contexts_are_learned(count):
    """Half-rise of the top contextual mode without a fitted constant, against random networks: 3 % over 3 draws."""
    x, y = tasks.contexts(("tree",) * count, 8)
    basis, short = relu.into_column_space(y)
    open_in = contexts.subsets(count, count, count - 1)
    inputs = contexts.pathway_inputs(x, open_in)
    weights = pathways.initial_pathways([WIDTH] * (count + 1), 8 + count, len(short), STD, ensemble=(3,))
    levels = torch.tensor([0.6, 0.3, 0.15]) * 32 * count
    run = pathways.train(weights, inputs, short, step=0.008, steps=600, reduction="sum")
    arrows = contexts.vector_race_discrete(600, SIGMA, open_in, A0, 0.008)
    means = contexts.common_mean_modes(x, short, items=8)
    strength = linear.mode_strength_discrete(600, means.s, means.d, torch.full_like(means.s, A0), 8 * count * 0.008)
    power = 32 - 8.5 * 2  # per context: |y|²/2 minus the item modes of two blocks, each worth 17/2
    rest = 8 * count * linear.loss_of_modes(strength, means.s, means.d, 2 * power / 8)
    predicted = contexts.vector_race_loss(arrows, SIGMA, open_in) + rest
    assert predicted[0] == pytest.approx(32 * count, rel=1e-6)
    for level in levels:
        ours = crossing(run.time, predicted, level)
        assert run.time_to(level).mean() == pytest.approx(float(ours), rel=0.03)


@pytest.mark.parametrize("C", [3, 4, 5])
def test_the_race_of_all_sets_is_the_vector_race_made_small(C):
    """Three numbers for each size of set, against one arrow for each of the 2^C - 1 sets."""
    sigma, steps, a0 = torch.tensor([7**0.5, 3**0.5, 1.0], dtype=torch.float64), 400, 1e-8
    sets = contexts.subsets(C, *range(1, C + 1))
    arrows = contexts.vector_race_discrete(steps, sigma, sets, a0, 0.008)[-1].norm(dim=-1)  # (modes, sets)
    small = contexts.race_of_all_sets(steps, sigma, C, a0, 0.008)
    torch.testing.assert_close(arrows, small[:, sets.sum(-1) - 1], rtol=1e-9, atol=1e-14)
    assert small.max() > 0.1  # something has been learned by then


def test_sets_of_middle_size_win_the_residual_and_lose_the_head_start():
    """The speed on the residual is largest for half of the contexts; the winner lies between that and all but one."""
    speed = [float(contexts.residual_speed(1.0, 10, k, 8)) for k in range(1, 10)]
    assert max(speed) == speed[4]
    length = contexts.race_of_all_sets(1000, contexts.item_modes(tasks.tree(8)), 10, 9e-9, 0.008).sum(0)
    share = length * torch.tensor([float(math.comb(10, k)) for k in range(1, 11)])
    assert 5 < int(share.argmax()) + 1 < 9

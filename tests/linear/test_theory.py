"""Closed forms of deep linear networks against simulation, and the statistics path against automatic differentiation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from lib import linear
from lib.data import tasks
from lib.linear import crossing

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(2, 9))  # out, hidden, in, items


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def aligned(mode, hidden, a0):
    """Balanced weights whose modes have exactly the strengths a0."""
    frame = torch.linalg.qr(random(hidden, len(mode.s), seed=3))[0]
    root = a0.sqrt()
    return [frame @ torch.diag(root) @ mode.v.mT, mode.u @ torch.diag(root) @ frame.mT]


def test_modes_rebuild_the_correlations():
    x, y = tasks.hierarchy(8)
    sigma_yx, sigma_x = linear.correlations(x, y)
    mode = linear.modes(sigma_yx, sigma_x)
    assert torch.allclose(mode.u @ torch.diag(mode.s) @ mode.v.mT, sigma_yx, atol=1e-14)
    assert mode.misalignment < 1e-14
    # a full binary tree of 8 leaves: sqrt(15), then sqrt(7), sqrt(3), 1 by level, over the 8 items
    expected = torch.tensor([15, 7, 3, 3, 1, 1, 1, 1], dtype=torch.float64).sqrt() / 8
    assert torch.allclose(mode.s, expected, atol=1e-14)
    assert (mode.u.sum(0) > -1e-12).all()


def test_modes_say_when_they_do_not_decouple():
    x, y = random(4, 30, seed=1), random(3, 30, seed=2)
    x[0] += 2 * x[1]
    assert linear.modes(*linear.correlations(x, y)).misalignment > 0.05


@given(st.floats(0.05, 3), st.floats(0.05, 3), st.floats(1e-6, 0.02), st.floats(0.2, 5))
@settings(max_examples=40, deadline=None)
def test_mode_strength_solves_its_equation(s, d, share, tau):
    a0 = share * s / d
    times = torch.linspace(0, 20 * tau / s, 50, dtype=torch.float64)
    solved = solve_ivp(
        lambda t, a: 2 * a * (s - a * d) / tau, (0, float(times[-1])), [a0], t_eval=times.numpy(), rtol=1e-10, atol=1e-14
    )
    closed = linear.mode_strength(times, torch.tensor(s, dtype=torch.float64), d, a0, tau)
    assert torch.allclose(closed, torch.tensor(solved.y[0]), rtol=1e-6, atol=1e-8 * s / d)


@given(st.floats(0.1, 2), st.floats(0.1, 2), st.floats(1e-5, 0.1), st.floats(0.05, 0.95))
@settings(max_examples=40, deadline=None)
def test_time_to_fraction_inverts_mode_strength(s, d, share, fraction):
    s, d = torch.tensor([s], dtype=torch.float64), torch.tensor([d], dtype=torch.float64)
    a0 = share * fraction * s / d
    t = linear.time_to_fraction(fraction, s, d, a0, tau=3.0)
    assert torch.allclose(linear.mode_strength(t, s, d, a0, tau=3.0), fraction * s / d, rtol=1e-9)
    assert torch.allclose(linear.half_time(s, d, a0), linear.time_to_fraction(0.5, s, d, a0))


def test_discrete_map_is_exact_for_decoupled_weights_at_any_step():
    x, y = tasks.hierarchy(4)
    mode = linear.modes(*linear.correlations(x, y))
    a0 = torch.tensor([1e-3, 2e-3, 5e-3, 1e-2], dtype=torch.float64)
    run = linear.train_on_statistics(aligned(mode, 6, a0), x, y, step=0.9, steps=60, decomposition=mode)
    mapped = linear.mode_strength_discrete(60, mode.s, mode.d, a0, 0.9)
    assert (run["strength"] - mapped).abs().max() < 1e-12


def test_closed_form_against_simulation_in_the_flow_limit():
    """Decoupled weights and a tiny step: only the first-order error of the step is left, here below 0.2 %."""
    x, y = tasks.hierarchy(4)
    mode = linear.modes(*linear.correlations(x, y))
    a0 = torch.full((4,), 1e-3, dtype=torch.float64)
    run = linear.train_on_statistics(aligned(mode, 6, a0), x, y, step=0.002, steps=20000, every=100, decomposition=mode)
    theory = linear.mode_strength(run.time[:, None].double(), mode.s, mode.d, a0, tau=500.0)
    assert ((run["strength"] - theory).abs() / (mode.s / mode.d)).max() < 2e-3
    power = float(y.square().sum() / 4)
    predicted = linear.loss_of_modes(theory, mode.s, mode.d, power)
    assert (run["loss"] - predicted).abs().max() < 2e-3 * power / 2


def test_half_times_from_random_weights():
    """Parameter-free half-times of 20 networks: 0.5 % with a0 from the growing half, over 5 % with the overlap."""
    x, y = tasks.hierarchy(4)
    mode = linear.modes(*linear.correlations(x, y))
    weights = linear.small_weights([(50, 4), (7, 50)], 1e-4, 20)
    a0 = linear.initial_strength(*weights, mode.u, mode.v)
    overlap = linear.mode_overlap(*weights, mode.u, mode.v)
    run = linear.train_on_statistics(weights, x, y, step=0.04, steps=1000, decomposition=mode)
    half = crossing(run.time, run["strength"] / (mode.s / mode.d), 0.5, rising=True)
    rate = linear.discrete_rate(mode.s, 0.04)
    d = mode.d * rate / mode.s
    assert ((linear.half_time(rate, d, a0) - half) / half).abs().mean() < 0.005
    assert ((linear.half_time(rate, d, overlap.abs()) - half) / half).abs().mean() > 0.05


def test_initial_strength_of_aligned_weights_is_their_strength():
    mode = linear.modes(*linear.correlations(*tasks.hierarchy(4)))
    a0 = torch.tensor([1e-3, 2e-3, 5e-3, 1e-2], dtype=torch.float64)
    weights = aligned(mode, 6, a0)
    assert torch.allclose(linear.initial_strength(*weights, mode.u, mode.v), a0, rtol=1e-12)
    assert torch.allclose(linear.mode_overlap(*weights, mode.u, mode.v), a0, rtol=1e-12)
    shrinking = [weights[0], -weights[1]]  # W1 v = -W2ᵀ u: nothing grows, whatever the overlap
    assert linear.initial_strength(*shrinking, mode.u, mode.v).max() < 1e-18


@given(SIZES, st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_one_step_and_the_loss_equal_autograd(sizes, layers, seed):
    outputs, hidden, features, items = sizes
    x, y = random(features, items, seed=seed), random(outputs, items, seed=seed + 1)
    widths = [features, *[hidden] * (layers - 1), outputs]
    weights = [random(2, b, a, seed=seed + i).requires_grad_() for i, (a, b) in enumerate(zip(widths, widths[1:], strict=False))]
    answer = x
    for w in weights:
        answer = w @ answer
    loss = (y - answer).square().sum((-2, -1)) / 2 / items
    slopes = torch.autograd.grad(loss.sum(), weights)
    start = [w.detach() for w in weights]
    trained = [w.clone() for w in start]
    run = linear.train_on_statistics(trained, x, y, step=1.0, steps=1)
    assert torch.allclose(run["loss"][0], loss.detach(), atol=1e-10)
    for w, before, g in zip(trained, start, slopes, strict=True):
        assert torch.allclose(before - w, g, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_modes_are_as_many_as_the_rank_in_both_precisions(dtype):
    generator = torch.Generator().manual_seed(0)
    sigma = torch.randn(30, 2, dtype=dtype, generator=generator) @ torch.randn(2, 20, dtype=dtype, generator=generator)
    assert linear.modes(sigma, torch.eye(20, dtype=dtype)).s.shape == (2,)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_deep_mode_strength_against_an_ode_solver(layers):
    times = torch.linspace(0, 30, 200, dtype=torch.float64)
    ours = linear.deep_mode_strength(times, 1.5, 0.7, 0.02, layers)
    solved = solve_ivp(
        lambda t, a: linear.deep_mode_velocity(a, 1.5, 0.7, layers), (0, 30), [0.02], t_eval=times.numpy(), rtol=1e-10, atol=1e-12
    )
    assert (ours - torch.tensor(solved.y[0])).abs().max() < 1e-5
    if layers == 2:
        closed = linear.mode_strength(times, torch.tensor(1.5, dtype=torch.float64), 0.7, 0.02)
        assert (ours - closed).abs().max() < 1e-5


def test_misalignment_is_relative_to_the_largest_variance():
    """By hand: the modes of a diagonal matrix are the axes, so Vᵀ Sigma_x V is Sigma_x itself."""
    sigma_x = torch.tensor([[4.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    found = linear.modes(torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)), sigma_x)
    assert found.misalignment == pytest.approx(0.25) and found.d.tolist() == pytest.approx([4, 2])

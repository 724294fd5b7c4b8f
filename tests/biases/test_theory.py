"""The universality proofs: identities to rounding, laws against Monte Carlo, bounds against the worst case."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.biases import theory


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=20, deadline=None)
@given(alpha=st.integers(1, 12), n=st.integers(1, 6), seed=st.integers(0, 99))
def test_bounded_networks_compute_the_same(alpha, n, seed):
    x, b_in, bias, a = normal(9, 3, seed=seed), normal(n, 3, seed=seed + 1), normal(n, seed=seed + 2), normal(2, n, seed=seed + 3)
    wide = theory.bounded(b_in, bias, a, alpha)
    assert len(wide[0]) == alpha**2 * n
    assert max(p.abs().max() for p in wide) <= max(p.abs().max() for p in (b_in, bias, a)) / alpha + 1e-15
    y = theory.network(x, b_in, bias, a)
    assert torch.allclose(theory.network(x, *wide), y, atol=1e-11)
    steps = theory.network(x, b_in, bias, a, theory.heaviside)
    fewer = theory.bounded(b_in, bias, a, alpha, copies=alpha)
    assert torch.allclose(theory.network(x, *fewer, theory.heaviside), steps, atol=1e-11)


def test_recurrent_weights_are_divided_twice():
    w, b_in, bias, c, r0 = (
        0.5 * normal(4, 4),
        normal(4, 2, seed=1),
        normal(4, seed=2),
        normal(1, 4, seed=3),
        normal(4, seed=4).abs(),
    )
    x = normal(20, 2, seed=5)
    y = theory.rnn(x, w, b_in, bias, c, r0)
    right = theory.rnn(x, *theory.bounded_recurrent(w, b_in, bias, c, r0, 4))
    wrong = theory.rnn(x, *theory.bounded_recurrent(w, b_in, bias, c, r0, 4, recurrent_power=1))
    assert (right - y).abs().max() < 1e-12 * y.abs().max()
    assert (wrong - y).abs().max() > y.abs().max()


def test_silenced_units_are_masked_bit_for_bit():
    gamma, x = 0.5, normal(40, 3)
    b_in, bias, a = (2 * torch.rand(60, 3) - 1) * 1.5, (2 * torch.rand(60) - 1) * 1.5, normal(2, 60, seed=8).float()
    x, mask = x.float(), torch.arange(60) % 4 == 0
    silent = torch.where(mask, bias, torch.tensor(theory.silencing_bias(gamma, x)))
    masked = (torch.relu(x @ b_in.T + bias) * mask) @ a.T
    assert torch.equal(theory.network(x, b_in, silent, a), masked)
    assert not torch.equal(theory.network(x, b_in, bias, a), masked)


@pytest.mark.parametrize("n, near, gamma, width", [(1, 0.5, 0.5, 30), (2, 0.5, 0.5, 60), (3, 0.9, 0.2, 12), (2, 0.8, 1.0, 41)])
def test_laws_of_luck_against_monte_carlo(n, near, gamma, width):
    trials, per_unit = 4000, 3
    wanted = (2 * torch.rand(n, per_unit, generator=torch.Generator().manual_seed(n)) - 1).double() * gamma
    block, mask = theory.simulate_feedforward(width, wanted, near, gamma, trials, seed=3)
    for share, law in (
        (block, theory.block_probability(width, n, n * per_unit, near, gamma)),
        (mask, theory.mask_probability(width, n, per_unit, near, gamma)),
    ):
        assert abs(share - law) < 4 * math.sqrt(law * (1 - law) / trials) + 1e-9  # four standard errors


def test_the_greedy_scan_finds_a_mask_whenever_there_is_one():
    """Against all masks, one by one."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        close = torch.rand(6, 2, generator=generator) < 0.3  # (units, wanted)
        any_mask = any(close[i, 0] and close[j, 1] for i in range(6) for j in range(i + 1, 6))
        found = 0
        for unit in range(6):
            found += int(found < 2 and close[unit, min(found, 1)])
        assert any_mask == (found == 2)


def test_recurrent_block_law():
    n, k, near, gamma, blocks, trials = 2, 3, 0.9, 0.2, 30, 20000
    wanted_w, wanted_rest = 0.1 * normal(n, n).clamp(-1, 1), 0.1 * normal(n, k, seed=1).clamp(-1, 1)
    law = theory.block_probability(blocks * n, n, n * (n + k), near, gamma)
    share = theory.simulate_recurrent_blocks(blocks, wanted_w, wanted_rest, near, gamma, trials)
    assert abs(share - law) < 4 * math.sqrt(law * (1 - law) / trials)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 5), near=st.floats(0.2, 0.95), gamma=st.floats(0.1, 1), delta=st.floats(0.01, 0.5))
def test_mask_width_is_the_least_and_never_above_the_papers(n, near, gamma, delta):
    width = theory.mask_width(n, 3, near, gamma, delta)
    assert theory.mask_probability(width, n, 3, near, gamma) >= 1 - delta - 1e-12
    assert width == n or theory.mask_probability(width - 1, n, 3, near, gamma) < 1 - delta + 1e-12
    assert width <= n * math.ceil(theory.block_width(n, 3 * n, near, gamma, delta) / n)


def test_sweet_spot_minimises_the_draws():
    gammas = torch.linspace(0.05, 10, 20000, dtype=torch.float64)
    for per_unit in (3, 4, 7):
        best = gammas[theory.draws(gammas, per_unit, 10.0, 0.1).argmin()]
        assert abs(best - theory.sweet_spot(per_unit)) < 1e-3


@pytest.mark.parametrize("tune, power", [("nothing", 1 / 3), ("bias", 1 / 2), ("kink", 1)])
def test_more_units_come_nearer_by_a_known_power(tune, power):
    x, wanted = torch.linspace(-1, 1, 201, dtype=torch.float64)[:, None], theory.hat()
    y = theory.network(x, *wanted)
    assert y.max() > 0.3 and y[0] == 0 and y[-1].abs() < 1e-12

    def error(width):
        made = [theory.from_random_units(wanted, width, 1.0, tune, seed) for seed in range(60)]
        return sum((theory.network(x, *m) - y).abs().mean() for m in made)

    measured = math.log(error(64) / error(4096)) / math.log(64)
    assert abs(measured / power - 1) < 0.25  # 60 draws, and 64 units are not yet asymptotic


def test_kink_tuned_units_bend_where_they_are_wanted():
    b_in, bias, a = theory.hat()
    new_in, new_bias, _ = theory.from_random_units((b_in, bias, a), 50, 1.0, "kink", 0)
    assert torch.allclose(new_bias / new_in[:, 0], bias / b_in[:, 0])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), gamma=st.floats(0.1, 2), near=st.floats(0.01, 0.9), n=st.integers(1, 4))
def test_corrected_output_bound_holds(seed, gamma, near, n):
    generator = torch.Generator().manual_seed(seed)
    star = [(2 * torch.rand(n, 3, generator=generator, dtype=torch.float64) - 1) * gamma]
    met = star[0] + (2 * torch.rand(n, 3, generator=generator, dtype=torch.float64) - 1) * near
    x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    y = [theory.network(x, p[:, :1], p[:, 1], p[:, 2][None]) for p in (star[0], met)]
    assert (y[0] - y[1]).abs().max() <= theory.output_error_bound(n, 1, gamma, near, 1.0, gamma + near) + 1e-12


def test_corrected_step_error_keeps_the_trajectory():
    for k in (0.5, 1.0, 1.7):
        for steps in (1, 5, 12):
            for readout in (1e-3, 1.0, 3.0):
                step = theory.one_step_error(0.8, steps, k, readout, corrected=True)
                errors = theory.compounded_error(step, steps, k)
                assert readout * sum(errors) <= 0.8 + 1e-12 and max(errors) <= 0.8 / steps + 1e-12


def test_rnn_leak_and_refusal():
    x = torch.zeros(3, 1, dtype=torch.float64)
    zero = torch.zeros(1, 1, dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    decay = theory.rnn(x, zero, zero, -one, one[None], one, keep=0.5)
    assert torch.allclose(decay[:, 0], torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64))
    with pytest.raises(ValueError):
        theory.from_random_units(theory.hat(), 10, 1.0, "luck", 0)

"""The universality proofs: identities to rounding, laws against Monte Carlo, bounds against the worst case."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lib.biases import universality as theory


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=20, deadline=None)
@given(alpha=st.integers(1, 12), n=st.integers(1, 6), seed=st.integers(0, 99))
def test_bounded_networks_compute_the_same(alpha, n, seed):
    x = normal(9, 3, seed=seed)
    units = theory.Units(normal(n, 3, seed=seed + 1), normal(n, seed=seed + 2), normal(2, n, seed=seed + 3))
    wide = theory.bounded(units, alpha)
    assert len(wide.bias) == alpha**2 * n
    assert max(p.abs().max() for p in wide) <= max(p.abs().max() for p in units) / alpha + 1e-15
    assert torch.allclose(theory.evaluate(wide, x), theory.evaluate(units, x), atol=1e-11)


def test_an_ensemble_of_units_answers_one_by_one():
    x, units = normal(9, 2), theory.Units(normal(5, 4, 2, seed=1), normal(5, 4, seed=2), normal(5, 3, 4, seed=3))
    for k, y in enumerate(theory.evaluate(units, x)):
        assert torch.allclose(y, theory.evaluate([p[k] for p in units], x), atol=1e-14)
        assert torch.allclose(y, torch.relu(x @ units.b_in[k].T + units.bias[k]) @ units.a[k].T, atol=1e-14)


def test_silenced_units_are_masked_bit_for_bit():
    x = normal(40, 3)
    b_in, bias, a = (2 * torch.rand(60, 3) - 1) * 1.5, (2 * torch.rand(60) - 1) * 1.5, normal(2, 60, seed=8).float()
    x, mask = x.float(), torch.arange(60) % 4 == 0
    silent = torch.where(mask, bias, torch.tensor(theory.silencing_bias(1.5, x)))
    masked = (torch.relu(x @ b_in.T + bias) * mask) @ a.T
    assert torch.equal(theory.evaluate((b_in, silent, a), x), masked)
    assert not torch.equal(theory.evaluate((b_in, bias, a), x), masked)
    edge = torch.full((1, 3), 1.5) * x[x.abs().sum(1).argmax()].sign()  # the unit that is driven hardest is just silent
    assert abs(float((x @ edge.T).max()) / -theory.silencing_bias(1.5, x) - 1) < 1e-6


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


def test_beyond_all_floats():
    """784 pixels, ten classes and a bias: the chance of one unit is 10^-379."""
    n, per_unit, near, gamma, delta = 3, 795, 0.5, 0.5, 0.1
    decades = 795 * math.log10(3)
    assert theory.log_match_probability(per_unit, near, gamma) / math.log(10) == pytest.approx(-decades)
    assert (
        theory.block_width(n, n * per_unit, near, gamma, delta) == theory.mask_width(n, per_unit, near, gamma, delta) == math.inf
    )
    expected = math.log10(n * math.log(10)) + n * decades
    assert theory.log10_block_width(n, n * per_unit, near, gamma, delta) == pytest.approx(expected, abs=1e-9)
    # the mean of a gamma law is n, its 90th percentile for n = 3 is 5.32 (tables)
    assert theory.log10_mask_width(n, per_unit, near, gamma, delta) == pytest.approx(math.log10(5.3223) + decades, abs=1e-4)
    assert theory.block_probability(10**9, n, n * per_unit, near, gamma) == 0
    assert theory.mask_probability(10**9, n, per_unit, near, gamma) == 0


@pytest.mark.parametrize("per_unit", [18, 19])  # on either side of RARE: (1/3)^18 is 2.6e-9
def test_logarithms_go_on_where_the_widths_end(per_unit):
    for n in (1, 4, 30):
        p = theory.match_probability(per_unit, 0.5, 0.5)
        exact = n + stats.nbinom.ppf(0.9, n, p)
        assert theory.mask_width(n, per_unit, 0.5, 0.5, 0.1) == pytest.approx(exact, rel=1e-6)
        assert theory.log10_mask_width(n, per_unit, 0.5, 0.5, 0.1) == pytest.approx(math.log10(exact), abs=1e-6)
        width = n * math.log(0.1) / math.log1p(-p)
        assert theory.block_width(n, per_unit, 0.5, 0.5, 0.1) == pytest.approx(width, rel=1e-8)
        assert theory.log10_block_width(n, per_unit, 0.5, 0.5, 0.1) == pytest.approx(math.log10(width), abs=1e-8)


@pytest.mark.parametrize("tune, power", [("nothing", 1 / 3), ("bias", 1 / 2), ("kink", 1)])
def test_more_units_come_nearer_by_a_known_power(tune, power):
    x, wanted = torch.linspace(-1, 1, 201, dtype=torch.float64)[:, None], theory.hat()
    y = theory.evaluate(wanted, x)
    assert y.max() > 0.3 and y[0] == 0 and y[-1].abs() < 1e-12

    def error(width):
        return (theory.evaluate(theory.from_random_units(wanted, width, 1.0, tune, seeds=60), x) - y).abs().mean()

    measured = math.log(error(64) / error(4096)) / math.log(64)
    assert abs(measured / power - 1) < 0.25  # 60 draws, and 64 units are not yet asymptotic


def test_draws_depend_on_the_seed_alone():
    wanted = theory.hat()
    many, few = (theory.from_random_units(wanted, 50, 1.0, "nothing", seeds=s, seed=2) for s in (5, 3))
    assert all(torch.equal(m[:3], f) for m, f in zip(many, few, strict=True))
    target = torch.zeros(2, 3, dtype=torch.float64)
    shares = [theory.simulate_feedforward(40, target, 0.5, 0.5, 300, seed=1, chunk=chunk) for chunk in (7, 500)]
    assert shares[0] == shares[1]


def test_kink_tuned_units_bend_where_they_are_wanted():
    b_in, bias, _ = theory.hat()
    new_in, new_bias, _ = theory.from_random_units(theory.hat(), 50, 1.0, "kink")
    assert torch.allclose(new_bias[0] / new_in[0, :, 0], bias / b_in[:, 0])


def test_corrected_step_error_keeps_the_trajectory():
    for k in (0.5, 1.0, 1.7):
        for steps in (1, 5, 12):
            for readout in (1e-3, 1.0, 3.0):
                step = theory.one_step_error(0.8, steps, k, readout, corrected=True)
                errors = theory.compounded_error(step, steps, k)
                assert readout * sum(errors) <= 0.8 + 1e-12 and max(errors) <= 0.8 / steps + 1e-12


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: theory.from_random_units(theory.hat(), 10, 1.0, "luck"), "nothing, bias, kink"),
        (lambda: theory.from_random_units(theory.hat(), 3, 1.0, "bias"), "as many random ones"),
        (lambda: theory.evaluate(theory.hat(), torch.zeros(5, 2).double()), "x has 2 inputs .* b_in has 1"),
        (lambda: theory.evaluate(theory.hat(), torch.zeros(5, 1)), "float32"),
        (lambda: theory.match_probability(3, 1.5, 0.5), "near must be in"),
    ],
)
def test_refusals(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


def test_the_constants_of_the_appendix_by_hand():
    """Eq. E.7: 3 steps of k = 2 add up to 7; Eqs E.8 to E.10: 0.1, 0.1 + 0.2, 0.1 + 0.6."""
    assert theory.powers(2.0, 2) == 7
    for readout, corrected, expected in [(3.0, True, 21), (0.1, True, 7), (3.0, False, 21), (0.1, False, 1)]:
        assert theory.one_step_error(0.9, 3, 2.0, readout, corrected) == pytest.approx(0.3 / expected, rel=1e-12)
    assert theory.compounded_error(0.1, 3, 2.0) == pytest.approx([0.1, 0.3, 0.7], rel=1e-12)


def test_the_hat_has_its_kinks_and_slopes():
    """Slope 0.81 from -0.6 to -0.2, level up to 0.2, and down to 0 at 0.6."""
    x = torch.tensor([-1.0, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 1.0], dtype=torch.float64)[:, None]
    expected = torch.tensor([0, 0, 0.162, 0.324, 0.324, 0.324, 0.162, 0, 0], dtype=torch.float64)
    assert torch.allclose(theory.evaluate(theory.hat(), x).flatten(), expected, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_recurrent_masks_are_found_as_by_brute_force(n):
    """Plain: draw whole networks and try every mask."""
    from itertools import combinations

    wanted_w, rest, near, gamma, width, trials = 0.2 * normal(n, n), 0.2 * normal(n, 2, seed=1), 0.9, 0.2, 6, 3000
    generator = torch.Generator().manual_seed(5)
    drawn = (2 * torch.rand(trials, width, width + 2, generator=generator, dtype=torch.float64) - 1) * (gamma + 1)
    good = torch.zeros(trials, dtype=torch.bool)
    for mask in combinations(range(width), n):
        units = list(mask)
        w, other = drawn[:, units][:, :, units], drawn[:, units, width:]
        good |= ((w - wanted_w).abs() < near).all(-1).all(-1) & ((other - rest).abs() < near).all(-1).all(-1)
    share = theory.simulate_recurrent_masks(width, wanted_w, rest, near, gamma, trials, seed=2)
    assert 0.05 < share < 0.95 and abs(share - float(good.double().mean())) < 4 * math.sqrt(0.5 / trials)


def test_recurrent_width_is_where_one_mask_is_expected():
    for n, rest, near in ((1, 3, 0.5), (2, 3, 0.5), (3, 3, 0.3)):
        width = 10 ** theory.log10_recurrent_width(n, rest, near, 0.5)
        masks = math.exp(math.lgamma(width + 1) - math.lgamma(width - n + 1) - math.lgamma(n + 1))
        assert masks * theory.match_probability(n * (n + rest), near, 0.5) == pytest.approx(1, rel=1e-6)
    # one pair of units in q^-10 of all pairs: width (width - 1) / 2 = q^-10, also where the width is ten million million
    for near in (0.3, 0.03, 0.003):
        pairs = 2 * (1.5 / near) ** 10
        assert theory.log10_recurrent_width(2, 3, near, 0.5) == pytest.approx(math.log10(0.5 + (0.25 + pairs) ** 0.5), abs=1e-9)
    ratio = theory.log10_recurrent_width(32, 3, 1e-9, 0.5) - theory.log10_recurrent_width(32, 3, 1e-8, 0.5)
    assert ratio == pytest.approx(35, abs=0.01)  # q^-(n + k)
    # beyond e^30 units there are width^n / n! masks: the logarithm is (-35 ln q · 32 + ln 32!) / 32
    far = (-35 * math.log(1e-9 / 1.5) * 32 + math.lgamma(33)) / 32 / math.log(10)
    assert theory.log10_recurrent_width(32, 3, 1e-9, 0.5) == pytest.approx(far, rel=1e-9)

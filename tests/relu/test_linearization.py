"""Early linearisation: networks with a constant against plain autograd, closed forms against simulation, unit measures."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import linear, relu
from lib.data import tasks
from lib.linear import crossing, curves
from lib.relu import linearization

STD = 2e-4


def start(x, y, hidden, std, seeds, **more):
    return relu.initial_weights([x.shape[-2], hidden, y.shape[-2]], std, seeds=seeds, **more)


def train(weights, x, y, every=10, **options):
    """As in the paper: the loss is summed over items."""
    return relu.train(weights, x, y, every=every, reduction="sum", **options)


def test_a_constant_row_is_a_bias_of_the_first_layer():
    x, y = tasks.xor()
    augmented = linearization.with_constant(x, 0.7)
    weights = start(augmented, y, 16, 0.1, seeds=4)
    other = [w.clone() for w in weights]
    ours = train(weights, augmented, y, step=0.01, steps=300)
    theirs = train(other, x, y, step=0.01, steps=300, bias=(0.7, 0.0))
    assert (ours["loss"] - theirs["loss"]).abs().max() < 1e-10
    assert all((a - b).abs().max() < 1e-10 for a, b in zip(weights, other, strict=True))
    many = linearization.with_constant(torch.stack([x, 2 * x])[:, None], torch.tensor([0.5, 0.0, 1.0]))
    assert many.shape == (2, 3, 3, 4) and many[1, 2, 2].tolist() == [1.0] * 4 and torch.equal(many[1, 0, :2], 2 * x)


# --- closed forms -------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(items=st.integers(2, 9), outputs=st.integers(1, 6), strength=st.floats(0.05, 5.0), seed=st.integers(0, 999))
def test_proposition_1_for_any_labels(items, outputs, strength, seed):
    y = torch.randn(outputs, items, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x = linearization.with_constant(torch.eye(items, dtype=torch.float64), strength)
    sigma_yx, sigma_x = linear.correlations(x, y)
    spectrum = torch.tensor([strength**2 + 1 / items] + [1 / items] * (items - 1) + [0.0], dtype=torch.float64)
    assert torch.allclose(torch.linalg.eigvalsh(sigma_x).flip(0), spectrum, rtol=1e-10, atol=1e-10)
    mode = linearization.bias_mode(y, strength)
    assert torch.allclose(sigma_x @ mode.v, mode.d * mode.v, atol=1e-10)
    assert torch.allclose(sigma_yx @ mode.v, mode.d**0.5 * y.mean(-1), atol=1e-10)
    assert abs(float((sigma_yx @ mode.v).norm()) - mode.s) < 1e-10


def delay_as_printed(s, d, a0, g, threshold, tau):
    """Early Linearization Eq. 14 letter by letter, where g is called the rate of dead neurons."""
    above = s**2 * a0 - s * d * a0**2 * g - s * threshold * d * a0 + d**2 * a0**2 * g * threshold
    below = s**2 * a0 * g - s * d * a0 * g * threshold - s * d * a0**2 * g + d**2 * a0**2 * g * threshold
    return tau / (2 * s) * torch.log(above / below)


@settings(max_examples=50, deadline=None)
@given(
    s=st.floats(0.1, 3.0), d=st.floats(0.1, 3.0), a0=st.floats(1e-6, 1e-3), g=st.floats(0.05, 1.0), share=st.floats(0.02, 0.9),
    tau=st.floats(0.1, 10.0),
)  # fmt: skip
def test_delay_is_equation_14_without_its_ballast(s, d, a0, g, share, tau):
    s, d, a0 = (torch.tensor(v, dtype=torch.float64) for v in (s, d, a0))
    threshold = share * s / d
    short = linearization.delay(s, d, a0, g, tau)
    assert torch.allclose(short, delay_as_printed(s, d, a0, g, threshold, tau), rtol=1e-6, atol=1e-9)
    apart = linear.time_to_fraction(share, s, d, g * a0, tau) - linear.time_to_fraction(share, s, d, a0, tau)
    assert torch.allclose(short, apart, rtol=1e-6, atol=1e-9)
    assert short >= -1e-12


def test_mode_strengths_of_a_linear_network_are_its_overlaps_with_the_modes():
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 0.7)
    mode = linear.modes(*linear.correlations(x, y))
    weights = start(x, y, 16, 0.3, seeds=5)
    seen = linearization.mode_strengths(relu.output(weights, x, activation="linear"), x, mode)
    # exact up to the part of W2 W1 that reads the constant against the items, which no item excites
    assert torch.allclose(seen, linear.mode_overlap(*weights, mode.u, mode.v), atol=1e-12)


# --- units ------------------------------------------------------------------------------------------------------------------


def test_kinks_sit_where_the_unit_switches_on():
    w1 = torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    k = linearization.kinks(w1)
    along = w1[..., :-1] / w1[..., :-1].norm(dim=-1, keepdim=True)
    assert ((w1[..., :-1] * along * k[..., None]).sum(-1) + w1[..., -1]).abs().max() < 1e-12
    assert torch.equal(k < 0, w1[..., -1] > 0)


def test_kept_units_are_a_gated_linear_network():
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 1.0)
    weights = start(x, y, 12, 0.1, seeds=3)
    kept = torch.rand(3, 12, generator=torch.Generator().manual_seed(1)) < 0.6
    alone = linearization.keep_units(weights, kept)
    gated = [w.clone() for w in weights]
    fast = train(alone, x, y, activation="linear", step=0.004, steps=200)
    gate = kept[..., None].double()
    slow = train(gated, x, y, step=0.004, steps=200, activation="gated", fixed=[gate])
    assert (fast["loss"] - slow["loss"]).abs().max() < 1e-10
    assert fast["loss"][-1].max() < 0.9 * fast["loss"][0].min()


def test_at_takes_each_member_at_its_own_time():
    recorded = torch.arange(24.0).reshape(4, 3, 2)
    taken = linearization.at(recorded, torch.tensor([0, 3, 1]))
    assert taken.tolist() == [[0.0, 1.0], [20.0, 21.0], [10.0, 11.0]]
    on = torch.tensor([[0.1, 0.5], [0.9, 0.4], [0.9, 0.6]])
    assert linearization.linearisation_time(on).tolist() == [1, 2]


def test_linear_preference_of_networks_made_by_hand():
    plane = [torch.tensor([[0, 0, 1.0, 0], [0, 0, -1.0, 0]]).double(), torch.tensor([[-1.0, 1.0], [1.0, -1.0]]).double()]
    # |x1 + x2| - |x1 - x2| is the XOR: four rectified units
    xor = [
        torch.tensor([[1.0, 1, 0, 0], [-1, -1, 0, 0], [1, -1, 0, 0], [-1, 1, 0, 0]]).double(),
        torch.tensor([[1.0, 1, -1, -1], [-1, -1, 1, 1]]).double(),
    ]
    prefers = lambda network: float(linearization.linear_preference(network, 0.5, 1.0))  # noqa: E731  plain numbers
    assert prefers(plane) == pytest.approx(1.0)
    assert prefers(xor) == pytest.approx(0.0)
    mixed = lambda a, b: [torch.cat([plane[0], xor[0]]), torch.cat([a * plane[1], b * xor[1]], 1)]  # noqa: E731
    assert prefers(mixed(2, 1)) == pytest.approx(1 / 3)  # 2 · margin = 1 against 2
    # against one of the two: the larger one takes all (the quotient of the parts would be -1, 5, 2 and -2/3 here)
    assert [prefers(mixed(*n)) for n in ((2, -1), (5, -1), (8, -1), (-4, 2.5))] == [0.0, 1.0, 1.0, 0.0]
    several = [w.expand(2, 3, *w.shape) for w in mixed(2, 1)]  # (margins, seeds)
    found = linearization.linear_preference(several, torch.tensor([[0.5], [1.0]]), torch.tensor([0.0, 1.0, 2.0]))
    torch.testing.assert_close(found, torch.tensor([[1 / 3], [1 / 2]]).double().expand(2, 3))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), margin=st.floats(0.05, 2.0))
def test_linear_preference_is_a_share(seed, margin):
    """Also of networks that were never trained: before, one in two had a value outside."""
    found = linearization.linear_preference(relu.initial_weights([4, 8, 2], 1.0, seeds=20, seed=seed), margin, 1.0)
    assert found.shape == (20,) and ((found >= 0) & (found <= 1)).all()


def test_biases_turn_relu_networks_linear():
    """The chapter in one test: with a constant the ReLU curve is the linear one, slowed down; without it is not."""
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, torch.tensor([[1.0], [0.0]]))
    runs = {}
    for activation in ("linear", "relu"):
        weights = start(x, y, 64, STD, seeds=3, conditions=(2,))
        runs[activation] = train(weights, x, y, activation=activation, step=5e-3, steps=2400)
    t = runs["relu"].time * 5e-3
    found = curves.best_stretch(t, runs["linear"]["loss"], runs["relu"]["loss"])
    assert found.distance[0].max() < 0.01 and found.distance[1].min() > 0.05
    half = crossing(t, runs["relu"]["loss"], runs["relu"]["loss"][0, 0, 0] / 2)
    assert torch.isfinite(half).all()


def test_kinks_move_as_eq_12_says():
    """-b'/|w| + b (w·w')/|w|³ against a difference quotient along the gradient of a real network."""
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 1.0)
    weights = start(x, y, 16, 0.1, seeds=3)
    velocity = -relu.gradient(weights, x, y, reduction="sum")[0]
    (w, b), (dw, db) = ((m[..., :-1], m[..., -1]) for m in (weights[0], velocity))
    expected = -db / w.norm(dim=-1) + b * (w * dw).sum(-1) / w.norm(dim=-1) ** 3
    tiny = 1e-6
    after, before = (linearization.kinks(weights[0] + sign * tiny * velocity) for sign in (1, -1))
    assert torch.allclose(expected, (after - before) / (2 * tiny), rtol=1e-6, atol=1e-8)

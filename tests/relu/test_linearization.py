"""lib.linearization: the batched trainer against plain autograd, closed forms against simulation, and the curve metrics."""

import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import linear, relu
from lib.data import tasks
from lib.linear import crossing
from lib.relu import curves, linearization

STD = 2e-4


def autograd_run(w1, w2, x, y, activation, step, steps):
    """One network, the plain way: torch's modules, automatic differentiation, torch's optimiser."""
    first = torch.nn.Linear(x.shape[0], w1.shape[0]).double()  # its own bias, no constant input
    second = torch.nn.Linear(w1.shape[0], y.shape[0], bias=False).double()
    with torch.no_grad():
        first.weight.copy_(w1[:, :-1])
        first.bias.copy_(w1[:, -1])
        second.weight.copy_(w2)
    net = torch.nn.Sequential(first, torch.nn.ReLU() if activation == "relu" else torch.nn.Identity(), second)
    optimiser = torch.optim.SGD(net.parameters(), lr=step)
    inputs, labels = x.T.contiguous(), y.T.contiguous()
    for _ in range(steps):
        optimiser.zero_grad()
        (0.5 * (net(inputs) - labels).square().sum()).backward()
        optimiser.step()
    with torch.no_grad():
        return torch.cat([first.weight, first.bias[:, None]], 1), second.weight.clone()


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_batched_training_equals_autograd(activation):
    x, y = tasks.hierarchy(8)
    augmented = linearization.with_constant(x, 1.0)
    weights = linearization.start(augmented, y, 32, 0.05, seeds=3)  # large enough to learn something in 200 steps
    plain = [autograd_run(weights[0][k], weights[1][k], x, y, activation, 0.005, 200) for k in range(3)]
    run = linearization.train(weights, augmented, y, activation=activation, step=0.005, steps=200)
    assert run["loss"][-1].max() < 0.6 * run["loss"][0].min()
    for k in range(3):
        for ours, theirs in zip((weights[0][k], weights[1][k]), plain[k], strict=True):
            assert (ours - theirs).abs().max() < 1e-10


def test_batched_training_equals_the_general_relu_module():
    x, y = tasks.xor()
    weights = linearization.start(linearization.with_constant(x, 1.0), y, 16, 0.1, seeds=4)
    other = [w.clone() for w in weights]
    ours = linearization.train(weights, linearization.with_constant(x, 1.0), y, step=0.01, steps=300)
    theirs = relu.train(other, x, y, step=0.01, steps=300, every=10, bias=(1.0, 0.0))
    assert (ours["loss"] - theirs["loss"]).abs().max() < 1e-10
    assert all((a - b).abs().max() < 1e-10 for a, b in zip(weights, other, strict=True))


def test_constant_of_zero_is_a_network_without_biases():
    x, y = tasks.hierarchy(4)
    both = linearization.with_constant(x, torch.tensor([0.0, 1.0]))
    weights = linearization.start(both, y, 16, 0.05, seeds=2)
    assert torch.equal(weights[0][0], weights[0][1])  # the same seeds in both conditions
    bare = [weights[0][0][..., :-1].clone(), weights[1][0].clone()]
    before = weights[0][0][..., -1].clone()
    run = linearization.train(weights, both, y, step=0.005, steps=100)
    alone = linearization.train(bare, x, y, step=0.005, steps=100)
    assert (run["loss"][:, 0] - alone["loss"]).abs().max() < 1e-12
    assert torch.equal(weights[0][0][..., -1], before)
    assert (run["loss"][-1, 0] - run["loss"][-1, 1]).abs().min() > 1e-3


def test_train_observes_weights_in_the_usual_shape_and_refuses_unknown_activations():
    x, y = tasks.hierarchy(4)
    weights = linearization.start(x, y, 8, 0.1, seeds=3)
    run = linearization.train(weights, x, y, step=0.01, steps=20, observe=lambda w: {"w1": w[0], "w2": w[1]})
    assert run["w1"].shape == (3, 3, 8, 4) and run["w2"].shape == (3, 3, 7, 8)
    assert torch.equal(run["w1"][-1], weights[0]) and torch.equal(run["w2"][-1], weights[1])
    single = [w[0] for w in linearization.start(x, y, 8, 0.1, seeds=1)]
    assert linearization.train(single, x, y, step=0.01, steps=20)["loss"].shape == (3,)
    with pytest.raises(ValueError, match="relu"):
        linearization.train(weights, x, y, activation="tanh", step=0.01, steps=1)


def test_an_ensemble_is_25_times_cheaper_than_autograd_per_network(capsys):
    """Both ways in one run, processor time per seed and step, the better of several rounds each: load cancels."""
    x, y = tasks.hierarchy(8)
    augmented = linearization.with_constant(x, 1.0)
    seeds, threads = 20, torch.get_num_threads()
    torch.set_num_threads(1)
    plain, batched = [], []
    for _ in range(6):
        weights = linearization.start(augmented, y, 64, STD, seeds)
        begin = time.process_time()
        autograd_run(weights[0][0], weights[1][0], x, y, "relu", 2e-3, 150)
        plain.append((time.process_time() - begin) / 150)
        begin = time.process_time()
        linearization.train(weights, augmented, y, step=2e-3, steps=150, every=150)
        batched.append((time.process_time() - begin) / 150 / seeds)
    torch.set_num_threads(threads)
    ratio = min(plain) / min(batched)
    with capsys.disabled():
        print(f"\nearly linearisation: {1e6 * min(plain):.0f} µs per step and seed with autograd, "
              f"{1e6 * min(batched):.1f} µs in an ensemble of {seeds}: {ratio:.0f} times cheaper")  # fmt: skip
    assert ratio > 25


# --- closed forms -------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(items=st.integers(2, 9), outputs=st.integers(1, 6), strength=st.floats(0.05, 5.0), seed=st.integers(0, 999))
def test_proposition_1_for_any_labels(items, outputs, strength, seed):
    y = torch.randn(outputs, items, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x = linearization.with_constant(torch.eye(items, dtype=torch.float64), strength)
    sigma_yx, sigma_x = linear.correlations(x, y)
    spectrum = linearization.input_spectrum(items, strength)
    assert torch.allclose(torch.linalg.eigvalsh(sigma_x).flip(0), spectrum, rtol=1e-10, atol=1e-10)
    mode = linearization.bias_mode(y, strength)
    assert torch.allclose(sigma_x @ mode.v, mode.d * mode.v, atol=1e-10)
    assert torch.allclose(sigma_yx @ mode.v, mode.d**0.5 * y.mean(-1), atol=1e-10)
    assert abs(float((sigma_yx @ mode.v).norm()) - mode.s) < 1e-10


@settings(max_examples=50, deadline=None)
@given(
    s=st.floats(0.1, 3.0), d=st.floats(0.1, 3.0), a0=st.floats(1e-6, 1e-3), g=st.floats(0.05, 1.0), share=st.floats(0.02, 0.9),
    tau=st.floats(0.1, 10.0),
)  # fmt: skip
def test_delay_is_equation_14_without_its_ballast(s, d, a0, g, share, tau):
    s, d, a0 = (torch.tensor(v, dtype=torch.float64) for v in (s, d, a0))
    threshold = share * s / d
    short = linearization.delay(s, d, a0, g, tau)
    assert torch.allclose(short, linearization.delay_as_printed(s, d, a0, g, threshold, tau), rtol=1e-6, atol=1e-9)
    apart = linear.time_to_fraction(share, s, d, g * a0, tau) - linear.time_to_fraction(share, s, d, a0, tau)
    assert torch.allclose(short, apart, rtol=1e-6, atol=1e-9)
    assert short >= -1e-12


def test_mode_strengths_of_a_linear_network_are_its_overlaps_with_the_modes():
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 0.7)
    mode = linear.modes(*linear.correlations(x, y))
    weights = linearization.start(x, y, 16, 0.3, seeds=5)
    seen = linearization.mode_strengths(linearization.output(weights, x, "linear"), x, mode)
    # exact up to the part of W2 W1 that reads the constant against the items, which no item excites
    assert torch.allclose(seen, linear.mode_overlap(*weights, mode.u, mode.v), atol=1e-12)


def test_linear_networks_follow_the_sum_of_modes():
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 1.0)
    mode = linear.modes(*linear.correlations(x, y))
    weights = linearization.start(x, y, 64, STD, seeds=4)
    a0 = linear.initial_strength(*weights, mode.u, mode.v)
    run = linearization.train(weights, x, y, activation="linear", step=4e-3, steps=2500)
    t = run.time.double() * 4e-3
    a = linear.mode_strength(t[:, None, None], mode.s, mode.d, a0, tau=1 / 8)
    theory = 8 * linear.loss_of_modes(a, mode.s, mode.d, float(y.square().sum() / 8))
    assert curves.distance(t, run["loss"], theory).max() < 0.015  # the step of 4e-3 accounts for most of it


# --- curves ---------------------------------------------------------------------------------------------------------------


def sigmoids(t):
    return 3 / (1 + torch.exp(4 * (t - 2))) + 1 / (1 + torch.exp(2 * (t - 5)))


@settings(max_examples=20, deadline=None)
@given(by=st.floats(-0.08, 0.28))
def test_best_stretch_finds_the_stretch(by):
    t = torch.linspace(0, 12, 1201, dtype=torch.float64)
    found = curves.best_stretch(t, sigmoids(t)[:, None], sigmoids(t / (1 + by))[:, None])
    assert abs(float(found.amount) - by) < 2e-3 and float(found.distance) < 1e-3


@settings(max_examples=20, deadline=None)
@given(by=st.floats(-0.9, 0.9))
def test_best_shift_finds_the_shift(by):
    t = torch.linspace(0, 12, 1201, dtype=torch.float64)
    found = curves.best_shift(t, sigmoids(t), sigmoids(t - by))
    assert abs(float(found.amount) - by) < 6e-3 and float(found.distance) < 1e-2


def test_stretching_does_not_excuse_another_shape():
    t = torch.linspace(0, 12, 601, dtype=torch.float64)
    other = 4 / (1 + torch.exp(1.2 * (t - 3)))
    assert curves.best_stretch(t, sigmoids(t), other).distance > 0.03
    early = curves.best_stretch(t, sigmoids(t), other, until=torch.tensor(1.0))
    assert early.distance < 0.05
    with pytest.raises(ValueError, match="evenly"):
        curves.best_stretch(t.square(), sigmoids(t), other)


def test_distance_is_relative_to_the_start_and_keeps_to_its_window():
    t = torch.arange(10.0)
    reference, curve = torch.full((10, 2), 2.0), torch.full((10, 2), 2.0)
    curve[5:] = 3.0
    assert torch.allclose(curves.distance(t, reference, curve, 4.0), torch.zeros(2))
    assert torch.allclose(curves.distance(t, reference, curve), torch.full((2,), 0.5**0.5 / 2))


def test_stages_counts_drops():
    t = torch.linspace(0, 12, 601, dtype=torch.float64)
    one = 4 / (1 + torch.exp(4 * (t - 3)))
    from_the_start = 4 * torch.exp(-t)
    assert curves.stages(t, torch.stack([sigmoids(t), one, from_the_start], 1)).tolist() == [2, 1, 1]


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
    weights = linearization.start(x, y, 12, 0.1, seeds=3)
    kept = torch.rand(3, 12, generator=torch.Generator().manual_seed(1)) < 0.6
    alone = linearization.keep_units(weights, kept)
    gated = [w.clone() for w in weights]
    fast = linearization.train(alone, x, y, activation="linear", step=0.004, steps=200)
    gate = kept[..., None].double()
    slow = relu.train(gated, x, y, step=0.004, steps=200, every=10, activation="gated", fixed=[gate])
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
    margin, constant = torch.tensor(0.5).double(), torch.tensor(1.0).double()
    assert float(linearization.linear_preference(plane, margin, constant)) == pytest.approx(1.0)
    assert float(linearization.linear_preference(xor, margin, constant)) == pytest.approx(0.0)
    scaled = [torch.cat([plane[0], xor[0]]), torch.cat([2 * plane[1], xor[1]], 1)]  # 2 · margin = 1 against 2
    assert float(linearization.linear_preference(scaled, margin, constant)) == pytest.approx(1 / 3)


def test_biases_turn_relu_networks_linear():
    """The chapter in one test: with a constant the ReLU curve is the linear one, slowed down; without it is not."""
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, torch.tensor([1.0, 0.0]))
    runs = {}
    for activation in ("linear", "relu"):
        weights = linearization.start(x, y, 64, STD, seeds=3)
        runs[activation] = linearization.train(weights, x, y, activation=activation, step=5e-3, steps=2400)
    t = runs["relu"].time * 5e-3
    found = curves.best_stretch(t, runs["linear"]["loss"], runs["relu"]["loss"])
    assert found.distance[0].max() < 0.01 and found.distance[1].min() > 0.05
    half = crossing(t, runs["relu"]["loss"], runs["relu"]["loss"][0, 0, 0] / 2)
    assert torch.isfinite(half).all()

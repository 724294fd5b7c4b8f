"""The neural race reduction against full simulation, and the closed forms against the equations they solve."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from lib import gated, linear
from lib.gated import race, random_graphs
from lib.gated.architectures import closed_forms


def diagonalisable(seed, modes=2, own=False):
    """A random graph with statistics that share singular vectors by construction (Eqs. 7 and 8).

    With `own`, each edge out of an input node has singular vectors of its own there.
    """
    network, _, _ = random_graphs.random_example(seed)
    sizes = {node: size + modes - 1 for node, size in network.sizes.items()}
    network = gated.Network(sizes, [(edge.source, edge.target, name) for name, edge in network.edges.items()])
    generator = torch.Generator().manual_seed(seed)
    frame = {
        v: linear.random_matrix(torch.randn(sizes[v], modes, generator=generator).double(), 1.0, "orthogonal")
        for v in network.inputs + network.outputs
    }
    read = {path.edges[0]: frame[path.source] for path in network.paths}
    if own:
        read = {
            name: linear.random_matrix(torch.randn(*basis.shape, generator=generator).double(), 1.0, "orthogonal")
            for name, basis in read.items()
        }
    number = len(network.paths)
    s = 0.5 + torch.rand(number, modes, generator=generator, dtype=torch.float64)
    root = torch.randn(modes, number, number, generator=generator, dtype=torch.float64) / math.sqrt(number)
    variance = root @ root.mT + 0.5 * torch.eye(number)
    paths = network.paths
    yx = [(frame[p.target] * s[i]) @ read[p.edges[0]].mT for i, p in enumerate(paths)]
    xx = {
        (j, p): (read[first.edges[0]] * variance[:, j, p]) @ read[second.edges[0]].mT
        for j, first in enumerate(paths)
        for p, second in enumerate(paths)
        if first.target == second.target
    }
    return network, gated.Statistics(yx, xx, torch.tensor(5.0, dtype=torch.float64))


def plain_velocity(along, reduction, b):
    """Eq. 10 as one would write it down, path by path: b (edges, modes) -> its change."""
    a = [b[edges].prod(0) for edges in along]
    change = np.zeros_like(b)
    for p, edges in enumerate(along):
        error = reduction.s[p].numpy() - sum(a[j] * v.numpy() for (j, q), v in reduction.d.items() if q == p)
        for i, edge in enumerate(edges):
            change[edge] += b[edges[:i] + edges[i + 1 :]].prod(0) * error
    return change


@pytest.mark.parametrize("seed", range(6))
def test_all_paths_at_once_race_as_one_by_one(seed):
    network, statistics = diagonalisable(seed, own=bool(seed % 2))
    reduction, names = race.reduce(network, statistics), list(network.edges)
    along = [[names.index(name) for name in path.edges] for path in network.paths]
    generator = np.random.default_rng(seed)
    b, share = generator.normal(size=(2, len(names), reduction.s.shape[-1]))
    found = race._velocity(along, reduction, share)(0.0, b.reshape(-1)).reshape(b.shape)
    np.testing.assert_allclose(found, share * plain_velocity(along, reduction, b), rtol=1e-11, atol=1e-12)


@settings(max_examples=16, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.booleans())
def test_the_race_is_the_full_network_from_decoupled_weights(seed, own):
    network, statistics = diagonalisable(seed, own=own)
    if len(network.paths) > 10:  # the plain simulation is slow there, and nothing new happens
        return
    reduction = race.reduce(network, statistics)
    assert reduction.distance < 1e-9
    strongest = reduction.s.abs().amax(0)
    assert (strongest[:-1] >= strongest[1:]).all()  # in the order of their strength
    generator = torch.Generator().manual_seed(seed)
    modes = reduction.s.shape[-1]
    start = {name: 0.2 + 0.3 * torch.rand(modes, generator=generator).double() for name in network.edges}
    times = [0.0, 0.3, 0.8]
    b = race.flow(network, reduction, start, times)
    full = gated.flow(network, race.decoupled_weights(network, reduction, start), statistics, times)
    for name, edge in network.edges.items():
        target, source = reduction.ends(edge)
        rebuilt = target @ torch.diag_embed(b[name]) @ source.mT
        assert (full[name] - rebuilt).abs().max() < 1e-9
    simulated = gated.loss_of_statistics(network, full, statistics)
    assert torch.allclose(race.loss(network, reduction, b), simulated, rtol=0, atol=1e-9)


def two_contexts(copies):
    """Report the first coordinate in one context and the second in the other (Appendix A.2)."""
    corner = math.sqrt(1 / 3)  # corners with the second moments of the uniform distribution on [-1, 1]
    x = corner * torch.tensor([[1.0, 1, -1, -1] * 2, [1, -1, 1, -1] * 2], dtype=torch.float64)
    context = torch.tensor([1.0] * 4 + [0.0] * 4, dtype=torch.float64)
    y = torch.where(context == 1, x[:1], x[1:])
    names = ("x1", "x2") if copies else ("x", "x")
    network = gated.Network(
        {**dict.fromkeys(names, 2), "h1": 3, "h2": 3, "y": 1}, [(names[0], "h1"), (names[1], "h2"), ("h1", "y"), ("h2", "y")]
    )
    return network, gated.Data(dict.fromkeys(names, x), {"y": y}, {"h1": context, "h2": 1 - context})


def test_paths_that_want_different_vectors_get_a_copy_of_the_input_each():
    """As drawn the data do not fit; by itself `reduce` finds what it finds when the copies are drawn."""
    network, data = two_contexts(copies=False)
    statistics = gated.effective_datasets(network, data)
    with pytest.raises(race.NotDiagonalisable, match="off the diagonal") as refusal:
        race.reduce(network, statistics, copies=False)
    assert refusal.value.distance > 0.1
    reduction = race.reduce(network, statistics)
    assert set(reduction.bases) == {"x→h1", "x→h2", "h1", "h2", "y"}
    assert reduction.distance < 1e-12
    drawn, copied = two_contexts(copies=True)
    by_hand = race.reduce(drawn, gated.effective_datasets(drawn, copied))
    assert torch.allclose(by_hand.s, reduction.s) and by_hand.distance < 1e-12
    assert torch.allclose(reduction.s[:, 0], torch.full((2,), 1 / 6).double())  # the mode that correlates comes first
    times = [0.0, 5.0, 20.0]
    full = gated.flow(network, race.decoupled_weights(network, reduction, 0.1), statistics, times)
    predicted = race.loss(network, reduction, race.flow(network, reduction, 0.1, times))
    assert torch.allclose(predicted, gated.loss(network, full, data), atol=1e-9)


def test_data_that_no_copy_mends_are_refused_or_accepted_with_a_warning():
    _, data = two_contexts(copies=False)
    noise = torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).double()
    unruly = gated.Network({"x": 2, "h": 3, "y": 2, "z": 2}, [("x", "h"), ("h", "y"), ("h", "z")])
    examples = gated.Data(data.x, {"y": noise, "z": noise.flip(1) ** 2})
    statistics = gated.effective_datasets(unruly, examples)
    with pytest.raises(race.NotDiagonalisable, match=r"% of Σ.* lies off the diagonal. Accept an approximation"):
        race.reduce(unruly, statistics)
    with pytest.warns(race.RoughReduction, match=r"approximation: \d+\.\d% of Σ"):
        crude = race.reduce(unruly, statistics, tolerance=1)
    assert crude.distance > 0.05


@pytest.mark.parametrize("open_paths", [(), ("h1",)])
def test_paths_without_data_and_data_without_paths(open_paths):
    """No gate open at all, or only one: what nobody sees stays unlearned, and the race says so."""
    network, data = two_contexts(copies=False)
    shut = torch.zeros(8, dtype=torch.float64)
    gates = {name: gate if name in open_paths else shut for name, gate in data.gates.items()}
    examples = gated.Data(data.x, data.y, gates)
    statistics = gated.effective_datasets(network, examples)
    reduction = race.reduce(network, statistics)
    assert reduction.s.shape == (2, 2 if open_paths else 0)
    times = [0.0, 5.0, 60.0]
    b = race.flow(network, reduction, 0.1, times)
    start = race.decoupled_weights(network, reduction, 0.1)
    assert start["x→h1"].shape == (3, 2)
    full = gated.flow(network, start, statistics, times)
    assert torch.allclose(race.loss(network, reduction, b), gated.loss(network, full, examples), atol=1e-9)
    left = race.loss(network, reduction, b)[-1].item()
    assert left == pytest.approx(1 / 12 if open_paths else 1 / 6, rel=1e-2)


def test_a_narrow_hidden_node_carries_the_strongest_modes_only():
    x = torch.eye(3, dtype=torch.float64)
    y = torch.diag(torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64))
    network = gated.Network({"x": 3, "h": 2, "y": 3}, [("x", "h"), ("h", "y")])
    data = gated.Data({"x": x}, {"y": y})
    statistics = gated.effective_datasets(network, data)
    reduction = race.reduce(network, statistics)
    b = race.flow(network, reduction, 0.1, [0.0, 60.0])
    full = gated.flow(network, race.decoupled_weights(network, reduction, 0.1), statistics, [0.0, 60.0])
    assert torch.allclose(race.loss(network, reduction, b), gated.loss(network, full, data), atol=1e-9)
    assert abs(race.loss(network, reduction, b)[-1].item() - 1 / 6) < 1e-6  # the weakest mode stays unlearned


def test_xor_closed_form_is_the_four_path_network_as_drawn():
    corners = torch.tensor([[1.0, 1, -1, -1], [1, -1, 1, -1]], dtype=torch.float64)
    names = range(4)
    network = gated.Network(
        {"x": 2, **{f"h{i}": 3 for i in names}, "y": 1}, [("x", f"h{i}") for i in names] + [(f"h{i}", "y") for i in names]
    )
    y = torch.tensor([[-1.0, 1, 1, -1]], dtype=torch.float64)
    data = gated.Data({"x": corners}, {"y": y}, {f"h{i}": torch.eye(4)[i] for i in names})
    statistics = gated.effective_datasets(network, data)
    reduction = race.reduce(network, statistics)
    assert torch.allclose(reduction.s[:, 0], torch.full((4,), closed_forms.XOR_S).double())
    t = torch.linspace(0, 30, 31, dtype=torch.float64)
    full = gated.flow(network, race.decoupled_weights(network, reduction, 0.03), statistics, t)
    assert (gated.loss(network, full, data) - closed_forms.xor_loss(t, 0.03**2)).abs().max() < 1e-9


@pytest.mark.parametrize("level", [0.1, 0.25, 0.45])
def test_a_fitted_start_puts_the_curve_where_it_was_seen(level):
    time = torch.tensor([5.0, 12.0], dtype=torch.float64)
    start = closed_forms.xor_fitted_strength(time, tau=2.5, level=level)
    assert torch.allclose(closed_forms.xor_loss(time, start, tau=2.5), torch.full((2,), level, dtype=torch.float64), rtol=1e-9)


def test_the_strength_of_one_unit_by_hand():
    """w = (2, 0), v = 1: half grows, half fades with the other sign; they meet when e^{t/2} = 2 + √5, the output is then √5."""
    found = closed_forms.xor_unit_strength(torch.tensor([[2.0], [0.0]]).double(), torch.tensor([1.0]).double())
    by_hand = ((2 * math.sqrt(2) + math.sqrt(5)) / 2) ** 2 * (2 + math.sqrt(5)) ** -math.sqrt(2)
    assert float(found) == pytest.approx(by_hand, rel=1e-12)


def test_xor_initial_strength_is_what_frozen_units_grow_to():
    """Plain simulation: units that see the bare targets (error frozen at y) grow like a0 e^{2 s t}."""
    generator = torch.Generator().manual_seed(5)
    corners = torch.tensor([[1.0, 1, -1, -1], [1, -1, 1, -1]], dtype=torch.float64)
    y = torch.tensor([-1.0, 1, 1, -1], dtype=torch.float64)
    w = torch.randn(1000, 2, generator=generator, dtype=torch.float64)
    v = torch.randn(1000, generator=generator, dtype=torch.float64)
    predicted = closed_forms.xor_unit_strength(w.T, v)
    step, steps = 0.01, 2000
    for _ in range(steps):
        pre = w @ corners
        on = (pre > 0).double()
        change_v = (pre * on) @ y / 4
        w = w + step * v[:, None] * ((on * y) @ corners.T) / 4
        v = v + step * change_v
    grown = w.norm(dim=-1) * v.abs() / (1 + step * closed_forms.XOR_S) ** (2 * steps)  # a0 times the growth of Euler steps
    assert ((grown - predicted).abs() / predicted).quantile(0.95) < 0.02  # the kink at the diagonal costs a few steps
    assert closed_forms.xor_initial_strength(4, 1.0) == pytest.approx(predicted.mean().item(), rel=0.15)  # 1000 random units


@pytest.mark.parametrize("domains", [3, 7, 12])
def test_routing_closed_forms(domains):
    s, d, start, tau = 1.6, 0.25, 0.05, 2.0
    end = 0.99 * (domains * s / d) ** (1 / 3)

    def rate(b):
        return b**2 / domains * (s - b * b**2 / domains * d) / tau  # Eq. 15 with C = 0

    time = quad(lambda b: 1 / rate(b), start, end, epsrel=1e-12)[0]
    assert closed_forms.routing_time(end, s, d, domains, start, tau) == pytest.approx(time, rel=1e-10)
    # with M b1² = b2² the pair of equations follows the same curve
    b1, b2 = closed_forms.routing_flow([0.0, time], [s], d, domains, (start / math.sqrt(domains), start), tau=tau)
    assert b2[-1].item() == pytest.approx(end, rel=1e-7)
    assert b1[-1].item() == pytest.approx(end / math.sqrt(domains), rel=1e-7)
    # from equal starts, C = (M - 1) start² decides where it ends
    b1, b2 = closed_forms.routing_flow([0.0, 50 * time], [s], d, domains, start, tau=tau)
    outer, hidden = closed_forms.routing_final(s, d, domains, (domains - 1) * start**2)
    assert b1[-1].item() == pytest.approx(outer, rel=1e-6)
    assert b2[-1].item() == pytest.approx(hidden, rel=1e-6)


def test_full_sharing_is_the_routing_equation():
    whole = closed_forms.sharing_velocity(0.3, 0.4, 2.0, 0.5, 6, shared=36)
    assert whole == pytest.approx(closed_forms.routing_velocity(0.3, 0.4, 2.0, 0.5, 6))


def test_descent_approaches_the_flow_as_the_step_shrinks():
    s, d, domains = [1.5, 0.7], 0.25, 7
    gaps = []
    for step in (0.16, 0.016):
        steps = round(16 / step)
        exact = closed_forms.routing_flow([0.0, 16.0], s, d, domains, 0.2)[1][-1]
        gaps.append(float((closed_forms.routing_descent(steps, s, d, domains, 0.2, step)[1][-1] - exact).abs().max()))
    assert gaps[0] > 1e-3
    assert gaps[0] / gaps[1] > 5  # first order in the step, with room for curvature

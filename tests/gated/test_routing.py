"""Routing networks in blocks against the plain loop over routes, against the general engine, and against theory."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import gated
from lib.data import tasks
from lib.gated import race
from lib.gated.architectures import closed_forms, routing
from lib.gated.architectures.routing import all_routes, few_routes

X, Y = tasks.routing_items((6.0, 4.0, 3.0))


def plain_training(weights, task, mask, step, steps):
    """The reference: one network, a loop over routes, autograd. Returns the trained weights and the last loss."""
    domains, outputs, features = task.sizes
    encoders = [w.clone().requires_grad_() for w in weights[0].split(features, -1)]
    middle = weights[1].clone().requires_grad_()
    decoders = [w.clone().requires_grad_() for w in weights[2].split(outputs, -2)]
    parameters = [*encoders, middle, *decoders]
    optimiser = torch.optim.SGD(parameters, lr=step)
    x, y = X.to(middle.dtype), Y.to(middle.dtype)
    ways = mask.nonzero().tolist()
    for _ in range(steps):
        optimiser.zero_grad()
        loss = 0
        for out, into in ways:
            error = y - decoders[out] @ (middle @ (encoders[into] @ x))
            loss = loss + 0.5 * (error**2).sum() / x.shape[-1]
        loss = loss / len(ways)
        loss.backward()
        optimiser.step()
    return [torch.cat(encoders, -1).detach(), middle.detach(), torch.cat(decoders, -2).detach()]


def test_blocks_are_the_plain_loop_over_routes():
    task = routing.shared_task(X, Y, 5)
    masks = torch.stack([routing.circulant(5, 2), routing.star(5)])
    start = routing.initial_weights(task, 16, 0.4, seeds=2)
    weights = [w.clone() for w in start]
    routing.train(weights, task, masks, step=0.1, steps=60, every=60)
    for run in range(2):
        plain = plain_training([w[run] for w in start], task, masks[run], 0.1, 60)
        for fast, slow in zip(weights, plain, strict=True):
            assert (fast[run] - slow).abs().max() < 1e-12  # the same sums in another order


def by_edge(weights, task):
    """The stacked weights as the general engine names them, dict of (seeds, rows, columns)."""
    encoders, middle, decoders = weights
    domains, outputs, features = task.sizes
    named = {f"in{i}→first": encoders[..., i * features : (i + 1) * features] for i in range(domains)}
    named |= {"first→second": middle}
    return named | {f"second→out{j}": decoders[..., j * outputs : (j + 1) * outputs, :] for j in range(domains)}


def test_blocks_are_a_case_of_the_general_engine():
    mask = routing.circulant(3, 2)
    task = routing.shared_task(X, Y, 3)
    weights = routing.initial_weights(task, 6, 0.5, seeds=2)
    network, data = routing.as_gated_network(X, Y, mask, 6)
    named = by_edge(weights, task)
    statistics = gated.effective_datasets(network, data)
    assert len(network.paths) == 9
    by_paths = gated.gradient(network, named, statistics)
    by_blocks = by_edge(all_routes(task.yx, task.variance, mask, weights[0])(weights), task)
    for name in network.edges:
        assert (by_paths[name] - by_blocks[name]).abs().max() < 1e-12
    losses = routing.over(routing.route_losses(weights, task), mask)
    assert torch.allclose(gated.loss(network, named, data), losses, rtol=1e-12)


def test_decoupled_routing_follows_the_reduced_equations_step_by_step():
    task, step = routing.shared_task(X, Y, 7), 0.16
    s = torch.linalg.svdvals(task.yx[0])
    weights = routing.decoupled_weights(task, 20, 0.08)
    run = routing.train(weights, task, routing.circulant(7, 4), step=step, steps=300, every=1)
    b1, b2 = closed_forms.routing_descent(300, s, 0.25, 7, 0.08, step)
    assert (run["trained"][:, 0] - closed_forms.routing_loss(b1, b2, s, 0.25, task.yy)).abs().max() < 1e-10
    ends = routing.singular_values(weights, task)[0]
    assert torch.allclose(ends[0], b1[-1], atol=1e-10)
    assert torch.allclose(ends[1], b2[-1], atol=1e-10)


def test_similarity_and_cosine_of_codes_worked_out_by_hand():
    """Two domains, two items, two units: the codes are columns, and one pair of them is orthogonal."""
    task = routing.Task(torch.ones(2, 1, 2).double(), torch.ones(2, 2).double(), 1.0)
    encoders = torch.tensor([[[3.0, 0.0, 6.0, 1.0], [0.0, 2.0, 0.0, 0.0]]]).double()  # domain 0: items a, b; domain 1: a, b
    weights = [encoders, torch.eye(2).double()[None], torch.ones(1, 2, 2).double()]
    by_hand = torch.tensor([[9.0, 0, 18, 3], [0, 4, 0, 0], [18, 0, 36, 6], [3, 0, 6, 1]]).double()
    assert torch.allclose(routing.similarity(weights), by_hand)
    assert torch.allclose(routing.domain_cosine(weights, task), torch.tensor([[1.0, 0.5], [0.5, 1.0]]).double())
    # item a: (3, 0) and (6, 0), mean (4.5, 0); item b: (0, 2) and (1, 0), mean (0.5, 1); all: (2.5, 0.5)
    special, total = 2 * 1.5**2 + 2 * (0.5**2 + 1), (0.5**2 + 0.5**2) + (3.5**2 + 0.5**2) + (2.5**2 + 1.5**2) + (1.5**2 + 0.5**2)
    assert routing.domain_share(weights, task).item() == pytest.approx(special / total)


def test_the_papers_learning_rate_in_our_convention():
    """λ on torch's mean squared error, summed over routes, moves the weights as `step_of_rate` does."""
    task, mask = routing.shared_task(X, Y, 3), routing.circulant(3, 2)
    weights = routing.initial_weights(task, 6, 0.5, seeds=1)
    leaves = [w[0].clone().requires_grad_() for w in weights]
    total = leaves[2] @ leaves[1] @ leaves[0]
    loss = sum(
        torch.nn.functional.mse_loss(total[7 * out : 7 * out + 7, 4 * into : 4 * into + 4] @ X, Y)
        for out, into in mask.nonzero().tolist()
    )
    loss.backward()
    step = routing.step_of_rate(0.02, task, mask)
    for leaf, ours in zip(leaves, all_routes(task.yx, task.variance, mask, weights[0])(weights), strict=True):
        assert torch.allclose(0.02 * leaf.grad, step * ours[0], rtol=1e-9, atol=1e-15)
    masks = torch.stack([mask, routing.star(3)])
    assert routing.step_of_rate(torch.tensor([0.02, 0.01]), task, masks).tolist() == pytest.approx([step, 0.01 * 5 * 2 / 7])


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(2, 12), st.data())
def test_masks_train_every_domain_equally(domains, data):
    trained = data.draw(st.integers(1, domains))
    for mask in (routing.circulant(domains, trained), routing.scattered(domains, trained, seed=trained)):
        assert (mask.sum(0) == trained).all()
        assert (mask.sum(1) == trained).all()


def test_the_twist_of_a_band_depends_on_the_fraction_alone():
    for fraction in (0.2, 0.4, 0.7):
        limit = math.sin(math.pi * fraction) / (math.pi * fraction)
        assert routing.rivalry(routing.circulant(100, round(100 * fraction))).item() == pytest.approx(limit, rel=1e-3)
    assert routing.rivalry(routing.blocks(10, 2)).item() == pytest.approx(1.0)


def test_what_hangs_together():
    assert routing.reachable(routing.star(6)).all()
    assert routing.reachable(routing.circulant(6, 2)).all()
    assert (routing.reachable(routing.circulant(6, 1)) == torch.eye(6, dtype=torch.bool)).all()
    assert (routing.reachable(routing.blocks(6, 2)) == routing.blocks(6, 2)).all()
    assert len(routing.never_together(routing.circulant(7, 4))) == 0
    assert len(routing.never_together(routing.circulant(10, 4))) == 15
    assert len(routing.never_together(routing.blocks(4, 2))) == 4


@pytest.mark.parametrize(("maker", "number"), [(routing.circulant, 0), (routing.circulant, 8), (routing.blocks, 9)])
def test_impossible_masks_are_refused(maker, number):
    with pytest.raises(ValueError, match="between 1 and 7"):
        maker(7, number)


def test_correlated_features_are_refused():
    with pytest.raises(ValueError, match="correlated"):
        routing.shared_task(torch.ones(2, 4).double(), torch.ones(1, 4).double(), 3)


@pytest.mark.parametrize("shared", [1, 4, 16])
def test_sharing_equations_are_the_race_on_the_explicit_graph(shared):
    network, data = routing.sharing_network(X, Y, 4, (shared,), 5)
    reduction = race.reduce(network, gated.effective_datasets(network, data))
    times = [0.0, 4.0, 12.0]
    b = race.flow(network, reduction, 0.1, times)
    s = torch.linalg.svdvals(Y @ X.T / 4)
    b1, b2 = closed_forms.routing_flow(times, s, 0.25, 4, 0.1, shared=shared)
    assert len(network.paths) == 16
    for name, strength in b.items():
        expected = b2 if name.startswith("first") else b1
        assert (strength.sort(-1).values - expected.sort(-1).values).abs().max() < 1e-8


def test_groups_must_divide_the_domains():
    with pytest.raises(ValueError, match="square of a divisor of 4"):
        routing.sharing_network(X, Y, 4, (9,), 5)


def test_each_route_of_a_shared_pathway_sees_each_item_once():
    """Two features, four items, two domains: 16 examples, route by route; example 4 r + k is item k on route r."""
    x = torch.tensor([[1.0, 1, -1, -1], [2, -2, 2, -2]], dtype=torch.float64)
    y = torch.tensor([[3.0, 1, -1, -3]], dtype=torch.float64)
    network, data = routing.sharing_network(x, y, 2, (1, 4), 3)
    assert data.items == 16 and torch.equal(data.x["in1"], x.repeat(1, 4)) and torch.equal(data.y["out0"], y.repeat(1, 4))
    into, out = [0] * 8 + [1] * 8, ([0] * 4 + [1] * 4) * 2
    for i in range(2):
        assert data.gates[f"out{i}"].tolist() == [float(one == i) for one in out]
        for name in [edge for edge in network.edges if edge.startswith(f"in{i}→")]:
            assert data.gates[name].tolist() == [float(one == i) for one in into]


def random_task(domains=5, outputs=3, features=17, seed=0):
    generator = torch.Generator().manual_seed(seed)
    yx = torch.randn(domains, outputs, features, generator=generator).double()
    return routing.Task(yx, 0.5 + torch.rand(domains, features, generator=generator).double(), 9.0)


def test_few_routes_have_the_gradient_of_all():
    """Masks with one or two routes per input domain, one of them uneven, and a domain that is never trained."""
    task, uneven = random_task(), routing.star(5)
    uneven[:, 3] = False
    masks = torch.stack([routing.circulant(5, 2), routing.circulant(5, 1), uneven])
    weights = routing.initial_weights(task, 8, 0.7, seeds=3, law="xavier")
    for mask in (masks, masks[0]):
        plain, fast = (f(task.yx, task.variance, mask, weights[0])(weights) for f in (all_routes, few_routes))
        for mine, theirs in zip(fast, plain, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_each_network_may_have_its_own_mask_and_step(momentum):
    task = random_task(seed=1)
    masks = torch.stack([routing.circulant(5, k) for k in (4, 1, 2, 5, 2)])
    start = routing.initial_weights(task, 8, 0.3, seeds=5, law="xavier")
    step = torch.tensor([0.1, 0.2, 0.15, 0.05, 0.12])
    weights = [w.clone() for w in start]
    routing.train(weights, task, masks, step=step, steps=12, every=5, momentum=momentum)
    slope = all_routes(task.yx, task.variance, masks, start[0])
    plain, speed = [w.clone() for w in start], [torch.zeros_like(w) for w in start]
    for _ in range(12):
        speed = [momentum * v + g for v, g in zip(speed, slope(plain), strict=True)]
        plain = [w - step.double()[:, None, None] * v for w, v in zip(plain, speed, strict=True)]
    for mine, by_hand in zip(weights, plain, strict=True):
        torch.testing.assert_close(mine, by_hand, rtol=1e-10, atol=1e-12)

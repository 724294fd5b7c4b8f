"""Side-by-side gated pathways against autograd, the general engine, and their own uncompressed selves."""

import pytest
import torch

from lib import gated, relu
from lib.data import tasks
from lib.gated.architectures import pathways
from lib.linear import Streams
from lib.relu import contexts


@pytest.fixture(scope="module")
def task():
    x, y = tasks.contexts(("tree", "ring", "cross"), 8)
    gates, features = contexts.pathway_gates(contexts.subsets(3, 3, 2), items=8)
    return x, y, gates, pathways.effective_inputs(x, gates, features)


def loss_of(weights, inputs, y):
    """What `train` records before its first step."""
    run = pathways.train([w.clone() for w in weights], inputs, y, step=0.0, steps=0, answers=True)
    torch.testing.assert_close(run["output"][0], (pathways.maps(weights) @ inputs).sum(-3))
    return run["loss"][0]


def test_gradient_equals_autograd(task):
    x, y, _, inputs = task
    weights = pathways.initial_pathways([5, 9, 3, 4], 11, 60, 0.3, ensemble=(2,))
    fast = pathways.gradient_on(inputs, y, reduction="sum")(weights)
    slow = [w.clone().requires_grad_() for w in weights]
    answer = sum(slow[1][:, p] @ slow[0][:, p] @ inputs[p] for p in range(4))
    loss = 0.5 * (answer - y).square().sum((-2, -1))
    for mine, theirs in zip(fast, torch.autograd.grad(loss.sum(), slow), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)
    for mean, total in zip(pathways.gradient_on(inputs, y)(weights), fast, strict=True):
        torch.testing.assert_close(24 * mean, total)
    torch.testing.assert_close(24 * loss_of(weights, inputs, y), loss.detach())
    with pytest.raises(ValueError, match="unknown reduction 'median'; choose mean or sum"):
        pathways.gradient_on(inputs, y, reduction="median")


def test_the_general_engine_agrees(task):
    """lib.gated on the same graph: one input node per pathway (its features), one hidden node each, one output."""
    x, y, gates, inputs = task
    names = [f"p{k}" for k in range(4)]
    sizes = {"y": 60} | {f"x{n}": 11 for n in names} | {n: 71 for n in names}
    edges = [(f"x{n}", n) for n in names] + [(n, "y") for n in names]
    network = gated.Network(sizes, edges)
    data = gated.Data(
        x={f"x{n}": inputs[k] for k, n in enumerate(names)}, y={"y": y}, gates={n: gates[k].double() for k, n in enumerate(names)}
    )
    w1, w2 = pathways.initial_pathways([6] * 4, 11, 60, 0.2)
    weights = {f"x{n}→{n}": w1[k] for k, n in enumerate(names)} | {f"{n}→y": w2[k] for k, n in enumerate(names)}
    general = gated.gradient(network, weights, gated.effective_datasets(network, data))
    first, second = pathways.gradient_on(inputs, y)([w1, w2])
    for k, n in enumerate(names):
        torch.testing.assert_close(first[k], general[f"x{n}→{n}"], rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(second[k], general[f"{n}→y"], rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(loss_of([w1, w2], inputs, y), gated.loss(network, weights, data))


def test_compressed_pathways_train_identically(task):
    """350 units and 35 of them, the same loss at every step: rounding only."""
    x, y, _, inputs = task
    _, short = relu.into_column_space(y)
    wide = [1e-3 * w[0] for w in (Streams(1, 3).normal(4, 350, 11), Streams(1, 4).normal(4, 24, 350))]
    small = list(pathways.compressed(*wide))
    assert wide[0].shape[-2] == 350 and small[0].shape[-2] == 35
    torch.testing.assert_close(pathways.maps(small), pathways.maps(wide), rtol=0, atol=1e-15)
    fast = pathways.train(small, inputs, short, step=0.008, steps=300, reduction="sum")
    slow = pathways.train(wide, inputs, short, step=0.008, steps=300, reduction="sum")
    assert fast["loss"][-1] < 0.4 * fast["loss"][0]
    torch.testing.assert_close(fast["loss"], slow["loss"], rtol=1e-8, atol=0)
    # Rotating the hidden layer leaves distances between hidden representations as they are.
    torch.testing.assert_close(
        torch.cdist((small[0] @ inputs)[0].T, (small[0] @ inputs)[0].T),
        torch.cdist((wide[0] @ inputs)[0].T, (wide[0] @ inputs)[0].T),
        rtol=1e-6,
        atol=1e-9,
    )


def test_pathways_are_a_gated_layer(task):
    """A block of units that shares a gate is a pathway: relu's fixed gates give the same network."""
    x, y, gates, _ = task
    inputs = pathways.effective_inputs(x, gates)  # here every pathway sees all features, as one layer does
    w1, w2 = pathways.initial_pathways([7] * 4, 11, 60, 0.1, seed=5)
    flat = [w1.flatten(0, 1).clone(), w2.permute(1, 0, 2).flatten(1).clone()]
    fixed = [gates.repeat_interleave(71, 0)]
    a = pathways.train([w1, w2], inputs, y, step=0.004, steps=50, reduction="sum")
    b = relu.train(flat, x, y, step=0.004, steps=50, activation="gated", fixed=fixed, reduction="sum")
    torch.testing.assert_close(a["loss"], b["loss"], rtol=1e-10, atol=0)


def test_aligned_start_predicts_random_starts(task):
    """Silent alignment: the deterministic start follows the mean of random ones; 3 % at worst over 6 draws."""
    x, y, _, inputs = task
    _, short = relu.into_column_space(y)
    random = pathways.initial_pathways([350] * 4, 11, 24, 1e-5, ensemble=(6,))
    aligned = pathways.aligned_pathways(inputs, short, 350 * 1e-10 / 2)
    runs = [pathways.train(w, inputs, short, step=0.008, steps=700, reduction="sum") for w in (random, aligned)]
    times = [torch.stack([run.time_to(share * 105.623) for share in (0.75, 0.5, 0.25, 0.1)]) for run in runs]
    torch.testing.assert_close(times[0].mean(1), times[1], rtol=0.03, atol=0)
    start = pathways.aligned_pathways(inputs, short, 1e-6)
    torch.testing.assert_close(start[0] @ start[0].mT, start[1].mT @ start[1], rtol=0, atol=1e-15)  # balanced


def test_effective_correlations_are_equation_4(task):
    x, y, gates, inputs = task
    yx, xx = pathways.effective_correlations(inputs, y)
    by_hand = sum(gates[1, n] * torch.outer(y[:, n], x[:, n]) for n in range(24)) / 24
    by_hand[:, 8:] = 0  # contextual pathways do not see the context
    torch.testing.assert_close(yx[1], by_hand)
    both = sum(gates[1, n] * gates[2, n] * torch.outer(inputs[1, :, n], inputs[2, :, n]) for n in range(24)) / 24
    torch.testing.assert_close(xx[1, 2], both)


def test_detached_pathways_are_trained_on_what_the_others_leave(task):
    """As Make Haste Slowly's program has it: the common pathway learns alone, its output is detached for the rest."""
    x, y, _, inputs = task
    start = pathways.initial_pathways([6] * 4, 11, 60, 0.2, ensemble=(2,), seed=2)
    weights = [w.clone() for w in start]
    run = pathways.train(weights, inputs, y, step=0.02, steps=40, momentum=0.5, detached=(1, 2, 3))
    leaves = [w.clone().requires_grad_() for w in start]
    optimiser = torch.optim.SGD(leaves, lr=0.02, momentum=0.5)
    for _ in range(40):
        optimiser.zero_grad()
        each = torch.einsum("npoh,nphf,pfi->npoi", leaves[1], leaves[0], inputs)
        common, contextual = each[:, 0], each[:, 1:].sum(1)
        alone = (y - common).square().sum() / 48
        (alone + (y - common.detach() - contextual).square().sum() / 48).backward()
        optimiser.step()
    for fast, slow in zip(weights, leaves, strict=True):
        torch.testing.assert_close(fast, slow.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(run["loss"][-1], loss_of(weights, inputs, y))
    with pytest.raises(ValueError, match="there are 4 pathways"):
        pathways.gradient_on(inputs, y, detached=(4,))


def test_weights_have_the_standard_deviation_that_was_asked_for():
    w1, w2 = pathways.initial_pathways([400, 400], 50, 70, torch.tensor([0.1, 0.3]), ensemble=(3, 5))
    assert w1.shape == (3, 5, 2, 120, 50) and w2.shape == (3, 5, 2, 70, 120)
    for p, std in enumerate((0.1, 0.3)):  # rotations keep the length of 300,000 and 420,000 numbers: known to 0.15 %
        assert (w1[:, :, p].square().sum(-2) / 400).mean().sqrt().item() == pytest.approx(std, rel=0.005)
        assert (w2[:, :, p].square().sum(-1) / 400).mean().sqrt().item() == pytest.approx(std, rel=0.005)


def test_the_first_networks_of_a_larger_ensemble_are_the_same():
    few, many = (pathways.initial_pathways([9, 5], 4, 3, 0.1, ensemble=(2, seeds), seed=7) for seeds in (2, 5))
    assert all((a == b[:, :2]).all() for a, b in zip(few, many, strict=True))
    alone, one = (pathways.initial_pathways([9, 5], 4, 3, 0.1, ensemble=e, seed=7) for e in ((), (1,)))
    assert all((a == b[0]).all() for a, b in zip(alone, one, strict=True))


def test_networks_with_gates_of_their_own_train_side_by_side():
    """An ensemble of gates is the same as one network after the other."""
    x, y = tasks.contexts(("tree", "ring", "cross"), items=8)
    gates = torch.rand(5, 3, 24, generator=torch.Generator().manual_seed(1)) < 0.6
    plan = dict(step=0.005, steps=60, every=20, reduction="sum")
    inputs = pathways.effective_inputs(x, gates)
    weights = pathways.aligned_pathways(inputs, y, 1e-2)
    together = pathways.train(weights, inputs, y, detached=(2,), **plan)
    for k in range(5):
        alone = pathways.effective_inputs(x, gates[k])
        w = pathways.aligned_pathways(alone, y, 1e-2)
        torch.testing.assert_close(together["loss"][:, k], pathways.train(w, alone, y, detached=(2,), **plan)["loss"])
        torch.testing.assert_close(pathways.maps(weights)[k], pathways.maps(w))

"""Side-by-side gated pathways against autograd, the general engine, and their own uncompressed selves."""

import pytest
import torch

from lib import gated, relu
from lib.data import tasks
from lib.gated import pathways
from lib.relu import contexts


@pytest.fixture(scope="module")
def task():
    x, y = tasks.contexts()
    gates, features = contexts.pathway_gates(contexts.subsets(3, 3, 2))
    return x, y, gates, pathways.effective_inputs(x, gates, features)


def test_gradient_equals_autograd(task):
    x, y, _, inputs = task
    weights = pathways.initial_pathways([5, 9, 3, 4], 11, 60, 0.3, compress=False, ensemble=(2,))
    fast = pathways.gradient(inputs, y)(weights)
    slow = [w.clone().requires_grad_() for w in weights]
    answer = sum(slow[1][:, p] @ slow[0][:, p] @ inputs[p] for p in range(4))
    loss = 0.5 * (answer - y).square().sum((-2, -1))
    torch.testing.assert_close(pathways.loss(weights, inputs, y), loss.detach())
    for mine, theirs in zip(fast, torch.autograd.grad(loss.sum(), slow), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)


def test_the_general_engine_agrees(task):
    """lib.gated on the same graph: one input node per pathway (its features), one hidden node each, one output."""
    x, y, gates, inputs = task
    names = [f"p{k}" for k in range(4)]
    sizes = {"y": 60} | {f"x{n}": 11 for n in names} | {n: 6 for n in names}
    edges = [(f"x{n}", n) for n in names] + [(n, "y") for n in names]
    network = gated.Network(sizes, edges)
    data = gated.Data(
        x={f"x{n}": inputs[k] for k, n in enumerate(names)},
        y={"y": y},
        gates={n: gates[k].double() for k, n in enumerate(names)},
    )
    w1, w2 = pathways.initial_pathways([6] * 4, 11, 60, 0.2, compress=False)
    weights = {f"x{n}→{n}": w1[k] for k, n in enumerate(names)} | {f"{n}→y": w2[k] for k, n in enumerate(names)}
    downhill = gated.gradient(network, weights, gated.effective_datasets(network, data))  # -dL/dW of the mean loss
    first, second = pathways.gradient(inputs, y)([w1, w2])
    for k, n in enumerate(names):
        torch.testing.assert_close(first[k], -24 * downhill[f"x{n}→{n}"], rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(second[k], -24 * downhill[f"{n}→y"], rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(pathways.loss([w1, w2], inputs, y), 24 * gated.loss(network, weights, data))


def test_compressed_pathways_train_identically(task):
    """350 units and 35 of them, the same loss at every step: rounding only."""
    x, y, _, inputs = task
    _, short = relu.into_column_space(y)
    wide = pathways.initial_pathways([350, 90, 20, 90], 11, 24, 1e-3, compress=False, seed=3)
    small = pathways.initial_pathways([350, 90, 20, 90], 11, 24, 1e-3, seed=3)
    assert wide[0].shape[-2] == 350 and small[0].shape[-2] == 35
    torch.testing.assert_close(pathways.maps(small), pathways.maps(wide), rtol=0, atol=1e-15)
    fast = pathways.train(small, inputs, short, step=0.008, steps=300)
    slow = pathways.train(wide, inputs, short, step=0.008, steps=300)
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
    w1, w2 = pathways.initial_pathways([7] * 4, 11, 60, 0.1, compress=False, seed=5)
    flat = [w1.flatten(0, 1).clone(), w2.permute(1, 0, 2).flatten(1).clone()]
    fixed = [gates.repeat_interleave(7, 0)]
    a = pathways.train([w1, w2], inputs, y, step=0.004, steps=50)
    b = relu.train(flat, x, y, step=0.004, steps=50, activation="gated", fixed=fixed)
    torch.testing.assert_close(a["loss"], b["loss"], rtol=1e-10, atol=0)


def test_aligned_start_predicts_random_starts(task):
    """Silent alignment: the deterministic start follows the mean of random ones; 3 % at worst over 6 draws."""
    x, y, _, inputs = task
    _, short = relu.into_column_space(y)
    random = pathways.initial_pathways([350] * 4, 11, 24, 1e-5, ensemble=(6,))
    aligned = pathways.aligned_pathways(inputs, short, 350 * 1e-10 / 2)
    runs = [pathways.train(w, inputs, short, step=0.008, steps=700) for w in (random, aligned)]
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

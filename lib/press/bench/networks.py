"""Cases of the bench: linear, gated and ReLU networks trained by gradient descent.

Every case gives what one network's weights have changed by. The plain program is what one would write first: one network,
automatic differentiation, `torch.optim.SGD`.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lib import gated, linear, relu
from lib.data import tasks
from lib.gated.architectures import closed_forms, pathways, routing
from lib.press.bench.timing import Case, Pair
from lib.relu import contexts, linearization

ROUNDING = {torch.float32: 2e-5, torch.float64: 1e-12}  # of a change of weights, after some dozens of steps


def sgd(parameters: list[Tensor], loss: Callable[[], Tensor], step: float, steps: int) -> None:
    """Automatic differentiation and `torch.optim.SGD`, in place."""
    optimiser = torch.optim.SGD(parameters, lr=step)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


def leaves(weights: Sequence[Tensor]) -> list[Tensor]:
    """Copies that are differentiated."""
    return [w.detach().clone().requires_grad_() for w in weights]


def change(now: Sequence[Tensor], start: Sequence[Tensor]) -> Tensor:
    """All that has changed, as one vector."""
    return torch.cat([(a.detach() - b).flatten() for a, b in zip(now, start, strict=True)])


def deep_linear(dtype: torch.dtype, seeds: int, width: int, items: int, steps: int = 40) -> Pair:
    """Two-layer linear networks on correlations instead of items (`linear.train_on_statistics`)."""
    x, y = linear.Streams(1, 1).normal(2, width, items)[0].to(dtype)
    start = linear.small_weights([(width, width)] * 2, 0.3 * width**-0.5, seeds, dtype=dtype)

    def fast() -> Tensor:
        weights = [w.clone() for w in start]
        linear.train_on_statistics(weights, x, y, step=0.1, steps=steps, every=steps)
        return change([w[0] for w in weights], [w[0] for w in start])

    def plain() -> Tensor:
        first, second = weights = leaves([w[0] for w in start])
        sgd(weights, lambda: 0.5 * (second @ (first @ x) - y).square().sum() / items, 0.1, steps)
        return change(weights, [w[0] for w in start])

    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=seeds * steps * 8 * width**3 + 4 * width**2 * items)


def plain_routing(start: Sequence[Tensor], x: Tensor, y: Tensor, mask: Tensor, step: float, steps: int) -> list[Tensor]:
    """One routing network, an encoder and a decoder for each domain, a loop over its trained routes; the trained weights."""
    middle = leaves([start[1]])[0]
    encoders, decoders = leaves(start[0].split(x.shape[0], -1)), leaves(start[2].split(y.shape[0], -2))
    ways = mask.nonzero().tolist()

    def loss() -> Tensor:
        errors = (y - decoders[out] @ (middle @ (encoders[into] @ x)) for out, into in ways)
        return sum(0.5 * error.square().sum() for error in errors) / x.shape[-1] / len(ways)

    sgd([*encoders, middle, *decoders], loss, step, steps)
    return [torch.cat(encoders, -1), middle, torch.cat(decoders, -2)]


def routing_networks(dtype: torch.dtype, seeds: int, domains: int, trained: int, hidden: int, steps: int = 60) -> Pair:
    """Routing networks of the neural race: all routes and seeds as one product of blocks (`routing.train`)."""
    x, y = tasks.routing_items((6.0, 4.0, 3.0))
    task, mask = routing.shared_task(x, y, domains), routing.circulant(domains, trained)
    start = routing.initial_weights(task, hidden, 0.4, seeds, dtype=dtype)
    x, y, one = x.to(dtype), y.to(dtype), [w[0] for w in start]

    def fast() -> Tensor:
        weights = [w.clone() for w in start]
        routing.train(weights, task, mask, step=0.2, steps=steps, every=steps)
        return change([w[0] for w in weights], one)

    def plain() -> Tensor:
        return change(plain_routing(one, x, y, mask, 0.2, steps), one)

    into, out = domains * x.shape[0], domains * y.shape[0]
    product = 6 * hidden * into * (hidden + out)
    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=seeds * steps * product)


def reduction(dtype: torch.dtype, modes: int, hidden: int = 0, domains: int = 7, steps: int = 60) -> Pair:
    """The race reduction: two numbers for each mode instead of the network (`closed_forms.routing_descent`).

    The plain program trains the routing network from the aligned start from which the reduction is exact, and gives the
    loss over its trained routes. `hidden` units are as many as the modes unless more are asked for.
    """
    s = torch.linspace(3.0, 6.0, modes, dtype=torch.float64)
    root = modes**0.5

    def fast() -> Tensor:
        b1, b2 = closed_forms.routing_descent(steps, s / root, 1 / modes, domains, 0.5, 0.2)
        return torch.stack([b1, b2])[:, [0, -1]].diff(dim=1)[:, 0]

    def plain() -> Tensor:
        x = torch.eye(modes, dtype=torch.float64)
        y = torch.diag(s * root)
        task, mask = routing.shared_task(x, y, domains), routing.circulant(domains, domains // 2 + 1)
        start = routing.decoupled_weights(task, max(hidden, modes), 0.5)
        begin = routing.singular_values(start, task)[0]
        trained = plain_routing([w[0] for w in start], x, y, mask, 0.2, steps)
        end = routing.singular_values([w.detach()[None] for w in trained], task)[0]
        return (end - begin)[:2].flip(-1)

    # each step: eleven multiplications or additions of vectors of numbers, and the path that is kept
    return Pair(fast, plain, (steps, steps), 1e-12, bytes=steps * modes * 8 * 2 * 2)


def figure_4(dtype: torch.dtype, hidden: int, seeds: int = 1, steps: int = 60) -> Pair:
    """The ReLU network of Make Haste Slowly's Figure 4: gradients by hand, outputs rotated into the span of the targets."""
    x, y = (part.to(dtype) for part in tasks.contexts(("tree", "ring", "cross"), 8))
    basis, short = relu.into_column_space(y)
    start = relu.initial_weights([x.shape[0], hidden, short.shape[0]], 0.02, seeds=seeds, dtype=dtype)
    one = [start[0][0], basis @ start[1][0]]

    def fast() -> Tensor:
        weights = [w.clone() for w in start]
        relu.train(weights, x, short, step=0.001, steps=steps, every=steps, reduction="sum")
        return change([weights[0][0], basis @ weights[1][0]], one)

    def plain() -> Tensor:
        first, second = weights = leaves(one)
        sgd(weights, lambda: 0.5 * (second @ torch.relu(first @ x) - y).square().sum(), 0.001, steps)
        return change(weights, one)

    items = x.shape[1]
    product = 2 * hidden * items * (2 * x.shape[0] + 3 * short.shape[0])
    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=seeds * steps * product)


def gated_figure_4(dtype: torch.dtype, width: int, seeds: int = 1, steps: int = 60) -> Pair:
    """The gated network of the same figure: effective correlations, wide pathways compressed to the units that matter."""
    x, y = tasks.contexts(("tree", "ring", "cross"), 8)
    seen = contexts.pathway_inputs(x, contexts.subsets(3, 3, 2))
    basis, short = relu.into_column_space(y)
    sizes = ([width] * len(seen), x.shape[0], short.shape[0], 0.02)
    small, wide = (pathways.initial_pathways(*sizes, ensemble=(seeds,), compress=folded) for folded in (True, False))
    small, wide = [w.to(dtype) for w in small], [w[0].to(dtype) for w in wide]
    seen, short, y, basis = (part.to(dtype) for part in (seen, short, y, basis))
    begin = basis @ (wide[1] @ wide[0])  # (pathways, outputs, features): the same map with both numbers of units

    def fast() -> Tensor:
        weights = [w.clone() for w in small]
        pathways.train(weights, seen, short, step=0.001, steps=steps, every=steps, reduction="sum")
        return basis @ pathways.maps(weights)[0] - begin

    def plain() -> Tensor:
        pairs = [leaves([wide[0][p], basis @ wide[1][p]]) for p in range(len(seen))]

        def loss() -> Tensor:
            answer = sum(second @ (first @ one) for (first, second), one in zip(pairs, seen, strict=True))
            return 0.5 * (answer - y).square().sum()

        sgd([w for pair in pairs for w in pair], loss, 0.001, steps)
        return torch.stack([(second @ first).detach() for first, second in pairs]) - begin

    paths, features, outputs = len(seen), x.shape[0], len(short)
    units = min(width, features + outputs)
    product = 2 * outputs * paths * features * (3 * units + paths * features)
    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=seeds * steps * product)


def early_linearization(dtype: torch.dtype, seeds: int, hidden: int, items: int, steps: int = 60) -> Pair:
    """Ensembles of small ReLU networks with a constant input: gradients by hand, all seeds at once (`relu.train`)."""
    x, y = (part.to(dtype) for part in tasks.hierarchy(items))
    constant = linearization.with_constant(x, 1.0)
    start = relu.initial_weights([constant.shape[0], hidden, y.shape[0]], 0.1, seeds=seeds, dtype=dtype)
    one = [w[0] for w in start]

    def fast() -> Tensor:
        weights = [w.clone() for w in start]
        relu.train(weights, constant, y, step=0.02, steps=steps, every=steps)
        return change([w[0] for w in weights], one)

    def plain() -> Tensor:
        first, second = weights = leaves(one)
        sgd(weights, lambda: 0.5 * (second @ torch.relu(first @ constant) - y).square().sum() / items, 0.02, steps)
        return change(weights, one)

    product = 2 * hidden * items * (2 * constant.shape[0] + 3 * y.shape[0])
    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=seeds * steps * product)


def path_gradients(dtype: torch.dtype, paths: int, items: int, seeds: int, hidden: int = 32, steps: int = 5) -> Pair:
    """A gated network with parallel paths: its gradient from effective datasets instead of examples (`gated.gradient`)."""
    sizes = {"x": 16, "y": 16} | {f"h{i}": hidden for i in range(paths)}
    network = gated.Network(sizes, [edge for i in range(paths) for edge in (("x", f"h{i}"), (f"h{i}", "y"))])
    drawn = linear.Streams(1, 2).normal(32 + paths, items)[0].to(dtype)
    x, y = drawn[:16], drawn[16:32]
    gates = {f"h{i}": (drawn[32 + i] > 0).to(dtype) for i in range(paths)}
    data = gated.Data({"x": x}, {"y": y}, gates)
    statistics = gated.effective_datasets(network, data)
    start = {name: w.to(dtype) for name, w in gated.initial_weights(network, 0.1, seeds=seeds).items()}

    def fast() -> Tensor:
        for _ in range(steps):
            found = gated.gradient(network, start, statistics)
        return torch.cat([found[name][0].flatten() for name in start])

    def plain() -> Tensor:
        weights = dict(zip(start, leaves([w[0] for w in start.values()]), strict=True))
        for _ in range(steps):
            inner = (gates[f"h{i}"] * (weights[f"x→h{i}"] @ x) for i in range(paths))
            answer = sum(weights[f"h{i}→y"] @ h for i, h in enumerate(inner))
            found = torch.autograd.grad(0.5 * (answer - y).square().sum() / items, list(weights.values()))
        return torch.cat([g.flatten() for g in found])

    product = paths * 6 * 16 * 16 * hidden + paths**2 * 2 * 16**3
    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=seeds * steps * product)


CASES = {
    "deep-linear": Case(
        "deep linear networks", "a loop over networks, items in the loss", "network and step", deep_linear,
        {"seeds": 20, "width": 32, "items": 1000},
        {
            "seeds": ((5, 10, 20, 40, 80), {}),
            "width": ((32, 48, 64, 96, 128), {"seeds": 10}),
            "items": ((1000, 3000, 10000, 30000), {}),
        },
    ),
    "routing": Case(
        "routing networks of the neural race, 7 domains", "a loop over networks and routes", "network and step", routing_networks,
        {"seeds": 20, "domains": 7, "trained": 4, "hidden": 64},
        {
            "seeds": ((5, 10, 20, 40, 80), {}),
            "hidden": ((48, 64, 96, 128, 192), {"seeds": 10}),
            "domains": ((6, 8, 12, 16, 24), {"seeds": 10}),
        },
    ),
    "reduction": Case(
        "the race reduction, 16 modes", "the routing network from an aligned start", "step", reduction, {"modes": 16},
        {"modes": ((2000, 6000, 20000), {})}, ("float64",), hot=False,
    ),
    "figure-4": Case(
        "the ReLU network of Make Haste Slowly's Figure 4", "all 60 outputs, automatic differentiation", "step", figure_4,
        {"hidden": 700}, {"hidden": ((350, 700, 1400, 2800), {})},
    ),
    "figure-4-gated": Case(
        "the gated network of the same figure, 100 units a pathway", "all units and outputs, one pathway after the other", "step",
        gated_figure_4, {"width": 100}, {"seeds": ((5, 10, 20, 40), {})},
    ),
    "early-linearization": Case(
        "early linearization: ReLU networks with a constant", "a loop over networks", "network and step", early_linearization,
        {"seeds": 20, "hidden": 64, "items": 8},
        {
            "seeds": ((10, 20, 40, 80, 160), {}),
            "hidden": ((64, 128, 256, 512), {}),
            "items": ((8, 16, 32, 64), {}),
        },
    ),
    "paths": Case(
        "the gradient of a gated network with 8 paths", "the loss over all examples, one network", "network and gradient",
        path_gradients, {"paths": 8, "items": 4000, "seeds": 10},
        {
            "paths": ((4, 8, 16, 32), {"items": 200}),
            "items": ((500, 2000, 8000, 32000), {"paths": 4}),
            "seeds": ((10, 20, 40, 80), {"items": 200}),
        },
    ),
}  # fmt: skip

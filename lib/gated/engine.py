"""Gated deep linear networks on any directed acyclic graph (Neural Race, Sections 2 and 3, Appendix B).

A gated network is linear except for gates: numbers (usually 0 or 1) that are given with every example and multiply
nodes or edges. Five lines define one, show its paths and give the gradient that drives it:

    network = Network(sizes={"x": 2, "left": 8, "right": 8, "y": 1},
                      edges=[("x", "left"), ("x", "right"), ("left", "y"), ("right", "y")])
    data = Data(x={"x": x}, y={"y": y}, gates={"left": context, "right": 1 - context})     # x is (features, items)
    statistics = effective_datasets(network, data)          # all that gradient flow ever sees of the data
    direction = gradient(network, initial_weights(network, scale=0.01, seeds=10), statistics)

Weights are a dict from an edge's name ("x→left") to a tensor (..., rows, columns); the leading dimensions are an
ensemble (seeds) and everything below is batched over them. The reduction to one number per edge and mode is in
`gated.race`, the special case of M inputs and M outputs around one hidden layer in `gated.routing`.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.integrate import solve_ivp

from lib.gated.network import Data
from lib.linear.draws import Streams, random_matrix


def forward(network, weights, data):
    """Activity of every node, dict of (..., size, items): h_v = g_v Σ_e g_e W_e h_source (Neural Race, Section 2)."""
    check_weights(network, weights)
    data.check(network)
    activity = {}
    for node in network.order:
        if node in data.x:
            activity[node] = data.x[node]
            continue
        into = (data.gate(edge.name) * (weights[edge.name] @ activity[edge.source]) for edge in network.incoming[node])
        activity[node] = data.gate(node) * sum(into)
    return activity


def loss(network, weights, data):
    """Mean over examples of half the squared error, (...,) (Neural Race Eq. 1).

    An output node that is gated off on an example is not asked for anything there: its target does not count.
    Gradients are the same either way; the plotted loss would only gain a constant.
    """
    activity = forward(network, weights, data)
    total = 0.0
    for node in network.outputs:
        error = (data.gate(node) != 0) * (data.y[node] - activity[node])  # (..., size, items)
        total = total + 0.5 * ((error**2).sum(-2) * data.probability).sum(-1)
    return total


def backpropagate(network, weights, data):
    """-dL/dW for every edge by the chain rule through the nodes: no paths needed, so it works on any graph."""
    activity = forward(network, weights, data)
    arriving, direction = {}, {}  # error that arrives at an edge from above, (..., target size, items)
    for node in reversed(network.order):
        if node in network.outputs:
            error = data.y[node] - activity[node]
        else:
            error = sum(weights[edge.name].mT @ arriving[edge.name] for edge in network.outgoing[node])
        for edge in network.incoming[node]:
            arriving[edge.name] = data.gate(node) * data.gate(edge.name) * error
            direction[edge.name] = (arriving[edge.name] * data.probability) @ activity[edge.source].mT
    return {name: direction[name] for name in network.edges}


def path_gate(path, data):
    """Product of all gates along a path, (items,). The input node's own gate does not exist; the output's counts."""
    gate = torch.ones_like(data.probability)
    for name in (*path.edges, *path.nodes[1:]):
        gate = gate * data.gate(name)
    return gate


@dataclass
class Statistics:
    """The effective datasets: what gradient flow sees of the data, one input-output correlation per path.

    `yx[p]` is Σyx(p), (target size, source size), Eq. 5; `xx[j, p]` is Σx(j, p), (source size of j, source size of p),
    Eq. 6, for the paths j and p that end at the same node; p and j are positions in `network.paths`. `yy` is the mean
    squared length of the targets that are asked for: with it the loss, too, follows from the statistics.
    """

    yx: list
    xx: dict
    yy: torch.Tensor


def effective_datasets(network, data):
    """Correlations of the data as gated by every path (Neural Race Eqs. 5 and 6)."""
    data.check(network)
    paths = network.paths
    gated = [path_gate(path, data) for path in paths]
    yx = [
        (data.probability * gate * data.y[path.target]) @ data.x[path.source].mT for path, gate in zip(paths, gated, strict=True)
    ]
    xx = {}
    for j, first in enumerate(paths):
        for p, second in enumerate(paths):
            if first.target == second.target:
                xx[j, p] = (data.probability * gated[j] * gated[p] * data.x[first.source]) @ data.x[second.source].mT
    asked = sum(((data.gate(v) != 0) * data.y[v] ** 2).sum(-2) for v in network.outputs)
    return Statistics(yx, xx, (asked * data.probability).sum())


def path_products(path, weights):
    """W before and after each edge of a path: lists of W_s̄(p,e) and W_t̄(p,e), None where there is nothing (Fig. 2b)."""
    before, after = [None], [None]
    for name in path.edges[:-1]:
        before.append(weights[name] if before[-1] is None else weights[name] @ before[-1])
    for name in reversed(path.edges[1:]):
        after.append(weights[name] if after[-1] is None else after[-1] @ weights[name])
    return before, after[::-1]


def path_maps(network, weights):
    """The total map of every path, list of (..., target size, source size): W_p, the product of its weights."""
    maps = []
    for path in network.paths:
        total = weights[path.edges[0]]
        for name in path.edges[1:]:
            total = weights[name] @ total
        maps.append(total)
    return maps


def path_errors(network, weights, statistics):
    """What each path still has to learn, list of (..., target size, source size) (Neural Race Eq. 4)."""
    maps = path_maps(network, weights)
    errors = []
    for p, path in enumerate(network.paths):
        explained = (maps[j] @ statistics.xx[j, p] for j, other in enumerate(network.paths) if other.target == path.target)
        errors.append(statistics.yx[p] - sum(explained))
    return errors


def gradient(network, weights, statistics):
    """-dL/dW for every edge as a sum over the paths through it (Neural Race Eqs. 3 and 4), dict of (..., rows, columns).

    Uses nothing of the data but `statistics`. Equal to `backpropagate` to rounding.
    """
    check_weights(network, weights)
    direction = {name: torch.zeros_like(weights[name]) for name in network.edges}
    for path, error in zip(network.paths, path_errors(network, weights, statistics), strict=True):
        for name, before, after in zip(path.edges, *path_products(path, weights), strict=True):
            term = error if after is None else after.mT @ error
            direction[name] = direction[name] + (term if before is None else term @ before.mT)
    return direction


def loss_of_statistics(network, weights, statistics):
    """The loss of Eq. 1 from the effective datasets alone, (...,)."""
    maps = path_maps(network, weights)
    total = 0.5 * statistics.yy
    for p in range(len(maps)):
        total = total - (maps[p] * statistics.yx[p]).sum((-2, -1))
    for (j, p), correlation in statistics.xx.items():
        total = total + 0.5 * ((maps[j] @ correlation) * maps[p]).sum((-2, -1))
    return total


def flow(network, weights, source, times, tau=1.0, rtol=1e-11):
    """Weights under gradient flow tau dW/dt = -dL/dW at `times`, dict of (times, ..., rows, columns) (Neural Race Eq. 2).

    `source` is the `Statistics` of the effective datasets, or the `Data` themselves: the same flow, faster on graphs with
    more paths than edges. An adaptive Runge-Kutta integration (order 8) to relative precision `rtol`; the whole ensemble
    is one system.
    """
    names, shapes = list(network.edges), [weights[name].shape for name in network.edges]
    lengths = [math.prod(shape) for shape in shapes]
    downhill = backpropagate if isinstance(source, Data) else gradient

    def unpack(flat):
        parts = torch.as_tensor(flat).split(lengths, dim=-1)
        return {n: part.reshape(*part.shape[:-1], *s) for n, part, s in zip(names, parts, shapes, strict=True)}

    def velocity(_, flat):
        direction = downhill(network, unpack(flat), source)
        return torch.cat([direction[name].reshape(-1) for name in names]).numpy() / tau

    start = torch.cat([weights[name].reshape(-1) for name in names]).double().numpy()
    return unpack(_integrate(velocity, start, times, rtol))


def _integrate(velocity, start, times, rtol):
    """Solution of an ordinary differential equation at `times`, (times, ...)."""
    times = np.asarray(times, dtype=float)
    # the absolute tolerance lies far below the smallest starting weights, which decide when learning sets in
    solution = solve_ivp(velocity, (0.0, times[-1]), start, "DOP853", times, rtol=rtol, atol=rtol * 1e-4)
    if not solution.success:
        raise RuntimeError(f"the integration stopped at time {solution.t[-1]:.4g}: {solution.message}")
    return solution.y.T.copy()


def balance(network, weights):
    """Σ_in W Wᵀ - Σ_out Wᵀ W at every hidden node, dict of (..., size, size).

    Constant under gradient flow for every graph, every gating, every dataset and every start, and with it a check of
    any run: whatever drifts is the error of the integration (for gradient descent proportional to the step). It
    generalises the conserved M B1² - B2² of Neural Race, Section 4.
    """
    law = {}
    for node in network.hidden:
        into = sum(weights[edge.name] @ weights[edge.name].mT for edge in network.incoming[node])
        law[node] = into - sum(weights[edge.name].mT @ weights[edge.name] for edge in network.outgoing[node])
    return law


def balance_drift(network, start, end):
    """Largest change of the conserved `balance` between two sets of weights, relative to the weights' largest square."""
    before, after = balance(network, start), balance(network, end)
    if not before:
        raise ValueError("the network has no hidden node, so nothing is conserved")
    size = max((weight**2).sum((-2, -1)).max() for weight in (*start.values(), *end.values()))
    return float(max((after[node] - before[node]).abs().max() for node in before) / size)


def initial_weights(network, scale, seeds=1, seed=0, law="gaussian", dtype=torch.float64, device="cpu"):
    """Random weights for every edge, dict of (seeds, rows, columns).

    `law`: "gaussian" (entries of standard deviation `scale`), "orthogonal" (all singular values equal to `scale`) or
    "xavier" (entries of variance scale² · 2 / (rows + columns)).
    """
    streams = Streams(seeds, seed)
    weights = {}
    for name, edge in network.edges.items():
        rows, columns = network.sizes[edge.target], network.sizes[edge.source]
        weights[name] = random_matrix(streams.normal(rows, columns), scale, law).to(device, dtype)
    return weights


def check_weights(network, weights):
    """Raise a ValueError that names the first weight matrix which does not fit `network`."""
    if set(weights) != set(network.edges):
        odd = min(set(weights) ^ set(network.edges))
        raise ValueError(f"weights and edges do not match: {odd!r} is only one of the two")
    for name, edge in network.edges.items():
        expected = (network.sizes[edge.target], network.sizes[edge.source])
        if tuple(weights[name].shape[-2:]) != expected:
            raise ValueError(f"the weights of {name!r} have shape {tuple(weights[name].shape[-2:])}; expected {expected}")

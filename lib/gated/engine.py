"""Gated deep linear networks on any directed acyclic graph (Neural Race, Sections 2 and 3, Appendix B).

A gated network is linear except for gates: numbers (usually 0 or 1) that are given with every example and multiply
nodes or edges. Five lines define one, show its paths and give the gradient that drives it:

    network = Network(sizes={"x": 2, "left": 8, "right": 8, "y": 1},
                      edges=[("x", "left"), ("x", "right"), ("left", "y"), ("right", "y")])
    data = Data(x={"x": x}, y={"y": y}, gates={"left": context, "right": 1 - context})     # x is (features, items)
    statistics = effective_datasets(network, data)          # all that gradient flow ever sees of the data
    slope = gradient(network, initial_weights(network, scale=0.01, seeds=10), statistics)

Weights are a dict from an edge's name ("x→left") to a tensor (..., rows, columns); leading dimensions are an ensemble.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.gated.network import Data, Network, Path, one_per_seed
from lib.linear.draws import Streams, random_matrix
from lib.linear.shapes import as_array

Weights = dict[str, Tensor]
Array = Tensor | np.ndarray


def forward(network: Network, weights: Weights, data: Data) -> dict[str, Tensor]:
    """Activity of every node, dict of (..., size, items): h_v = g_v Σ_e g_e W_e h_source (Neural Race, Section 2)."""
    check_weights(network, weights, data)
    data.check(network)
    return propagate(network, weights, data.x, data.gates)


def propagate(network: Network, weights: dict, x: dict[str, Array], gates: dict[str, Array]) -> dict[str, Array]:
    """`forward` without checks, for tensors and arrays: x {input: (size, items)}, gates {node or edge: (items,)}."""
    activity = dict(x)
    for node in network.order:
        if node not in x:
            into = sum(_gated(gates, edge.name, weights[edge.name] @ activity[edge.source]) for edge in network.incoming[node])
            activity[node] = _gated(gates, node, into)
    return activity


def _gated(gates: dict[str, Array], name: str, signal: Array) -> Array:
    return gates[name] * signal if name in gates else signal


def loss(network: Network, weights: Weights, data: Data) -> Tensor:
    """Mean over examples of half the squared error, (...,) (Neural Race Eq. 1).

    The target of an output node that is gated off on an example does not count: it would only add a constant.
    """
    activity = forward(network, weights, data)
    total = 0.0
    for node in network.outputs:
        error = (data.gate(node) != 0) * (data.y[node] - activity[node])  # (..., size, items)
        total = total + 0.5 * ((error**2).sum(-2) * data.probability).sum(-1)
    return total


def backpropagate(network: Network, weights: Weights, data: Data) -> Weights:
    """dL/dW for every edge by the chain rule through the nodes: no paths needed, so it works on any graph."""
    check_weights(network, weights, data)
    return node_gradient(network, data)(weights)


def node_gradient(network: Network, data: Data) -> Callable[[Weights], Weights]:
    """`backpropagate` as a function of the weights, which it does not check: for many steps on the same data."""
    data.check(network)
    x, y, gates = ({name: as_array(part) for name, part in side.items()} for side in (data.x, data.y, data.gates))
    probability = as_array(data.probability)

    def gradient(weights: Weights) -> Weights:
        weights = {name: as_array(w) for name, w in weights.items()}
        activity = propagate(network, weights, x, gates)
        arriving, slopes = {}, {}  # what arrives at an edge from above, (..., target size, items)
        for node in reversed(network.order):
            above = [weights[edge.name].mT @ arriving[edge.name] for edge in network.outgoing[node]]
            error = _gated(gates, node, sum(above) if above else activity[node] - y[node])
            for edge in network.incoming[node]:
                arriving[edge.name] = _gated(gates, edge.name, error)
                slopes[edge.name] = (arriving[edge.name] * probability) @ activity[edge.source].mT
        return {name: torch.as_tensor(slopes[name]) for name in network.edges}

    return gradient


def path_gate(path: Path, data: Data) -> Tensor:
    """Product of all gates along a path, (items,). The input node's own gate does not exist; the output's counts."""
    gate = torch.ones_like(data.probability)
    for name in (*path.edges, *path.nodes[1:]):
        gate = gate * data.gate(name)
    return gate


@dataclass
class Statistics:
    """The effective datasets: all that gradient flow sees of the data; j and p are positions in `network.paths`.

    `yx[p]` is Σyx(p), (target size, source size), Eq. 5; `xx[j, p]` is Σx(j, p), (source size of j, source size of p),
    Eq. 6, for paths that end at the same node. `yy` is the mean squared length of the targets that count in the loss.
    """

    yx: list[Tensor]
    xx: dict[tuple[int, int], Tensor]
    yy: Tensor


def effective_datasets(network: Network, data: Data) -> Statistics:
    """Correlations of the data as gated by every path (Neural Race Eqs. 5 and 6)."""
    data.check(network)
    paths = network.paths
    gated = [path_gate(path, data) for path in paths]
    yx = [(data.probability * gated[p] * data.y[path.target]) @ data.x[path.source].mT for p, path in enumerate(paths)]
    xx = {}
    for j, first in enumerate(paths):
        for p, second in enumerate(paths):
            if first.target == second.target:
                xx[j, p] = (data.probability * gated[j] * gated[p] * data.x[first.source]) @ data.x[second.source].mT
    asked = sum(((data.gate(v) != 0) * data.y[v] ** 2).sum(-2) for v in network.outputs)
    return Statistics(yx, xx, (asked * data.probability).sum())


def path_products(path: Path, weights: Weights) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """W before and after each edge of a path: lists of W_s̄(p,e) and W_t̄(p,e), None at its ends (Fig. 2b)."""
    before, after = [None], [None]
    for name in path.edges[:-1]:
        before.append(weights[name] if before[-1] is None else weights[name] @ before[-1])
    for name in reversed(path.edges[1:]):
        after.append(weights[name] if after[-1] is None else after[-1] @ weights[name])
    return before, after[::-1]


def path_maps(network: Network, weights: Weights) -> list[Tensor]:
    """The total map of every path, list of (..., target size, source size): W_p, the product of its weights."""
    maps = []
    for path in network.paths:
        total = weights[path.edges[0]]
        for name in path.edges[1:]:
            total = weights[name] @ total
        maps.append(total)
    return maps


def path_errors(network: Network, weights: Weights, statistics: Statistics) -> list[Tensor]:
    """What each path still has to learn, list of (..., target size, source size) (Neural Race Eq. 4)."""
    maps = path_maps(network, weights)
    errors = []
    for p, path in enumerate(network.paths):
        beside = (j for j, other in enumerate(network.paths) if other.target == path.target)
        errors.append(statistics.yx[p] - sum(maps[j] @ statistics.xx[j, p] for j in beside))
    return errors


def gradient(network: Network, weights: Weights, statistics: Statistics) -> Weights:
    """dL/dW for every edge as a sum over the paths through it (Neural Race Eqs. 3 and 4), dict of (..., rows, columns).

    Uses nothing of the data but `statistics`. Equal to `backpropagate` to rounding.
    """
    check_weights(network, weights)
    slope = {name: torch.zeros_like(weights[name]) for name in network.edges}
    for path, error in zip(network.paths, path_errors(network, weights, statistics), strict=True):
        for name, before, after in zip(path.edges, *path_products(path, weights), strict=True):
            term = error if after is None else after.mT @ error
            slope[name] = slope[name] - (term if before is None else term @ before.mT)
    return slope


def loss_of_statistics(network: Network, weights: Weights, statistics: Statistics) -> Tensor:
    """The loss of Eq. 1 from the effective datasets alone, (...,)."""
    maps = path_maps(network, weights)
    total = 0.5 * statistics.yy
    for p in range(len(maps)):
        total = total - (maps[p] * statistics.yx[p]).sum((-2, -1))
    for (j, p), correlation in statistics.xx.items():
        total = total + 0.5 * ((maps[j] @ correlation) * maps[p]).sum((-2, -1))
    return total


def initial_weights(
    network: Network,
    scale: float | Tensor,
    seeds: int = 1,
    seed: int = 0,
    law: str = "gaussian",
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> Weights:
    """Random weights for every edge, dict of (seeds, rows, columns), of a law of `linear.random_matrix`.

    `scale` is one number, or one for each seed.
    """
    streams, scale = Streams(seeds, seed), one_per_seed(scale, seeds)
    weights = {}
    for name, edge in network.edges.items():
        rows, columns = network.sizes[edge.target], network.sizes[edge.source]
        weights[name] = random_matrix(streams.normal(rows, columns), scale, law).to(device, dtype)
    return weights


def check_weights(network: Network, weights: Weights, data: Data | None = None) -> None:
    """Raise a ValueError that names the first weight matrix which does not fit `network`, or the precision of `data`."""
    if set(weights) != set(network.edges):
        odd = min(set(weights) ^ set(network.edges))
        raise ValueError(f"weights and edges do not match: {odd!r} is only one of the two")
    for name, edge in network.edges.items():
        expected = (network.sizes[edge.target], network.sizes[edge.source])
        if tuple(weights[name].shape[-2:]) != expected:
            raise ValueError(f"the weights of {name!r} have shape {tuple(weights[name].shape[-2:])}; expected {expected}")
        if data is not None:
            data.same_kind(f"the weights of {name!r}", weights[name])

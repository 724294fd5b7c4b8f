"""Gated deep linear networks on any directed acyclic graph (Neural Race, Sections 2 and 3, Appendix B).

A gated network is linear except for gates: numbers (usually 0 or 1) that are given with every example and multiply
nodes or edges. Five lines define one, show its paths and give the gradient that drives it:

    network = Network(sizes={"x": 2, "left": 8, "right": 8, "y": 1},
                      edges=[("x", "left"), ("x", "right"), ("left", "y"), ("right", "y")])
    data = Data(x={"x": x}, y={"y": y}, gates={"left": context, "right": 1 - context})     # x is (features, items)
    statistics = effective_datasets(network, data)          # all that gradient flow ever sees of the data
    slope = gradient(network, initial_weights(network, scale=0.01, seeds=10), statistics)

Weights are a dict from an edge's name ("x→left") to a tensor (..., rows, columns); the leading dimensions are an
ensemble (seeds) and everything below is batched over them. `gated.dynamics` follows the gradient, `gated.race` reduces it
to one number per edge and mode, `gated.architectures` holds special cases that run as batched tensor programs.

*Detached* paths are trained on the residual: they see the error of the whole network, the others only the error that they
make among themselves, as if the detached paths did not exist. `detached` names nodes or edges; a path that passes through
one of them is detached.
"""

from collections.abc import Callable, Collection
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

    An output node that is gated off on an example is not asked for anything there: its target does not count.
    Gradients are the same either way; the plotted loss would only gain a constant.
    """
    activity = forward(network, weights, data)
    total = 0.0
    for node in network.outputs:
        error = (data.gate(node) != 0) * (data.y[node] - activity[node])  # (..., size, items)
        total = total + 0.5 * ((error**2).sum(-2) * data.probability).sum(-1)
    return total


def backpropagate(network: Network, weights: Weights, data: Data, *, detached: Collection[str] = ()) -> Weights:
    """dL/dW for every edge by the chain rule through the nodes: no paths needed, so it works on any graph."""
    check_weights(network, weights, data)
    return node_gradient(network, data, detached)(weights)


def node_gradient(network: Network, data: Data, detached: Collection[str] = ()) -> Callable[[Weights], Weights]:
    """`backpropagate` as a function of the weights, which it does not check: for many steps on the same data."""
    data.check(network)
    apart = _edges_of(network, detached)
    x, y, gates = ({name: as_array(part) for name, part in side.items()} for side in (data.x, data.y, data.gates))
    probability = as_array(data.probability)

    def backward(weights: Weights, activity: dict[str, Array], error: dict[str, Array]) -> dict[str, Array]:
        """Carry an error (..., size, items) at each output node back to every edge; linear in the error."""
        arriving, slopes = {}, {}  # what arrives at an edge from above, (..., target size, items)
        for node in reversed(network.order):
            felt = error[node] if node in error else sum(weights[e.name].mT @ arriving[e.name] for e in network.outgoing[node])
            felt = _gated(gates, node, felt)
            for edge in network.incoming[node]:
                arriving[edge.name] = _gated(gates, edge.name, felt)
                slopes[edge.name] = (arriving[edge.name] * probability) @ activity[edge.source].mT
        return slopes

    def slopes(weights: Weights) -> Weights:
        weights = {name: as_array(w) for name, w in weights.items()}
        activity = propagate(network, weights, x, gates)
        found = backward(weights, activity, {node: activity[node] - y[node] for node in network.outputs})
        if detached:
            # Cutting the detached edges leaves the other paths: take their answer to the whole error away, add that to their own.
            rest = {name: 0 * w if name in apart else w for name, w in weights.items()}
            alone = propagate(network, rest, x, gates)
            others = backward(rest, alone, {node: alone[node] - activity[node] for node in network.outputs})
            found |= {name: found[name] + others[name] for name in found if name not in apart}
        return {name: torch.as_tensor(found[name]) for name in network.edges}

    return slopes


def _edges_of(network: Network, detached: Collection[str]) -> set[str]:
    """The named edges, and all edges at the named nodes."""
    if isinstance(detached, str):
        detached = (detached,)
    unknown = [name for name in detached if name not in network.sizes and name not in network.edges]
    if unknown:
        raise ValueError(
            f"nothing called {unknown[0]!r} can be detached; known are {', '.join([*network.sizes, *network.edges])}"
        )
    return {e.name for e in network.edges.values() if not {e.name, e.source, e.target}.isdisjoint(detached)}


def path_gate(path: Path, data: Data) -> Tensor:
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

    yx: list[Tensor]
    xx: dict[tuple[int, int], Tensor]
    yy: Tensor


def effective_datasets(network: Network, data: Data) -> Statistics:
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


def path_products(path: Path, weights: Weights) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """W before and after each edge of a path: lists of W_s̄(p,e) and W_t̄(p,e), None where there is nothing (Fig. 2b)."""
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


def path_errors(network: Network, weights: Weights, statistics: Statistics, *, detached: Collection[str] = ()) -> list[Tensor]:
    """What each path still has to learn, list of (..., target size, source size) (Neural Race Eq. 4).

    A path that is not detached does not notice those that are.
    """
    maps = path_maps(network, weights)
    apart = _edges_of(network, detached)
    late = [not apart.isdisjoint(path.edges) for path in network.paths]
    errors = []
    for p, path in enumerate(network.paths):
        heard = (j for j, other in enumerate(network.paths) if other.target == path.target and (late[p] or not late[j]))
        errors.append(statistics.yx[p] - sum(maps[j] @ statistics.xx[j, p] for j in heard))
    return errors


def gradient(network: Network, weights: Weights, statistics: Statistics, *, detached: Collection[str] = ()) -> Weights:
    """dL/dW for every edge as a sum over the paths through it (Neural Race Eqs. 3 and 4), dict of (..., rows, columns).

    Uses nothing of the data but `statistics`. Equal to `backpropagate` to rounding.
    """
    check_weights(network, weights)
    slope = {name: torch.zeros_like(weights[name]) for name in network.edges}
    errors = path_errors(network, weights, statistics, detached=detached)
    for path, error in zip(network.paths, errors, strict=True):
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
    """Random weights for every edge, dict of (seeds, rows, columns); `scale` is one number, or one for each seed.

    `law`: "gaussian" (entries of standard deviation `scale`), "orthogonal" (all singular values equal to `scale`) or
    "xavier" (entries of variance scale² · 2 / (rows + columns)).
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

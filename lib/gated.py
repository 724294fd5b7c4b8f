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
`lib.race`, the special case of M inputs and M outputs around one hidden layer in `lib.routing`.
"""

import math
from dataclasses import dataclass, field

import networkx
import numpy as np
import torch
from scipy.integrate import solve_ivp


class TooManyPaths(ValueError):
    """The graph has more paths than anybody wants to enumerate."""


@dataclass(frozen=True)
class Edge:
    name: str
    source: str
    target: str


@dataclass(frozen=True)
class Path:
    """A way from an input node to an output node: its edges' names in the order of travel."""

    edges: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def source(self):
        return self.nodes[0]

    @property
    def target(self):
        return self.nodes[-1]

    def __str__(self):
        return " → ".join(self.nodes)


class Network:
    """The architecture graph: nodes with sizes, edges between them, nothing else.

    `sizes` maps a node's name to its number of neurons. `edges` lists (source, target) or (source, target, name);
    without a name an edge is called "source→target", a parallel one "source→target (2)". Nodes without incoming edges
    are the inputs, nodes without outgoing ones the outputs; skip edges and several inputs and outputs are all fine.
    """

    def __init__(self, sizes, edges, max_paths=2000):
        self.sizes = dict(sizes)
        self.max_paths = max_paths
        for node, size in self.sizes.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"node {node!r} has size {size!r}; a size is a whole number of neurons, at least 1")
        self.edges = {}
        for source, target, *name in edges:
            for node in (source, target):
                if node not in self.sizes:
                    raise ValueError(f"edge {source}→{target} uses the node {node!r}, which has no size")
            name = name[0] if name else self._free_name(f"{source}→{target}")
            if name in self.edges or name in self.sizes:
                raise ValueError(f"the name {name!r} is used twice; gates and weights could not tell them apart")
            self.edges[name] = Edge(name, source, target)
        self.graph = networkx.MultiDiGraph()
        self.graph.add_nodes_from(self.sizes)
        self.graph.add_edges_from((edge.source, edge.target, name) for name, edge in self.edges.items())
        if not networkx.is_directed_acyclic_graph(self.graph):
            cycle = networkx.find_cycle(self.graph)
            way = " → ".join([step[0] for step in cycle] + [cycle[0][0]])
            raise ValueError(f"the graph has a cycle, {way}; activity could not be computed node by node")
        lonely = [node for node in self.sizes if self.graph.degree(node) == 0]
        if lonely:
            raise ValueError(f"node {lonely[0]!r} has no edges; an input needs a way out and an output a way in")
        self.order = list(networkx.lexicographical_topological_sort(self.graph))
        self.incoming = {v: [e for e in self.edges.values() if e.target == v] for v in self.sizes}
        self.outgoing = {v: [e for e in self.edges.values() if e.source == v] for v in self.sizes}
        self.inputs = [v for v in self.sizes if not self.incoming[v]]
        self.outputs = [v for v in self.sizes if not self.outgoing[v]]
        self.hidden = [v for v in self.sizes if self.incoming[v] and self.outgoing[v]]
        self._paths = None

    def _free_name(self, name):
        candidate, number = name, 1
        while candidate in self.edges:
            number += 1
            candidate = f"{name} ({number})"
        return candidate

    def count_paths(self):
        """Number of paths from inputs to outputs, without enumerating them."""
        ways = {}
        for node in self.order:
            ways[node] = 1 if node in self.inputs else sum(ways[edge.source] for edge in self.incoming[node])
        return sum(ways[node] for node in self.outputs)

    @property
    def paths(self):
        """All paths that start at an input node and end at an output node, in a fixed order."""
        if self._paths is None:
            number = self.count_paths()
            if number > self.max_paths:
                raise TooManyPaths(
                    f"this graph has {number} paths, more than max_paths={self.max_paths}. The path form needs one dataset "
                    "per pair of paths. Raise max_paths, merge parallel branches, or train with backpropagate(), which "
                    "needs no paths."
                )
            self._paths = [path for node in self.inputs for path in self._walk(node)]
        return self._paths

    def _walk(self, node, edges=(), nodes=()):
        nodes = (*nodes, node)
        if not self.outgoing[node]:
            yield Path(edges, nodes)
        for edge in self.outgoing[node]:
            yield from self._walk(edge.target, (*edges, edge.name), nodes)

    def __repr__(self):
        return f"Network({len(self.sizes)} nodes, {len(self.edges)} edges, {self.count_paths()} paths)"


@dataclass
class Data:
    """Examples with their gates, which are part of the data (Neural Race, Section 2).

    `x` maps each input node to (features, items), `y` each output node to (features, items); `gates` maps names of
    nodes or edges to (items,) and anything not named is always on; `probability` (items,) weighs the examples and is
    uniform unless given. Gates of input nodes are refused: the forward rule pins an input to its value.
    """

    x: dict
    y: dict
    gates: dict = field(default_factory=dict)
    probability: torch.Tensor | None = None

    def __post_init__(self):
        self.x = {node: torch.as_tensor(value) for node, value in self.x.items()}
        self.y = {node: torch.as_tensor(value) for node, value in self.y.items()}
        like = next(iter(self.x.values()))
        self.gates = {name: torch.as_tensor(gate).to(like) for name, gate in self.gates.items()}
        if self.probability is None:
            self.probability = torch.full((like.shape[-1],), 1 / like.shape[-1], dtype=like.dtype, device=like.device)
        else:
            self.probability = torch.as_tensor(self.probability).to(like)

    @property
    def items(self):
        return self.probability.shape[-1]

    def gate(self, name):
        """The gate of a node or an edge, (items,)."""
        return self.gates.get(name, torch.ones_like(self.probability))

    def check(self, network):
        """Raise a ValueError that names what does not fit `network`."""
        for kind, nodes, given in (("input", network.inputs, self.x), ("output", network.outputs, self.y)):
            if set(given) != set(nodes):
                raise ValueError(f"the {kind} nodes are {sorted(nodes)}, but data were given for {sorted(given)}")
            for node, value in given.items():
                if value.shape != (network.sizes[node], self.items):
                    raise ValueError(
                        f"data of {kind} node {node!r} have shape {tuple(value.shape)}; "
                        f"expected (size, items) = {(network.sizes[node], self.items)}"
                    )
        for name, gate in self.gates.items():
            if name in network.inputs:
                raise ValueError(f"{name!r} is an input node: its activity is the example itself and cannot be gated")
            if name not in network.sizes and name not in network.edges:
                known = ", ".join([*network.sizes, *network.edges])
                raise ValueError(f"there is a gate for {name!r}, but no such node or edge; known are {known}")
            if gate.shape != (self.items,):
                raise ValueError(f"the gate of {name!r} has shape {tuple(gate.shape)}; expected (items,) = ({self.items},)")


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
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, edge in network.edges.items():
        rows, columns = network.sizes[edge.target], network.sizes[edge.source]
        weights[name] = random_matrix(seeds, rows, columns, scale, law, generator).to(device, dtype)
    return weights


def random_matrix(batch, rows, columns, scale, law, generator):
    """Matrices (batch, rows, columns) of one of the laws of `initial_weights`, drawn in float64."""
    draw = torch.randn(batch, rows, columns, generator=generator, dtype=torch.float64)
    if law == "gaussian":
        return scale * draw
    if law == "xavier":
        return scale * math.sqrt(2 / (rows + columns)) * draw
    if law == "orthogonal":
        q, r = torch.linalg.qr(draw if rows >= columns else draw.mT)
        q = q * torch.sign(torch.diagonal(r, dim1=-2, dim2=-1)).unsqueeze(-2)  # makes the law uniform
        return scale * (q if rows >= columns else q.mT)
    raise ValueError(f"unknown law {law!r}; choose gaussian, orthogonal or xavier")


def check_weights(network, weights):
    """Raise a ValueError that names the first weight matrix which does not fit `network`."""
    if set(weights) != set(network.edges):
        odd = min(set(weights) ^ set(network.edges))
        raise ValueError(f"weights and edges do not match: {odd!r} is only one of the two")
    for name, edge in network.edges.items():
        expected = (network.sizes[edge.target], network.sizes[edge.source])
        if tuple(weights[name].shape[-2:]) != expected:
            raise ValueError(f"the weights of {name!r} have shape {tuple(weights[name].shape[-2:])}; expected {expected}")

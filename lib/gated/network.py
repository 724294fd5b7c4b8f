"""What a gated network is: a graph with sizes, and data that bring their gates along (Neural Race, Section 2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import networkx
import torch
from torch import Tensor

from lib.linear.shapes import WrongAxes


class TooManyPaths(ValueError):
    """The graph has more paths than anybody wants to enumerate."""


@dataclass(frozen=True)
class Edge:
    """A weight matrix between two nodes."""

    name: str
    source: str
    target: str


@dataclass(frozen=True)
class Path:
    """A way from an input node to an output node: its edges' names in the order of travel."""

    edges: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def source(self) -> str:
        return self.nodes[0]

    @property
    def target(self) -> str:
        return self.nodes[-1]

    def __str__(self) -> str:
        return " → ".join(self.nodes)


class Network:
    """The architecture graph. `sizes` maps a node's name to its number of neurons.

    `edges` lists (source, target) or (source, target, name); without a name an edge is called "source→target", a parallel
    one "source→target (2)". Nodes without incoming edges are the inputs, nodes without outgoing ones the outputs.
    """

    def __init__(self, sizes: dict[str, int], edges: Sequence[tuple[str, ...]], max_paths: int = 2000):
        self.sizes = dict(sizes)
        self.max_paths = max_paths
        for node, size in self.sizes.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"node {node!r} has size {size!r}; a size is a whole number of neurons, at least 1")
        self.edges: dict[str, Edge] = {}
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
        self._paths: list[Path] | None = None

    def _free_name(self, name: str) -> str:
        candidate, number = name, 1
        while candidate in self.edges:
            number += 1
            candidate = f"{name} ({number})"
        return candidate

    def count_paths(self) -> int:
        """Number of paths from inputs to outputs, without enumerating them."""
        ways = {}
        for node in self.order:
            ways[node] = 1 if node in self.inputs else sum(ways[edge.source] for edge in self.incoming[node])
        return sum(ways[node] for node in self.outputs)

    @property
    def paths(self) -> list[Path]:
        """All paths that start at an input node and end at an output node, in a fixed order."""
        if self._paths is None:
            number = self.count_paths()
            if number > self.max_paths:
                raise TooManyPaths(
                    f"this graph has {number} paths, more than max_paths={self.max_paths}. "
                    "Raise max_paths, or train with backpropagate(), which needs no paths."
                )
            self._paths = [path for node in self.inputs for path in self._walk(node)]
        return self._paths

    def _walk(self, node: str, edges: tuple[str, ...] = (), nodes: tuple[str, ...] = ()) -> Iterator[Path]:
        nodes = (*nodes, node)
        if not self.outgoing[node]:
            yield Path(edges, nodes)
        for edge in self.outgoing[node]:
            yield from self._walk(edge.target, (*edges, edge.name), nodes)

    def __repr__(self) -> str:
        return f"Network({len(self.sizes)} nodes, {len(self.edges)} edges, {self.count_paths()} paths)"


@dataclass
class Data:
    """Examples with their gates, which are part of the data (Neural Race, Section 2).

    `x` maps each input node to (features, items), `y` each output node to (features, items); `gates` maps names of
    nodes or edges to (items,) and anything not named is always on; `probability` (items,) weighs the examples and is
    uniform unless given. Gates of input nodes are refused: the forward rule pins an input to its value.
    """

    x: dict[str, Tensor]
    y: dict[str, Tensor]
    gates: dict[str, Tensor] = field(default_factory=dict)
    probability: Tensor | None = None

    def __post_init__(self):
        self.x = {node: _floating(value) for node, value in self.x.items()}
        self.y = {node: _floating(value) for node, value in self.y.items()}
        like = next(iter(self.x.values()))
        self.gates = {name: torch.as_tensor(gate).to(like) for name, gate in self.gates.items()}
        if self.probability is None:
            self.probability = torch.full((like.shape[-1],), 1 / like.shape[-1], dtype=torch.float64)
        self.probability = torch.as_tensor(self.probability).to(like)

    @property
    def items(self) -> int:
        return self.probability.shape[-1]

    def gate(self, name: str) -> Tensor:
        """The gate of a node or an edge, (items,)."""
        return self.gates.get(name, torch.ones_like(self.probability))

    def check(self, network: Network) -> None:
        """Raise a ValueError that names what does not fit `network`."""
        for kind, nodes, given in (("input", network.inputs, self.x), ("output", network.outputs, self.y)):
            if set(given) != set(nodes):
                raise ValueError(f"the {kind} nodes are {sorted(nodes)}, but data were given for {sorted(given)}")
            for node, value in given.items():
                what, size = f"data of {kind} node {node!r}", network.sizes[node]
                if value.shape != (size, self.items):
                    turned = value.ndim == 2 and value.shape[0] != size and value.shape[1] == size
                    hint = f"({size}, items); are rows and columns swapped?" if turned else f"{(size, self.items)}"
                    raise WrongAxes(f"{what} have shape {tuple(value.shape)}; expected (size, items) = {hint}")
                self.same_kind(what, value)
        for name, gate in self.gates.items():
            if name in network.inputs:
                raise ValueError(f"{name!r} is an input node: its activity is the example itself and cannot be gated")
            if name not in network.sizes and name not in network.edges:
                known = ", ".join([*network.sizes, *network.edges])
                raise ValueError(f"there is a gate for {name!r}, but no such node or edge; known are {known}")
            if gate.shape != (self.items,):
                raise WrongAxes(f"the gate of {name!r} has shape {tuple(gate.shape)}; expected (items,) = ({self.items},)")

    def same_kind(self, what: str, tensor: Tensor) -> None:
        """Raise a ValueError unless `tensor` has the precision and the device of the inputs."""
        like = self.probability
        if (tensor.dtype, tensor.device) != (like.dtype, like.device):
            theirs, ours = (f"{str(one.dtype).removeprefix('torch.')} on {one.device}" for one in (tensor, like))
            raise WrongAxes(f"{what} are {theirs}, the inputs {ours}; bring them to one precision and device")


def _floating(value: Tensor) -> Tensor:
    value = torch.as_tensor(value)
    return value if value.is_floating_point() else value.double()


def one_per_seed(value: float | Tensor, seeds: int | None = None, axes: int = 2) -> float | Tensor:
    """A number as it is; one number for each seed as (seeds, 1, 1), ready to multiply weights with `axes` axes."""
    if isinstance(value, int | float):
        return value
    value = torch.as_tensor(value)
    if value.ndim == 1:
        if seeds is not None and len(value) != seeds:
            raise WrongAxes(f"{len(value)} numbers were given for {seeds} seeds; give one, or one for each seed")
        value = value.reshape(-1, *[1] * axes)
    return value

"""The neural race reduction: one number per edge and mode instead of all the weights (Neural Race, Sections 3.1 and 4).

`reduce` finds the singular vectors that diagonalise all effective datasets at once, or says how far they are from
having any. From weights aligned with them the network decouples into modes that race each other. Theory carries the
names of the simulation in `lib.gated`: `race.flow` and `race.loss` predict `gated.flow` and `gated.loss`.

    reduction = reduce(network, effective_datasets(network, data))     # refuses data without common singular vectors
    b = flow(network, reduction, start=0.05, times=t)                  # dict of (times, modes): Eq. 10
    predicted = loss(network, reduction, b)                            # (times,)

The paper's own examples have closed forms: `gated.architectures.closed_forms`.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.gated.dynamics import integrate
from lib.gated.engine import Statistics, Weights
from lib.gated.network import Edge, Network
from lib.linear.draws import Streams, random_matrix

EXACT = 1e-8  # share of a dataset off the diagonal that counts as rounding


class NotDiagonalisable(ValueError):
    """No set of singular vectors diagonalises all effective datasets; `distance` and `worst` as in `Reduction`."""

    def __init__(self, distance: float, worst: str):
        self.distance, self.worst = distance, worst
        super().__init__(
            f"the effective datasets have no common singular vectors: {distance:.1%} of {worst} lies off the diagonal. "
            "Accept an approximation with tolerance=1, or draw the network so that fewer paths share an edge."
        )


class RoughReduction(UserWarning):
    """The modes do not decouple, and the race is an approximation."""


@dataclass
class Reduction:
    """Effective datasets in their common singular vectors (Neural Race Eqs. 7 and 8), the strongest mode first.

    `bases[v]` (size, modes) holds R_v: V_v at inputs, U_v at outputs, orthonormal columns at hidden nodes; a column is
    zero where a node is too small to carry the mode. Where the edges out of an input node need vectors of their own, its
    basis is kept by edge instead, `bases["x→h1"]`. `s` is (paths, modes) and `d[j, p]` is (modes,), the diagonals of S(p)
    and D(j, p). `distance` is the largest share of a dataset's norm off the diagonal, `worst` names that dataset.
    """

    bases: dict[str, Tensor]
    s: Tensor
    d: dict[tuple[int, int], Tensor]
    yy: Tensor
    distance: float
    worst: str

    def ends(self, edge: Edge) -> tuple[Tensor, Tensor]:
        """R at the target and at the source of an edge, (size, modes) each."""
        return self.bases[edge.target], self.bases[edge.name if edge.name in self.bases else edge.source]


def reduce(network: Network, statistics: Statistics, tolerance: float = EXACT, seed: int = 0, copies: bool = True) -> Reduction:
    """Find the common singular vectors of all effective datasets and express the data in them.

    If the paths ask one input node for different vectors, each edge out of an input reads a copy of that node: function,
    paths and gradients stay the same, and only R may differ from edge to edge. `copies=False` takes the graph as drawn.

    Raises NotDiagonalisable when more than `tolerance` of any dataset stays off the diagonal; tolerance=1 accepts
    everything, with a warning. `seed` draws the free bases of the hidden nodes.
    """
    found = _reduce(network, statistics, seed)
    if copies and found.distance > EXACT and any(len(network.outgoing[v]) > 1 for v in network.inputs):
        apart, original = _copied(network)
        again = _reduce(apart, statistics, seed)
        if again.distance < found.distance:
            again.bases = {original.get(name, name): basis for name, basis in again.bases.items()}
            found = again
    if found.distance > tolerance:
        raise NotDiagonalisable(found.distance, found.worst)
    if found.distance > EXACT:
        message = f"the modes do not decouple, the race is an approximation: {found.distance:.1%} of {found.worst} lies off"
        warnings.warn(message + " the diagonal", RoughReduction, stacklevel=2)
    return found


def _copied(network: Network) -> tuple[Network, dict[str, str]]:
    """The network with one input node per edge that leaves one, and {copy: the edge that reads it}; same paths, same order."""
    sizes, source = {}, {}
    for node, size in network.sizes.items():
        readers = network.outgoing[node] if node in network.inputs else []
        if len(readers) > 1:
            source |= {edge.name: f"{node} for {edge.name}" for edge in readers}
            sizes |= {source[edge.name]: size for edge in readers}
        else:
            sizes[node] = size
    edges = [(source.get(edge.name, edge.source), edge.target, edge.name) for edge in network.edges.values()]
    return Network(sizes, edges, network.max_paths), {copy: name for name, copy in source.items()}


def _reduce(network: Network, statistics: Statistics, seed: int) -> Reduction:
    bases = _common_vectors(network, statistics)
    paths, distance, worst = network.paths, 0.0, ""

    def diagonal(sigma: Tensor, left: Tensor, right: Tensor, name: str) -> Tensor:
        nonlocal distance, worst
        sigma = sigma.double()
        entries = torch.einsum("im,ij,jm->m", left, sigma, right)
        rest = (sigma - (left * entries) @ right.mT).norm()
        share = float(rest / sigma.norm()) if sigma.norm() > 0 else 0.0
        if share > distance:
            distance, worst = share, name
        return entries

    ways = zip(paths, statistics.yx, strict=True)
    s = torch.stack([diagonal(yx, bases[way.target], bases[way.source], f"Σyx({way})") for way, yx in ways])
    d = {
        (j, p): diagonal(xx, bases[paths[j].source], bases[paths[p].source], f"Σx({paths[j]}, {paths[p]})")
        for (j, p), xx in statistics.xx.items()
    }
    order = s.abs().amax(0).sort(descending=True, stable=True).indices  # what a mode can learn on its best path
    bases = {node: basis[:, order] for node, basis in bases.items()}
    modes, streams = len(order), Streams(1, seed)
    for node in network.hidden:
        frame = random_matrix(streams.normal(network.sizes[node], min(modes, network.sizes[node]))[0], 1.0, "orthogonal")
        bases[node] = torch.nn.functional.pad(frame, (0, modes - frame.shape[-1]))
    d = {pair: entries[order] for pair, entries in d.items()}
    return Reduction(bases, s[:, order], d, statistics.yy, distance, worst)


def _common_vectors(network: Network, statistics: Statistics) -> dict[str, Tensor]:
    """Candidate singular vectors for all input and output nodes, dict of (size, modes); no mode where there are no data.

    If Eqs. 7 and 8 hold, each eigenvector of a random positive mixture of all datasets, one symmetric matrix over all inputs
    and outputs, stays within one mode. Taking the strongest, removing its piece from every node and repeating finds them all.
    """
    nodes = network.inputs + network.outputs
    start = dict(zip(nodes, np.cumsum([0] + [network.sizes[v] for v in nodes[:-1]]).tolist(), strict=True))
    part = {v: slice(start[v], start[v] + network.sizes[v]) for v in nodes}
    total = sum(network.sizes[v] for v in nodes)
    generator = torch.Generator().manual_seed(1)
    mixed = torch.zeros(total, total, dtype=torch.float64)
    for path, yx in zip(network.paths, statistics.yx, strict=True):
        mixed[part[path.target], part[path.source]] += (0.5 + torch.rand(1, generator=generator).double()) * yx
    for (j, p), xx in statistics.xx.items():
        if j <= p:  # the rest follows by symmetry
            share = 0.5 * (0.5 + torch.rand(1, generator=generator).double())
            mixed[part[network.paths[j].source], part[network.paths[p].source]] += share * xx
    mixed = mixed + mixed.mT
    smallest = 1e-12 * mixed.norm()
    modes = []  # each a dict from node to unit vector
    for _ in range(total):
        values, vectors = torch.linalg.eigh(mixed)
        if values[-1] <= smallest:
            break
        pieces = {v: vectors[part[v], -1] for v in nodes}
        pieces = {v: piece / piece.norm() for v, piece in pieces.items() if piece.norm() > 1e-6}
        keep = torch.eye(total, dtype=torch.float64)
        for v, piece in pieces.items():
            keep[part[v], part[v]] -= torch.outer(piece, piece)
        mixed = keep @ mixed @ keep
        # pieces of unconnected parts of the network may share a mode: fill the first one that has room
        home = next((mode for mode in modes if not set(mode) & set(pieces)), None)
        modes.append(pieces) if home is None else home.update(pieces)
    bases = {v: torch.zeros(network.sizes[v], len(modes), dtype=torch.float64) for v in nodes}
    for m, mode in enumerate(modes):
        for v, piece in mode.items():
            bases[v][:, m] = piece
    return bases


def strengths(network: Network, b: dict[str, Tensor]) -> Tensor:
    """Total strength of every path and mode, (..., paths, modes): the product of b along the path."""
    return torch.stack([torch.stack([b[name] for name in path.edges]).prod(0) for path in network.paths], -2)


def flow(
    network: Network,
    reduction: Reduction,
    start: float | dict[str, float | Tensor],
    times: Sequence[float] | Tensor,
    tau: float = 1.0,
) -> dict[str, Tensor]:
    """The race: singular values of every edge at `times`, dict of (times, modes) (Neural Race Eq. 10).

    `start` is one number for all edges and modes, or a dict from edge to (modes,). Small Gaussian weights of standard
    deviation σ around one hidden layer of n units start like σ √(n/2) on both of its edges (`linear.initial_strength`
    is the square of this). Mode by mode,
    tau db_e/dt = Σ_p Π_{k in p, k ≠ e} b_k [s_p - Σ_j b_j d_jp]: Eq. 10 with its products read entry by entry.
    """
    paths, names = network.paths, list(network.edges)
    position = {name: i for i, name in enumerate(names)}
    alive = torch.stack([_alive(network, reduction, name) for name in names]).numpy()  # (edges, modes)
    velocity = _velocity([[position[name] for name in path.edges] for path in paths], reduction, alive / tau)
    first = _start(network, reduction, start)
    first = np.stack([first[name].numpy() for name in names]).reshape(-1)
    path = torch.as_tensor(integrate(velocity, first, times)).reshape(len(times), *alive.shape)
    return {name: path[:, i] for i, name in enumerate(names)}


def _velocity(along: list[list[int]], reduction: Reduction, share: np.ndarray) -> Callable[[float, np.ndarray], np.ndarray]:
    """The right-hand side of Eq. 10 for `flow`, (time, flat b) -> flat change, all paths at once.

    `along` has the edges of each path; `share` (edges, modes) multiplies the change. Short paths are filled up with an edge
    beyond the last, whose singular values are one.
    """
    edges, modes = share.shape
    longest = max(map(len, along))
    places = np.array([path + [edges] * (longest - len(path)) for path in along])  # (paths, longest)
    others = np.array([[k for k in range(longest) if k != i] for i in range(longest)], dtype=int)  # (longest, longest - 1)
    belongs = (places.reshape(-1) == np.arange(edges)[:, None]).astype(float)  # (edges, paths · longest)
    hears = np.zeros((modes, len(along), len(along)))
    for (j, p), variance in reduction.d.items():
        hears[:, p, j] = variance
    s, b = reduction.s.numpy(), np.ones((edges + 1, modes))

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        b[:edges] = flat.reshape(edges, modes)
        factors = b[places]  # (paths, longest, modes)
        error = s - (hears @ factors.prod(1).T[..., None])[..., 0].T  # (paths, modes)
        change = factors[:, others].prod(2) * error[:, None]
        return (share * (belongs @ change.reshape(-1, modes))).reshape(-1)

    return velocity


def _alive(network: Network, reduction: Reduction, name: str) -> Tensor:
    """1 for the modes that both ends of an edge can carry, (modes,)."""
    target, source = reduction.ends(network.edges[name])
    return ((source.norm(dim=0) > 0) & (target.norm(dim=0) > 0)).double()


def _start(network: Network, reduction: Reduction, start: float | dict[str, float | Tensor]) -> dict[str, Tensor]:
    if not isinstance(start, dict):
        start = {name: start for name in network.edges}
    return {n: torch.as_tensor(start[n], dtype=torch.float64) * _alive(network, reduction, n) for n in network.edges}


def loss(network: Network, reduction: Reduction, b: dict[str, Tensor]) -> Tensor:
    """Loss along the race, (...,): Eq. 1 in the common singular vectors."""
    a = strengths(network, b)
    total = 0.5 * reduction.yy - (a * reduction.s).sum((-2, -1))
    for (j, p), variance in reduction.d.items():
        total = total + 0.5 * (a[..., j, :] * variance * a[..., p, :]).sum(-1)
    return total


def decoupled_weights(network: Network, reduction: Reduction, start: float | dict[str, float | Tensor]) -> Weights:
    """Weights R_target diag(b) R_sourceᵀ, dict of (rows, columns), from which the race is exact (Neural Race Eq. 9)."""
    b = _start(network, reduction, start)
    ends = {name: reduction.ends(edge) for name, edge in network.edges.items()}
    return {name: (target * b[name]) @ source.mT for name, (target, source) in ends.items()}

"""Random gated networks: something to hold a formula against."""

import itertools

import torch

from lib.gated.engine import Weights, initial_weights
from lib.gated.network import Data, Network


def random_example(seed: int) -> tuple[Network, Data, Weights]:
    """A random graph of 2 to 7 nodes with parallel and skip edges, binary and real gates, and weights for two seeds."""
    generator = torch.Generator().manual_seed(seed)

    def whole(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    number = whole(3, 7)
    sizes = {f"n{i}": whole(1, 4) for i in range(number)}
    edges = [(f"n{i}", f"n{i + 1}") for i in range(number - 1) if whole(0, 3)]
    edges += [(f"n{i}", f"n{j}") for i, j in itertools.combinations(range(number), 2) if whole(0, 2) == 0]
    edges = edges or [("n0", "n1"), ("n0", "n1")]
    used = {node for edge in edges for node in edge}
    network = Network({node: size for node, size in sizes.items() if node in used}, edges)
    items = whole(2, 6)
    gates = {}
    for name in [v for v in network.sizes if v not in network.inputs] + list(network.edges):
        kind = whole(0, 2)
        if kind:
            gates[name] = (normal(items) > 0).double() if kind == 1 else normal(items)
    probability = torch.rand(items, generator=generator, dtype=torch.float64)
    data = Data(
        x={v: normal(network.sizes[v], items) for v in network.inputs},
        y={v: normal(network.sizes[v], items) for v in network.outputs},
        gates=gates,
        probability=probability / probability.sum(),
    )
    return network, data, initial_weights(network, scale=0.7, seeds=2, seed=seed)

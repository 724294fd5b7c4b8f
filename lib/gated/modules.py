"""Gated networks as `torch.nn.Module`s, for optimisers and losses of one's own, and back."""

from itertools import pairwise

import torch
from torch import Tensor

from lib.gated.engine import Weights, check_weights, propagate
from lib.gated.network import Data, Network


class GatedModule(torch.nn.Module):
    """A gated network whose weights are parameters, in the order of `network.edges`."""

    def __init__(self, network: Network, weights: Weights):
        super().__init__()
        check_weights(network, weights)
        self.network = network
        self.matrices = torch.nn.ParameterList(weights[name].detach().clone() for name in network.edges)

    def forward(self, x: dict[str, Tensor], gates: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Activity of the output nodes, {output: (..., size, items)}; x {input: (size, items)}, gates {name: (items,)}.

        Items are columns here as everywhere in `gated`. A node or edge without a gate is open.
        """
        weights = dict(zip(self.network.edges, self.matrices, strict=True))
        data = Data(x, {}, gates or {})
        data.check(self.network, targets=False)
        check_weights(self.network, weights, data)
        activity = propagate(self.network, weights, data.x, data.gates)
        return {node: activity[node] for node in self.network.outputs}


def to_module(network: Network, weights: Weights) -> GatedModule:
    """The network with these weights (copied) as a module, to train with any optimiser and any loss."""
    return GatedModule(network, weights)


def from_module(module: torch.nn.Module) -> tuple[Network, Weights]:
    """(network, weights) of a module made by `to_module`, or of a `torch.nn.Sequential` of linear layers without biases.

    The layers of the latter become the chain x → h1 → … → y, whose nodes can then be gated.
    """
    if isinstance(module, GatedModule):
        return module.network, {n: w.detach().clone() for n, w in zip(module.network.edges, module.matrices, strict=True)}
    layers = list(module) if isinstance(module, torch.nn.Sequential) else []
    if not layers or any(not isinstance(one, torch.nn.Linear) or one.bias is not None for one in layers):
        raise TypeError(
            "from_module takes a module of to_module, or a torch.nn.Sequential that holds only Linear layers with bias=False; "
            f"this is {type(module).__name__}"
        )
    names = ["x", *(f"h{i + 1}" for i in range(len(layers) - 1)), "y"]
    sizes = [layers[0].in_features, *(layer.out_features for layer in layers)]
    network = Network(dict(zip(names, sizes, strict=True)), list(pairwise(names)))
    return network, {n: layer.weight.detach().clone() for n, layer in zip(network.edges, layers, strict=True)}

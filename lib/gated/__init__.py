"""Gated deep linear networks on any directed graph (The Neural Race Reduction).

`network` and `engine`: the graph, its paths, effective datasets and gradients; `dynamics`: gradient flow, training with
finite steps, what is conserved. `race`: one number per edge and mode instead of all weights. `pictures` draws,
`random_graphs` makes up networks. A folder of its own, `architectures`, holds the papers' special cases as batched tensor
programs: `routing`, its `rivals` and `classifiers`, `pathways`, `closed_forms`.

Items are columns, weights a dict from an edge's name to (..., rows, columns), losses means over items, gradients +dL/dW.

    from lib import gated
    from lib.gated import random_graphs
    network, data, weights = random_graphs.random_example(seed=3)
    run = gated.train(network, weights, gated.effective_datasets(network, data), step=0.1, steps=50)
    print(network, run["loss"][[0, -1]])
"""

from lib.gated import network  # isort: skip (first: the others import it through this package)
from lib.gated import architectures, dynamics, engine, pictures, race, random_graphs
from lib.gated.dynamics import balance, balance_drift, flow, train
from lib.gated.engine import (
    Statistics,
    backpropagate,
    effective_datasets,
    forward,
    gradient,
    initial_weights,
    loss,
    loss_of_statistics,
    path_errors,
    path_maps,
)
from lib.gated.network import Data, Network, TooManyPaths

__all__ = ["network", "engine", "dynamics", "race", "architectures", "pictures", "random_graphs"]
__all__ += ["Network", "Data", "TooManyPaths", "Statistics", "effective_datasets", "path_maps", "path_errors"]
__all__ += ["forward", "loss", "loss_of_statistics", "gradient", "backpropagate", "initial_weights"]
__all__ += ["flow", "train", "balance", "balance_drift"]

"""Gated deep linear networks on any directed graph (The Neural Race Reduction).

`network` and `engine`: the graph, its paths, effective datasets and gradients; `dynamics`: gradient flow, training with
finite steps, what is conserved; `modules`: a gated network as a `torch.nn.Module` and back. `race`: one number per edge and
mode instead of all weights. `pictures` draws, `random_graphs` invents networks. A room of its own, `architectures`, holds
the papers' special cases as batched tensor programs: `routing`, its `rivals` and `classifiers`, `pathways`, `closed_forms`.

Items are columns, weights a dict from an edge's name to (..., rows, columns), losses means over items, gradients +dL/dW.

    from lib import gated
    from lib.gated import random_graphs
    network, data, weights = random_graphs.random_example(seed=3)
    run = gated.train(network, weights, gated.effective_datasets(network, data), step=0.1, steps=50)
    print(network, run["loss"][[0, -1]])
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "network": ("TooManyPaths", "Edge", "Path", "Network", "Data"),
        "engine": (
            "forward",
            "propagate",
            "loss",
            "backpropagate",
            "node_gradient",
            "path_gate",
            "Statistics",
            "effective_datasets",
            "path_products",
            "path_maps",
            "path_errors",
            "gradient",
            "loss_of_statistics",
            "initial_weights",
            "check_weights",
        ),
        "dynamics": ("flow", "train", "balance", "balance_drift"),
        "modules": ("GatedModule", "to_module", "from_module"),
        "race": (),
        "architectures": (),
        "pictures": (),
        "random_graphs": (),
    },
)

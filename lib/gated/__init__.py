"""Gated deep linear networks on any directed graph (The Neural Race Reduction).

`network` and `engine`: the graph, its paths, effective datasets, gradients and gradient flow. `race`: one number per edge
and mode instead of all weights; `closed_forms` of the paper's examples. `routing` and `pathways`: two special cases as
batched tensor programs. `classifiers`: routing of real images. `pictures` draws, `random_graphs` invents networks.

    from lib import gated
    from lib.gated import race, random_graphs
    network, data, weights = random_graphs.random_example(seed=3)
    statistics = gated.effective_datasets(network, data)
    print(network, gated.loss(network, weights, data))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "network": ("TooManyPaths", "Edge", "Path", "Network", "Data"),
        "engine": (
            "forward",
            "loss",
            "backpropagate",
            "path_gate",
            "Statistics",
            "effective_datasets",
            "path_products",
            "path_maps",
            "path_errors",
            "gradient",
            "loss_of_statistics",
            "flow",
            "balance",
            "balance_drift",
            "initial_weights",
            "check_weights",
        ),
        "race": (),
        "closed_forms": (),
        "routing": (),
        "pathways": (),
        "classifiers": (),
        "pictures": (),
        "random_graphs": (),
    },
)

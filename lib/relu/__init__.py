"""ReLU networks trained from small weights (Make Haste Slowly; Bias-mediated early linearization).

`networks` draws, runs and trains them (`linear.backpropagation` is the gradient by hand), `gating` says which units are on when,
`realisable` which gates there can be. `separability` and `contexts` are the races of Make Haste Slowly; `linearization`
belongs to early linearisation, `representations` to the geometry of hidden layers. `minibatches` trains the same
networks on images, which are rows there, (images, pixels); everywhere else items are columns.

Ensembles are (conditions, seeds); data that differ between conditions are (conditions, 1, features, items). The loss is half
the squared error, averaged over items; both papers sum it, and their pages say reduction="sum".

    from lib import relu
    from lib.data import tasks
    x, y = tasks.xor()
    weights = relu.initial_weights((2, 32, 2), std=0.01, seeds=4)
    print(relu.train(weights, x, y, step=0.1, steps=300)["loss"][-1])
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "networks": (
            "initial_weights",
            "preactivation",
            "output",
            "hidden",
            "loss",
            "gradient",
            "train",
            "schedule",
            "into_column_space",
        ),
        "gating": (
            "gates",
            "gates_of",
            "unit_weight",
            "share",
            "unit_states",
            "effective_gates",
            "cluster_gates",
            "distinct_gates",
        ),
        "realisable": (),
        "separability": (),
        "contexts": (),
        "linearization": (),
        "minibatches": (),
        "representations": (),
    },
)

"""ReLU networks trained from small weights (Make Haste Slowly; Bias-mediated early linearization).

`networks` trains them, `gating` says which units are on when, `realisable` which gates there can be. `separability` and
`contexts` are the races of Make Haste Slowly; `linearization`, `curves` and `minibatches` belong to early linearisation;
`representations` to the geometry of hidden layers.

    from lib import relu
    from lib.data import tasks
    x, y = tasks.xor()
    weights = relu.initial_weights((2, 32, 2), std=0.01, ensemble=(4,))
    print(relu.train(weights, x, y, step=0.1, steps=300)["loss"][-1])
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "networks": (
            "initial_weights",
            "preactivations",
            "output",
            "loss",
            "gradient",
            "train",
            "train_in_batches",
            "into_column_space",
            "with_bias",
            "per_layer",
        ),
        "gating": ("gates", "unit_weight", "unit_states", "cluster_gates", "distinct_gates"),
        "realisable": (),
        "separability": (),
        "contexts": (),
        "linearization": (),
        "curves": (),
        "minibatches": (),
        "representations": (),
    },
)

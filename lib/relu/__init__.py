"""ReLU networks trained from small weights (Make Haste Slowly; Bias-mediated early linearization).

`networks` draws, runs and trains them with the gradient written out, `gating` says which units are on when,
`realisable` which gates there can be. `separability` and `contexts` are the races of Make Haste Slowly; `linearization`
and `tangent` belong to early linearisation, `representations` to the geometry of hidden layers. `minibatches` trains the same
networks on images, which are rows there, (images, pixels); everywhere else items are columns.

Ensembles are (conditions, seeds); data that differ between conditions are (conditions, 1, features, items). The loss is half
the squared error, averaged over items; both papers sum it, and their pages say reduction="sum".

    from lib import relu
    from lib.data import tasks
    x, y = tasks.xor()
    weights = relu.initial_weights((2, 32, 2), std=0.01, seeds=4)
    print(relu.train(weights, x, y, step=0.1, steps=300)["loss"][-1])
"""

from lib.relu import contexts, gating, linearization, minibatches, networks, realisable, representations, separability, tangent
from lib.relu.gating import cluster_gates, distinct_gates, effective_gates, gates, gates_of, share, unit_states, unit_weight
from lib.relu.networks import gradient, hidden, initial_weights, into_column_space, loss, output, preactivation, schedule, train

__all__ = ["networks", "initial_weights", "preactivation", "hidden", "output", "loss", "gradient", "train", "schedule"]
__all__ += ["into_column_space", "gating", "gates", "gates_of", "unit_weight", "share", "unit_states", "effective_gates"]
__all__ += ["cluster_gates", "distinct_gates", "realisable", "separability", "contexts", "linearization", "minibatches"]
__all__ += ["representations", "tangent"]

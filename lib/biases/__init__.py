"""Random weights and learned biases (Williams et al.): networks that learn one number per unit.

`networks` are frozen, `training` learns their biases, masks or everything. `universality` has the constructions behind the
universality theorems, `limit` the theory of many units, `gated` the closed form of learning with fixed gates, `recurrent` the
recurrent networks, `task_variance` which unit works for which task. Inputs are rows, x (items, inputs), and signals run along
rows, (steps, inputs). Losses are means over items: cross-entropy or half the squared error, in `recurrent` the mean squared
error, as in the paper.

    import torch
    from lib import biases
    x = torch.linspace(-1, 1, 200)[:, None]                                     # any regression: (items, inputs)
    network = biases.frozen(units=300, inputs=1, outputs=1, scale=1.0, seeds=3)
    learned = biases.train_biases(network, x, torch.sin(3 * x), loss="squared", epochs=50)
    print(learned, biases.answers(network, learned.bias, x).shape)              # (seeds, items, outputs)
"""

from lib.biases import gated, limit, networks, recurrent, task_variance, training, universality
from lib.biases.networks import LOSSES, Frozen, PreActivations, accuracy, answers, frozen, parameter_counts, unit_variance
from lib.biases.training import Learned, train_biases, train_fully, train_masks

__all__ = ["networks", "LOSSES", "Frozen", "PreActivations", "accuracy", "answers", "frozen"]
__all__ += ["parameter_counts", "unit_variance", "training", "Learned", "train_biases", "train_fully", "train_masks"]
__all__ += ["gated", "limit", "recurrent", "task_variance", "universality"]

"""Random weights and learned biases: networks that learn one number per unit.

`networks` are the frozen ones and what their units do, `training` learns biases, masks or everything, `kernels` are its two
inner loops. `theory` has the constructions behind the universality theorems and the limit of many units, `recurrent` the
networks with a memory, `task_variance` the question which unit works for which task, `gated` the closed form of learning
while gates are held. Images are rows here, x (items, pixels), and signals run along rows, (steps, inputs); numbers are
float32. Losses are means over items: cross-entropy or half the squared error, and in `recurrent` the plain mean squared
error, as in the paper.

    from lib import biases
    from lib.data import datasets
    digits = datasets.load("mnist", train=300, test=100)
    network = biases.frozen(units=200, pixels=784, classes=10, seeds=3)
    learned = biases.train_biases(network, digits.x_train, digits.y_train, epochs=2)
    print(biases.accuracy(network, learned.bias, digits.x_test, digits.y_test))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "networks": (
            "Frozen",
            "frozen",
            "PreActivations",
            "parameter_counts",
            "answers",
            "accuracy",
            "mean_loss",
            "unit_variance",
            "examine",
        ),
        "training": ("Learned", "train_biases", "train_masks", "train_fully"),
        "full": (),
        "kernels": (),
        "gated": (),
        "theory": (),
        "recurrent": (),
        "task_variance": (),
    },
)

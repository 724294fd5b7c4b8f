"""Random weights and learned biases: networks that learn one number per unit.

`networks` are the frozen ones and what their units do, `training` learns biases, masks or everything, `kernels` are its two
inner loops. `theory` has the constructions behind the universality theorems, `recurrent` the networks with a memory,
`task_variance` the question which unit works for which task. Images are rows here.

    from lib import biases
    from lib.data import datasets
    digits = datasets.load("mnist", train=300, test=100)
    network = biases.frozen(200)
    learned = biases.train_biases(biases.PreActivations(digits.x_train, network), digits.y_train, network, epochs=2)
    print(biases.accuracy(digits.x_test, digits.y_test, network, learned.bias))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "networks": ("Frozen", "frozen", "parameter_counts", "answers", "accuracy", "unit_variance", "examine"),
        "training": ("PreActivations", "Learned", "train_biases", "train_masks", "train_fully"),
        "kernels": (),
        "theory": (),
        "recurrent": (),
        "task_variance": (),
    },
)

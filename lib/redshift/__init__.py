"""Networks that nobody trained, and what training makes of them (Neural Redshift).

`random_networks` draws and evaluates ensembles, `infinite_width` predicts them without drawing one. `trained_networks`
moves them by Adam, `kernel_regression` says where wide ones would go; `coordinate_networks` paint, `transformers` write.

Points and pixels come in thousands and are rows here: x (points, inputs), as `data.tasks.as_rows` supplies them. A network
is a list of layers, each a dict with "weight" (seeds, out, in) and "bias" (seeds, 1, out). Training is Adam on the plain
mean squared error or the cross-entropy, as in the paper. Activations are names or callables.

    from lib import complexity
    from lib.redshift import infinite_width, random_networks
    wide = random_networks.Prior(magnitude=4.0, shape="gaussian")
    pictures = random_networks.images("sine", seeds=16, depth=3, width=64, prior=wide, m=32)
    print(complexity.cosine(pictures).mean(), infinite_width.cosine("sine", 3, 64, wide, m=32))
"""

from lib.redshift import (
    activations,
    coordinate_networks,
    infinite_width,
    kernel_regression,
    random_networks,
    trained_networks,
    transformers,
)

__all__ = ["activations", "random_networks", "infinite_width", "trained_networks", "kernel_regression", "coordinate_networks"]
__all__ += ["transformers"]

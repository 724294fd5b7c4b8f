"""Networks that nobody trained, and what training makes of them (Neural Redshift).

`random_networks` draws and evaluates ensembles, `infinite_width` predicts them without drawing one. `trained_networks`
moves them by Adam, `kernel_regression` trains the readout of infinitely wide ones; `coordinate_networks` learn pictures,
`transformers` write sequences. `activations` are names or callables.

Points and pixels come in thousands and are rows here: x (points, inputs), as `data.tasks.as_rows` supplies them. A network
is a list of layers, each a dict with "weight" (seeds, out, in) and "bias" (seeds, 1, out). Training is Adam on the plain
mean squared error or the cross-entropy, as in the paper, with gradients from torch.

    from lib import complexity
    from lib.redshift import infinite_width, random_networks
    wide = random_networks.Prior(magnitude=4.0, shape="gaussian")
    pictures = random_networks.images("sine", seeds=16, depth=3, width=64, prior=wide, m=32)
    print(complexity.cosine(pictures).mean(), infinite_width.cosine("sine", 3, 64, wide, m=32))
"""

from lib.redshift import coordinate_networks, infinite_width, kernel_regression, random_networks, trained_networks, transformers
from lib.redshift.activations import phi
from lib.redshift.coordinate_networks import fine_tune, paint
from lib.redshift.kernel_regression import modulo_accuracy
from lib.redshift.random_networks import Prior, forward, images, unbiased_images
from lib.redshift.trained_networks import fit_network, learn_modulo_sums, shuffled

__all__ = ["phi", "random_networks", "Prior", "forward", "images", "unbiased_images"]
__all__ += ["infinite_width", "kernel_regression", "modulo_accuracy"]
__all__ += ["trained_networks", "fit_network", "learn_modulo_sums", "shuffled"]
__all__ += ["coordinate_networks", "paint", "fine_tune", "transformers"]

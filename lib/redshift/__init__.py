"""Networks that nobody trained, and what training makes of them (Neural Redshift).

`random_networks` draws and evaluates ensembles, `infinite_width` predicts them without drawing one. `trained_networks`
moves them by Adam, `coordinate_networks` let them paint, `transformers` let them write. Points and images are rows here.

    from lib import complexity
    from lib.redshift import random_networks
    pictures = random_networks.images("tanh", 4, depth=3, m=32)
    print(complexity.cosine(pictures))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "random_networks": (),
        "infinite_width": (),
        "trained_networks": (),
        "coordinate_networks": (),
        "transformers": (),
    },
)

"""Two theories of networks that learn only biases, each beside the simulation that it predicts.

`universality`: why biases are enough, the constructions and constants behind the paper's theorems. `limit`: what learning makes
of N units in practice, N degrees of freedom of a kernel machine (ours).

    from lib.biases.theory import limit, universality
    print(universality.mask_width(n=2, per_unit=3, near=0.5, gamma=0.5, delta=0.1))
"""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"universality": (), "limit": ()})

"""What single units do, and how whole ensembles of them learn: activation functions, their quick twins, gradients by hand.

import torch
from lib.redshift.units import activations
z = torch.linspace(-1, 1, 3)
print(activations.phi("sine")(z), activations.apply("sine", z.clone()))
"""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"activations": (), "gradients": ()})

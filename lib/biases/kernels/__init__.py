"""Bias learning's inner loops on cached pre-activations: answers, gradients, epochs of Adam, plain descent, sums of activity.

`work` has them twice, `Fused` in compiled code and `Plain` in torch operations, and `of` chooses; `loops` is the compiled code.

    import torch
    from lib import biases
    network = biases.frozen(units=20, pixels=4, classes=3)
    known = biases.PreActivations(network, torch.rand(5, 4))
    print(biases.kernels.of(known.values, known.scale, seeds=1).forward(torch.arange(5), torch.zeros(20), network.a).shape)
"""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"work": ("TILE", "Plain", "Fused", "Learning", "of"), "loops": ()})

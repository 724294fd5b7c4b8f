"""The activation functions of Neural Redshift (Section 3, Fig. 11), by name."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Activation = str | Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "swish": functional.silu,
    "selu": functional.selu,
    "tanh": torch.tanh,
    "gaussian": lambda z: torch.exp(-z.square() / 2),
    "sine": torch.sin,
    "erf": torch.erf,  # not in the paper: like tanh, and with an infinite-width kernel in closed form
}


def phi(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function behind a name of ACTIVATIONS; callables are returned as they are."""
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is one of {', '.join(ACTIVATIONS)}, or a callable, not {activation!r}")
    return ACTIVATIONS[activation]

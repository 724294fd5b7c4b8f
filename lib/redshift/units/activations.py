"""The activation functions: torch's, which can be differentiated, and quick twins for values and gradients by hand.

`phi` finds the function behind a name. The quick twins write their results into memory that is there already, and avoid
what is slow on a processor: torch's own exp, tanh and sine take two to seven times as long there as powers of two, or as
NumPy's functions on the same memory. To rounding they are the same. Neural Redshift Section 3, Fig. 11.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Activation = str | Callable[[Tensor], Tensor]
aten = torch.ops.aten


class _Gaussian(torch.autograd.Function):
    """exp(-x^2/2) with a gradient that reuses the output: half the memory traffic of composing it."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = x.square().mul_(-0.5).exp_()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return (gradient * x).mul_(y).neg_()


ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "swish": functional.silu,
    "selu": functional.selu,
    "tanh": torch.tanh,
    "gaussian": _Gaussian.apply,
    "sine": torch.sin,
    "erf": torch.erf,  # not in the paper: tanh's twin, for which the infinite-width kernel has a closed form
}


def phi(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function behind a name of ACTIVATIONS; callables are returned as they are."""
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is one of {', '.join(ACTIVATIONS)}, or a callable, not {activation!r}")
    return ACTIVATIONS[activation]


# --- quick twins ------------------------------------------------------------------------------------------------------


def _by_numpy(z: Tensor, h: Tensor, name: str) -> Tensor:
    """h = sin(z) and the like; NumPy is the faster one for float32, and in tanh always."""
    if z.device.type == "cpu" and (z.dtype == torch.float32 or name == "tanh"):
        getattr(np, name)(z.numpy(), out=h.numpy())
        return h
    return getattr(torch, name)(z, out=h)


def _gaussian(z: Tensor, h: Tensor) -> Tensor:
    return torch.exp2(torch.mul(z, z, out=h).mul_(-0.5 / math.log(2)), out=h)


SELU = (1.6732632423543772, 1.0507009873554805, 1)  # scales of its left side, of everything, of its argument

# Forward: h becomes phi(z); h may be z. Back: delta becomes delta * phi'(z), and z may be lost.
QUICK: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor, Tensor], Tensor]]] = {
    "relu": (
        lambda z, h: torch.clamp_min(z, 0, out=h),
        lambda delta, z, h: aten.threshold_backward.grad_input(delta, h, 0, grad_input=delta),
    ),
    "tanh": (
        lambda z, h: _by_numpy(z, h, "tanh"),
        lambda delta, z, h: aten.tanh_backward.grad_input(delta, h, grad_input=delta),
    ),
    "gaussian": (_gaussian, lambda delta, z, h: delta.mul_(z).mul_(h).neg_()),
    "sine": (lambda z, h: _by_numpy(z, h, "sin"), lambda delta, z, h: delta.mul_(_by_numpy(z, z, "cos"))),
    "gelu": (
        lambda z, h: aten.gelu.out(z, out=h),
        lambda delta, z, h: aten.gelu_backward.grad_input(delta, z, grad_input=delta),
    ),
    "swish": (
        lambda z, h: aten.silu.out(z, out=h),
        lambda delta, z, h: aten.silu_backward.grad_input(delta, z, grad_input=delta),
    ),
    "selu": (
        lambda z, h: aten.elu.out(z, *SELU, out=h),
        lambda delta, z, h: aten.elu_backward.grad_input(delta, *SELU, False, z, grad_input=delta),
    ),
}
FROM_VALUE = ("relu", "tanh")  # the slope follows from the value, which may then take the place of z


def apply(activation: Activation, z: Tensor, keep: bool = False, into: Tensor | None = None) -> Tensor:
    """phi(z); where no gradient is wanted by the quick twin, and then in place of z unless it is to be kept (`into` this memory,
    if any)."""
    if callable(activation) or activation not in QUICK or z.requires_grad:
        return phi(activation)(z)
    return QUICK[activation][0](z, (torch.empty_like(z) if into is None else into) if keep else z)

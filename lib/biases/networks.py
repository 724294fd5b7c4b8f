"""Networks with one hidden layer whose random weights are frozen, and which learn hidden biases or masks instead.

    y = A (mask · relu(W x + bias))

W and A are drawn once. A network that learns biases has one number per hidden unit to adjust, a network that learns masks
has one switch. Williams et al., *Expressivity of Neural Networks with Random Weights and Learned Biases*.

Frozen input weights have a gift: W x never changes. `PreActivations` computes it once for all images, keeps it in 16 bits,
and spills it to disk when it outgrows a stated limit. What is left of a training step is elementwise work and a product
with ten columns (one per class), done by two fused kernels in `biases.kernels` that read each cached number once.

Members of an ensemble (seeds) lie side by side in the unit dimension, so that all of them train in one pass.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

CLASSES = 10  # the kernels have ten columns; tasks with fewer classes are padded with zeros


@dataclass(frozen=True)
class Frozen:
    """Random weights that nobody trains: `w` (members · units, pixels) and `a` (classes, members · units)."""

    w: Tensor
    a: Tensor
    members: int = 1

    @property
    def units(self) -> int:
        return len(self.w) // self.members

    def member(self, k: int) -> "Frozen":
        """The k-th network alone."""
        own = slice(k * self.units, (k + 1) * self.units)
        return Frozen(self.w[own], self.a[:, own].contiguous())


def frozen(
    units: int,
    pixels: int = 784,
    classes: int = 10,
    scale: float = 0.1,
    output_scale: float | None = None,
    members: int = 1,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Frozen:
    """Weights uniform in [-scale, scale], the output's in [-output_scale, output_scale] (the same if not given).

    Member k is drawn from seed + k alone, so it is the same network in an ensemble of any size.
    """
    w, a = [], []
    for k in range(members):
        generator = torch.Generator().manual_seed(seed + k)
        w.append((2 * torch.rand(units, pixels, generator=generator) - 1) * scale)
        a.append((2 * torch.rand(classes, units, generator=generator) - 1) * (scale if output_scale is None else output_scale))
    return Frozen(torch.cat(w).to(device), torch.cat(a, 1).contiguous().to(device), members)


def parameter_counts(units: int, pixels: int = 784, classes: int = 10) -> dict[str, int]:
    """Trainable numbers of a bias-only and of a fully trained network of the same architecture. Section 3.1."""
    return {"bias": units, "full": units * (pixels + 1 + classes) + classes}


# ---------------------------------------------------------------------------------------------------------------------
# What a network answers, and what its units do


def answers(
    x: Tensor, network: Frozen, bias: Tensor, mask: Tensor | None = None, output_bias: Tensor | float = 0.0, chunk: int = 1000
) -> Tensor:
    """Outputs (members, images, classes) for images x; `bias` and `mask` are (members, units)."""
    parts = [
        (_hidden(part, network, bias, mask) @ network.a.view(len(network.a), network.members, -1).permute(1, 2, 0)) + output_bias
        for part in x.flatten(1).split(chunk)
    ]
    return torch.cat(parts, 1)


def accuracy(x: Tensor, y: Tensor, network: Frozen, bias: Tensor, mask: Tensor | None = None, output_bias=0.0) -> Tensor:
    """Share of images whose largest output is the right one, (members,)."""
    return (answers(x, network, bias, mask, output_bias).argmax(-1) == y).double().mean(-1)


def unit_variance(x: Tensor, network: Frozen, bias: Tensor, mask: Tensor | None = None) -> Tensor:
    """Variance of each hidden unit over the images, (members, units): the task variance of Appendix F, and Appendix G's."""
    nothing = torch.zeros(len(x), dtype=torch.long, device=x.device)
    return examine(x, nothing, network, bias, mask)[1]


def examine(
    x: Tensor, y: Tensor, network: Frozen, bias: Tensor, mask: Tensor | None = None, chunk: int = 1000
) -> tuple[Tensor, Tensor]:
    """`accuracy` (members,) and `unit_variance` (members, units) in one pass over the images."""
    a = network.a.view(len(network.a), network.members, -1).permute(1, 2, 0)
    right, total, square = 0, 0, 0
    for part, label in zip(x.flatten(1).split(chunk), y.split(chunk), strict=True):
        h = _hidden(part, network, bias, mask)  # (members, images, units)
        right = right + ((h @ a).argmax(-1) == label).double().sum(-1)
        total, square = total + h.sum(1, dtype=torch.float64), square + h.square().sum(1, dtype=torch.float64)
    return right / len(x), (square / len(x) - (total / len(x)).square()).clamp(min=0)


def _hidden(x: Tensor, network: Frozen, bias: Tensor, mask: Tensor | None) -> Tensor:
    h = functional.linear(x, network.w, bias.flatten()).relu_()
    h = h.view(len(x), network.members, -1).transpose(0, 1)  # (members, images, units)
    return h if mask is None else h * mask[:, None]

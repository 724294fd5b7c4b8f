"""Learned biases as a gated linear network: with its gates held fixed, learning is linear in the biases, and solved.

A unit with bias b answers g(x) (w·x + b), with the gate g(x) = 1[w·x + b > 0]. `gates` reads the gates off a network; `Gated`
keeps them whatever the biases do. Half the squared error is then a quadratic form in the biases, and gradient flow has a
closed form (`Gated.bias_at`). Its twin is `descend`, plain full-batch gradient descent of the network itself, whose gates move.

Bias learning, Section 3, in the manner of the Neural Race Reduction's gated deep linear networks. Images are rows, x (items,
pixels), or their `PreActivations` where these serve several times; targets are y (items, classes). Everything here is
float64, because exponentials of small eigenvalues want it, and pre-activations should be too.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.biases import kernels
from lib.biases.networks import Frozen, PreActivations, rows, targets
from lib.linear import Recording


def _known(network: Frozen, x: Tensor | PreActivations) -> PreActivations:
    """What the frozen weights hand to each unit, without its bias."""
    x = rows("gated", network, x)
    return x if isinstance(x, PreActivations) else PreActivations(network, x, "float64", limit=math.inf)


def _inputs(network: Frozen, x: Tensor | PreActivations) -> Tensor:
    """The same as (seeds, items, units)."""
    return _known(network, x).restored().double().view(len(x), network.seeds, -1).transpose(0, 1).contiguous()


def _readout(network: Frozen) -> Tensor:
    """The output weights, (seeds, classes, units)."""
    return network.a.double().view(network.classes, network.seeds, -1).transpose(0, 1).contiguous()


def gates(network: Frozen, bias: Tensor, x: Tensor | PreActivations) -> Tensor:
    """Which images switch which units on, (seeds, items, units), boolean; bias (seeds, units)."""
    return _inputs(network, x) + bias.double()[:, None] > 0


def descend(
    network: Frozen, x: Tensor | PreActivations, y: Tensor, *, step: float | Tensor, steps: int, every: int = 1
) -> Recording:
    """Learn the biases, from zero, by full-batch gradient descent on half the squared error, a mean over items.

    Records "loss" (times, seeds) and "bias" (times, seeds, units); time is steps times step. `step` is one number, or one for
    each network, (seeds, 1). The same loss as `train_biases` with loss="squared", without Adam and without batches.
    """
    if steps < 0 or every < 1:
        raise ValueError(f"steps must be at least 0 and every at least 1, got {steps} and {every}")
    known, y = _known(network, x), targets("descend", network, y, "squared", x).double()
    work = kernels.of(known.restored().double(), torch.ones(len(known), dtype=torch.float64, device=y.device), network.seeds)
    bias, a = torch.zeros(len(network.w), dtype=torch.float64, device=y.device), network.a.double()
    size = torch.as_tensor(step, dtype=torch.float64, device=y.device).reshape(-1).expand(network.seeds).contiguous()
    times = [*range(0, steps, every), steps]
    losses, seen = [], []
    for now, then in zip(times, [*times[1:], steps], strict=True):
        seen.append(bias.view(network.seeds, -1).clone())
        losses.append(work.descend(bias, y, a, size, then - now))
        for name, value in (("loss", losses[-1]), ("bias", seen[-1])):
            if not torch.isfinite(value).all():
                raise FloatingPointError(f"training diverged: '{name}' is not finite at step {now}; try a smaller step")
    return Recording(torch.tensor(times), {"loss": torch.stack(losses), "bias": torch.stack(seen)})


@dataclass(frozen=True)
class Gated:
    """The network with its gates held fixed on x: answers A (G · (W x + b)), linear in b.

    `rates` (seeds, modes) are the eigenvalues of the loss's second derivative H = (Gᵀ G / items) · (Aᵀ A), entry by entry: the
    speeds at which its eigenvectors `axes` (seeds, units, modes) are learned. Of wide networks only the items · classes modes
    that the images can move are kept.
    """

    network: Frozen
    start_loss: Tensor  # with b = 0, (seeds,)
    pull: Tensor  # minus the gradient at b = 0, (seeds, units)
    rates: Tensor
    axes: Tensor

    def bias_at(self, t: Tensor | float, start: Tensor | None = None) -> Tensor:
        """The biases (times, seeds, units) after gradient flow for the times t (times,), from `start` (seeds, units) or zero.

        b(t) = b₀ + (1 - exp(-H t)) H⁻¹ (r - H b₀), with the limit t (r - H b₀) where an eigenvalue of H vanishes.
        """
        t = torch.as_tensor(t, dtype=torch.float64).reshape(-1, 1, 1)
        start = torch.zeros_like(self.pull) if start is None else start.double()
        force = self._along(self.pull) - self.rates * self._along(start)  # (seeds, modes)
        tiny = self.rates.amax(-1, keepdim=True) * 1e-13
        gone = torch.where(self.rates > tiny, -torch.expm1(-self.rates * t) / self.rates.clamp(min=1e-300), t)
        return start + torch.einsum("sui,tsi->tsu", self.axes, gone * force)

    def loss(self, bias: Tensor) -> Tensor:
        """Half the squared error, mean over items, of biases (..., seeds, units): (..., seeds).

        Expanded around b = 0, so that the images are not needed again: L(b) = L(0) - r·b + b·H b/2.
        """
        return self.start_loss - (bias * self.pull).sum(-1) + (self.rates * self._along(bias).square()).sum(-1) / 2

    def _along(self, bias: Tensor) -> Tensor:
        """Coordinates (..., seeds, modes) of biases (..., seeds, units)."""
        return torch.einsum("sui,...su->...si", self.axes, bias)


def gated_answers(network: Frozen, bias: Tensor, x: Tensor | PreActivations, on: Tensor) -> Tensor:
    """A (G · (W x + b)), (seeds, items, classes), for gates `on` (seeds, items, units) that need not be the network's own."""
    return ((_inputs(network, x) + bias.double()[:, None]) * on) @ _readout(network).mT


def hold(network: Frozen, x: Tensor | PreActivations, y: Tensor, on: Tensor) -> Gated:
    """The network with the gates `on` (seeds, items, units) held fixed on the images x, ready to learn y (items, classes)."""
    z, a, y = _inputs(network, x), _readout(network), targets("hold", network, y, "squared", x).double()
    if on.shape != z.shape:
        raise ValueError(f"hold: gates have shape {tuple(on.shape)}, the network on these images needs {tuple(z.shape)}")
    g, items = on.double(), len(x)
    start = (g * z) @ a.mT
    pull = (((y - start) @ a) * g).mean(1)
    if network.units <= y.numel():
        rates, axes = torch.linalg.eigh((g.mT @ g / items) * (a.mT @ a))
    else:  # the same non-zero eigenvalues from the smaller side, F Fᵀ with F (classes · items, units)
        features = (a[:, :, None] * g[:, None]).flatten(1, 2) / items**0.5
        rates, left = torch.linalg.eigh(features @ features.mT)
        there = rates > rates.amax(-1, keepdim=True) * 1e-12
        axes = (features.mT @ left) * torch.where(there, rates.clamp(min=1e-300).rsqrt(), 0.0)[:, None]
    return Gated(network, _loss(start, y), pull, rates.clamp(min=0), axes)


def _loss(outputs: Tensor, y: Tensor) -> Tensor:
    return (outputs - y).square().sum(-1).mean(-1) / 2

"""Learned biases as a gated linear network: with its gates held fixed, learning is linear in the biases, and solved.

A unit with bias b answers g(x) (w·x + b), with the gate g(x) = 1[w·x + b > 0]. `gates` reads the gates off a network; `Gated`
holds them fixed. Half the squared error is then a quadratic form in the biases, and gradient flow has a closed form
(`Gated.bias_at`). Its twin is `descend_biases`, full-batch gradient descent of the network itself, whose gates move.

Bias learning, Section 3, in the manner of the Neural Race Reduction's gated deep linear networks. Inputs are rows, x (items,
inputs), or their `PreActivations`; targets are y (items, outputs). Everything is float64, and pre-activations should be too.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.biases.networks import Frozen, PreActivations, pre_activations, squared_error, targets_of
from lib.biases.training import bias_gradient
from lib.linear.descent import Recording, descend


def gates(network: Frozen, bias: Tensor, x: Tensor | PreActivations) -> Tensor:
    """Which items switch which units on, (seeds, items, units), boolean; bias (seeds, units)."""
    return pre_activations("gates", network, x, torch.float64) + bias.double()[:, None] > 0


def descend_biases(
    network: Frozen, x: Tensor | PreActivations, y: Tensor, *, step: float | Tensor, steps: int, every: int = 1
) -> Recording:
    """Learn the biases, from zero, by full-batch gradient descent on half the squared error, a mean over items.

    Records "loss" (times, seeds) and "bias" (times, seeds, units); time is steps times step. `step` is one number, or one for
    each network, (seeds, 1).
    """
    z, a = pre_activations("descend_biases", network, x, torch.float64), network.a.double()
    y = targets_of("descend_biases", network, y, "squared", len(x), torch.float64)
    one, everything = torch.ones_like(z[..., :1]), torch.arange(len(x), device=z.device)

    def look(bias: Tensor) -> tuple[Tensor, Tensor]:
        return bias_gradient(z, one, bias, a, y, everything, "squared")

    return descend(
        [torch.zeros_like(z[:, 0])],
        lambda weights: [look(*weights)[1]],
        step=step,
        steps=steps,
        every=every,
        observe=lambda weights: {"loss": look(*weights)[0], "bias": weights[0]},
    )


@dataclass(frozen=True, repr=False, eq=False)
class Gated:
    """The network with its gates held fixed on x: answers A (G · (W x + b)), linear in b.

    `rates` (seeds, modes) are the eigenvalues of the loss's second derivative H = (Gᵀ G / items) · (Aᵀ A), entry by entry, with
    eigenvectors `axes` (seeds, units, modes). Of wide networks only the items · outputs modes that the items can move are kept.
    """

    start_loss: Tensor  # with b = 0, (seeds,)
    pull: Tensor  # r, minus the gradient at b = 0, (seeds, units)
    rates: Tensor
    axes: Tensor

    def __repr__(self) -> str:
        seeds, units, modes = self.axes.shape
        return f"Gated({seeds} networks, {units} units, {modes} modes)"

    def bias_at(self, t: Tensor | float, start: Tensor | None = None) -> Tensor:
        """The biases (times, seeds, units) after gradient flow for the times t (times,), from `start` (seeds, units) or zero.

        b(t) = b₀ + (1 - exp(-H t)) H⁻¹ (r - H b₀), with the limit t (r - H b₀) where an eigenvalue of H vanishes.
        """
        t = torch.as_tensor(t, dtype=torch.float64).reshape(-1, 1, 1)
        start = torch.zeros_like(self.pull) if start is None else start.double()
        force = self._along(self.pull) - self.rates * self._along(start)  # (seeds, modes)
        tiny = self.rates.amax(-1, keepdim=True) * 1e-13
        # (1 - exp(-λ t)) / λ for each eigenvalue λ
        gone = torch.where(self.rates > tiny, -torch.expm1(-self.rates * t) / self.rates.clamp(min=1e-300), t)
        return start + torch.einsum("sui,tsi->tsu", self.axes, gone * force)

    def loss(self, bias: Tensor) -> Tensor:
        """Half the squared error, mean over items, of biases (..., seeds, units): (..., seeds).

        Expanded around b = 0, so that the items are not needed again: L(b) = L(0) - r·b + b·H b/2.
        """
        return self.start_loss - (bias * self.pull).sum(-1) + (self.rates * self._along(bias).square()).sum(-1) / 2

    def _along(self, bias: Tensor) -> Tensor:
        """Coordinates (..., seeds, modes) of biases (..., seeds, units)."""
        return torch.einsum("sui,...su->...si", self.axes, bias)


def gated_answers(network: Frozen, bias: Tensor, x: Tensor | PreActivations, on: Tensor) -> Tensor:
    """A (G · (W x + b)), (seeds, items, outputs), for gates `on` (seeds, items, units) that need not be the network's own."""
    z = pre_activations("gated_answers", network, x, torch.float64)
    return ((z + bias.double()[:, None]) * on) @ network.a.double().mT


def hold(network: Frozen, x: Tensor | PreActivations, y: Tensor, on: Tensor) -> Gated:
    """The network with the gates `on` (seeds, items, units) held fixed on the items x, ready to learn y (items, outputs)."""
    z, a = pre_activations("hold", network, x, torch.float64), network.a.double()
    y, items = targets_of("hold", network, y, "squared", len(x), torch.float64), len(x)
    if on.shape != z.shape:
        raise ValueError(f"hold: gates have shape {tuple(on.shape)}, the network on these items needs {tuple(z.shape)}")
    g = on.double()
    loss, error = squared_error((g * z) @ a.mT, y)
    pull = -((error @ a) * g).sum(1)
    if network.units <= y.numel():
        rates, axes = torch.linalg.eigh((g.mT @ g / items) * (a.mT @ a))
    else:  # the same non-zero eigenvalues from the smaller side, F Fᵀ with F (outputs · items, units)
        features = (a[:, :, None] * g[:, None]).flatten(1, 2) / items**0.5
        rates, left = torch.linalg.eigh(features @ features.mT)
        there = rates > rates.amax(-1, keepdim=True) * 1e-12
        axes = (features.mT @ left) * torch.where(there, rates.clamp(min=1e-300).rsqrt(), 0.0)[:, None]
    return Gated(loss, pull, rates.clamp(min=0), axes)

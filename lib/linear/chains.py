"""Chains of matrices: deep linear networks and their training, on correlations instead of items.

The simulation that `linear.theory` predicts. Weights are a list of (..., out, in), input to output.
"""

import torch
from torch import Tensor

from lib.linear.descent import Recording, descend
from lib.linear.theory import correlations


def small_weights(shapes, std: float, seeds: int, seed: int = 0, dtype=torch.float64, device="cpu") -> list[Tensor]:
    """Independent Gaussian matrices of the given (out, in) shapes, one ensemble member per seed: (seeds, out, in)."""
    generator = torch.Generator().manual_seed(seed)
    draw = [torch.randn(seeds, *shape, generator=generator, dtype=torch.float64) * std for shape in shapes]
    return [w.to(device=device, dtype=dtype) for w in draw]


def product(weights: list[Tensor]) -> Tensor:
    """The linear map W_N … W_1 of a chain of matrices, (..., outputs, features)."""
    total = weights[0]
    for w in weights[1:]:
        total = w @ total
    return total


def statistics_gradient(weights: list[Tensor], sigma_yx: Tensor, sigma_x: Tensor) -> list[Tensor]:
    """Gradient of the mean loss for every matrix of a linear chain, from correlations alone (Neural Race Eqs 3-6).

    The data enter only through Sigma_yx and Sigma_x, so a step costs the same for ten items or ten million.
    """
    before = [None]  # maps from the input up to each layer
    for w in weights[:-1]:
        before.append(w if before[-1] is None else w @ before[-1])
    error = product(weights) @ sigma_x - sigma_yx  # (..., outputs, features)
    gradients, after = [None] * len(weights), None
    for i in range(len(weights) - 1, -1, -1):
        back = error if after is None else after.mT @ error
        gradients[i] = back if before[i] is None else back @ before[i].mT
        after = weights[i] if after is None else after @ weights[i]
    return gradients


def statistics_loss(weights: list[Tensor], sigma_yx: Tensor, sigma_x: Tensor, power: float) -> Tensor:
    """Mean squared error, halved, of a linear chain: power/2 - <W, Sigma_yx> + <W Sigma_x, W>/2; shape (...,)."""
    w = product(weights)
    return power / 2 - (w * sigma_yx).sum((-2, -1)) + ((w @ sigma_x) * w).sum((-2, -1)) / 2


def train_on_statistics(
    weights: list[Tensor], x: Tensor, y: Tensor, *, step: float, steps: int, every: int = 1, decomposition=None
) -> Recording:
    """Full-batch gradient descent of a linear chain on the mean loss, run on the correlations instead of the items.

    Identical to training on the items themselves (tests hold it to 1e-10). Records `loss` (time, ...) and, when a
    `Modes` decomposition is given, `strength` (time, ..., modes). The weights are updated in place.
    """
    sigma_yx, sigma_x = correlations(x, y)
    power = float(y.square().sum() / y.shape[-1])

    def observe(w):
        seen = {"loss": statistics_loss(w, sigma_yx, sigma_x, power)}
        if decomposition is not None:
            seen["strength"] = torch.einsum("om,...of,fm->...m", decomposition.u, product(w), decomposition.v)
        return seen

    return descend(
        weights, lambda w: statistics_gradient(w, sigma_yx, sigma_x), step=step, steps=steps, every=every, observe=observe
    )

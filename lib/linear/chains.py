"""Chains of matrices: deep linear networks and their training, on correlations instead of items.

The simulation that `linear.theory` predicts. Weights are a list of (..., out, in), input to output; x is (features, items)
and y (outputs, items). The loss is half the squared error, mean over items.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.shapes import axes, check_chain, reals
from lib.linear.theory import Modes, correlations

Matrix = Tensor | np.ndarray


def small_weights(
    shapes: Sequence[tuple[int, int]],
    std: float,
    seeds: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> list[Tensor]:
    """Independent Gaussian matrices of the given (out, in) shapes and standard deviation: a list of (seeds, out, in).

    Network k of the ensemble `seed` is the same however many there are, in every precision and on every device.
    """
    streams = Streams(seeds, seed)
    return [(std * streams.normal(*shape)).to(device=device, dtype=dtype) for shape in shapes]


def product(weights: Sequence[Tensor]) -> Tensor:
    """The linear map W_N … W_1 of a chain of matrices, (..., outputs, features)."""
    return _product(check_chain("product", weights))


@axes(sigma_yx="outputs features", sigma_x="features features")
def statistics_gradient(weights: Sequence[Tensor], sigma_yx: Tensor, sigma_x: Tensor) -> list[Tensor]:
    """+dL/dW of the mean loss for every matrix of a linear chain, from correlations alone (Neural Race Eqs 3-6).

    The data enter only through Sigma_yx and Sigma_x, so a step costs the same for ten items or ten million.
    """
    chain = check_chain("statistics_gradient", weights, sigma_yx=("outputs features", sigma_yx))
    return _gradient(chain, sigma_yx, sigma_x)


@axes(sigma_yx="outputs features", sigma_x="features features")
def statistics_loss(weights: Sequence[Tensor], sigma_yx: Tensor, sigma_x: Tensor, power: float | Tensor) -> Tensor:
    """Mean squared error, halved, of a linear chain: power/2 - <W, Sigma_yx> + <W Sigma_x, W>/2; shape (...,).

    `power` is the mean of |y|² over items.
    """
    chain = check_chain("statistics_loss", weights, sigma_yx=("outputs features", sigma_yx))
    return _loss(_product(chain), sigma_yx, sigma_x, power)


@axes(x="features items", y="outputs items")
def train_on_statistics(
    weights: Sequence[Tensor],
    x: Tensor,
    y: Tensor,
    *,
    step: float | Tensor,
    steps: int,
    every: int = 1,
    decomposition: Modes | None = None,
) -> Recording:
    """Full-batch gradient descent of a linear chain on the mean loss, run on the correlations instead of the items.

    Identical to training on the items themselves (tests hold it to 1e-10). Records `loss` (time, ...) and, when a
    `Modes` decomposition is given, `strength` (time, ..., modes). The weights are updated in place.
    """
    x, y = reals(x, y)
    chain = check_chain("train_on_statistics", weights, x=("features items", x), y=("outputs items", y))
    # On the processor NumPy multiplies, on the same memory: it takes a fraction of torch's time to begin, and matrices are small.
    seen_as = Tensor.numpy if x.device.type == "cpu" else Tensor.detach
    matrices = [seen_as(w.detach()) for w in chain]
    statistics = [seen_as(part) for part in correlations(x, y)]
    power = seen_as(y.square().sum((-2, -1)) / y.shape[-1])
    u, v = (None, None) if decomposition is None else (seen_as(side).mT for side in (decomposition.u, decomposition.v))

    def observe(_: list[Tensor]) -> dict[str, Tensor]:
        total = _product(matrices)
        seen = {"loss": torch.as_tensor(_loss(total, *statistics, power))}
        return seen if u is None else seen | {"strength": torch.as_tensor(((u @ total) * v).sum(-1))}

    def slope(_: list[Tensor]) -> list[Tensor]:
        return [torch.as_tensor(g) for g in _gradient(matrices, *statistics)]

    return descend(chain, slope, step=step, steps=steps, every=every, observe=observe)


# What runs at every step, without the checks at the door, on tensors or on arrays


def _product(weights: Sequence[Matrix]) -> Matrix:
    total = weights[0]
    for w in weights[1:]:
        total = w @ total
    return total


def _gradient(weights: Sequence[Matrix], sigma_yx: Matrix, sigma_x: Matrix) -> list[Matrix]:
    before = [None]  # maps from the input up to each layer, the whole map last
    for w in weights:
        before.append(w if before[-1] is None else w @ before[-1])
    error = before[-1] @ sigma_x - sigma_yx  # (..., outputs, features)
    gradients, after = [None] * len(weights), None
    for i in range(len(weights) - 1, -1, -1):
        back = error if after is None else after.mT @ error
        gradients[i] = back if before[i] is None else back @ before[i].mT
        if i:  # nothing is below the first matrix
            after = weights[i] if after is None else after @ weights[i]
    return gradients


def _loss(w: Matrix, sigma_yx: Matrix, sigma_x: Matrix, power: float | Matrix) -> Matrix:
    return power / 2 - (w * sigma_yx).sum((-2, -1)) + ((w @ sigma_x) * w).sum((-2, -1)) / 2

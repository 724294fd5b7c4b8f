"""Chains of matrices: deep linear networks and their training, on correlations instead of items.

The simulation that `linear.theory` predicts. Weights are a list of (..., out, in), input to output; x is (features, items)
and y (outputs, items). The loss is half the squared error, mean over items.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.shapes import axes, check_chain, reals
from lib.linear.theory import Modes, correlations


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
    sigma_yx, sigma_x = correlations(x, y)
    power = y.square().sum((-2, -1)) / y.shape[-1]

    def observe(matrices: list[Tensor]) -> dict[str, Tensor]:
        w = _maps(matrices)[-1]
        loss = power / 2 - (w * sigma_yx).sum((-2, -1)) + ((w @ sigma_x) * w).sum((-2, -1)) / 2
        if decomposition is None:
            return {"loss": loss}
        return {"loss": loss, "strength": ((decomposition.u.mT @ w) * decomposition.v.mT).sum(-1)}

    def gradient(matrices: list[Tensor]) -> list[Tensor]:
        below = _maps(matrices)
        back = below[-1] @ sigma_x - sigma_yx  # what is left to learn, (..., outputs, features); then as each layer sees it
        slopes = []
        for k in reversed(range(len(matrices))):
            slopes.append(back @ below[k - 1].mT if k else back)
            back = matrices[k].mT @ back
        return slopes[::-1]

    return descend(chain, gradient, step=step, steps=steps, every=every, observe=observe)


def _maps(matrices: Sequence[Tensor]) -> list[Tensor]:
    """The linear maps from the input up to each layer, (..., units, features); the last is that of the network."""
    maps = [matrices[0]]
    for w in matrices[1:]:
        maps.append(w @ maps[-1])
    return maps

"""Two-layer linear pathways side by side, each with its own gate over the data: the race in its simplest form.

Pathway p maps its effective inputs, the data points for which its gate is open, through W1 (hidden, features) and W2
(outputs, hidden) onto the shared output; answers add up. All pathways, and all networks of an ensemble, run as one
tensor program on their effective correlations: w1 (..., pathways, hidden, features), w2 (..., pathways, outputs, hidden).

Losses are half the squared error summed over outputs, and over items the mean (`reduction="mean"`) or, as in Make Haste
Slowly, the sum. *Detached* pathways are trained on the residual: they see the error of the whole network, the others only
the error that they make among themselves.
"""

from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.shapes import axes, matmul


@axes(x="features items", gates="pathways items", features="pathways features")
def effective_inputs(x: Tensor, gates: Tensor, features: Tensor | None = None) -> Tensor:
    """What each pathway sees: (pathways, features, items), zero where its gate is shut.

    x (features, items), gates (pathways, items); `features` (pathways, features) hides input features from a pathway. Gates
    (..., pathways, items) are those of many networks, and so is what comes back: all functions here take such an ensemble.
    """
    seen = x * gates[..., None, :].to(x)
    return seen if features is None else seen * features[..., :, None].to(x)


@axes(inputs="pathways features items", y="outputs items")
def effective_correlations(inputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Sigma_yx(p) (pathways, outputs, features) and Sigma_x(j, p) (pathways, pathways, features, features).

    Means over all items, gated or not: Make Haste Slowly Eq. 4.
    """
    items = y.shape[-1]
    return y @ inputs.mT / items, torch.einsum("...jfn,...pgn->...jpfg", inputs, inputs) / items


def initial_pathways(
    widths: Sequence[int], features: int, outputs: int, std: float | Tensor, *, ensemble: Sequence[int] = (), seed: int = 0
) -> list[Tensor]:
    """Normal weights for pathways of the given hidden widths: [w1, w2]; `std` is a number or one per pathway.

    `ensemble` are the leading dimensions, with the independent networks (seeds) last. Training a linear pathway commutes
    with rotations of its hidden layer, so a wide pathway is *exactly* one of features + outputs units (`compressed`);
    narrow pathways are padded with units of zero weight, which stay zero.
    """
    *conditions, seeds = ensemble or (1,)
    streams = Streams(seeds, seed)

    def normal(rows: int, columns: int) -> Tensor:
        drawn = streams.normal(*conditions, rows, columns).movedim(0, len(conditions))  # (*conditions, seeds, rows, columns)
        return drawn if ensemble else drawn[0]

    hidden = features + outputs
    w1 = torch.zeros(*ensemble, len(widths), hidden, features, dtype=torch.float64)
    w2 = torch.zeros(*ensemble, len(widths), outputs, hidden, dtype=torch.float64)
    stds = torch.as_tensor(std, dtype=torch.float64).expand(len(widths))
    for p, width in enumerate(widths):
        a, b = compressed(normal(width, features) * stds[p], normal(outputs, width) * stds[p])
        w1[..., p, : a.shape[-2], :] = a
        w2[..., p, :, : b.shape[-1]] = b
    return [w1, w2]


@axes(w1="hidden features", w2="outputs hidden")
def compressed(w1: Tensor, w2: Tensor) -> tuple[Tensor, Tensor]:
    """The same linear pathway with min(hidden, features + outputs) units: rotate the hidden layer by QR of [W1 W2ᵀ]."""
    r = torch.linalg.qr(torch.cat([w1, w2.mT], -1), mode="r").R  # (..., units, features + outputs)
    return r[..., : w1.shape[-1]], r[..., w1.shape[-1] :].mT.contiguous()


@axes(inputs="pathways features items", y="outputs items")
def aligned_pathways(inputs: Tensor, y: Tensor, strength: float | Tensor) -> list[Tensor]:
    """[w1, w2] that start exactly along the first gradient: W2 W1 = strength · U Vᵀ of each Sigma_yx(p), balanced.

    Small random weights do this by themselves (silent alignment), with a strength of hidden · variance / 2.
    """
    u, s, vt = torch.linalg.svd(y @ inputs.mT, full_matrices=False)
    root = torch.as_tensor(strength, dtype=s.dtype).expand(inputs.shape[-3]).sqrt()[:, None, None]
    small = 1e-10 if s.dtype == torch.float64 else 1e-5
    real = (s > s.amax((-2, -1), keepdim=True) * small)[..., None, :]  # directions without any correlation get no start
    return [root * vt * real.mT, root * u * real]


def maps(weights: Sequence[Tensor]) -> Tensor:
    """W2 W1 of every pathway, (..., pathways, outputs, features)."""
    return weights[1] @ weights[0]


@axes(inputs="pathways features items", y="outputs items")
def gradient_on(
    inputs: Tensor, y: Tensor, *, reduction: str = "mean", detached: Collection[int] = ()
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """The function [w1, w2] -> dL/dW, from the effective correlations alone, computed once (Make Haste Slowly Eq. 3).

    All pathways' features stand side by side, pathways · features.
    """
    pathways, features = inputs.shape[-3:-1]
    flat, items = inputs.flatten(-3, -2), _items(y, reduction)
    yx, xx = y @ flat.mT / items, flat @ flat.mT / items
    if set(detached) - set(range(pathways)):
        raise ValueError(f"there are {pathways} pathways, numbered from 0; {sorted(detached)} cannot be detached")
    if detached:
        late = torch.zeros(pathways, dtype=torch.bool)
        late[list(detached)] = True
        hears = late | ~late[:, None]  # (heard, hearing): a pathway that is not detached does not see those that are
        xx = xx * hears.repeat_interleave(features, 0).repeat_interleave(features, 1).to(xx)
    yx, xx = yx.mT.contiguous(), xx.mT.contiguous()

    def gradient(weights: Sequence[Tensor]) -> list[Tensor]:
        w1, w2 = weights
        total = matmul(w1.mT, w2.mT).flatten(-3, -2)  # the maps of all pathways, (..., pathways · features, outputs)
        error = (matmul(xx, total) - yx).unflatten(-2, (pathways, -1)).mT  # (..., pathways, outputs, features)
        return [matmul(w2.mT, error), matmul(error, w1.mT)]

    return gradient


def _items(y: Tensor, reduction: str) -> int:
    if reduction not in ("mean", "sum"):
        raise ValueError(f"unknown reduction {reduction!r}; choose mean or sum")
    return y.shape[-1] if reduction == "mean" else 1


@axes(inputs="pathways features items", y="outputs items")
def train(
    weights: list[Tensor],
    inputs: Tensor,
    y: Tensor,
    *,
    step: float | Tensor,
    steps: int,
    every: int = 1,
    reduction: str = "mean",
    momentum: float = 0.0,
    detached: Collection[int] = (),
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
    answers: bool = False,
) -> Recording:
    """Gradient descent in place; records "loss" (times, *ensemble) of the whole network, with `answers` also its sum over open
    pathways, "output" (times, *ensemble, outputs, items), and what `observe` returns.

    `detached` are the numbers of the pathways that are trained on the residual of the others.
    """
    items, shown = _items(y, reduction), inputs.flatten(-3, -2).mT

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        output = matmul(shown, matmul(w[0].mT, w[1].mT).flatten(-3, -2)).mT  # (..., outputs, items)
        seen = {"loss": 0.5 * (output - y).square().sum((-2, -1)) / items} | ({"output": output} if answers else {})
        return seen | observe(w) if observe else seen

    slope = gradient_on(inputs, y, reduction=reduction, detached=detached)
    return descend(weights, slope, step=step, steps=steps, every=every, momentum=momentum, observe=watch)

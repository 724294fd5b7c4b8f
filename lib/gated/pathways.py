"""Two-layer linear pathways side by side, each with its own gate over the data: the race in its simplest form.

Pathway p maps its effective inputs, the data points for which its gate is open, through W1 (hidden, features) and W2
(outputs, hidden) onto the shared output; answers add up. All pathways, and all members of an ensemble, run as one
tensor program on their effective correlations: w1 (..., pathways, hidden, features), w2 (..., pathways, outputs, hidden).
For gated networks on any other graph see `lib.gated`, against which this special case is tested.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lib.linear.descent import Recording, descend


def effective_inputs(x: Tensor, gates: Tensor, features: Tensor | None = None) -> Tensor:
    """What each pathway sees: (pathways, features, items), zero where its gate is shut.

    x (features, items), gates (pathways, items); `features` (pathways, features) hides input features from a pathway.
    """
    seen = x * gates[:, None, :].to(x)
    return seen if features is None else seen * features[:, :, None].to(x)


def effective_correlations(inputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Sigma_yx(p) (pathways, outputs, features) and Sigma_x(j, p) (pathways, pathways, features, features).

    Means over all items, gated or not: Make Haste Slowly Eq. 4.
    """
    items = y.shape[-1]
    return y @ inputs.mT / items, torch.einsum("jfn,pgn->jpfg", inputs, inputs) / items


def initial_pathways(
    widths: Sequence[int],
    features: int,
    outputs: int,
    std: float | Tensor,
    *,
    ensemble: Sequence[int] = (),
    seed: int = 0,
    compress: bool = True,
) -> list[Tensor]:
    """Normal weights for pathways of the given hidden widths: [w1, w2]; `std` is a number or one per pathway.

    Training a linear pathway commutes with rotations of its hidden layer, and its weights start within the span of
    features + outputs hidden directions, so a wide pathway is *exactly* a pathway of that many units (`compressed`).
    Without compression narrow pathways are padded with units of zero weight, which stay zero.
    """
    generator = torch.Generator().manual_seed(seed)
    hidden = features + outputs if compress else max(widths)
    w1 = torch.zeros(*ensemble, len(widths), hidden, features, dtype=torch.float64)
    w2 = torch.zeros(*ensemble, len(widths), outputs, hidden, dtype=torch.float64)
    stds = torch.as_tensor(std, dtype=torch.float64).expand(len(widths))
    for p, width in enumerate(widths):
        a = torch.randn(*ensemble, width, features, generator=generator, dtype=torch.float64) * stds[p]
        b = torch.randn(*ensemble, outputs, width, generator=generator, dtype=torch.float64) * stds[p]
        if compress:
            a, b = compressed(a, b)
        w1[..., p, : a.shape[-2], :] = a
        w2[..., p, :, : b.shape[-1]] = b
    return [w1, w2]


def compressed(w1: Tensor, w2: Tensor) -> tuple[Tensor, Tensor]:
    """The same linear pathway with min(hidden, features + outputs) units: rotate the hidden layer by QR of [W1 W2ᵀ]."""
    r = torch.linalg.qr(torch.cat([w1, w2.mT], -1), mode="r").R  # (..., units, features + outputs)
    return r[..., : w1.shape[-1]], r[..., w1.shape[-1] :].mT.contiguous()


def aligned_pathways(inputs: Tensor, y: Tensor, strength: float | Tensor) -> list[Tensor]:
    """[w1, w2] that start exactly along the first gradient: W2 W1 = strength · U Vᵀ of each Sigma_yx(p), balanced.

    Small random weights do this by themselves before anything is visible (silent alignment), with a strength of
    hidden · variance / 2. From here training is deterministic: the race reduction without a fitted constant.
    """
    u, s, vt = torch.linalg.svd(y @ inputs.mT, full_matrices=False)
    root = torch.as_tensor(strength, dtype=torch.float64).expand(len(inputs)).sqrt()[:, None, None]
    real = (s > s.amax() * 1e-10)[:, None, :]  # directions without any correlation get no start
    return [root * vt * real.mT, root * u * real]


def maps(weights: Sequence[Tensor]) -> Tensor:
    """W2 W1 of every pathway, (..., pathways, outputs, features)."""
    return weights[1] @ weights[0]


def outputs(weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
    """The network's answer, (..., outputs, items): the sum over its open pathways."""
    return torch.einsum("...pof,pfn->...on", maps(weights), inputs)


def gradient(inputs: Tensor, y: Tensor) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """The function [w1, w2] -> gradients of the summed loss, computed from the effective correlations alone (Eq. 3)."""
    yx, xx = _summed_correlations(inputs, y)

    def gradients(weights: Sequence[Tensor]) -> list[Tensor]:
        w1, w2 = weights
        error = _unfold(_fold(w2 @ w1) @ xx - yx, len(inputs))  # (..., pathways, outputs, features)
        return [w2.mT @ error, error @ w1.mT]

    return gradients


def loss(weights: Sequence[Tensor], inputs: Tensor, y: Tensor) -> Tensor:
    """Half the squared error summed over outputs and items, one number per network."""
    return 0.5 * (outputs(weights, inputs) - y).square().sum((-2, -1))


def train(
    weights: list[Tensor],
    inputs: Tensor,
    y: Tensor,
    *,
    step: float,
    steps: int,
    every: int = 1,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
    label: str = "gated pathways",
) -> Recording:
    """Gradient descent on the summed loss, in place; records "loss" (times, *ensemble) and what `observe` returns."""

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        seen = {"loss": loss(w, inputs, y)}
        return seen | observe(w) if observe else seen

    return descend(weights, gradient(inputs, y), step=step, steps=steps, every=every, observe=watch, label=label)


def _summed_correlations(inputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    # All pathways' features side by side: (outputs, pathways · features) and its square counterpart.
    flat = inputs.flatten(0, 1)
    return y @ flat.mT, flat @ flat.mT


def _fold(per_pathway: Tensor) -> Tensor:
    return per_pathway.transpose(-3, -2).flatten(-2)  # (..., outputs, pathways · features)


def _unfold(flat: Tensor, pathways: int) -> Tensor:
    return flat.unflatten(-1, (pathways, -1)).transpose(-3, -2)

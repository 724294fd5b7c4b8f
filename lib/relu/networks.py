"""ReLU networks trained from small weights, whole ensembles at once.

A network is a plain list of weight matrices, input to output, each of shape (..., units, inputs); the leading
dimensions (seeds, margins, gains, ...) are the ensemble. Data are x (..., features, items) and y (..., outputs, items).
The last layer is linear, all others go through `activation`. A bias is a constant input of size `bias` to a layer:
where it is not zero, the layer's matrix carries one column more, so biases are weights like any other.

Gradients are written by hand: for networks of this size most of autograd's time is bookkeeping. The plain autograd
version lives in tests/test_relu.py, as the reference that these must equal.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lib.linear.descent import Recording, descend

ACTIVATIONS = ("relu", "linear", "gated")


def initial_weights(
    widths: Sequence[int],
    std: float | Sequence[float],
    *,
    ensemble: Sequence[int] = (),
    bias: float | Sequence[float] = 0.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> list[Tensor]:
    """Independent normal weights for layers of the given `widths` (features, hidden, ..., outputs).

    Returns one matrix (*ensemble, widths[l + 1], widths[l]) per layer, with one more column where that layer's `bias`
    is not zero (its starting values are drawn like all others). `std` is one number or one per layer.
    """
    generator = torch.Generator().manual_seed(seed)
    stds, biases = per_layer(std, len(widths) - 1), per_layer(bias, len(widths) - 1)
    return [
        (torch.randn(*ensemble, out, inp + (b != 0), generator=generator, dtype=dtype) * s).to(device)
        for inp, out, s, b in zip(widths, widths[1:], stds, biases, strict=False)
    ]


def preactivations(
    weights: Sequence[Tensor],
    x: Tensor,
    *,
    bias: float | Sequence[float] = 0.0,
    activation: str | Sequence[str] = "relu",
    fixed: Sequence[Tensor | None] | None = None,
) -> list[Tensor]:
    """Input to every layer's nonlinearity, (..., units, items) each; the last entry is the network's output.

    activation "gated" multiplies hidden layer l by the given gates fixed[l] (..., units, items), whatever its input:
    a gated deep linear network with one pathway per pattern of gates. None stands for a layer that is always on.
    A sequence of activations gives one to each hidden layer.
    """
    kinds = _kinds(activation, fixed, len(weights) - 1)
    result, h = [], x
    for layer, (w, b) in enumerate(zip(weights, per_layer(bias, len(weights)), strict=True)):
        h = w @ with_bias(h, b)
        result.append(h)
        if layer < len(weights) - 1:
            if kinds[layer] == "relu":
                h = h.relu()
            elif kinds[layer] == "gated" and fixed[layer] is not None:
                h = h * fixed[layer].to(h)
    return result


def output(weights: Sequence[Tensor], x: Tensor, **kind) -> Tensor:
    """What the network answers, (..., outputs, items)."""
    return preactivations(weights, x, **kind)[-1]


def loss(weights: Sequence[Tensor], x: Tensor, y: Tensor, *, reduction: str = "sum", **kind) -> Tensor:
    """Half the squared error, summed over outputs and summed or averaged over items: one number per network."""
    error = 0.5 * (output(weights, x, **kind) - y).square().sum((-2, -1))
    return error * _share(reduction, x)


def gradient(
    x: Tensor,
    y: Tensor,
    *,
    bias: float | Sequence[float] = 0.0,
    activation: str | Sequence[str] = "relu",
    fixed: Sequence[Tensor | None] | None = None,
    reduction: str = "sum",
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """The function weights -> [dL/dW of every layer], L as in `loss`; for `linear.descend`.

    Backpropagation by hand: the error at the output is carried back through each matrix and switched off where the
    unit was off. With activation "linear" it is the gradient of a deep linear network, and with activation "gated" that
    of a gated one (see `preactivations`).
    """
    _kinds(activation, fixed)
    share = _share(reduction, x)
    given = [None if g is None else g.to(x) for g in fixed or ()]

    def gradients(weights: Sequence[Tensor]) -> list[Tensor]:
        biases, kinds = per_layer(bias, len(weights)), _kinds(activation, fixed, len(weights) - 1)
        inputs, open_gates, h = [], [], x
        for layer, (w, b) in enumerate(zip(weights[:-1], biases, strict=False)):
            inputs.append(with_bias(h, b))
            h = w @ inputs[-1]  # (..., units, items)
            if kinds[layer] == "relu":
                h = h.relu_()
                open_gates.append(h.sign())  # 0 or 1; as numbers they multiply four times faster than as booleans
            else:
                open_gates.append(given[layer] if kinds[layer] == "gated" else None)
                h = h if open_gates[-1] is None else h.mul_(open_gates[-1])
        inputs.append(with_bias(h, biases[-1]))
        back = (weights[-1] @ inputs[-1]).sub_(y)  # (..., outputs, items)
        if share != 1.0:
            back.mul_(share)
        result = [back @ inputs[-1].mT]
        for layer in range(len(weights) - 1, 0, -1):
            w = weights[layer] if biases[layer] == 0 else weights[layer][..., :-1]
            back = w.mT @ back
            if open_gates[layer - 1] is not None:
                back.mul_(open_gates[layer - 1])
            # For the first layer, whose inputs are few, the product is twice as fast the other way around.
            result.append(back @ inputs[layer - 1].mT if layer > 1 else (inputs[0] @ back.mT).mT)
        return result[::-1]

    return gradients


def train(
    weights: list[Tensor],
    x: Tensor,
    y: Tensor,
    *,
    step: float,
    steps: int,
    every: int = 1,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
    reduction: str = "sum",
    label: str = "ReLU networks",
    **kind,
) -> Recording:
    """Full-batch gradient descent in place; records "loss" (times, *ensemble) and whatever `observe` returns.

    Trains wherever weights and data are; the recording comes home to the CPU.
    """

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        seen = {"loss": loss(w, x, y, reduction=reduction, **kind)}
        return seen | observe(w) if observe else seen

    slope = gradient(x, y, reduction=reduction, **kind)
    run = descend(weights, slope, step=step, steps=steps, every=every, observe=watch, label=label)
    return Recording(run.time, {name: value.cpu() for name, value in run.values.items()})


def train_in_batches(runs: int, batch: int, start: Callable[[int, int], list[Tensor]], x: Tensor, y: Tensor, **options):
    """Trains `runs` networks, `batch` of them side by side: (weights of all, recording of all).

    `start(seed, networks)` draws the weights of one batch. Beyond ten or twenty wide networks a single tensor program
    leaves the processor's cache and gets slower per network; apart from rounding, the batch changes nothing.
    """
    parts = []
    for seed, first in enumerate(range(0, runs, batch)):
        weights = start(seed, min(batch, runs - first))
        parts.append((weights, train(weights, x, y, **options)))
    weights = [torch.cat(layer) for layer in zip(*(w for w, _ in parts), strict=True)]
    values = {name: torch.cat([r[name] for _, r in parts], 1) for name in parts[0][1].values}
    return weights, Recording(parts[0][1].time, values)


def into_column_space(y: Tensor) -> tuple[Tensor, Tensor]:
    """(basis, coordinates): an orthonormal basis (outputs, rank) of y's columns and y in it, (rank, items).

    A rotation of the outputs leaves a squared loss as it is, and outputs that are always zero after the rotation carry
    nothing but the decay of their tiny initial readout: training on `coordinates` is training on y, only cheaper.
    """
    u, s, _ = torch.linalg.svd(y, full_matrices=False)
    basis = u[:, s > s[0] * 1e-10]
    return basis, basis.T @ y


# --- helpers --------------------------------------------------------------------------------------------------------


def with_bias(h: Tensor, bias: float) -> Tensor:
    """`h` (..., units, items) with a constant row of size `bias` below it; `h` itself where the bias is zero."""
    if bias == 0:
        return h
    return torch.cat([h, h.new_full((*h.shape[:-2], 1, h.shape[-1]), bias)], -2)


def per_layer(value: float | Sequence[float], layers: int) -> list[float]:
    """One number for every layer, from one number or from a sequence of the right length."""
    values = [value] * layers if isinstance(value, int | float) else list(value)
    if len(values) != layers:
        raise ValueError(f"{layers} layers, but {len(values)} values: {values}")
    if not all(math.isfinite(v) for v in values):
        raise ValueError(f"not finite: {values}")
    return values


def _share(reduction: str, x: Tensor) -> float:
    if reduction not in ("sum", "mean"):
        raise ValueError(f'reduction is "sum" or "mean", not {reduction!r}')
    return 1.0 if reduction == "sum" else 1.0 / x.shape[-1]


def _kinds(activation: str | Sequence[str], fixed: Sequence[Tensor | None] | None, layers: int | None = None) -> list[str]:
    kinds = [activation] * (layers or 1) if isinstance(activation, str) else list(activation)
    for kind in kinds:
        if kind not in ACTIVATIONS:
            raise ValueError(f"activation is one of {ACTIVATIONS}, not {kind!r}")
    if ("gated" in kinds) != (fixed is not None):
        raise ValueError('fixed gates and activation "gated" belong together')
    if layers is not None and len(kinds) != layers and not isinstance(activation, str):
        raise ValueError(f"{layers} hidden layers, but {len(kinds)} activations: {kinds}")
    return kinds

"""ReLU networks trained from small weights, whole ensembles at once (Make Haste Slowly; Early Linearization Eqs 8-10).

A network is a plain list of weight matrices, input to output, each (..., units, inputs); the leading axes are the
ensemble, conditions before seeds. Data are x (..., features, items) and y (..., outputs, items). They have no ensemble
axes, or as many as the weights, of length one where all share them: x (conditions, 1, features, items).

The last layer is linear, all others go through `activation`. A bias is a constant input of size `bias` to a layer, for which
its matrix carries one column more. The options `bias`, `activation` and `fixed` say what kind of network the weights belong
to; all functions take them alike (`preactivation`). The loss is half the squared error, averaged over items
(`reduction="mean"`) or, as in both papers, summed.

The gradient is written out, and on the processor NumPy multiplies: this takes a fifth of the time of batched autograd.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.shapes import WrongAxes, as_array, axes, check_chain

ACTIVATIONS = ("relu", "linear", "gated")
MANY = 2**22  # numbers that `output` keeps of a layer at once
Array = Tensor | np.ndarray


class Layer(NamedTuple):
    """How a layer computes its activity: φ(W h + bias · w), with w the matrix's last column where `bias` is not zero."""

    bias: float
    activation: str  # one of the ACTIVATIONS; that of the last layer is "linear"
    gate: Array | None = None  # (..., units, items) of a gated layer; None: always on


def initial_weights(
    widths: Sequence[int],
    std: float | Sequence[float],
    *,
    seeds: int | None = None,
    conditions: Sequence[int] = (),
    bias: float | Sequence[float] = 0.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> list[Tensor]:
    """Independent normal weights for layers of the given `widths` (features, hidden, ..., outputs).

    Returns one matrix (*conditions, seeds, widths[l + 1], widths[l]) per layer, with one more column where that layer's
    `bias` is not zero; without `seeds` a single network, without that axis. `std` is one number or one per layer. Network k
    starts from the same weights in every condition, so that conditions are compared network by network.
    """
    stds, biases = _per_layer(std, len(widths) - 1), _per_layer(bias, len(widths) - 1)
    streams = Streams(1 if seeds is None else seeds, seed)
    result = []
    for inputs, units, s, b in zip(widths, widths[1:], stds, biases, strict=False):
        w = s * streams.normal(units, inputs + (b != 0))
        w = w[0] if seeds is None else w
        result.append(w.expand(*conditions, *w.shape).to(device, dtype).clone(memory_format=torch.contiguous_format))
    return result


@axes(x="features items")
def preactivation(
    weights: Sequence[Tensor],
    x: Tensor,
    layer: int = 0,
    *,
    bias: float | Sequence[float] = 0.0,
    activation: str | Sequence[str] = "relu",
    fixed: Sequence[Tensor | None] | None = None,
) -> Tensor:
    """Input z = W h to the nonlinearity of layer `layer`, counted from 0, (..., units, items), of the activity h below it.

    `activation` is one of the ACTIVATIONS; a sequence gives one to each hidden layer. "gated" multiplies hidden layer l by the
    given gates fixed[l] (..., units, items), whatever its input; None stands for a layer that is always on.
    """
    if not 0 <= layer < len(weights):
        raise ValueError(f"there are {len(weights) - 1} hidden layers, counted from 0, and none is layer {layer}")
    layers = _layers(weights, x, bias, activation, fixed)
    _check(weights, layers, x)
    if not any(tensor.requires_grad for tensor in (*weights, x)):
        weights, x, layers = [as_array(w) for w in weights], as_array(x), _as_arrays(layers)
    return torch.as_tensor(_weighted(weights[layer], forward(weights[:layer], layers[:layer], x)[-1], layers[layer]))


def hidden(weights: Sequence[Tensor], x: Tensor, layer: int = 0, **kind: Any) -> Tensor:
    """Activity h = φ(z) of hidden layer `layer`, counted from 0, (..., units, items); options as in `preactivation`."""
    z = preactivation(weights, x, layer, **kind)
    return _activated(z, _layers(weights, z, **kind)[layer])


@axes(x="features items")
def output(weights: Sequence[Tensor], x: Tensor, **kind: Any) -> Tensor:
    """Outputs ŷ of the network for x, (..., outputs, items); options as in `preactivation`.

    The networks of a large ensemble are evaluated one after the other, which bounds memory.
    """
    many = max(w.shape[:-1].numel() for w in weights) * x.shape[-1] > MANY
    if many and weights[0].ndim > 2 and x.ndim in (2, weights[0].ndim) and kind.get("fixed") is None:
        inputs = x.expand(len(weights[0]), *x.shape[-2:] if x.ndim == 2 else x.shape[1:])
        return torch.stack([output(own, each, **kind) for *own, each in zip(*weights, inputs, strict=True)])
    return preactivation(weights, x, len(weights) - 1, **kind)


@axes(x="features items", y="outputs items")
def loss(weights: Sequence[Tensor], x: Tensor, y: Tensor, *, reduction: str = "mean", **kind: Any) -> Tensor:
    """L = ½ Σ (ŷ - y)², summed over outputs and averaged or summed over items: one number per network, (...)."""
    return _loss(output(weights, x, **kind), y, _share(reduction, x))


@axes(x="features items", y="outputs items")
def gradient(
    weights: Sequence[Tensor], x: Tensor, y: Tensor, *, reduction: str = "mean", detached: int = 0, **kind: Any
) -> list[Tensor]:
    """+dL/dW of every layer, each of its matrix's shape, with L as in `loss`. Early Linearization Eqs 8-10 for two layers.

    The last `detached` units of the last hidden layer are trained on the residual: they see the error of the whole network,
    all others only the error that the network makes without them. Layers below see both.
    """
    return _on_data(weights, x, y, reduction, detached, **kind)[1](weights)


def _on_data(
    weights: Sequence[Tensor], x: Tensor, y: Tensor, reduction: str, detached: int, **kind: Any
) -> tuple[Callable[[Sequence[Tensor]], Tensor], Callable[[Sequence[Tensor]], list[Tensor]]]:
    """`output` and `gradient` on these data as functions of the weights: what does not change in training is checked once."""
    layers = _layers(weights, x, **kind)
    _check(weights, layers, x, y)
    units = weights[-1].shape[-1]
    if detached and (layers[-1].bias or not 0 < detached < units):
        raise ValueError(f"{detached} detached units: of {units} at least one must remain, and the readout must have no bias")
    layers, data, labels, share = _as_arrays(layers), as_array(x), as_array(y), _share(reduction, x)

    def answer(weights: Sequence[Tensor]) -> Tensor:
        return torch.as_tensor(forward([as_array(w) for w in weights], layers, data)[-1])

    def slopes(weights: Sequence[Tensor]) -> list[Tensor]:
        found = backpropagate([as_array(w) for w in weights], layers, data, labels, share, detached)
        return [torch.as_tensor(g) for g in found]

    return answer, slopes


def forward(weights: Sequence[Array], layers: Sequence[Layer], x: Array) -> list[Array]:
    """The input of each layer, (..., units, items), x first, and last the outputs; for arrays and tensors."""
    given = [x]
    for w, layer in zip(weights, layers, strict=True):
        given.append(_activated(_weighted(w, given[-1], layer), layer))
    return given


def backpropagate(
    weights: list[Array], layers: list[Layer], x: Array, y: Array, share: float = 1.0, detached: int = 0
) -> list[Array]:
    """+dL/dW of every layer by the chain rule; L is half the squared error, summed over items, times `share`.

    For NumPy arrays and for tensors; weights (..., units, inputs), x (..., features, items), y (..., outputs, items).
    """
    *given, answer = forward(weights, layers, x)
    error = (answer - y) * share  # dL/dz of a layer, (..., units, items)
    slopes = []
    for k in reversed(range(len(weights))):
        w, h, bias = weights[k], given[k], layers[k].bias
        slope = error @ h.mT
        slopes.append(_beside(slope, bias * error.sum(-1)[..., None]) if bias else slope)
        if k == 0:
            return slopes[::-1]
        back = w[..., : h.shape[-2]].mT @ error
        if detached and k == len(weights) - 1:  # all other units learn without what the detached ones contribute
            late = share * (w[..., -detached:] @ h[..., -detached:, :])
            slope[..., :-detached] -= late @ h[..., :-detached, :].mT
            back[..., :-detached, :] -= w[..., :-detached].mT @ late
        on = h > 0 if layers[k - 1].activation == "relu" else layers[k - 1].gate
        error = back if on is None else back * on


@axes(x="features items", y="outputs items")
def train(
    weights: list[Tensor],
    x: Tensor,
    y: Tensor,
    *,
    step: float,
    steps: int,
    every: int = 1,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
    answers: bool = False,
    reduction: str = "mean",
    detached: int = 0,
    **kind: Any,
) -> Recording:
    """Full-batch gradient descent in place; records "loss" (times, *ensemble), with `answers` also the `output` for x as
    "output" (times, *ensemble, outputs, items), and whatever `observe(weights)` returns.

    Times are steps; time in the sense of gradient flow is step · steps on the loss with that `reduction`. The recording is
    on the CPU. For `detached` units see `gradient`; the loss is that of the whole network.
    """
    answer, slopes = _on_data(weights, x, y, reduction, detached, **kind)

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        now = answer(w)
        seen = {"loss": _loss(now, y, _share(reduction, x))} | ({"output": now} if answers else {})
        return seen | observe(w) if observe else seen

    run = descend(weights, slopes, step=step, steps=steps, every=every, observe=watch, label="ReLU networks")
    return Recording(run.time, {name: value.cpu() for name, value in run.values.items()})


def schedule(duration: float, step: float, looks: int) -> dict[str, float | int]:
    """{step, steps, every} for `train`: steps of size `step` for a time of `duration`, recorded at `looks` evenly spaced
    moments; the number of steps is rounded to a multiple of `looks`."""
    every = max(1, round(duration / step / looks))
    return {"step": step, "steps": looks * every, "every": every}


def into_column_space(y: Tensor) -> tuple[Tensor, Tensor]:
    """(basis, coordinates): an orthonormal basis (outputs, rank) of y's columns and y in it, (rank, items).

    A rotation of the outputs leaves a squared loss as it is, so training on `coordinates` is training on y, with fewer
    outputs. Exact if the readout starts in the span of y's columns; else up to the small part that starts outside.
    """
    u, s, _ = torch.linalg.svd(y, full_matrices=False)
    basis = u[:, s > s[0] * max(1e-10, max(y.shape) * torch.finfo(y.dtype).eps)]
    return basis, basis.T @ y


def _as_arrays(layers: list[Layer]) -> list[Layer]:
    return [layer if layer.gate is None else layer._replace(gate=as_array(layer.gate)) for layer in layers]


def _weighted(w: Array, h: Array, layer: Layer) -> Array:
    return w[..., :-1] @ h + layer.bias * w[..., -1:] if layer.bias else w @ h


def _activated(z: Array, layer: Layer) -> Array:
    if layer.activation == "relu":
        return z.clip(min=0)
    return z if layer.gate is None else z * layer.gate


def _beside(a: Array, b: Array) -> Array:
    return np.concatenate([a, b], -1) if isinstance(a, np.ndarray) else torch.cat([a, b], -1)


def _loss(answer: Tensor, y: Tensor, share: float) -> Tensor:
    return 0.5 * (answer - y).square().sum((-2, -1)) * share


def _share(reduction: str, x: Tensor) -> float:
    if reduction not in ("sum", "mean"):
        raise ValueError(f'reduction is "mean" or "sum", not {reduction!r}')
    return 1.0 if reduction == "sum" else 1.0 / x.shape[-1]


def _per_layer(value: float | Sequence[float], layers: int) -> list[float]:
    """One number for every layer, from one number or from a sequence of the right length."""
    values = [value] * layers if isinstance(value, int | float) else list(value)
    if len(values) != layers or not all(math.isfinite(v) for v in values):
        raise ValueError(f"{layers} layers need a finite number each, not {values}")
    return values


def _layers(weights: Sequence[Tensor], x: Tensor, bias=0.0, activation="relu", fixed=None) -> list[Layer]:
    """The `Layer` of each matrix, if bias, activation and gates fit together."""
    count = len(weights) - 1
    kinds = [activation] * count if isinstance(activation, str) else list(activation)
    unknown = [kind for kind in kinds if kind not in ACTIVATIONS]
    if unknown:
        raise ValueError(f"activation is {', '.join(ACTIVATIONS)}, not {unknown[0]!r}")
    if ("gated" in kinds) != (fixed is not None):
        raise ValueError('fixed gates and activation "gated" belong together')
    gates = [None] * count if fixed is None else [None if gate is None else gate.to(x) for gate in fixed]
    if len(kinds) != count or len(gates) != count:
        raise ValueError(f"{count} hidden layers, but {len(kinds)} activations and {len(gates)} sets of gates")
    biases = _per_layer(bias, len(weights))
    return [Layer(*each) for each in zip(biases, [*kinds, "linear"], [*gates, None], strict=True)]


def _check(weights: Sequence[Tensor], layers: list[Layer], x: Tensor, y: Tensor | None = None) -> None:
    """Raise `WrongAxes` unless the matrices, without their columns for constants, chain from x to y and fit their ensembles."""
    data = {"x": ("features items", x)} | ({} if y is None else {"y": ("outputs items", y)})
    check_chain("relu", [w[..., :-1] if layer.bias else w for w, layer in zip(weights, layers, strict=True)], **data)
    ensemble = weights[0].shape[:-2]
    for name, (_, tensor) in data.items():
        own = tensor.shape[:-2]
        if own and ensemble and (len(own) != len(ensemble) or not all(a in (1, b) for a, b in zip(own, ensemble, strict=True))):
            raise WrongAxes(
                f"relu: {name} has the ensemble axes {tuple(own)}, the weights {tuple(ensemble)}; use {name}[:, None] for one "
                f"{name} per condition"
            )

"""ReLU networks trained from small weights, whole ensembles at once: the one trainer of this room.

A network is a plain list of weight matrices, input to output, each of shape (..., units, inputs); the leading
dimensions are the ensemble, conditions (margins, gains, bias strengths) before seeds. Data are x (..., features, items) and
y (..., outputs, items). They have no ensemble axes, or as many as the weights, of length one where all share them: x
(conditions, 1, features, items) goes with weights (conditions, seeds, units, features), in every function alike.

The last layer is linear, all others go through `activation`. A bias is a constant input of size `bias` to a layer:
where it is not zero, the layer's matrix carries one column more, so biases are weights like any other. The loss is half
the squared error, averaged over items (`reduction="mean"`) or, as in Make Haste Slowly and Early Linearization, summed.

The gradient is written by hand: for networks of this size most of autograd's time is bookkeeping. The plain autograd
version lives in tests/relu/test_networks.py, as the reference that it must equal.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

import torch
from torch import Tensor

from lib.linear.backpropagation import Activation, Program, rows_of
from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.products import Products, one_thread
from lib.linear.shapes import WrongAxes, axes

ACTIVATIONS = ("relu", "linear", "gated")
CACHED = 2**18  # numbers of a layer, over all networks and items, that a processor's cache holds


class Kind(TypedDict, total=False):
    """What kind of network the weights belong to: the options of `preactivations`, taken by all functions alike."""

    bias: float | Sequence[float]
    activation: Activation | Sequence[Activation]
    fixed: Sequence[Tensor | None] | None


def initial_weights(widths: Sequence[int], std: float | Sequence[float], *, seeds: int | None = None,
                    conditions: Sequence[int] = (), paired: bool = True, bias: float | Sequence[float] = 0.0, seed: int = 0,
                    dtype: torch.dtype = torch.float64, device: str | torch.device = "cpu") -> list[Tensor]:  # fmt: skip
    """Independent normal weights for layers of the given `widths` (features, hidden, ..., outputs).

    Returns one matrix (*conditions, seeds, widths[l + 1], widths[l]) per layer, with one more column where that layer's
    `bias` is not zero (its starting values are drawn like all others); without `seeds` a single network, without that
    axis. `std` is one number or one per layer. Network k starts from the same weights in every condition, so that
    conditions are compared network by network; with paired=False every condition has networks of its own.
    """
    stds, biases = _per_layer(std, len(widths) - 1), _per_layer(bias, len(widths) - 1)
    count, own = 1 if seeds is None else seeds, 1 if paired else math.prod(conditions)
    streams = Streams(count * own, seed)
    result = []
    for inp, out, s, b in zip(widths, widths[1:], stds, biases, strict=False):
        w = s * streams.normal(out, inp + (b != 0)).unflatten(0, (count, own)).movedim(1, 0)  # (own, seeds, out, in)
        w = w[0].expand(*conditions, *w.shape[1:]) if paired else w.reshape(*conditions, *w.shape[1:])
        w = w[..., 0, :, :] if seeds is None else w
        result.append(w.to(device=device, dtype=dtype, copy=True, memory_format=torch.contiguous_format))
    return result


# --- what a network answers -----------------------------------------------------------------------------------------------


@axes(x="features items")
def preactivations(
    weights: Sequence[Tensor],
    x: Tensor,
    *,
    bias: float | Sequence[float] = 0.0,
    activation: Activation | Sequence[Activation] = "relu",
    fixed: Sequence[Tensor | None] | None = None,
    last: int | None = None,
) -> list[Tensor]:
    """Input to every layer's nonlinearity, (..., units, items) each; the last entry is the network's output.

    With `last` those of the layers 0, …, `last` alone.

    `activation` is one of the ACTIVATIONS or a function that acts on each number; a sequence gives one to each hidden
    layer. "gated" multiplies hidden layer l by the given gates fixed[l] (..., units, items), whatever its input: a gated
    deep linear network with one pathway per pattern of gates. None stands for a layer that is always on.
    """
    biases, kinds = _per_layer(bias, len(weights)), _kinds(activation, fixed, len(weights) - 1)
    _fits("the network", weights, biases, x)
    result, h = [], x
    for layer, (w, b) in enumerate(zip(weights, biases, strict=True)):
        h = w @ _with_bias(h, b)
        result.append(h)
        if layer == last:
            break
        if layer < len(kinds):
            h = _activated(h, kinds[layer], fixed[layer] if fixed else None)
    return result


@axes(x="features items")
def output(weights: Sequence[Tensor], x: Tensor, **kind: Unpack[Kind]) -> Tensor:
    """What the network answers, (..., outputs, items).

    An ensemble whose layers do not fit into the processor's cache is asked in halves: the same numbers, many times faster.
    """
    ensemble, size = weights[0].shape[:-2], max(w.shape[:-1].numel() for w in weights) * x.shape[-1]
    slopes = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*weights, x))
    if size <= CACHED or max(ensemble, default=1) == 1 or x.dim() not in (2, len(ensemble) + 2) or slopes:
        return preactivations(weights, x, **kind)[-1]
    _fits("the network", weights, _per_layer(kind.get("bias", 0.0), len(weights)), x)
    with torch.no_grad(), one_thread():
        return _in_halves(weights, x, Products(), kind)


def _in_halves(weights: Sequence[Tensor], x: Tensor, products: Products, kind: Kind) -> Tensor:
    """`output` of both halves of an ensemble, or of halves of these; all that fit into the cache use the same memory."""
    ensemble, size = weights[0].shape[:-2], max(w.shape[:-1].numel() for w in weights) * x.shape[-1]
    if size <= 2 * CACHED or max(ensemble) == 1:  # nothing new is asked for, so that more fits
        return _answer(weights, x, products, **kind).clone()
    axis = max(range(len(ensemble)), key=ensemble.__getitem__)
    half, parts = ensemble[axis] // 2, []
    for first, count in ((0, half), (half, ensemble[axis] - half)):
        *some, seen = (_part(tensor, axis, first, count) for tensor in (*weights, x))
        gates = kind.get("fixed") and [_part(gate, axis, first, count) for gate in kind["fixed"]]
        parts.append(_in_halves(some, seen, products, kind | {"fixed": gates}))
    return torch.cat(parts, axis)


def _answer(weights: Sequence[Tensor], x: Tensor, products: Products, bias=0.0, activation="relu", fixed=None) -> Tensor:
    """The last of the `preactivations`, each in place of the one before it in memory."""
    kinds, h = _kinds(activation, fixed, len(weights) - 1), x
    for layer, (w, b) in enumerate(zip(weights, _per_layer(bias, len(weights)), strict=True)):
        h = products(layer, w, _with_bias(h, b))
        if layer < len(kinds):
            h = h.relu_() if kinds[layer] == "relu" else _activated(h, kinds[layer], fixed[layer] if fixed else None)
    return h


def hidden(weights: Sequence[Tensor], x: Tensor, layer: int = 0, **kind: Unpack[Kind]) -> Tensor:
    """What hidden layer `layer` hands on, (..., units, items)."""
    layers, fixed = len(weights) - 1, kind.get("fixed")
    if not 0 <= layer < layers:
        raise ValueError(f"hidden: there are {layers} hidden layers, counted from 0, and none is layer {layer}")
    z = preactivations(weights, x, last=layer, **kind)[layer]
    return _activated(z, _kinds(kind.get("activation", "relu"), fixed, layers)[layer], fixed[layer] if fixed else None)


@axes(x="features items", y="outputs items")
def loss(weights: Sequence[Tensor], x: Tensor, y: Tensor, *, reduction: str = "mean", **kind: Unpack[Kind]) -> Tensor:
    """Half the squared error, summed over outputs and averaged or summed over items: one number per network, (...)."""
    _fits("loss", weights, _per_layer(kind.get("bias", 0.0), len(weights)), x, y)
    error = output(weights, x, **kind) - y
    return 0.5 * error.square().sum((-2, -1)) * _share(reduction, x)


@axes(x="features items", y="outputs items")
def gradient(weights: Sequence[Tensor], x: Tensor, y: Tensor, *, reduction: str = "mean", detached: int = 0,
             **kind: Unpack[Kind]) -> list[Tensor]:  # fmt: skip
    """+dL/dW of every layer, each of its matrix's shape, with L as in `loss`. Early Linearization Eqs 8-10 for two layers.

    With activation "linear" it is the gradient of a deep linear network, and with "gated" that of a gated one (see
    `preactivations`). The last `detached` units of the last hidden layer are trained on the residual: they hear the error of
    the whole network, all others only the error that the network makes without them. Layers below hear both.
    """
    program, flat, ensemble = _program(weights, x, y, reduction, detached, **kind)
    with torch.no_grad():
        return [g.reshape(*ensemble, *g.shape[1:]) for g in program.slope(flat)]


# --- training -------------------------------------------------------------------------------------------------------------


@axes(x="features items", y="outputs items")
def train(weights: list[Tensor], x: Tensor, y: Tensor, *, step: float, steps: int, every: int = 1,
          observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None, chunk: int | None = None,
          answers: bool = False, reduction: str = "mean", detached: int = 0, label: str = "ReLU networks",
          **kind: Unpack[Kind]) -> Recording:  # fmt: skip
    """Full-batch gradient descent in place; records "loss" (times, *ensemble), with `answers` also the `output` for x as
    "output" (times, *ensemble, outputs, items), and whatever `observe(weights)` returns.

    Times are steps; time in the sense of gradient flow is step · steps on the loss with that `reduction`. Trains wherever
    weights and data are; the recording comes home to the CPU. Beyond ten or twenty wide networks a single tensor program
    leaves the processor's cache and gets slower per network: `chunk` seeds then train side by side, and after them the
    next ones. Apart from rounding this changes nothing; `observe` sees one chunk at a time, and what it returns has the
    ensemble axes first. For `detached` units see `gradient`; the loss is that of the whole network.
    """
    ensemble = weights[0].shape[:-2]
    if chunk is not None and ensemble and chunk < ensemble[-1]:
        options = dict(step=step, steps=steps, every=every, observe=observe, answers=answers)
        options |= dict(reduction=reduction, label=label, detached=detached)
        parts = []
        for first in range(0, ensemble[-1], chunk):
            count = min(chunk, ensemble[-1] - first)
            some = [_part(tensor, -3, first, count) for tensor in (*weights, x, y)]
            gates = kind.get("fixed") and [_part(gate, -3, first, count) for gate in kind["fixed"]]
            parts.append(train(some[:-2], *some[-2:], **options, **(kind | {"fixed": gates})))
        values = {name: torch.cat([p[name] for p in parts], len(ensemble)) for name in parts[0].values}
        return Recording(parts[0].time, values)

    program, flat, ensemble = _program(weights, x, y, reduction, detached, **kind)
    # Units last in memory, (inputs, units), in all but the last matrix: every product then runs over long contiguous rows.
    flat = [w.mT.contiguous().mT.clone() for w in flat[:-1]] + [flat[-1].clone()]

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        answer = program.answer(w)  # (networks, items, outputs)
        seen = {"loss": program.loss(answer).reshape(ensemble)}
        if answers:
            seen["output"] = answer.mT.reshape(*ensemble, *answer.mT.shape[1:])
        return seen | observe([v.reshape(*ensemble, *v.shape[1:]) for v in w]) if observe else seen

    run = descend(flat, program.slope, step=step, steps=steps, every=every, observe=watch, label=label)
    for w, trained in zip(weights, flat, strict=True):
        w.copy_(trained.reshape(w.shape))
    return Recording(run.time, {name: value.cpu() for name, value in run.values.items()})


def schedule(duration: float, step: float, looks: int) -> dict[str, float | int]:
    """{step, steps, every} for `train`: steps of size `step` for a time of `duration`, seen at `looks` even moments.

    Time is steps times step. The number of steps is rounded to a multiple of `looks`, and is at least that.
    """
    every = max(1, round(duration / step / looks))
    return {"step": step, "steps": looks * every, "every": every}


def into_column_space(y: Tensor) -> tuple[Tensor, Tensor]:
    """(basis, coordinates): an orthonormal basis (outputs, rank) of y's columns and y in it, (rank, items).

    A rotation of the outputs leaves a squared loss as it is, and outputs that are always zero after the rotation carry
    nothing but the decay of their tiny initial readout: training on `coordinates` is training on y, only cheaper.
    """
    u, s, _ = torch.linalg.svd(y, full_matrices=False)
    basis = u[:, s > s[0] * 1e-10]
    return basis, basis.T @ y


# --- helpers --------------------------------------------------------------------------------------------------------------


def _program(
    weights: Sequence[Tensor], x: Tensor, y: Tensor, reduction: str, detached: int, bias=0.0, activation="relu", fixed=None
) -> tuple[Program, list[Tensor], torch.Size]:
    """(program, weights with one ensemble axis, the ensemble's shape) for networks and data as `train` takes them."""
    biases, kinds = _per_layer(bias, len(weights)), _kinds(activation, fixed, len(weights) - 1)
    _fits("the network", weights, biases, x, y)
    ensemble = weights[0].shape[:-2]
    if detached and (biases[-1] or not 0 < detached < weights[-1].shape[-1]):
        raise ValueError(
            f"{detached} detached units: of the {weights[-1].shape[-1]} units of the last hidden layer at least one must remain, "
            "and the readout must have no bias"
        )
    gates = [None if g is None else rows_of(g.to(x), ensemble, spread=False) for g in fixed or [None] * len(kinds)]
    rows = rows_of(_with_bias(x, biases[0]), ensemble)
    program = Program(rows, rows_of(y, ensemble), kinds, biases, gates, _share(reduction, x), detached)
    return program, [w.reshape(-1, *w.shape[-2:]) for w in weights], ensemble


def _activated(z: Tensor, kind: Activation, gate: Tensor | None) -> Tensor:
    if callable(kind):
        return kind(z)
    if kind == "relu":
        return z.relu()
    return z if gate is None else z * gate.to(z)


def _with_bias(h: Tensor, bias: float) -> Tensor:
    """`h` (..., units, items) with a constant row of size `bias` below it; `h` itself where the bias is zero."""
    if bias == 0:
        return h
    return torch.cat([h, h.new_full((*h.shape[:-2], 1, h.shape[-1]), bias)], -2)


def _per_layer(value: float | Sequence[float], layers: int) -> list[float]:
    """One number for every layer, from one number or from a sequence of the right length."""
    values = [value] * layers if isinstance(value, int | float) else list(value)
    if len(values) != layers:
        raise ValueError(f"{layers} layers, but {len(values)} values: {values}")
    if not all(math.isfinite(v) for v in values):
        raise ValueError(f"not finite: {values}")
    return values


def _part(tensor: Tensor | None, axis: int, first: int, count: int) -> Tensor | None:
    """Some networks of a tensor (*ensemble, rows, columns), along one axis of it; the tensor itself where they all share it."""
    if tensor is None or tensor.dim() < 3 or tensor.shape[axis] == 1:
        return tensor
    return tensor.narrow(axis, first, count)


def _share(reduction: str, x: Tensor) -> float:
    if reduction not in ("sum", "mean"):
        raise ValueError(f'reduction is "mean" or "sum", not {reduction!r}')
    return 1.0 if reduction == "sum" else 1.0 / x.shape[-1]


def _kinds(activation: Activation | Sequence[Activation], fixed: Sequence[Tensor | None] | None, layers: int) -> list[Activation]:
    """One activation for each hidden layer."""
    one = isinstance(activation, str) or callable(activation)
    kinds = [activation] * layers if one else list(activation)
    for kind in kinds:
        if not callable(kind) and kind not in ACTIVATIONS:
            raise ValueError(f"activation is {', '.join(ACTIVATIONS)} or a function of a tensor, not {kind!r}")
    if ("gated" in kinds) != (fixed is not None):
        raise ValueError('fixed gates and activation "gated" belong together')
    if len(kinds) != layers or (fixed is not None and len(fixed) != layers):
        raise ValueError(f"{layers} hidden layers, but {len(kinds)} activations and {len(fixed or kinds)} sets of gates")
    return kinds


def _fits(caller: str, weights: Sequence[Tensor], biases: list[float], x: Tensor, y: Tensor | None = None) -> None:
    """Raise `WrongAxes` unless the matrices chain from x to y, and x and y fit the ensemble."""
    inputs, ensemble = x.shape[-2], weights[0].shape[:-2]
    for layer, (w, b) in enumerate(zip(weights, biases, strict=True)):
        if w.shape[-1] != inputs + (b != 0):
            what = f"{inputs} {'units below' if layer else 'features'}{' and a constant' if b else ''}"
            raise WrongAxes(f"{caller}: matrix {layer} has {w.shape[-1]} columns (shape {tuple(w.shape)}), there are {what}")
        if w.shape[:-2] != ensemble:
            raise WrongAxes(f"{caller}: matrix {layer} has the ensemble {tuple(w.shape[:-2])}, matrix 0 {tuple(ensemble)}")
        if w.dtype != x.dtype or w.device != x.device:
            raise WrongAxes(
                f"{caller}: matrix {layer} is {w.dtype} on {w.device} and x {x.dtype} on {x.device}; bring them together"
            )
        inputs = w.shape[-2]
    if y is not None and y.shape[-2] != inputs:
        raise WrongAxes(f"{caller}: y has {y.shape[-2]} outputs, the last matrix {inputs} rows")
    for name, data in (("x", x), ("y", y)):
        own = () if data is None else data.shape[:-2]
        if 0 < len(own) < len(ensemble):
            raise WrongAxes(
                f"{caller}: {name} has {len(own)} ensemble axes (shape {tuple(data.shape)}), the weights {len(ensemble)}; "
                f"give {name} as many, with length 1 where all share it, as in {name}[:, None] for one {name} per condition"
            )
        fits = len(own) == len(ensemble) and all(a in (1, b) for a, b in zip(own, ensemble, strict=True))
        if own and y is not None and not fits:
            raise WrongAxes(f"{caller}: {name} has the ensemble {tuple(own)}, the weights {tuple(ensemble)}")

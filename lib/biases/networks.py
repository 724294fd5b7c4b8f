"""Networks with one hidden layer whose random weights are frozen, and which learn hidden biases or masks instead.

    y = A (mask · relu(W x + bias))

W (units, inputs) and A (outputs, units) are drawn once, `bias` and `mask` (units,) are learned.
Williams et al., *Expressivity of Neural Networks with Random Weights and Learned Biases*, Section 3.

Inputs are rows, x (items, inputs), or their `PreActivations`; pictures (items, height, width) are flattened. Ensembles are the
first axis: w (seeds, units, inputs), biases and masks (seeds, units), outputs (seeds, items, outputs). NumPy arrays are
welcome, and all is computed in the precision of the network.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lib.linear import Streams
from lib.linear.shapes import check

CACHES = ("int16", "float32", "float64")
CHUNK = 1000  # items that are computed at a time


@dataclass(frozen=True, repr=False, eq=False)
class Frozen:
    """Random weights that nobody trains: `w` (seeds, units, inputs) and `a` (seeds, outputs, units), or matrices of one network.

    They are the networks `first`, …, `first + seeds - 1` of their ensemble.
    """

    w: Tensor
    a: Tensor
    first: int = 0

    def __post_init__(self):
        for name in ("w", "a"):
            value = torch.as_tensor(getattr(self, name))
            object.__setattr__(self, name, value[None] if value.dim() == 2 else value)
        axes = {"w": ["seeds", "units", "inputs"], "a": ["seeds", "outputs", "units"]}
        check("Frozen", {"w": self.w, "a": self.a}, axes)

    @property
    def seeds(self) -> int:
        return len(self.w)

    @property
    def units(self) -> int:
        return self.w.shape[1]

    @property
    def inputs(self) -> int:
        return self.w.shape[2]

    @property
    def outputs(self) -> int:
        return self.a.shape[1]

    def __repr__(self) -> str:
        kind = str(self.w.dtype).removeprefix("torch.")
        return f"Frozen({self.seeds} × {self.inputs}-{self.units}-{self.outputs}, {kind})"


def frozen(
    units: int,
    inputs: int,
    outputs: int,
    *,
    scale: float = 0.1,
    output_scale: float | None = None,
    seeds: int = 1,
    seed: int = 0,
    first: int = 0,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Frozen:
    """Weights uniform in [-scale, scale], the output's in [-output_scale, output_scale] (the same if not given).

    The networks `first`, …, `first + seeds - 1` of the ensemble `seed`: each is the same in an ensemble of any size.
    """
    streams = Streams(seeds, seed, first)
    w = streams.uniform(units, inputs, low=-scale, high=scale)
    reach = scale if output_scale is None else output_scale
    a = streams.uniform(outputs, units, low=-reach, high=reach)
    return Frozen(w.to(device, dtype), a.to(device, dtype), first)


def parameter_counts(units: int, inputs: int, outputs: int) -> dict[str, int]:
    """Trainable numbers of a bias-only and of a fully trained network of the same architecture. Section 3.1."""
    return {"bias": units, "full": units * (inputs + 1 + outputs) + outputs}


class PreActivations:
    """W x of every item, computed once, since W never changes: `values` (seeds, items, units) times `scale` (seeds, items, 1).

    Give it in the place of x wherever several trainings or measurements share a network and its inputs.

    "int16" is 16-bit fixed point in each item's own range, with an error of at most 1/65534 of the item's largest
    pre-activation; "float32" and "float64" are exact, and "float64" is computed in double precision too. Without a `dtype` it
    is "int16" for networks in single precision and "float64" for those in double.
    """

    def __init__(self, network: Frozen, x: Tensor, dtype: str | None = None):
        dtype = dtype or ("float64" if network.w.dtype == torch.float64 else "int16")
        if dtype not in CACHES:
            raise ValueError(f"dtype is one of {', '.join(CACHES)}, not {dtype!r}")
        self.network, x = network, inputs_of("PreActivations", network, x)
        kind = torch.float64 if dtype == "float64" else network.w.dtype
        shape = network.seeds, len(x), network.units
        self.values = torch.empty(shape, dtype=getattr(torch, dtype), device=x.device)
        self.scale = torch.ones(*shape[:2], 1, dtype=kind, device=x.device)
        w = network.w.to(kind).mT
        for start in range(0, len(x), CHUNK):
            part = slice(start, start + CHUNK)
            exact = x[part].to(kind) @ w  # (seeds, items, units)
            if dtype == "int16":
                self.scale[:, part] = (exact.abs().amax(-1, keepdim=True) / 32767).clamp(min=1e-30)
                exact = (exact / self.scale[:, part]).round()
            self.values[:, part] = exact

    def __len__(self) -> int:
        return self.values.shape[1]

    def __repr__(self) -> str:
        return f"PreActivations({len(self)} items, {str(self.values.dtype).removeprefix('torch.')}, {self.network!r})"

    def restored(self, part: slice = slice(None)) -> Tensor:
        """W x (seeds, items, units) in floating point, of all items or of a part of them."""
        if self.values.is_floating_point():
            return self.values[:, part]
        return self.values[:, part].to(self.scale.dtype) * self.scale[:, part]


# What a network answers, and what its units do


def answers(
    network: Frozen, bias: Tensor, x: Tensor | PreActivations, mask: Tensor | None = None, output_bias: Tensor | None = None
) -> Tensor:
    """Outputs A h + output_bias, (seeds, items, outputs), of h = mask · relu(W x + bias).

    `bias` and `mask` are (seeds, units), `output_bias` is (seeds, outputs).
    """
    parts = [h @ network.a.mT for h in _hidden("answers", network, bias, x, mask)]
    return torch.cat(parts, 1) + (0.0 if output_bias is None else output_bias[:, None])


def accuracy(
    network: Frozen,
    bias: Tensor,
    x: Tensor | PreActivations,
    y: Tensor,
    mask: Tensor | None = None,
    output_bias: Tensor | None = None,
) -> Tensor:
    """Fraction of items whose largest output is the right one, (seeds,); y (items,) are labels from 0 to outputs - 1."""
    y = targets_of("accuracy", network, y, "cross-entropy", len(x))
    return (answers(network, bias, x, mask, output_bias).argmax(-1) == y).double().mean(-1)


def unit_variance(network: Frozen, bias: Tensor, x: Tensor | PreActivations, mask: Tensor | None = None) -> Tensor:
    """Variance of each hidden unit over the items, (seeds, units): the task variance of Appendix F, and Appendix G's."""
    total = square = 0.0
    for h in _hidden("unit_variance", network, bias, x, mask):
        total, square = total + h.sum(1, dtype=torch.float64), square + h.square().sum(1, dtype=torch.float64)
    return (square / len(x) - (total / len(x)).square()).clamp(min=0)


def _hidden(caller: str, network: Frozen, bias: Tensor, x, mask: Tensor | None) -> Iterator[Tensor]:
    """Activity mask · relu(W x + bias) of the hidden units, (seeds, items, units), CHUNK items at a time."""
    x, bias = inputs_of(caller, network, x), per_unit(caller, network, bias=bias)
    mask = None if mask is None else per_unit(caller, network, mask=mask)
    for start in range(0, len(x), CHUNK):
        part = slice(start, start + CHUNK)
        z = x.restored(part).to(bias.dtype) if isinstance(x, PreActivations) else x[part] @ network.w.mT
        h = (z + bias[:, None]).relu()
        yield h if mask is None else h * mask[:, None]


# Losses: the value (seeds,), a mean over items, and its derivative with respect to the outputs (seeds, items, outputs)


def cross_entropy(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """L = mean over items of -log softmax(outputs)[y], for labels y (items,); ∂L/∂outputs = (softmax - onehot) / items."""
    log_p, right = outputs.log_softmax(-1), one_hot(y, outputs.shape[-1]).to(outputs.dtype)
    return -(log_p * right).sum(-1).mean(-1), (log_p.exp() - right) / len(y)


def squared_error(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """L = mean over items of |outputs - y|²/2, for targets y (items, outputs); ∂L/∂outputs = (outputs - y) / items."""
    error = outputs - y
    return error.square().sum(-1).mean(-1) / 2, error / len(y)


LOSSES = {"cross-entropy": cross_entropy, "squared": squared_error}


# What a function is given, in the network's precision, or one sentence about what does not fit


def inputs_of(caller: str, network: Frozen, x: Tensor | PreActivations) -> Tensor | PreActivations:
    """x as (items, inputs); pre-activations must be those of this network."""
    if isinstance(x, PreActivations):
        if x.network.w is not network.w:
            raise ValueError(f"{caller}: these pre-activations belong to another network")
        return x
    x = torch.as_tensor(x).to(network.w.dtype)
    x = x.flatten(1) if x.dim() > 2 else x
    check(caller, {"the network": network.w, "x": x}, {"the network": ["units", "inputs"], "x": ["items", "inputs"]})
    return x


def pre_activations(caller: str, network: Frozen, x: Tensor | PreActivations, dtype: torch.dtype | None = None) -> Tensor:
    """W x (seeds, items, units), as they are or in the precision `dtype`."""
    x = inputs_of(caller, network, x)
    if isinstance(x, PreActivations):
        return x.restored().to(dtype)
    return x.to(dtype) @ network.w.to(dtype).mT


def per_unit(caller: str, network: Frozen, **named: Tensor) -> Tensor:
    """One tensor, given by its name, as (seeds, units)."""
    ((name, values),) = named.items()
    values = torch.as_tensor(values).to(network.w.dtype)
    if tuple(values.shape) != (network.seeds, network.units):
        fit = f"(seeds, units), here {(network.seeds, network.units)}"
        raise ValueError(f"{caller}: {name} has shape {tuple(values.shape)}, it must be {fit}")
    return values


def targets_of(caller: str, network: Frozen, y: Tensor, loss: str, items: int, dtype: torch.dtype | None = None) -> Tensor:
    """y as the loss needs it: labels (items,) for the cross-entropy, numbers (items, outputs) for the squared error.

    Of a single output the numbers may be (items,). They are brought to the precision of the network, or to `dtype`.
    """
    if loss not in LOSSES:
        raise ValueError(f"{caller}: loss is one of {', '.join(LOSSES)}, not {loss!r}")
    y, last = torch.as_tensor(y), network.outputs - 1
    if loss == "squared":
        y = y[:, None] if y.dim() == 1 and last == 0 else y
        if tuple(y.shape) != (items, last + 1):
            raise ValueError(f"{caller}: y must be (items, outputs), here {(items, last + 1)}, not {tuple(y.shape)}")
        return y.to(dtype or network.a.dtype)
    if tuple(y.shape) != (items,) or y.is_floating_point() or y.dtype == torch.bool:
        raise ValueError(f"{caller}: y must be {items} labels, whole numbers from 0 to {last}, not {y.dtype} {tuple(y.shape)}")
    if items and not 0 <= int(y.min()) <= int(y.max()) <= last:
        raise ValueError(f"{caller}: labels y run from {int(y.min())} to {int(y.max())}, the network has outputs 0 to {last}")
    return y.long()

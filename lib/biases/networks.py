"""Networks with one hidden layer whose random weights are frozen, and which learn hidden biases or masks instead.

    y = A (mask · relu(W x + bias))

W and A are drawn once. A network that learns biases has one number per hidden unit to adjust, a network that learns masks
has one switch. Williams et al., *Expressivity of Neural Networks with Random Weights and Learned Biases*.

Images are rows, x (items, pixels); pictures (items, height, width) are flattened. Where the same images serve several times,
their `PreActivations` take their place. The networks of an ensemble lie side by side in the unit dimension, so that all of
them learn in one pass; biases and masks are (seeds, units).
"""

import copy
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lib.linear import Streams
from lib.linear.shapes import check

LOSSES = ("cross-entropy", "squared")


@dataclass(frozen=True)
class Frozen:
    """Random weights that nobody trains: `w` (seeds · units, pixels) and `a` (classes, seeds · units).

    They are the networks `first`, …, `first + seeds - 1` of their ensemble.
    """

    w: Tensor
    a: Tensor
    seeds: int = 1
    first: int = 0

    def __post_init__(self):
        check("Frozen", {"w": self.w, "a": self.a}, {"w": ["units", "pixels"], "a": ["classes", "units"]})

    @property
    def units(self) -> int:
        return len(self.w) // self.seeds

    @property
    def classes(self) -> int:
        return len(self.a)

    def only(self, k: int) -> "Frozen":
        """The k-th network alone."""
        own = slice(k * self.units, (k + 1) * self.units)
        return Frozen(self.w[own], self.a[:, own].contiguous(), first=self.first + k)


def frozen(
    units: int,
    pixels: int,
    classes: int,
    *,
    scale: float = 0.1,
    output_scale: float | None = None,
    seeds: int = 1,
    seed: int = 0,
    first: int = 0,
    device: str | torch.device = "cpu",
) -> Frozen:
    """Weights uniform in [-scale, scale], the output's in [-output_scale, output_scale] (the same if not given); float32.

    The networks `first`, …, `first + seeds - 1` of the ensemble `seed`: each is the same in an ensemble of any size.
    `classes` is the number of outputs, also where these are numbers to predict.
    """
    streams = Streams(seeds, seed, first)
    w = streams.uniform(units, pixels, low=-scale, high=scale)
    reach = scale if output_scale is None else output_scale
    a = streams.uniform(classes, units, low=-reach, high=reach)
    side_by_side = a.transpose(0, 1).reshape(classes, -1)  # (classes, seeds · units)
    return Frozen(w.flatten(0, 1).to(device, torch.float32), side_by_side.to(device, torch.float32), seeds, first)


def parameter_counts(units: int, pixels: int, classes: int) -> dict[str, int]:
    """Trainable numbers of a bias-only and of a fully trained network of the same architecture. Section 3.1."""
    return {"bias": units, "full": units * (pixels + 1 + classes) + classes}


class PreActivations:
    """W x of every image, computed once: `values` (items, seeds · units) times `scale` (items,).

    "int16" (default) stores each image's pre-activations in 16-bit fixed point of the image's own range: the memory of half
    precision, with an error of at most 1/65534 of the largest pre-activation everywhere. "float32" stores them exactly,
    and "float64" has them multiplied and summed in double precision too.
    Above `limit` bytes they go to a temporary file that is mapped into memory and disappears with this object.
    """

    def __init__(self, network: Frozen, x: Tensor, dtype: str = "int16", limit: float = 6e9, chunk: int = 1000):
        if dtype not in ("int16", "float32", "float64"):
            raise ValueError(f"dtype is 'int16', 'float32' or 'float64', not {dtype!r}")
        x, self.network = rows("PreActivations", network, x), network
        shape, kind = (len(x), len(network.w)), np.dtype(dtype)
        self.bytes = math.prod(shape) * kind.itemsize
        self.spilled = self.bytes > limit and x.device.type == "cpu"
        if x.device.type != "cpu":
            self.values = torch.empty(shape, dtype=getattr(torch, dtype), device=x.device)
        elif self.spilled:
            with tempfile.TemporaryFile() as file:  # nameless: the map keeps it alive
                self.values = torch.from_numpy(np.memmap(file, kind, "w+", shape=shape))
        else:
            self.values = torch.from_numpy(np.empty(shape, kind))  # NumPy asks for huge pages: rows are read at random
        x, w, offset = varied(*(v.double() if dtype == "float64" else v for v in (x, network.w)))
        self.scale = torch.ones(len(x), dtype=w.dtype, device=x.device)
        for start in range(0, len(x), chunk):
            part = slice(start, start + chunk)
            exact = torch.addmm(offset, x[part], w.T)  # (chunk, units)
            if dtype == "int16":
                largest = torch.maximum(exact.amax(1), -exact.amin(1))  # not abs(): no second copy of the chunk
                self.scale[part] = (largest / 32767).clamp(min=1e-30)
                exact.div_(self.scale[part, None]).round_()
            self.values[part] = exact  # converts on the way

    def __len__(self) -> int:
        return len(self.values)

    def narrowed(self, network: Frozen) -> "PreActivations":
        """The same for a narrower network, in the same memory: the networks of a seed have their first units in common."""
        units = len(network.w)
        if network.seeds != 1 or self.network.seeds != 1 or not torch.equal(self.network.w[:units], network.w):
            raise ValueError("narrowed: the units of this network must be the first ones of the network of the pre-activations")
        made = copy.copy(self)
        made.network, made.values = network, self.values[:, :units]
        return made

    def restored(self) -> Tensor:
        """W x (items, seeds · units) in floating point."""
        return self.values if self.values.is_floating_point() else self.values.float().mul_(self.scale[:, None])


def varied(x: Tensor, w: Tensor, enough: int = 1500) -> tuple[Tensor, Tensor, Tensor]:
    """Images and weights without the pixels that are the same in all images, and what these hand to each unit, (units,).

    So that W x = w x + offset of smaller w and x, where there are `enough` images and a tenth of the pixels or more to leave out.
    """
    differ = (x != x[:1]).any(0)
    if len(x) < enough or 10 * int(differ.sum()) > 9 * len(differ):
        return x, w, w.new_zeros(len(w))
    return x[:, differ], w[:, differ], w[:, ~differ] @ x[0, ~differ]


# What a network answers, and what its units do


def answers(
    network: Frozen,
    bias: Tensor,
    x: Tensor | PreActivations,
    mask: Tensor | None = None,
    output_bias: Tensor | float = 0.0,
    chunk: int = 1000,
) -> Tensor:
    """Outputs (seeds, items, classes) for images x (items, pixels); `bias` and `mask` are (seeds, units)."""
    if isinstance(x, PreActivations):
        work, bias, mask = _cached("answers", network, bias, x, mask)
        items, a = torch.arange(len(x), device=bias.device), network.a if mask is None else network.a * mask
        return torch.cat([work.forward(part, bias, a) for part in items.split(chunk)], 1) + output_bias
    parts = [_outputs(network, h, output_bias) for h in _hidden("answers", network, bias, x, mask, chunk)]
    return torch.cat(parts, 1)


def accuracy(
    network: Frozen,
    bias: Tensor,
    x: Tensor | PreActivations,
    y: Tensor,
    mask: Tensor | None = None,
    output_bias: Tensor | float = 0.0,
) -> Tensor:
    """Share of images whose largest output is the right one, (seeds,); y (items,) are labels from 0 to classes - 1."""
    y = labels("accuracy", network, y, x)
    return (answers(network, bias, x, mask, output_bias).argmax(-1) == y).double().mean(-1)


def mean_loss(
    network: Frozen,
    bias: Tensor,
    x: Tensor | PreActivations,
    y: Tensor,
    *,
    loss: str = "cross-entropy",
    mask: Tensor | None = None,
    output_bias: Tensor | float = 0.0,
) -> Tensor:
    """The loss that training lowers, on any images, (seeds,): mean over items of the cross-entropy with labels y (items,),
    or of half the squared error with targets y (items, classes)."""
    y = targets("mean_loss", network, y, loss, x)
    return losses(answers(network, bias, x, mask, output_bias), y, loss)


def unit_variance(
    network: Frozen, bias: Tensor, x: Tensor | PreActivations, mask: Tensor | None = None, chunk: int = 1000
) -> Tensor:
    """Variance of each hidden unit over the images, (seeds, units): the task variance of Appendix F, and Appendix G's."""
    if isinstance(x, PreActivations):
        work, bias, mask = _cached("unit_variance", network, bias, x, mask)
        total, square = work.moments(bias, torch.ones_like(bias) if mask is None else mask) / len(x)
        return (square - total.square()).clamp(min=0).view(network.seeds, -1)
    return _variance(_hidden("unit_variance", network, bias, x, mask, chunk), len(x), lambda h: None)


def examine(
    network: Frozen,
    bias: Tensor,
    x: Tensor | PreActivations,
    y: Tensor,
    mask: Tensor | None = None,
    output_bias: Tensor | float = 0.0,
    chunk: int = 1000,
) -> tuple[Tensor, Tensor]:
    """`accuracy` (seeds,) and `unit_variance` (seeds, units) in one pass over the images."""
    if isinstance(x, PreActivations):
        return accuracy(network, bias, x, y, mask, output_bias), unit_variance(network, bias, x, mask)
    parts, right = iter(labels("examine", network, y, x).split(chunk)), []

    def compare(h: Tensor) -> None:
        right.append((_outputs(network, h, output_bias).argmax(-1) == next(parts)).double().sum(-1))

    variance = _variance(_hidden("examine", network, bias, x, mask, chunk), len(x), compare)
    return torch.stack(right).sum(0) / len(x), variance


def losses(outputs: Tensor, y: Tensor, loss: str) -> Tensor:
    """Mean over items of the loss, (seeds,), of outputs (seeds, items, classes); `y` as in `targets`."""
    if loss == "squared":
        return (outputs - y).square().sum(-1).mean(-1) / 2
    return -outputs.log_softmax(-1).gather(-1, y.expand(len(outputs), -1)[..., None]).mean((1, 2))


def towards_outputs(outputs: Tensor, y: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """The loss (seeds,), and the gradient of its sum over items towards the outputs (seeds, batch, classes)."""
    if loss == "squared":
        error = outputs - y
        return error.square().sum(-1).mean(-1) / 2, error
    log_p = outputs.log_softmax(-1)
    target = y.expand(len(outputs), -1)[..., None]
    now = -log_p.gather(-1, target).mean((1, 2))
    error = log_p.exp_()
    return now, error.scatter_add_(-1, target, torch.full_like(target, -1.0, dtype=error.dtype))


# At the door


def rows(caller: str, network: Frozen, x: Tensor | PreActivations, **per_unit: Tensor | None) -> Tensor | PreActivations:
    """x as (items, pixels), or one sentence about what does not fit the network; `per_unit` are (seeds, units)."""
    if isinstance(x, PreActivations):
        if x.network.w is not network.w:
            raise ValueError(f"{caller}: these pre-activations belong to another network")
    else:
        x = torch.as_tensor(x)
        x = x.flatten(1) if x.dim() > 2 else x
        check(caller, {"the network": network.w, "x": x}, {"the network": ["units", "pixels"], "x": ["items", "pixels"]})
    for name, values in per_unit.items():
        if values is not None and tuple(values.shape) != (network.seeds, network.units):
            fit = f"(seeds, units), here {(network.seeds, network.units)}"
            raise ValueError(f"{caller}: {name} has shape {tuple(values.shape)}, it must be {fit}")
    return x


def labels(caller: str, network: Frozen, y: Tensor, x: Tensor | PreActivations | None = None) -> Tensor:
    """y (items,) as labels from 0 to classes - 1, one for each image, or one sentence about what they are instead."""
    y, last = torch.as_tensor(y), network.classes - 1
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        kind = str(y.dtype).removeprefix("torch.")
        raise ValueError(f'{caller}: y must be labels, whole numbers from 0 to {last}, not {kind} (loss="squared" takes numbers)')
    if y.dim() != 1 or (x is not None and len(y) != len(x)):
        items = "" if x is None else f" for {len(x)} items"
        raise ValueError(f"{caller}: y has shape {tuple(y.shape)}{items}; labels are (items,), one whole number each")
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) <= last:
        raise ValueError(f"{caller}: labels y run from {int(y.min())} to {int(y.max())}, the network has classes 0 to {last}")
    return y.long()


def targets(caller: str, network: Frozen, y: Tensor, loss: str, x: Tensor | PreActivations | None = None) -> Tensor:
    """y as the loss needs it: `labels` for the cross-entropy, numbers (items, classes) for the squared error."""
    x = torch.empty(len(x), 0, dtype=torch.int16) if isinstance(x, PreActivations) else x  # their number alone matters here
    if loss not in LOSSES:
        raise ValueError(f"{caller}: loss is one of {', '.join(LOSSES)}, not {loss!r}")
    if loss == "cross-entropy":
        return labels(caller, network, y, x)
    y = torch.as_tensor(y)
    if not y.is_floating_point() or y.dim() != 2:
        raise ValueError(f"{caller}: for squared errors y is (items, {network.classes}) floating-point, not {_describe(y)}")
    known = {"the network": network.a.T, "y": y} | ({} if x is None else {"x": x[:, :0] if x.dim() == 2 else x.flatten(1)[:, :0]})
    check(caller, known, {"the network": ["units", "classes"], "y": ["items", "classes"], "x": ["items", "pixels"]})
    return y


def _describe(y: Tensor) -> str:
    return f"{tuple(y.shape)} {str(y.dtype).removeprefix('torch.')}"


def _hidden(caller: str, network: Frozen, bias: Tensor, x: Tensor, mask: Tensor | None, chunk: int) -> Iterator[Tensor]:
    """Activity (seeds, items, units) of the hidden units, `chunk` images at a time."""
    x, w, offset = varied(rows(caller, network, x, bias=bias, mask=mask), network.w)
    for part in x.split(chunk):
        h = functional.linear(part, w, bias.flatten() + offset).relu_()
        h = h.view(len(part), network.seeds, -1).transpose(0, 1)
        yield h if mask is None else h * mask[:, None]


def _cached(caller: str, network: Frozen, bias: Tensor, x: PreActivations, mask: Tensor | None) -> tuple:
    """The kernels on these pre-activations, and biases and masks as they want them, (seeds · units,)."""
    from lib.biases import kernels  # the compiler is loaded where it is needed

    rows(caller, network, x, bias=bias, mask=mask)
    return kernels.of(x.values, x.scale, network.seeds), bias.flatten(), None if mask is None else mask.flatten()


def _outputs(network: Frozen, h: Tensor, output_bias: Tensor | float) -> Tensor:
    return h @ network.a.view(network.classes, network.seeds, -1).permute(1, 2, 0) + output_bias


def _variance(activity: Iterator[Tensor], items: int, look) -> Tensor:
    """Variance over items, from sums of parts; `look` sees every part once."""
    total, square = 0, 0
    for h in activity:
        look(h)
        total, square = total + h.sum(1, dtype=torch.float64), square + h.square().sum(1, dtype=torch.float64)
    return (square / items - (total / items).square()).clamp(min=0)

"""The two inner loops of bias learning: ten columns forward, ten columns back, on cached pre-activations.

`Fused` (NumPy arrays, compiled) reads every cached number once for ten outputs and writes nothing but its result; `Plain`
says the same in torch operations, runs on any device, and is what tests hold `Fused` against. Both take the cache `values`
(items, seeds · units), whose row i is to be multiplied by scale[i]. `Fused.epoch` has everything else of an epoch compiled
too, errors and Adam: where networks are narrow or batches small, calls from Python would cost several times the arithmetic.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from lib.biases.kernels import loops

TILE = 1024  # units that are worked on at a time: ten rows of A, 40 kB, stay in the cache next to the processor


def of(values: Tensor, scale: Tensor, seeds: int, kernel: str = "fused") -> "Fused | Plain":
    """The kernels on these pre-activations; on other devices than the processor they are the plain ones."""
    if kernel not in ("fused", "plain"):
        raise ValueError(f"kernel is 'fused' or 'plain', not {kernel!r}")
    return (Fused if kernel == "fused" and values.device.type == "cpu" else Plain)(values, scale, seeds)


@dataclass
class Learning:
    """What an epoch changes: the numbers that are learned (seeds · units,), Adam's two means of them, and the steps so far.

    Biases are learned where `fixed` is None; where it has the biases, `learned` are the s of masks sigmoid(slope · s).
    """

    learned: Tensor
    fixed: Tensor | None = None
    epsilon: float = 1e-8

    def __post_init__(self):
        self.means, self.steps = np.zeros((2, len(self.learned)), np.float32), 0


class Plain:
    """The same as `Fused` in torch operations."""

    def __init__(self, values: Tensor, scale: Tensor, seeds: int):
        self.values, self.scale, self.seeds = values, scale, seeds

    def _active(self, chosen: Tensor, bias: Tensor) -> Tensor:
        h = self.values.index_select(0, chosen).to(self.scale.dtype).mul_(self.scale[chosen, None])
        return h.add_(bias).relu_().view(len(chosen), self.seeds, -1).transpose(0, 1)  # (seeds, batch, units)

    def forward(self, chosen: Tensor, bias: Tensor, a: Tensor) -> Tensor:
        if self.seeds == 1:
            return linear(self._active(chosen, bias)[0], a)[None]
        return self._active(chosen, bias) @ a.view(len(a), self.seeds, -1).permute(1, 2, 0)

    def backward(self, chosen: Tensor, bias: Tensor, a: Tensor, error: Tensor, gain: bool) -> Tensor:
        h = self._active(chosen, bias)
        towards = error.mT.contiguous() @ (h if gain else h.sign())  # (seeds, classes, units)
        return (towards * a.view(len(a), self.seeds, -1).transpose(0, 1)).sum(1).flatten()

    def descend(self, bias: Tensor, y: Tensor, a: Tensor, step: Tensor, steps: int) -> Tensor:
        everything, size, first = torch.arange(len(y), device=y.device), step.repeat_interleave(len(bias) // self.seeds), None
        for k in range(max(1, steps)):
            error = self.forward(everything, bias, a) - y
            first = error.square().sum(-1).mean(-1) / 2 if k == 0 else first
            if k < steps:
                bias -= size * self.backward(everything, bias, a, error / len(y), False)
        return first

    def moments(self, bias: Tensor, mask: Tensor, chunk: int = 1000) -> Tensor:
        sums = torch.zeros(2, len(bias), dtype=torch.float64, device=bias.device)
        for chosen in torch.arange(len(self.values), device=bias.device).split(chunk):
            h = self._active(chosen, bias).transpose(0, 1).flatten(1) * mask
            sums += torch.stack([v.sum(0, dtype=torch.float64) for v in (h, h.square())])
        return sums


class Fused:
    """Outputs and gradients of an ensemble; tiles of units are shared out to as many threads as torch uses.

    Outputs are worked on in groups of ten. Numbers have the precision of `scale`. Results do not depend on the number of
    threads: each tile is worked on by one of them, and tiles are added up in order.
    """

    def __init__(self, values: Tensor, scale: Tensor, seeds: int):
        whole = values.as_strided((len(values), values.stride(0)), (values.stride(0), 1))  # rows may go on beyond the units
        self.values, self.scale, self.seeds = whole.numpy(), scale.numpy(), seeds
        self.kind = self.scale.dtype
        units = values.shape[1] // seeds
        edges = range(0, units, TILE)
        starts = [(k * units + i, k * units + min(i + TILE, units)) for k in range(seeds) for i in edges]
        self.tiles = np.array(starts)
        self.owners = torch.tensor([start // units for start, _ in starts])  # the network of each tile
        self.threads = min(torch.get_num_threads(), len(starts))
        self.shares = np.array_split(np.arange(len(starts)), self.threads)
        self.pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def _spread(self, kernel, *arguments) -> None:
        if self.pool is None:
            kernel(self.shares[0], *arguments)
        else:
            list(self.pool.map(lambda share: kernel(share, *arguments), self.shares))

    def forward(self, chosen: Tensor, bias: Tensor, a: Tensor) -> Tensor:
        """Outputs (seeds, batch, classes) for the images `chosen`; bias (seeds · units,), a (classes, seeds · units)."""
        batch, chosen = len(chosen), _in_fours(chosen)
        known = self.tiles, self.values, self.scale, chosen.numpy(), bias.numpy()
        groups = []
        for ten in a.split(10):
            out = np.zeros((len(self.tiles), len(chosen), 10), self.kind)
            self._spread(loops.forward, *known, _ten(ten).numpy(), out)
            total = torch.zeros(self.seeds, len(chosen), 10, dtype=a.dtype)
            groups.append(total.index_add_(0, self.owners, torch.from_numpy(out))[:, :batch, : len(ten)])
        return torch.cat(groups, -1)

    def backward(self, chosen: Tensor, bias: Tensor, a: Tensor, error: Tensor, gain: bool) -> Tensor:
        """Gradient (seeds · units,) towards the biases, or with `gain` towards the gains of the units.

        `error` (seeds, batch, classes) is the gradient towards the outputs.
        """
        kernel, whole = loops.backward_gain if gain else loops.backward_bias, _in_fours(chosen)
        known = self.tiles, self.owners.numpy(), self.values, self.scale, whole.numpy(), bias.numpy()
        out = np.zeros(a.shape[1], self.kind)  # every group of ten adds its part
        for ten, part in zip(a.split(10), error.split(10, -1), strict=True):
            part = pad(part, (0, 10 - len(ten), 0, len(whole) - len(chosen))).numpy()  # (seeds, batch, 10)
            self._spread(kernel, *known, _ten(ten).numpy(), part, out)
        return torch.from_numpy(out)

    def moments(self, bias: Tensor, mask: Tensor) -> Tensor:
        """Sums over all images of the units' activity times `mask` (seeds · units,), and of its square: (2, seeds · units)."""
        out = np.zeros((2, len(bias)))
        self._spread(loops.moments, self.tiles, self.values, self.scale, bias.numpy(), mask.numpy(), out)
        return torch.from_numpy(out)

    def epoch(
        self, state: Learning, order: Tensor, batch: int, y: Tensor, a: Tensor, rates: list[float], slopes: list[float] | None
    ) -> Tensor:
        """Steps of Adam on batches of images in this order, one for each of the `rates`; the loss of each step (steps, seeds).

        y are labels (items,) for the cross-entropy, or numbers (items, classes) for half the squared error; masks have a
        slope for each step. Threads, if there are several, are called at each step; one alone goes through all steps.
        """
        squared, masked, classes = y.is_floating_point(), state.fixed is not None, len(a)
        labels = np.empty(0, np.int64) if squared else y.numpy()
        wanted = y.float().numpy() if squared else np.empty((0, classes), np.float32)
        bias, learned = state.fixed if masked else state.learned, state.learned.numpy()
        slopes = np.array(slopes if masked else rates, np.float32)
        losses = np.zeros((len(rates), self.seeds), np.float32)
        if self.pool is None:
            groups = torch.stack([_ten(ten) for ten in a.split(10)]).numpy()  # (groups, 10, seeds · units)
            about = self.shares[0], self.tiles, self.owners.numpy(), self.values, self.scale
            images, schedule = (order.numpy(), batch, labels, wanted, classes), (np.array(rates), slopes, state.epsilon)
            loops.epoch(*about, *images, groups, masked, bias.numpy(), learned, state.means, state.steps, *schedule, losses)
        else:
            soft = np.empty_like(learned)
            for k, chosen in enumerate(order.split(batch)):
                if masked:
                    loops.soften(slopes[k], learned, soft)
                now = a * torch.from_numpy(soft) if masked else a
                outputs = self.forward(chosen, bias, now)
                loops.errors(outputs.numpy(), chosen.numpy(), labels, wanted, losses[k])
                gradient = self.backward(chosen, bias, now, outputs, masked).numpy()
                if masked:
                    loops.towards_s(slopes[k], soft, gradient)
                loops.adam(learned, gradient, state.means, state.steps + k + 1, rates[k], state.epsilon)
        state.steps += len(rates)
        return torch.from_numpy(losses)

    def descend(self, bias: Tensor, y: Tensor, a: Tensor, step: Tensor, steps: int) -> Tensor:
        """Plain steps of size `step` (seeds,) on all images, in place; half the squared error (seeds,) before the first of them.

        y (items, classes) are the numbers to learn. All on one thread.
        """
        groups = torch.stack([_ten(ten) for ten in a.split(10)]).numpy()
        about = np.arange(len(self.tiles)), self.tiles, self.owners.numpy(), self.values, self.scale
        first = np.zeros(self.seeds, self.kind)
        loops.descend(*about, y.numpy(), groups, bias.numpy(), step.numpy(), steps, first)
        return torch.from_numpy(first)


def _in_fours(chosen: Tensor) -> Tensor:
    """The images with the first of them repeated up to a multiple of four; what repeats is cut off or has no error."""
    left = -len(chosen) % 4
    return chosen if left == 0 else torch.cat([chosen, chosen[:1].expand(left)])


def _ten(a: Tensor) -> Tensor:
    return a if len(a) == 10 else pad(a, (0, 0, 0, 10 - len(a)))

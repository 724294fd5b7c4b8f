"""The two inner loops of bias learning: ten columns forward, ten columns back, on cached pre-activations.

`Fused` (NumPy arrays, compiled) reads every cached number once for ten outputs and writes nothing but its result; `Plain`
says the same in torch operations, runs on any device, and is what tests hold `Fused` against. Both take the cache `values`
(items, seeds · units), whose row i is to be multiplied by scale[i]. `Fused.epoch` has everything else of an epoch compiled
too, errors and Adam: where networks are narrow or batches small, calls from Python would cost several times the arithmetic.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from lib.data import files

KEEP, KEEP_SQUARE = 0.9, 0.999  # Adam's: what its two means keep of themselves at each step
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
        h = self.values.index_select(0, chosen).float().mul_(self.scale[chosen, None])
        return h.add_(bias).relu_().view(len(chosen), self.seeds, -1).transpose(0, 1)  # (seeds, batch, units)

    def forward(self, chosen: Tensor, bias: Tensor, a: Tensor) -> Tensor:
        if self.seeds == 1:
            return linear(self._active(chosen, bias)[0], a)[None]
        return self._active(chosen, bias) @ a.view(len(a), self.seeds, -1).permute(1, 2, 0)

    def backward(self, chosen: Tensor, bias: Tensor, a: Tensor, error: Tensor, gain: bool) -> Tensor:
        h = self._active(chosen, bias)
        towards = error.mT.contiguous() @ (h if gain else h.sign())  # (seeds, classes, units)
        return (towards * a.view(len(a), self.seeds, -1).transpose(0, 1)).sum(1).flatten()

    def moments(self, bias: Tensor, mask: Tensor, chunk: int = 1000) -> Tensor:
        sums = torch.zeros(2, len(bias), dtype=torch.float64, device=bias.device)
        for chosen in torch.arange(len(self.values), device=bias.device).split(chunk):
            h = self._active(chosen, bias).transpose(0, 1).flatten(1) * mask
            sums += torch.stack([v.sum(0, dtype=torch.float64) for v in (h, h.square())])
        return sums


class Fused:
    """Outputs and gradients of an ensemble; tiles of units are shared out to as many threads as torch uses.

    Outputs are worked on in groups of ten. Results do not depend on the number of threads: each tile is worked on by one
    of them, and tiles are added up in order.
    """

    def __init__(self, values: Tensor, scale: Tensor, seeds: int):
        self.values, self.scale, self.seeds = values.numpy(), scale.numpy(), seeds
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
            out = np.zeros((len(self.tiles), len(chosen), 10), np.float32)
            self._spread(_forward, *known, _ten(ten).numpy(), out)
            total = torch.zeros(self.seeds, len(chosen), 10)
            groups.append(total.index_add_(0, self.owners, torch.from_numpy(out))[:, :batch, : len(ten)])
        return torch.cat(groups, -1)

    def backward(self, chosen: Tensor, bias: Tensor, a: Tensor, error: Tensor, gain: bool) -> Tensor:
        """Gradient (seeds · units,) towards the biases, or with `gain` towards the gains of the units.

        `error` (seeds, batch, classes) is the gradient towards the outputs.
        """
        kernel, whole = _backward_gain if gain else _backward_bias, _in_fours(chosen)
        known = self.tiles, self.owners.numpy(), self.values, self.scale, whole.numpy(), bias.numpy()
        out = np.zeros(a.shape[1], np.float32)  # every group of ten adds its part
        for ten, part in zip(a.split(10), error.split(10, -1), strict=True):
            part = pad(part, (0, 10 - len(ten), 0, len(whole) - len(chosen))).numpy()  # (seeds, batch, 10)
            self._spread(kernel, *known, _ten(ten).numpy(), part, out)
        return torch.from_numpy(out)

    def moments(self, bias: Tensor, mask: Tensor) -> Tensor:
        """Sums over all images of the units' activity times `mask` (seeds · units,), and of its square: (2, seeds · units)."""
        out = np.zeros((2, len(bias)))
        self._spread(_moments, self.tiles, self.values, self.scale, bias.numpy(), mask.numpy(), out)
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
            _epoch(*about, *images, groups, masked, bias.numpy(), learned, state.means, state.steps, *schedule, losses)
        else:
            soft = np.empty_like(learned)
            for k, chosen in enumerate(order.split(batch)):
                if masked:
                    _soft(slopes[k], learned, soft)
                now = a * torch.from_numpy(soft) if masked else a
                outputs = self.forward(chosen, bias, now)
                _errors(outputs.numpy(), chosen.numpy(), labels, wanted, losses[k])
                gradient = self.backward(chosen, bias, now, outputs, masked).numpy()
                if masked:
                    _towards_s(slopes[k], soft, gradient)
                _adam(learned, gradient, state.means, state.steps + k + 1, rates[k], state.epsilon)
        state.steps += len(rates)
        return torch.from_numpy(losses)


def _in_fours(chosen: Tensor) -> Tensor:
    """The images with the first of them repeated up to a multiple of four; what repeats is cut off or has no error."""
    left = -len(chosen) % 4
    return chosen if left == 0 else torch.cat([chosen, chosen[:1].expand(left)])


def _ten(a: Tensor) -> Tensor:
    return a if len(a) == 10 else pad(a, (0, 0, 0, 10 - len(a)))


# Ten accumulators for each of two images are written out by hand: that is what lets the compiler keep them in registers, work
# on 16 units at a time and load each weight once for both. The same loop over an array of ten is seven times slower. Backward,
# four images share the weights. Fast maths may add in another order, nothing else.
_compile = numba.njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, boundscheck=False, cache=files.keeps_compiled_code())


@_compile
def _forward(share, tiles, values, scale, chosen, bias, a, out):
    zero = np.float32(0)
    for t in share:
        start, stop = tiles[t, 0], tiles[t, 1]
        b = bias[start:stop]
        w0, w1, w2, w3, w4 = a[0, start:stop], a[1, start:stop], a[2, start:stop], a[3, start:stop], a[4, start:stop]
        w5, w6, w7, w8, w9 = a[5, start:stop], a[6, start:stop], a[7, start:stop], a[8, start:stop], a[9, start:stop]
        for i in range(0, len(chosen), 2):
            p, s = values[chosen[i], start:stop], scale[chosen[i]]
            q, r = values[chosen[i + 1], start:stop], scale[chosen[i + 1]]
            y0 = y1 = y2 = y3 = y4 = y5 = y6 = y7 = y8 = y9 = zero
            z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = z8 = z9 = zero
            for u in range(np.uint64(stop - start)):
                g, h = np.float32(p[u]) * s + b[u], np.float32(q[u]) * r + b[u]
                g, h = g if g > zero else zero, h if h > zero else zero
                y0, y1, z0, z1 = y0 + g * w0[u], y1 + g * w1[u], z0 + h * w0[u], z1 + h * w1[u]
                y2, y3, z2, z3 = y2 + g * w2[u], y3 + g * w3[u], z2 + h * w2[u], z3 + h * w3[u]
                y4, y5, z4, z5 = y4 + g * w4[u], y5 + g * w5[u], z4 + h * w4[u], z5 + h * w5[u]
                y6, y7, z6, z7 = y6 + g * w6[u], y7 + g * w7[u], z6 + h * w6[u], z7 + h * w7[u]
                y8, y9, z8, z9 = y8 + g * w8[u], y9 + g * w9[u], z8 + h * w8[u], z9 + h * w9[u]
            o, m = out[t, i], out[t, i + 1]
            o[0], o[1], o[2], o[3], o[4] = y0, y1, y2, y3, y4
            o[5], o[6], o[7], o[8], o[9] = y5, y6, y7, y8, y9
            m[0], m[1], m[2], m[3], m[4] = z0, z1, z2, z3, z4
            m[5], m[6], m[7], m[8], m[9] = z5, z6, z7, z8, z9


@_compile
def _numbers(ten):
    return ten[0], ten[1], ten[2], ten[3], ten[4], ten[5], ten[6], ten[7], ten[8], ten[9]


def _backward_towards(gain):
    @_compile
    def backward(share, tiles, owners, values, scale, chosen, bias, a, error, out):
        zero = np.float32(0)
        for t in share:
            start, stop, k = tiles[t, 0], tiles[t, 1], owners[t]
            b, d = bias[start:stop], out[start:stop]
            w0, w1, w2, w3, w4 = a[0, start:stop], a[1, start:stop], a[2, start:stop], a[3, start:stop], a[4, start:stop]
            w5, w6, w7, w8, w9 = a[5, start:stop], a[6, start:stop], a[7, start:stop], a[8, start:stop], a[9, start:stop]
            for i in range(0, len(chosen), 4):
                p0, p1 = values[chosen[i], start:stop], values[chosen[i + 1], start:stop]
                p2, p3 = values[chosen[i + 2], start:stop], values[chosen[i + 3], start:stop]
                s0, s1, s2, s3 = scale[chosen[i]], scale[chosen[i + 1]], scale[chosen[i + 2]], scale[chosen[i + 3]]
                a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 = _numbers(error[k, i])
                b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 = _numbers(error[k, i + 1])
                c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 = _numbers(error[k, i + 2])
                d0, d1, d2, d3, d4, d5, d6, d7, d8, d9 = _numbers(error[k, i + 3])
                for u in range(np.uint64(stop - start)):
                    v0, v1, v2, v3, v4, v5, v6, v7, v8, v9 = w0[u], w1[u], w2[u], w3[u], w4[u], w5[u], w6[u], w7[u], w8[u], w9[u]
                    e0 = a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3 + a4 * v4 + a5 * v5 + a6 * v6 + a7 * v7 + a8 * v8 + a9 * v9
                    e1 = b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3 + b4 * v4 + b5 * v5 + b6 * v6 + b7 * v7 + b8 * v8 + b9 * v9
                    e2 = c0 * v0 + c1 * v1 + c2 * v2 + c3 * v3 + c4 * v4 + c5 * v5 + c6 * v6 + c7 * v7 + c8 * v8 + c9 * v9
                    e3 = d0 * v0 + d1 * v1 + d2 * v2 + d3 * v3 + d4 * v4 + d5 * v5 + d6 * v6 + d7 * v7 + d8 * v8 + d9 * v9
                    h0, h1 = np.float32(p0[u]) * s0 + b[u], np.float32(p1[u]) * s1 + b[u]
                    h2, h3 = np.float32(p2[u]) * s2 + b[u], np.float32(p3[u]) * s3 + b[u]
                    if gain:
                        e0, e1, e2, e3 = e0 * h0, e1 * h1, e2 * h2, e3 * h3
                    e0, e1 = e0 if h0 > zero else zero, e1 if h1 > zero else zero
                    e2, e3 = e2 if h2 > zero else zero, e3 if h3 > zero else zero
                    d[u] += e0 + e1 + e2 + e3

    return backward


_backward_bias, _backward_gain = _backward_towards(False), _backward_towards(True)


@_compile
def _moments(share, tiles, values, scale, bias, mask, out):
    zero = np.float32(0)
    for t in share:
        start, stop = tiles[t, 0], tiles[t, 1]
        b, m, total, square = bias[start:stop], mask[start:stop], out[0, start:stop], out[1, start:stop]
        for i in range(len(values)):
            p, s = values[i, start:stop], scale[i]
            for u in range(np.uint64(stop - start)):
                h = np.float32(p[u]) * s + b[u]
                h = (h if h > zero else zero) * m[u]
                total[u] += h
                square[u] += np.float64(h * h)


# The rest of an epoch. Elementwise, and in the order in which it is written: no fast maths.
_compile_exactly = numba.njit(error_model="numpy", nogil=True, boundscheck=False, cache=files.keeps_compiled_code())


@_compile_exactly
def _soft(slope, s, soft):
    """Masks sigmoid(slope · s)."""
    for u in range(len(s)):
        soft[u] = np.float32(1) / (np.float32(1) + np.exp(-slope * s[u]))


@_compile_exactly
def _towards_s(slope, soft, gradient):
    """From the gradient of a unit's gain times its mask to that of s: the sigmoid's slope · soft · (1 - soft), over soft."""
    for u in range(len(soft)):
        gradient[u] *= slope * (np.float32(1) - soft[u])


@_compile_exactly
def _errors(outputs, chosen, labels, wanted, losses):
    """Outputs (seeds, batch, classes) become the gradient of the mean loss towards them; the losses (seeds,) are written."""
    seeds, items, classes = outputs.shape
    share = np.float32(1 / len(chosen))
    for k in range(seeds):
        loss = 0.0
        for i in range(len(chosen)):
            row = outputs[k, i]
            if len(labels) == 0:
                for c in range(classes):
                    row[c] -= wanted[chosen[i], c]
                    loss += row[c] * row[c] / 2
                    row[c] *= share
            else:
                right, largest, total = labels[chosen[i]], row.max(), np.float32(0)
                loss += largest - row[right]
                for c in range(classes):
                    row[c] = np.exp(row[c] - largest)
                    total += row[c]
                loss += np.log(total)
                for c in range(classes):
                    row[c] = (row[c] / total - np.float32(c == right)) * share
        losses[k] = loss / len(chosen)


@_compile_exactly
def _adam(values, gradient, means, step, rate, epsilon):
    """Adam's step number `step`, counted from one, in place."""
    size, epsilon = np.float32(rate / (1 - KEEP**step)), np.float32(epsilon)
    scale, new, new_square = np.float32(math.sqrt(1 - KEEP_SQUARE**step)), np.float32(1 - KEEP), np.float32(1 - KEEP_SQUARE)
    mean, square, old_square = means[0], means[1], np.float32(KEEP_SQUARE)
    for u in range(len(values)):
        g = gradient[u]
        mean[u] += (g - mean[u]) * new
        square[u] = square[u] * old_square + g * g * new_square
        values[u] -= size * mean[u] / (np.sqrt(square[u]) / scale + epsilon)


@_compile_exactly
def _epoch(
    share, tiles, owners, values, scale, order, batch, labels, wanted, classes,
    groups, masked, bias, learned, means, steps, rates, slopes, epsilon, losses,
):  # fmt: skip
    """`Fused.epoch` on one thread."""
    seeds, units = losses.shape[1], len(learned)
    soft, now, gradient = np.empty_like(learned), groups, np.empty_like(learned)
    if masked:
        now = np.empty_like(groups)
    for k in range(len(rates)):
        items = min(batch, len(order) - k * batch)
        chosen = np.full((items + 3) // 4 * 4, order[k * batch])
        chosen[:items] = order[k * batch : k * batch + items]
        if masked:
            _soft(slopes[k], learned, soft)
            for g in range(len(groups)):
                for c in range(10):
                    for u in range(units):
                        now[g, c, u] = groups[g, c, u] * soft[u]
        outputs = np.zeros((seeds, items, classes), np.float32)
        out = np.empty((len(tiles), len(chosen), 10), np.float32)
        for g in range(len(groups)):
            _forward(share, tiles, values, scale, chosen, bias, now[g], out)
            for t in range(len(tiles)):
                for i in range(items):
                    for c in range(min(10, classes - 10 * g)):
                        outputs[owners[t], i, 10 * g + c] += out[t, i, c]
        _errors(outputs, chosen[:items], labels, wanted, losses[k])
        gradient[:] = 0
        for g in range(len(groups)):
            error = np.zeros((seeds, len(chosen), 10), np.float32)
            width = min(10, classes - 10 * g)
            error[:, :items, :width] = outputs[:, :, 10 * g : 10 * g + width]
            if masked:
                _backward_gain(share, tiles, owners, values, scale, chosen, bias, now[g], error, gradient)
            else:
                _backward_bias(share, tiles, owners, values, scale, chosen, bias, now[g], error, gradient)
        if masked:
            _towards_s(slopes[k], soft, gradient)
        _adam(learned, gradient, means, steps + k + 1, rates[k], epsilon)

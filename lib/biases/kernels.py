"""The two inner loops of bias learning: ten columns forward, ten columns back, on cached pre-activations.

`Fused` (NumPy arrays, compiled) reads every cached number once for ten outputs and writes nothing but its result; `Plain`
says the same in torch operations, runs on any device, and is what tests hold `Fused` against. Both take the cache `values`
(items, seeds · units), whose row i is to be multiplied by scale[i].
"""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from lib.data import files

TILE = 1024  # units that are worked on at a time: ten rows of A, 40 kB, stay in the cache next to the processor


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
        self.owners = torch.tensor([start // units for start, _ in starts])
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
        known = self.tiles, self.values, self.scale, chosen.numpy(), bias.numpy()
        groups = []
        for ten in a.split(10):
            out = np.zeros((len(self.tiles), len(chosen), 10), np.float32)
            self._spread(_forward, *known, _ten(ten).numpy(), out)
            total = torch.zeros(self.seeds, len(chosen), 10)
            groups.append(total.index_add_(0, self.owners, torch.from_numpy(out))[..., : len(ten)])
        return torch.cat(groups, -1)

    def backward(self, chosen: Tensor, bias: Tensor, a: Tensor, error: Tensor, gain: bool) -> Tensor:
        """Gradient (seeds · units,) towards the biases, or with `gain` towards the gains of the units.

        `error` (seeds, batch, classes) is the gradient towards the outputs.
        """
        known = self.tiles, self.values, self.scale, chosen.numpy(), bias.numpy()
        kernel = _backward_gain if gain else _backward_bias
        out = np.zeros(a.shape[1], np.float32)  # every group of ten adds its part
        for ten, part in zip(a.split(10), error.split(10, -1), strict=True):
            part = pad(part, (0, 10 - len(ten)))[self.owners].numpy()  # (tiles, batch, 10)
            self._spread(kernel, *known, _ten(ten).numpy(), part, out)
        return torch.from_numpy(out)


def _ten(a: Tensor) -> Tensor:
    return a if len(a) == 10 else pad(a, (0, 0, 0, 10 - len(a)))


# Ten accumulators are written out by hand: that is what lets the compiler keep them in registers and work on 16 units at a
# time. The same loop over an array of ten is seven times slower. Fast maths may add in another order, nothing else.
_compile = numba.njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, boundscheck=False, cache=files.keeps_compiled_code())


@_compile
def _forward(share, tiles, values, scale, chosen, bias, a, out):
    zero = np.float32(0)
    for t in share:
        start, stop = tiles[t, 0], tiles[t, 1]
        b = bias[start:stop]
        w0, w1, w2, w3, w4 = a[0, start:stop], a[1, start:stop], a[2, start:stop], a[3, start:stop], a[4, start:stop]
        w5, w6, w7, w8, w9 = a[5, start:stop], a[6, start:stop], a[7, start:stop], a[8, start:stop], a[9, start:stop]
        for i in range(len(chosen)):
            p, s = values[chosen[i], start:stop], scale[chosen[i]]
            z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = z8 = z9 = zero
            for u in range(np.uint64(stop - start)):
                h = np.float32(p[u]) * s + b[u]
                h = h if h > zero else zero
                z0 += h * w0[u]
                z1 += h * w1[u]
                z2 += h * w2[u]
                z3 += h * w3[u]
                z4 += h * w4[u]
                z5 += h * w5[u]
                z6 += h * w6[u]
                z7 += h * w7[u]
                z8 += h * w8[u]
                z9 += h * w9[u]
            o = out[t, i]
            o[0], o[1], o[2], o[3], o[4] = z0, z1, z2, z3, z4
            o[5], o[6], o[7], o[8], o[9] = z5, z6, z7, z8, z9


@_compile
def _backward_bias(share, tiles, values, scale, chosen, bias, a, error, out):
    zero = np.float32(0)
    for t in share:
        start, stop = tiles[t, 0], tiles[t, 1]
        b, d = bias[start:stop], out[start:stop]
        w0, w1, w2, w3, w4 = a[0, start:stop], a[1, start:stop], a[2, start:stop], a[3, start:stop], a[4, start:stop]
        w5, w6, w7, w8, w9 = a[5, start:stop], a[6, start:stop], a[7, start:stop], a[8, start:stop], a[9, start:stop]
        for i in range(len(chosen)):
            p, s, g = values[chosen[i], start:stop], scale[chosen[i]], error[t, i]
            g0, g1, g2, g3, g4, g5, g6, g7, g8, g9 = g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9]
            for u in range(np.uint64(stop - start)):
                left = g0 * w0[u] + g1 * w1[u] + g2 * w2[u] + g3 * w3[u] + g4 * w4[u]
                right = g5 * w5[u] + g6 * w6[u] + g7 * w7[u] + g8 * w8[u] + g9 * w9[u]
                h = np.float32(p[u]) * s + b[u]
                d[u] += left + right if h > zero else zero


@_compile
def _backward_gain(share, tiles, values, scale, chosen, bias, a, error, out):
    zero = np.float32(0)
    for t in share:
        start, stop = tiles[t, 0], tiles[t, 1]
        b, d = bias[start:stop], out[start:stop]
        w0, w1, w2, w3, w4 = a[0, start:stop], a[1, start:stop], a[2, start:stop], a[3, start:stop], a[4, start:stop]
        w5, w6, w7, w8, w9 = a[5, start:stop], a[6, start:stop], a[7, start:stop], a[8, start:stop], a[9, start:stop]
        for i in range(len(chosen)):
            p, s, g = values[chosen[i], start:stop], scale[chosen[i]], error[t, i]
            g0, g1, g2, g3, g4, g5, g6, g7, g8, g9 = g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9]
            for u in range(np.uint64(stop - start)):
                left = g0 * w0[u] + g1 * w1[u] + g2 * w2[u] + g3 * w3[u] + g4 * w4[u]
                right = g5 * w5[u] + g6 * w6[u] + g7 * w7[u] + g8 * w8[u] + g9 * w9[u]
                h = np.float32(p[u]) * s + b[u]
                d[u] += (left + right) * h if h > zero else zero

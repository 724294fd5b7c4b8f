"""The compiled loops behind `kernels.Fused`: ten columns forward, ten columns back, and all that an epoch needs beside them.

Arrays are NumPy's, and results are written into `out` and the like. `share` says which of the `tiles` of units to work on, and
`owners` to which network each belongs. Numbers have the precision of `scale`.
"""

import math
from collections.abc import Callable

import numba
import numpy as np

from lib.data import files

KEEP, KEEP_SQUARE = 0.9, 0.999  # Adam's: what its two means keep of themselves at each step

# Ten accumulators for each of two images are written out by hand: that is what lets the compiler keep them in registers, work
# on 16 units at a time and load each weight once for both. The same loop over an array of ten is seven times slower. Backward,
# four images share the weights. Fast maths may add in another order, nothing else.
_compile = numba.njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, boundscheck=False, cache=files.keeps_compiled_code())


@_compile
def forward(
    share: np.ndarray,
    tiles: np.ndarray,
    values: np.ndarray,
    scale: np.ndarray,
    chosen: np.ndarray,
    bias: np.ndarray,
    a: np.ndarray,
    out: np.ndarray,
) -> None:
    """Outputs of each tile (tiles, chosen, 10) for ten rows `a` of output weights."""
    real = scale.dtype.type
    zero = real(0)
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
                g, h = real(p[u]) * s + b[u], real(q[u]) * r + b[u]
                g, h = g if g > zero else zero, h if h > zero else zero
                y0, z0 = y0 + g * w0[u], z0 + h * w0[u]
                y1, z1 = y1 + g * w1[u], z1 + h * w1[u]
                y2, z2 = y2 + g * w2[u], z2 + h * w2[u]
                y3, z3 = y3 + g * w3[u], z3 + h * w3[u]
                y4, z4 = y4 + g * w4[u], z4 + h * w4[u]
                y5, z5 = y5 + g * w5[u], z5 + h * w5[u]
                y6, z6 = y6 + g * w6[u], z6 + h * w6[u]
                y7, z7 = y7 + g * w7[u], z7 + h * w7[u]
                y8, z8 = y8 + g * w8[u], z8 + h * w8[u]
                y9, z9 = y9 + g * w9[u], z9 + h * w9[u]
            o, m = out[t, i], out[t, i + 1]
            o[0], o[1], o[2], o[3], o[4] = y0, y1, y2, y3, y4
            o[5], o[6], o[7], o[8], o[9] = y5, y6, y7, y8, y9
            m[0], m[1], m[2], m[3], m[4] = z0, z1, z2, z3, z4
            m[5], m[6], m[7], m[8], m[9] = z5, z6, z7, z8, z9


@_compile
def numbers(ten: np.ndarray) -> tuple:
    """Ten numbers, each with a name of its own."""
    return ten[0], ten[1], ten[2], ten[3], ten[4], ten[5], ten[6], ten[7], ten[8], ten[9]


def backward_towards(gain: bool) -> Callable:
    """The loop back, which adds the gradient towards the biases, or towards the gains, to `out` (seeds · units,)."""

    @_compile
    def backward(share, tiles, owners, values, scale, chosen, bias, a, error, out):
        real = scale.dtype.type
        zero = real(0)
        for t in share:
            start, stop, k = tiles[t, 0], tiles[t, 1], owners[t]
            b, d = bias[start:stop], out[start:stop]
            w0, w1, w2, w3, w4 = a[0, start:stop], a[1, start:stop], a[2, start:stop], a[3, start:stop], a[4, start:stop]
            w5, w6, w7, w8, w9 = a[5, start:stop], a[6, start:stop], a[7, start:stop], a[8, start:stop], a[9, start:stop]
            for i in range(0, len(chosen), 4):
                p0, p1 = values[chosen[i], start:stop], values[chosen[i + 1], start:stop]
                p2, p3 = values[chosen[i + 2], start:stop], values[chosen[i + 3], start:stop]
                s0, s1, s2, s3 = scale[chosen[i]], scale[chosen[i + 1]], scale[chosen[i + 2]], scale[chosen[i + 3]]
                a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 = numbers(error[k, i])
                b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 = numbers(error[k, i + 1])
                c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 = numbers(error[k, i + 2])
                d0, d1, d2, d3, d4, d5, d6, d7, d8, d9 = numbers(error[k, i + 3])
                for u in range(np.uint64(stop - start)):
                    v0, v1 = w0[u], w1[u]
                    v2, v3 = w2[u], w3[u]
                    v4, v5 = w4[u], w5[u]
                    v6, v7 = w6[u], w7[u]
                    v8, v9 = w8[u], w9[u]
                    e0 = a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3 + a4 * v4 + a5 * v5 + a6 * v6 + a7 * v7 + a8 * v8 + a9 * v9
                    e1 = b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3 + b4 * v4 + b5 * v5 + b6 * v6 + b7 * v7 + b8 * v8 + b9 * v9
                    e2 = c0 * v0 + c1 * v1 + c2 * v2 + c3 * v3 + c4 * v4 + c5 * v5 + c6 * v6 + c7 * v7 + c8 * v8 + c9 * v9
                    e3 = d0 * v0 + d1 * v1 + d2 * v2 + d3 * v3 + d4 * v4 + d5 * v5 + d6 * v6 + d7 * v7 + d8 * v8 + d9 * v9
                    h0, h1 = real(p0[u]) * s0 + b[u], real(p1[u]) * s1 + b[u]
                    h2, h3 = real(p2[u]) * s2 + b[u], real(p3[u]) * s3 + b[u]
                    if gain:
                        e0, e1, e2, e3 = e0 * h0, e1 * h1, e2 * h2, e3 * h3
                    e0, e1 = e0 if h0 > zero else zero, e1 if h1 > zero else zero
                    e2, e3 = e2 if h2 > zero else zero, e3 if h3 > zero else zero
                    d[u] += e0 + e1 + e2 + e3

    return backward


backward_bias, backward_gain = backward_towards(False), backward_towards(True)


@_compile
def moments(
    share: np.ndarray,
    tiles: np.ndarray,
    values: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    mask: np.ndarray,
    out: np.ndarray,
) -> None:
    """Sums over all images of activity times `mask`, and of its square, into `out` (2, seeds · units)."""
    real = scale.dtype.type
    for t in share:
        own = slice(tiles[t, 0], tiles[t, 1])
        b, m, total, square = bias[own], mask[own], out[0, own], out[1, own]
        for i in range(len(values)):
            p, s = values[i, own], scale[i]
            for u in range(np.uint64(len(b))):
                h = real(p[u]) * s + b[u]
                h = (h if h > real(0) else real(0)) * m[u]
                total[u] += h
                square[u] += np.float64(h * h)


# The rest of an epoch. Elementwise, and in the order in which it is written: no fast maths.
_compile_exactly = numba.njit(error_model="numpy", nogil=True, boundscheck=False, cache=files.keeps_compiled_code())


@_compile_exactly
def soften(slope: float, s: np.ndarray, soft: np.ndarray) -> None:
    """Masks sigmoid(slope · s)."""
    for u in range(len(s)):
        soft[u] = np.float32(1) / (np.float32(1) + np.exp(-slope * s[u]))


@_compile_exactly
def towards_s(slope: float, soft: np.ndarray, gradient: np.ndarray) -> None:
    """From the gradient of a unit's gain times its mask to that of s: the sigmoid's slope · soft · (1 - soft), over soft."""
    for u in range(len(soft)):
        gradient[u] *= slope * (np.float32(1) - soft[u])


@_compile_exactly
def errors(outputs: np.ndarray, chosen: np.ndarray, labels: np.ndarray, wanted: np.ndarray, losses: np.ndarray) -> None:
    """Outputs (seeds, batch, classes) become the gradient of the mean loss towards them; the losses (seeds,) are written."""
    seeds, items, classes = outputs.shape
    real = outputs.dtype.type
    share = real(1 / len(chosen))
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
                right, largest, total = labels[chosen[i]], row[0], real(0)
                for c in range(1, classes):
                    largest = max(largest, row[c])
                loss += largest - row[right]
                for c in range(classes):
                    row[c] = np.exp(row[c] - largest)
                    total += row[c]
                loss += np.log(total)
                for c in range(classes):
                    row[c] = (row[c] / total - real(c == right)) * share
        losses[k] = loss / len(chosen)


@_compile_exactly
def adam(values: np.ndarray, gradient: np.ndarray, means: np.ndarray, step: int, rate: float, epsilon: float) -> None:
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
def answer(
    share: np.ndarray,
    tiles: np.ndarray,
    owners: np.ndarray,
    values: np.ndarray,
    scale: np.ndarray,
    chosen: np.ndarray,
    items: int,
    classes: int,
    bias: np.ndarray,
    groups: np.ndarray,
    seeds: int,
) -> np.ndarray:
    """Outputs (seeds, items, classes) for the first `items` of the images chosen, groups of ten side by side."""
    outputs, out = np.zeros((seeds, items, classes), scale.dtype), np.empty((len(tiles), len(chosen), 10), scale.dtype)
    for g in range(len(groups)):
        forward(share, tiles, values, scale, chosen, bias, groups[g], out)
        for t in range(len(tiles)):
            for i in range(items):
                for c in range(min(10, classes - 10 * g)):
                    outputs[owners[t], i, 10 * g + c] += out[t, i, c]
    return outputs


@_compile_exactly
def padded(outputs: np.ndarray, g: int, whole: int) -> np.ndarray:
    """The ten columns of group g of (seeds, items, classes), with zeros where there are no more classes or items."""
    seeds, items, classes = outputs.shape
    ten = np.zeros((seeds, whole, 10), outputs.dtype)
    for k in range(seeds):
        for i in range(items):
            for c in range(min(10, classes - 10 * g)):
                ten[k, i, c] = outputs[k, i, 10 * g + c]
    return ten


@_compile_exactly
def in_fours(order: np.ndarray, start: int, items: int) -> np.ndarray:
    """`work._in_fours` of items of this order."""
    chosen = np.empty((items + 3) // 4 * 4, np.int64)
    for i in range(len(chosen)):
        chosen[i] = order[start + i if i < items else start]
    return chosen


@_compile_exactly
def epoch(
    share: np.ndarray,
    tiles: np.ndarray,
    owners: np.ndarray,
    values: np.ndarray,
    scale: np.ndarray,
    order: np.ndarray,
    batch: int,
    labels: np.ndarray,
    wanted: np.ndarray,
    classes: int,
    groups: np.ndarray,
    masked: bool,
    bias: np.ndarray,
    learned: np.ndarray,
    means: np.ndarray,
    steps: int,
    rates: np.ndarray,
    slopes: np.ndarray,
    epsilon: float,
    losses: np.ndarray,
) -> None:
    """`Fused.epoch` on one thread."""
    seeds, units = losses.shape[1], len(learned)
    soft, now, gradient = np.empty_like(learned), groups, np.empty_like(learned)
    if masked:
        now = np.empty_like(groups)
    for k in range(len(rates)):
        items = min(batch, len(order) - k * batch)
        chosen = in_fours(order, k * batch, items)
        if masked:
            soften(slopes[k], learned, soft)
            for g in range(len(groups)):
                for c in range(10):
                    for u in range(units):
                        now[g, c, u] = groups[g, c, u] * soft[u]
        outputs = answer(share, tiles, owners, values, scale, chosen, items, classes, bias, now, seeds)
        errors(outputs, chosen[:items], labels, wanted, losses[k])
        gradient[:] = 0
        for g in range(len(groups)):
            error = padded(outputs, g, len(chosen))
            if masked:
                backward_gain(share, tiles, owners, values, scale, chosen, bias, now[g], error, gradient)
            else:
                backward_bias(share, tiles, owners, values, scale, chosen, bias, now[g], error, gradient)
        if masked:
            towards_s(slopes[k], soft, gradient)
        adam(learned, gradient, means, steps + k + 1, rates[k], epsilon)


@_compile_exactly
def descend(
    share: np.ndarray,
    tiles: np.ndarray,
    owners: np.ndarray,
    values: np.ndarray,
    scale: np.ndarray,
    wanted: np.ndarray,
    groups: np.ndarray,
    bias: np.ndarray,
    step: np.ndarray,
    steps: int,
    first: np.ndarray,
) -> None:
    """`Fused.descend`."""
    items, classes = wanted.shape
    seeds, gradient = len(first), np.empty_like(bias)
    order, loss, labels = np.arange(items), np.empty_like(first), np.empty(0, np.int64)
    chosen = in_fours(order, 0, items)
    for k in range(max(1, steps)):
        outputs = answer(share, tiles, owners, values, scale, chosen, items, classes, bias, groups, seeds)
        errors(outputs, order, labels, wanted, loss)
        if k == 0:
            for s in range(seeds):
                first[s] = loss[s]
        if k < steps:
            gradient[:] = 0
            for g in range(len(groups)):
                error = padded(outputs, g, len(chosen))
                backward_bias(share, tiles, owners, values, scale, chosen, bias, groups[g], error, gradient)
            for t in share:
                for u in range(tiles[t, 0], tiles[t, 1]):
                    bias[u] -= step[owners[t]] * gradient[u]

"""Lempel-Ziv complexity: quantise a function, read it as one sequence, count the phrases (Neural Redshift Appendix D)."""

import math
from functools import lru_cache

import numba
import numpy as np
import torch
from torch import Tensor

from lib.complexity._values import value_range, values_on_grid
from lib.data import files
from lib.linear.shapes import axes

_compile = numba.njit(cache=files.keeps_compiled_code())  # compiling takes seconds
TRAVERSALS = ("columns", "rows", "snake", "zigzag", "spiral")


def lempel_ziv(y: Tensor | np.ndarray, levels: int = 10, traversal: str = "columns", dims: int = 2) -> Tensor:
    """Lempel-Ziv complexity of functions: quantise, read the grid as one sequence, count the phrases; (..., m, m), or
    (..., m) with dims=1, becomes (...), int64.

    Neural Redshift Section 2 (C_LZ) and Appendix D.
    """
    if dims not in (1, 2):
        raise ValueError(f"lempel_ziv reads grids of one or two dimensions, not {dims}; choose an order and use `phrases`")
    symbols = quantise(y, levels, dims)
    return phrases(symbols if dims == 1 else traverse(symbols, traversal), levels)


def quantise(y: Tensor | np.ndarray, levels: int = 10, dims: int = 2) -> Tensor:
    """Each function rounded to the nearest of `levels` values spaced regularly over its own range, as int16; same shape
    as `y`.

    A function whose range is below rounding error counts as constant. Neural Redshift Appendix D.
    """
    y = values_on_grid("quantise", y, dims)
    low, high, flat = value_range(y, dims)
    scaled = (y - low).mul_((levels - 1) / torch.where(flat, 1, high - low))
    return scaled.round_().masked_fill_(flat, 0).to(torch.int16)


@axes(y="rows columns")
def traverse(y: Tensor, order: str = "columns") -> Tensor:
    """Read grids as sequences: "columns", "rows", "snake" (rows back and forth), "zigzag" (antidiagonals) or "spiral"
    (from the rim inwards); (..., rows, columns) becomes (..., rows * columns). Neural Redshift Appendix D."""
    return y.flatten(-2)[..., _traversal(y.shape[-2], y.shape[-1], order).to(y.device)]


@axes(symbols="length")
def phrases(symbols: Tensor, alphabet: int | None = None) -> Tensor:
    """Number of phrases into which LZ78 cuts each sequence of integers 0 <= symbol < alphabet; (..., length) becomes
    (...), int64.

    A phrase is the shortest piece not seen before; an unfinished last phrase is not counted.
    """
    if symbols.is_floating_point():
        raise ValueError("symbols must be whole numbers; `quantise` makes them of a function's values")
    flat = symbols.reshape(-1, symbols.shape[-1])
    length = flat.shape[1]
    if alphabet is None:
        alphabet = int(flat.max()) + 1 if flat.numel() else 1
    if flat.numel() and not 0 <= int(flat.min()) <= int(flat.max()) < alphabet:
        raise ValueError(f"symbols must lie between 0 and {alphabet - 1}")
    if alphabet <= 256:  # a table of all possible branches is fastest, but too large for a vocabulary
        trees = np.zeros((4, (length + 1) * alphabet), np.uint16 if length < 2**16 else np.int32)
        rows = np.zeros((-(-len(flat) // 4) * 4, length), np.uint8)
        rows[: len(flat)] = flat.cpu().numpy()
        counts = _phrases_dense(rows, alphabet, trees)[: len(flat)]
    else:
        counts = _phrases_hashed(np.ascontiguousarray(flat.cpu().numpy()), alphabet)
    return torch.from_numpy(counts).reshape(symbols.shape[:-1]).to(symbols.device)


def phrases_of_constant(n: int) -> int:
    """`phrases` of n equal symbols: the largest p with 1 + 2 + ... + p <= n."""
    return (math.isqrt(8 * n + 1) - 1) // 2


@lru_cache(maxsize=32)
def _traversal(rows: int, columns: int, order: str) -> Tensor:
    grid = np.arange(rows * columns).reshape(rows, columns)
    if order == "rows":
        path = grid.ravel()
    elif order == "columns":
        path = grid.T.ravel()
    elif order == "snake":
        path = np.concatenate([row[:: 1 if i % 2 == 0 else -1] for i, row in enumerate(grid)])
    elif order == "zigzag":
        diagonals = [np.diagonal(grid[::-1], offset) for offset in range(1 - rows, columns)]
        path = np.concatenate([d[:: 1 if i % 2 == 0 else -1] for i, d in enumerate(diagonals)])
    elif order == "spiral":
        rings = []
        while grid.size:
            rings.append(grid[0])
            grid = np.rot90(grid[1:])
        path = np.concatenate(rings)
    else:
        raise ValueError(f"order is one of {', '.join(TRAVERSALS)}, not {order!r}")
    return torch.from_numpy(np.ascontiguousarray(path))


@_compile
def _phrases_dense(sequences: np.ndarray, alphabet: int, trees: np.ndarray) -> np.ndarray:
    """LZ78 on rows of `sequences` (a multiple of four), four at a time: each step of one sequence waits for a memory
    access of the step before, and four independent sequences hide that wait. trees[row, node * alphabet + symbol] is a
    node's child; node 0 is the root."""
    phrase_counts = np.zeros(len(sequences), np.int64)
    for row in range(0, len(sequences), 4):
        a = b = c = d = 0
        made_a = made_b = made_c = made_d = 0
        for i in range(sequences.shape[1]):
            a, made_a = _descend(trees[0], a * alphabet + sequences[row, i], made_a)
            b, made_b = _descend(trees[1], b * alphabet + sequences[row + 1, i], made_b)
            c, made_c = _descend(trees[2], c * alphabet + sequences[row + 2, i], made_c)
            d, made_d = _descend(trees[3], d * alphabet + sequences[row + 3, i], made_d)
        phrase_counts[row : row + 4] = made_a, made_b, made_c, made_d
        trees[:, : (max(made_a, made_b, made_c, made_d) + 1) * alphabet] = 0
    return phrase_counts


@_compile
def _descend(tree: np.ndarray, branch: int, made: int) -> tuple[int, int]:
    """Follow a branch; if nothing is there, a new phrase ends here: note it, and go back to the root. Free of jumps for
    speed."""
    node = np.int64(tree[branch])
    new = np.int64(node == 0)
    tree[branch] = node + new * (made + 1)
    return node, made + new


@_compile
def _phrases_hashed(sequences: np.ndarray, alphabet: int) -> np.ndarray:
    count, length = sequences.shape
    phrase_counts = np.zeros(count, np.int64)
    for row in range(count):
        child = {np.int64(0): np.int64(0)}
        node, made = np.int64(0), np.int64(0)
        for symbol in sequences[row]:
            branch = node * alphabet + symbol + 1
            if branch in child:
                node = child[branch]
            else:
                made += 1
                child[branch] = made
                node = np.int64(0)
        phrase_counts[row] = made
    return phrase_counts

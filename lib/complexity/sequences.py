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
    (..., m) with dims=1, becomes (...), int64. Neural Redshift Section 2 (C_LZ) and Appendix D."""
    if dims not in (1, 2):
        raise ValueError(f"lempel_ziv reads grids of one or two dimensions, not {dims}; choose an order and use `phrases`")
    symbols = quantise(y, levels, dims)
    return phrases(symbols if dims == 1 else traverse(symbols, traversal), levels)


def quantise(y: Tensor | np.ndarray, levels: int = 10, dims: int = 2) -> Tensor:
    """Each function rounded to the nearest of `levels` values spaced regularly over its own range, as int16; same shape
    as `y`. A function whose range is below rounding error counts as constant. Neural Redshift Appendix D."""
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
    (...), int64. A phrase is the shortest piece not seen before; an unfinished last phrase is not counted."""
    if symbols.is_floating_point():
        raise ValueError("symbols must be whole numbers; `quantise` makes them of a function's values")
    flat = np.ascontiguousarray(symbols.reshape(-1, symbols.shape[-1]).cpu().numpy(), dtype=np.int64)
    if alphabet is None:
        alphabet = int(flat.max()) + 1 if flat.size else 1
    if flat.size and not 0 <= flat.min() <= flat.max() < alphabet:
        raise ValueError(f"symbols must lie between 0 and {alphabet - 1}")
    return torch.from_numpy(_count_phrases(flat, alphabet)).reshape(symbols.shape[:-1]).to(symbols.device)


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
def _count_phrases(sequences: np.ndarray, alphabet: int) -> np.ndarray:
    """LZ78 on each row of `sequences`: a tree of phrases, whose node `node` has the child child[node * alphabet + symbol]."""
    phrase_counts = np.zeros(len(sequences), np.int64)
    for row in range(len(sequences)):
        child = {np.int64(-1): np.int64(0)}  # an entry that no symbol reaches tells numba the types
        node, made = np.int64(0), np.int64(0)
        for symbol in sequences[row]:
            branch = node * alphabet + symbol
            node = child.get(branch, np.int64(0))
            if node == 0:  # no phrase goes on like this: a new one ends here, and the next starts at the root
                made += 1
                child[branch] = made
        phrase_counts[row] = made
    return phrase_counts

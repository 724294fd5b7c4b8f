"""Processor seconds of two programs for the same numbers, in turns, and how the cost of one of them grows.

Processor time does not count waiting, but a busy neighbour slows memory down: programs take turns, each turn gives one
ratio, and all turns are told (median and range).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from torch import Tensor

from lib.press.bench.record import BenchError


@dataclass(frozen=True)
class Pair:
    """A fast and a plain program for the same numbers, and how much each of them does.

    Both return what they have computed; of that, `look` makes what is compared. `amounts` are those of the fast and the plain
    one in the case's unit: the plain one may do a part of the work, the costs are compared by unit. `tolerance` is the
    largest difference, relative to the largest number, that rounding in this precision explains. `flops` are the
    multiplications and additions, `bytes` the memory traffic that one run of the fast program cannot avoid.
    """

    fast: Callable[[], Tensor]
    plain: Callable[[], Tensor]
    amounts: tuple[float, float]
    tolerance: float
    flops: float = 0.0
    bytes: float = 0.0
    look: Callable[[Tensor], Tensor] = torch.as_tensor  # what is compared of a result; not timed


@dataclass(frozen=True)
class Case:
    """One row of the bench: what is compared, at which size, in which precisions, and along which sizes its cost is followed.

    `build(dtype, **sizes)` makes the pair. `grows` gives the values of a size, with others that hold meanwhile.
    """

    title: str
    plain: str  # the plain program in words
    unit: str
    build: Callable[..., Pair]
    sizes: dict[str, int]
    grows: dict[str, tuple[tuple[int, ...], dict[str, int]]]
    precisions: tuple[str, ...] = ("float32", "float64")
    hot: bool = True  # whether its share of the machine's best means anything: not for a loop over a few numbers


@dataclass(frozen=True)
class Effort:
    """How long a bench takes: turns of each comparison, passes over each series of sizes, seconds of a single measurement."""

    turns: int = 7
    passes: int = 3
    seconds: float = 0.1


def processor_seconds(program: Callable[[], object], at_least: float = 0.0) -> float:
    """Processor seconds of one run, from as many runs as take `at_least` that long together."""
    runs, begin = 0, time.process_time()
    while True:
        program()
        runs += 1
        taken = time.process_time() - begin
        if taken >= at_least:
            return taken / runs


def spread(values: list[float]) -> dict[str, float]:
    """{"median", "low", "high"} of some measurements, to four digits."""
    rounded = (median(values), min(values), max(values))
    return dict(zip(("median", "low", "high"), (float(f"{value:.4g}") for value in rounded), strict=True))


def difference(pair: Pair) -> float:
    """Largest difference between what the two programs return, relative to the largest number; also their warm-up."""
    ours, theirs = (pair.look(program()).double() for program in (pair.fast, pair.plain))
    if ours.shape != theirs.shape:
        raise BenchError(f"the fast program returns {tuple(ours.shape)}, the plain one {tuple(theirs.shape)}")
    size = theirs.abs().max()
    if not torch.isfinite(ours).all() or not size > 0:
        raise BenchError("a program returns nothing but zeros, or numbers that are not finite: there is nothing to compare")
    return float((ours - theirs).abs().max() / size)


def compare(pair: Pair, effort: Effort, name: str = "this case") -> dict:
    """Seconds by unit of both programs and their ratio turn by turn; refuses programs that do not agree."""
    apart = difference(pair)
    if not apart <= pair.tolerance:
        raise BenchError(f"{name}: the fast and the plain program differ by {apart:.1e}; rounding explains {pair.tolerance:.0e}")
    fast, plain = [], []
    for _ in range(effort.turns):
        fast.append(processor_seconds(pair.fast, effort.seconds) / pair.amounts[0])
        plain.append(processor_seconds(pair.plain, effort.seconds) / pair.amounts[1])
    ratio = [slow / quick for slow, quick in zip(plain, fast, strict=True)]
    return {"difference": float(f"{apart:.2g}"), "fast": spread(fast), "plain": spread(plain), "ratio": spread(ratio)}


def slope(sizes: list[float], costs: list[float]) -> tuple[float, float]:
    """(slope, its standard error) of the straight line through log cost against log size."""
    x, y = np.log(sizes), np.log(costs)
    x = x - x.mean()
    steep = float(x @ y / (x @ x))
    rest = y - y.mean() - steep * x
    return steep, float(np.sqrt(rest @ rest / max(1, len(x) - 2) / (x @ x)))


def growth(build: Callable[[int], Pair], sizes: tuple[int, ...], effort: Effort) -> dict:
    """Seconds of the fast program along a size, the slope of their regression, and the slope of the operations counted.

    The count is that of `flops`, or of `bytes` where there are none: what the cost would do if every operation took as long
    in a small program as in a large one. The sizes are gone through several times, so that a slow minute hits all alike.
    """
    pairs = [build(size) for size in sizes]
    for pair in pairs:
        pair.fast()
    taken = [[processor_seconds(pair.fast, effort.seconds) for pair in pairs] for _ in range(effort.passes)]
    seconds = [spread(list(column)) for column in zip(*taken, strict=True)]
    steep, error = slope(list(sizes), [each["median"] for each in seconds])
    expected, _ = slope(list(sizes), [pair.flops or pair.bytes for pair in pairs])
    return {
        "sizes": list(sizes),
        "seconds": seconds,
        "slope": round(steep, 3),
        "error": round(error, 3),
        "expected": round(expected, 3) + 0.0,  # no minus before a zero
    }

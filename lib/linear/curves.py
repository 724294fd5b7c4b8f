"""How alike are two learning curves? Stretched, shifted, and as they are; how many stages does one have?

Curves are (times, ...), recorded at the same times; what comes back has one number per network, (...). Differences are
root mean squares over a window of time, relative to the reference: to its first value, its progress, or its own size.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lib.linear.descent import crossing


class Alignment(NamedTuple):
    """How a curve was moved to lie on another, network by network."""

    amount: Tensor  # (...) by which the curve was stretched (0.05: it is 5 % slower) or shifted (in units of time)
    distance: Tensor  # (...) what is left: root mean square over time, relative to the reference's first value
    at_bound: Tensor  # (...) true where the amount is the least or the largest that was tried: more might have fitted better


def best_stretch(
    time: Tensor, reference: Tensor, curve: Tensor, low: float = -0.5, high: float = 0.3, until: Tensor | float | None = None
) -> Alignment:
    """Stretch time until `curve` (times, ...) lies on `reference` as well as it can; every network by itself.

    Amounts from `low` to `high` are tried. Curves are compared up to `until` (a time, or one for each network), by default
    until both have made 99 % of their progress: a longer recording would only dilute the distance. The curve must have been
    recorded up to (1 + high) times that moment; an explicit `until` that is later is refused, the default stops there.
    """
    end = float(time[-1]) / (1 + high)
    return _best("best_stretch", time, reference, curve, (low, high), until, lambda t, by: t * (1 + by), end)


def best_shift(
    time: Tensor, reference: Tensor, curve: Tensor, low: float = -1.0, high: float = 1.0, until: Tensor | float | None = None
) -> Alignment:
    """The same with a shift of time, in the units of `time`; before its beginning a curve has its first value."""
    end = float(time[-1]) - high
    return _best("best_shift", time, reference, curve, (low, high), until, lambda t, by: t + by, end)


def progress_time(time: Tensor, curve: Tensor, share: float = 0.99) -> Tensor:
    """When a falling curve (times, ...) has made `share` of the progress that it makes in the whole recording, (...)."""
    return crossing(time, curve, curve[0] - share * (curve[0] - curve[-1]))


def distance(
    time: Tensor, reference: Tensor, curve: Tensor, until: Tensor | float | None = None, relative_to: str = "start"
) -> Tensor:
    """Root mean square over time, up to `until`, of curve - reference; (...).

    Relative to the reference's first value ("start"), or to the root mean square of the reference itself ("norm").
    """
    window = _window(time, until, reference)
    apart = _rms(curve - reference, window)
    if relative_to == "start":
        return apart / reference[0]
    if relative_to == "norm":
        return apart / _rms(reference, window)
    raise ValueError(f"relative_to is 'start' or 'norm', not {relative_to!r}")


def gap(time: Tensor, reference: Tensor, curve: Tensor, share: float = 0.9) -> Tensor:
    """Distance while the reference makes `share` of its progress, relative to all of that progress; (...)."""
    apart = distance(time, reference, curve, progress_time(time, reference, share))
    return apart * reference[0] / (reference[0] - reference[-1])


def interval(values: Tensor, confidence: float = 0.95, dim: int = -1) -> Tensor:
    """Half of the confidence interval of a mean over `dim`, by Student's t: right for a few seeds as well as for many."""
    from scipy.stats import t

    seeds = values.shape[dim]
    if seeds < 2:
        raise ValueError(f"interval: a spread needs at least 2 values, and there are {seeds}")
    return float(t.ppf(0.5 + confidence / 2, seeds - 1)) * values.std(dim) / math.sqrt(seeds)


def stages(time: Tensor, loss: Tensor, least: float = 0.005) -> Tensor:
    """How many separate drops a falling curve (times, ...) has: maxima of its speed that stand out by `least` of the
    fastest one, counted for every network, (...)."""
    from scipy.signal import find_peaks

    speed = -torch.diff(loss, dim=0) / torch.diff(time.to(loss)).reshape(-1, *[1] * (loss.dim() - 1))
    flat = torch.nn.functional.pad(speed.flatten(1), (0, 0, 1, 1)).numpy()  # zeros at both ends: a first drop counts too
    counts = [len(find_peaks(column, prominence=least * column.max())[0]) for column in flat.T]
    return torch.tensor(counts).reshape(loss.shape[1:])


def area(curve: Tensor, reference: Tensor) -> Tensor:
    """Area between two learning curves (times, ...), as a share of the area under the reference; (...).

    Both are recorded at the same, evenly spaced times. Zero for the same curve; one for a curve that is zero throughout.
    """
    if curve.shape[0] != reference.shape[0]:
        raise ValueError(f"area: curve has {curve.shape[0]} times, reference has {reference.shape[0]}")
    return (curve - reference).abs().sum(0) / reference.sum(0)


def _best(
    caller: str,
    time: Tensor,
    reference: Tensor,
    curve: Tensor,
    bounds: tuple[float, float],
    until: Tensor | float | None,
    move: Callable[[Tensor, Tensor], Tensor],
    end: float,
) -> Alignment:
    time = time.double()
    spacing = (time[-1] - time[0]) / max(len(time) - 1, 1)
    if len(time) < 2 or ((time - time[0]) / spacing - torch.arange(len(time))).abs().max() > 0.01:
        raise ValueError(f"{caller}: curves are compared on evenly spaced times: let steps be a multiple of every")
    if until is None:
        until = progress_time(time, reference).maximum(progress_time(time, curve)).clamp(max=end)
    elif not (torch.as_tensor(until) <= end).all():  # also where it is NaN
        raise ValueError(f"{caller}: with amounts up to {bounds[1]:g}, this recording can be compared up to {end:.4g}, not later")
    window = _window(time, until, reference)
    low, high = (torch.full(reference.shape[1:], float(edge), dtype=torch.float64) for edge in bounds)
    for _ in range(3):  # a grid, then twice a finer one around its best point
        amounts = low + (high - low) * torch.linspace(0, 1, 41, dtype=torch.float64).reshape(-1, *[1] * low.dim())
        tried = torch.stack([_rms(_moved(time, curve, amount, move) - reference, window) for amount in amounts])
        best = amounts.gather(0, tried.argmin(0)[None])[0]
        width = (high - low) / 20
        low, high = (best - width).maximum(low), (best + width).minimum(high)
    return Alignment(best, tried.amin(0) / reference[0], (best <= bounds[0]) | (best >= bounds[1]))


def _moved(time: Tensor, curve: Tensor, amount: Tensor, move: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """`curve` read at the moved times, linearly interpolated; amount (...) -> (times, ...)."""
    shape = (-1, *[1] * amount.dim())
    place = ((move(time.reshape(shape), amount) - time[0]) / (time[1] - time[0])).clamp(0, len(time) - 1)
    before = place.floor().long().clamp(max=len(time) - 2)
    a, b = curve.gather(0, before), curve.gather(0, before + 1)
    return a + (place - before) * (b - a)


def _window(time: Tensor, until: Tensor | float | None, like: Tensor) -> Tensor:
    until = torch.as_tensor(float(time[-1]) if until is None else until, dtype=torch.float64)
    return time.double().reshape(-1, *[1] * (like.dim() - 1)) <= until.expand(like.shape[1:])


def _rms(difference: Tensor, window: Tensor) -> Tensor:
    return ((difference.square() * window).sum(0) / window.sum(0)).sqrt()

"""How alike are two learning curves? Stretched, shifted, and as they are; how many stages does one have?"""

from typing import NamedTuple

import torch
from torch import Tensor

# --- how alike are two learning curves? ---------------------------------------------------------------------------------


class Alignment(NamedTuple):
    amount: Tensor  # (...) by which the curve was stretched (0.05: it is 5 % slower) or shifted (in units of time)
    distance: Tensor  # (...) what is left: root mean square over time, relative to the reference's first value


def best_stretch(time: Tensor, reference: Tensor, curve: Tensor, low=-0.1, high=0.3, until: Tensor | None = None) -> Alignment:
    """Stretch time until `curve` (times, ...) lies on `reference` as well as it can; every member by itself.

    A share of units that is missing delays every mode by an amount proportional to 1/s, as all of its times are: the
    curve is slowed down, not moved. Compared over the first 1/(1 + high) of the recording, or up to the times `until`.
    """
    return _best(time, reference, curve, low, high, until, lambda t, by: t * (1 + by), float(time[-1]) / (1 + high))


def best_shift(time: Tensor, reference: Tensor, curve: Tensor, low=-1.0, high=1.0, until: Tensor | None = None) -> Alignment:
    """The same with a shift of time, in the units of `time`; before its beginning a curve has its first value."""
    return _best(time, reference, curve, low, high, until, lambda t, by: t + by, float(time[-1]) - high)


def distance(time: Tensor, reference: Tensor, curve: Tensor, until: Tensor | float | None = None) -> Tensor:
    """Root mean square over time of curve - reference, relative to the reference's first value; (...)."""
    return _rms(curve - reference, _window(time, until, reference)) / reference[0]


def stages(time: Tensor, loss: Tensor, least: float = 0.005) -> Tensor:
    """How many separate drops a falling curve (times, ...) has: maxima of its speed that stand out by `least` of the
    fastest one, counted for every member."""
    from scipy.signal import find_peaks

    speed = -torch.diff(loss, dim=0) / torch.diff(time.to(loss)).reshape(-1, *[1] * (loss.dim() - 1))
    flat = torch.nn.functional.pad(speed.flatten(1), (0, 0, 1, 1)).numpy()  # zeros at both ends: a first drop counts too
    counts = [len(find_peaks(column, prominence=least * column.max())[0]) for column in flat.T]
    return torch.tensor(counts).reshape(loss.shape[1:])


def _best(time, reference, curve, low, high, until, move, end) -> Alignment:
    time = time.double()
    spacing = torch.diff(time)
    if len(time) < 2 or not torch.allclose(spacing, spacing[0], rtol=1e-4):
        raise ValueError("curves are compared on evenly spaced times: let steps be a multiple of every")
    window = _window(time, until, reference) & (time <= end).reshape(-1, *[1] * (reference.dim() - 1))
    low, high = (torch.full(reference.shape[1:], float(edge), dtype=torch.float64) for edge in (low, high))
    for _ in range(3):  # a grid, then twice a finer one around its best point
        amounts = low + (high - low) * torch.linspace(0, 1, 41, dtype=torch.float64).reshape(-1, *[1] * low.dim())
        tried = torch.stack([_rms(_moved(time, curve, amount, move) - reference, window) for amount in amounts])
        best = amounts.gather(0, tried.argmin(0)[None])[0]
        width = (high - low) / 20
        low, high = (best - width).maximum(low), (best + width).minimum(high)
    return Alignment(best, tried.amin(0) / reference[0])


def _moved(time: Tensor, curve: Tensor, amount: Tensor, move) -> Tensor:
    """`curve` read at the moved times, linearly interpolated; amount (...) -> (times, ...)."""
    shape = (-1, *[1] * amount.dim())
    place = ((move(time.reshape(shape), amount) - time[0]) / (time[1] - time[0])).clamp(0, len(time) - 1)
    before = place.floor().long().clamp(max=len(time) - 2)
    a, b = curve.gather(0, before), curve.gather(0, before + 1)
    return a + (place - before) * (b - a)


def _window(time: Tensor, until, like: Tensor) -> Tensor:
    until = torch.as_tensor(float(time[-1]) if until is None else until, dtype=torch.float64)
    return time.double().reshape(-1, *[1] * (like.dim() - 1)) <= until.expand(like.shape[1:])


def _rms(difference: Tensor, window: Tensor) -> Tensor:
    return ((difference.square() * window).sum(0) / window.sum(0)).sqrt()

"""Gradient descent for ensembles: weights with leading ensemble dimensions, hand-written gradients, a recording.

All loops of the book that train with plain gradient descent run through `descend`. It knows nothing about models: it is
given the weights and a function that returns their gradients, and writes down what `observe` sees.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from lib.linear.products import one_thread
from lib.linear.shapes import WrongAxes, axes

Weights = Sequence[Tensor] | dict[Any, Tensor]  # one tensor per layer, or one per edge of a graph


@dataclass
class Recording:
    """What was observed while training: `time` (times,) in steps, and one tensor (times, ...) for each name."""

    time: Tensor
    values: dict[str, Tensor] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.values:
            raise KeyError(f"nothing called '{name}' was recorded; there is {', '.join(self.values) or 'nothing'}")
        return self.values[name]

    def time_to(self, level: float | Tensor, name: str = "loss") -> Tensor:
        """First time (in steps, interpolated) at which a falling quantity is at or below `level`; NaN if it never is."""
        return crossing(self.time, self[name], level)


@axes(time="times")
def crossing(time: Tensor, values: Tensor, level: float | Tensor, rising: bool = False) -> Tensor:
    """First time at which `values` (times, ...) crosses `level`, linearly interpolated; NaN where it never does.

    It falls to `level` or below, or rises to it or above. `level` may be a tensor that broadcasts against values[0].
    """
    values = torch.as_tensor(values)
    if time.ndim != 1 or values.ndim == 0 or len(values) != len(time):
        raise WrongAxes(
            f"crossing: values has shape {tuple(values.shape)} and time {tuple(time.shape)}; "
            "the first axis of both must be the times, and time has no other"
        )
    level = torch.as_tensor(level, dtype=values.dtype, device=values.device)
    below = values - level if rising else level - values
    there = below >= 0
    i = there.to(torch.int8).argmax(0)
    last = i.clamp(min=1)
    a, b = below.gather(0, (last - 1)[None])[0], below.gather(0, last[None])[0]
    time = time.to(values)
    share = torch.where(b == a, torch.ones_like(b), -a / (b - a))
    hit = torch.where(i == 0, time[0].expand_as(b), time[last - 1] + share * (time[last] - time[last - 1]))
    return torch.where(there.any(0), hit, torch.full_like(hit, torch.nan))


def descend(
    weights: Weights,
    gradient: Callable[[Weights], Weights],
    *,
    step: float | Tensor,
    steps: int,
    every: int = 1,
    observe: Callable[[Weights], dict[str, Tensor]] | None = None,
    momentum: float = 0.0,
    velocity: Weights | None = None,
    label: str = "",
) -> Recording:
    """Train `weights` in place for `steps` steps of size `step`; observe before, every `every` steps, and at the end.

    `gradient(weights)` returns +dL/dW of each weight, a list for a list of weights, a dict with the same keys for a dict.
    `step` may be a tensor that broadcasts against every weight, so that each ensemble member has its own. With momentum
    m, the velocity is v ← m v + gradient and the step is along v. To go on later as if training had never stopped, hand
    over a `velocity` of the same structure as the weights, zeros at first: it is updated in place.
    Stops with a FloatingPointError as soon as an observed value is not finite, instead of recording nonsense.
    """
    if steps < 0 or every < 1:
        raise ValueError(f"steps must be at least 0 and every at least 1, got {steps} and {every}")
    times, seen = [], []
    keys = list(weights) if isinstance(weights, dict) else range(len(weights))
    if velocity is not None:
        _same_structure("velocity", velocity, weights)
    elif momentum:
        velocity = {key: torch.zeros_like(weights[key]) for key in keys}

    def look(now: int) -> None:
        if observe is None:
            return
        values = {name: torch.as_tensor(value).clone() for name, value in observe(weights).items()}
        for name, value in values.items():
            if value.is_floating_point() and not _finite(value):
                raise FloatingPointError(f"training diverged: '{name}' is not finite at step {now}; try a smaller step")
        times.append(now)
        seen.append(values)

    # A bar only where somebody watches a terminal: never into a page, a log file or a test report.
    bar = tqdm(total=steps, desc=label or "steps", disable=not (label and sys.stderr.isatty()), leave=False)
    with torch.no_grad(), one_thread(), bar:
        look(0)
        for now in range(1, steps + 1):
            slope = gradient(weights)
            if now == 1:
                _same_structure("the gradient", slope, weights)
            for key in keys:
                w, g = weights[key], slope[key]
                if velocity is not None:
                    g = velocity[key].mul_(momentum).add_(g)
                if isinstance(step, Tensor):
                    w.sub_(g * step)
                else:
                    w.sub_(g, alpha=step)  # no temporary: a tenth of the time of small runs
            if now % every == 0 or now == steps:
                look(now)
                bar.update(now - bar.n)
    names = seen[0] if seen else {}
    return Recording(torch.tensor(times), {name: torch.stack([row[name] for row in seen]) for name in names})


def _finite(value: Tensor) -> bool:
    """Whether all numbers are finite. A finite sum says so at once, and is a third of the work when little is observed."""
    return math.isfinite(value.sum()) or bool(torch.isfinite(value).all())


def _same_structure(what: str, given: Weights, weights: Weights) -> None:
    """Raise `WrongAxes` unless `given` has one tensor for each of the weights, of the same shape."""
    if isinstance(weights, dict):
        keys = list(weights)
        fits = isinstance(given, dict) and given.keys() == weights.keys()
    else:
        keys = range(len(weights))
        fits = not isinstance(given, dict) and len(given) == len(weights)
    if not fits:
        kind = f"a dict with the keys {keys}" if isinstance(weights, dict) else f"a list of {len(weights)} tensors"
        raise WrongAxes(f"descend: {what} must have the structure of the weights, {kind}")
    for key in keys:
        if given[key].shape != weights[key].shape:
            shapes = tuple(given[key].shape), tuple(weights[key].shape)
            raise WrongAxes(f"descend: {what} of weight {key!r} has shape {shapes[0]}, the weight {shapes[1]}")

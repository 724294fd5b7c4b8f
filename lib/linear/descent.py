"""The trainer of all packages: gradient descent, momentum or Adam for whole ensembles, and a recording of what was observed.

`descend` knows nothing about models: it is given the weights, with any ensemble axes, and a function that returns their
gradients. Each network learns as it would alone, because every update rule acts on each number by itself.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from tqdm import tqdm

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


class Update(Protocol):
    """A rule that moves weights in place along their gradients; `now` counts the steps of a training from 0."""

    def step(self, weights: list[Tensor], gradients: list[Tensor], now: int) -> None: ...


class GradientDescent:
    """w ← w - step · v, where v ← momentum · v + gradient; `step` may be a tensor that broadcasts against every weight."""

    def __init__(self, step: float | Tensor, momentum: float = 0.0):
        self.size, self.momentum, self.velocities = step, momentum, None

    def step(self, weights: list[Tensor], gradients: list[Tensor], now: int) -> None:
        if self.momentum:
            self.velocities = self.velocities or [torch.zeros_like(w) for w in weights]
            gradients = [v.mul_(self.momentum).add_(g) for v, g in zip(self.velocities, gradients, strict=True)]
        for w, g in zip(weights, gradients, strict=True):
            if isinstance(self.size, Tensor):
                w.sub_(g * self.size)
            else:
                w.sub_(g, alpha=self.size)


class Adam:
    """Adam (Kingma and Ba 2015), the numbers of `torch.optim.Adam`, whose first use would import torch's compiler.

    At step `now`, counted from 0, the rate is rate · schedule(now).
    """

    def __init__(self, rate: float, epsilon: float = 1e-8, schedule: Callable[[int], float] | None = None):
        self.rate, self.epsilon, self.schedule = rate, epsilon, schedule
        self.means, self.squares, self.count = None, None, 0

    def step(self, weights: list[Tensor], gradients: list[Tensor], now: int) -> None:
        if self.means is None:
            self.means, self.squares = ([torch.zeros_like(w) for w in weights] for _ in range(2))
        self.count += 1
        rate = self.rate * (self.schedule(now) if self.schedule else 1.0) / (1 - 0.9**self.count)
        correction = math.sqrt(1 - 0.999**self.count)
        for w, g, mean, square in zip(weights, gradients, self.means, self.squares, strict=True):
            mean.lerp_(g, 0.1)
            square.mul_(0.999).addcmul_(g, g, value=0.001)
            w.addcdiv_(mean, square.sqrt().div_(correction).add_(self.epsilon), value=-rate)


def cosine(steps: int) -> Callable[[int], float]:
    """A schedule for `Adam`: from one to zero along half a cosine in `steps` steps."""
    return lambda now: 0.5 * (1 + math.cos(math.pi * now / steps))


def descend(
    weights: Weights,
    gradient: Callable[[Weights], Weights],
    *,
    step: float | Tensor | None = None,
    steps: int,
    every: int = 1,
    observe: Callable[[Weights], dict[str, Tensor]] | None = None,
    momentum: float = 0.0,
    update: Update | None = None,
    label: str = "",
) -> Recording:
    """Train `weights` in place for `steps` steps; observe before, every `every` steps, and at the end.

    `gradient(weights)` returns +dL/dW of each weight, a list for a list of weights, a dict with the same keys for a dict; it
    may draw a batch of its own. The steps are those of `update`, `GradientDescent(step, momentum)` if not given. An update
    rule that is handed over again goes on with its velocities or means as if training had never stopped.
    Stops with a FloatingPointError as soon as an observed value is not finite, instead of recording nonsense.
    """
    if steps < 0 or every < 1:
        raise ValueError(f"steps must be at least 0 and every at least 1, got {steps} and {every}")
    if (step is None) == (update is None):
        raise ValueError("descend takes either the step of gradient descent or an update rule")
    update = update or GradientDescent(step, momentum)
    keys = list(weights) if isinstance(weights, dict) else range(len(weights))
    times, seen = [], []

    def look(now: int) -> None:
        if observe is None:
            return
        values = {name: torch.as_tensor(value).detach().clone() for name, value in observe(weights).items()}
        for name, value in values.items():
            if not torch.isfinite(value).all():
                raise FloatingPointError(f"training diverged: '{name}' is not finite at step {now}; try a smaller step")
        times.append(now)
        seen.append(values)

    # A bar only where somebody watches a terminal: never into a page, a log file or a test report.
    bar = tqdm(total=steps, desc=label or "steps", disable=not (label and sys.stderr.isatty()), leave=False)
    with torch.no_grad(), bar:
        look(0)
        for now in range(steps):
            slopes = gradient(weights)
            if now == 0:
                _same_structure(slopes, weights)
            update.step([weights[key] for key in keys], [slopes[key] for key in keys], now)
            if (now + 1) % every == 0 or now + 1 == steps:
                look(now + 1)
                bar.update(now + 1 - bar.n)
    names = seen[0] if seen else {}
    return Recording(torch.tensor(times), {name: torch.stack([row[name] for row in seen]) for name in names})


def _same_structure(gradients: Weights, weights: Weights) -> None:
    """Raise `WrongAxes` unless there is one gradient for each of the weights, of the same shape."""
    have, need = _shapes(gradients), _shapes(weights)
    if have != need:
        raise WrongAxes(f"descend: the gradient must have the structure of the weights, {need}, not {have}")


def _shapes(tensors: Weights) -> list | dict:
    if isinstance(tensors, dict):
        return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    return [tuple(tensor.shape) for tensor in tensors]

"""Gradient descent for ensembles: weights with leading ensemble dimensions, hand-written gradients, a recording.

All loops of the book that train with plain gradient descent run through `descend`. It knows nothing about models: it is
given the weights and a function that returns their gradients, and writes down what `observe` sees.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from tqdm import tqdm


@dataclass
class Recording:
    """What was observed while training: `time` (times,) in steps, and one tensor (times, ...) for each name."""

    time: Tensor
    values: dict[str, Tensor] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.values:
            raise KeyError(f"nothing called '{name}' was recorded; there is {', '.join(self.values) or 'nothing'}")
        return self.values[name]

    def time_to(self, level: float, name: str = "loss") -> Tensor:
        """First time (in steps, interpolated) at which a falling quantity is at or below `level`; NaN if it never is."""
        return crossing(self.time, self[name], level)


def crossing(time: Tensor, values: Tensor, level, rising: bool = False) -> Tensor:
    """First time at which `values` (times, ...) crosses `level`, linearly interpolated; NaN where it never does."""
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
    weights: list[Tensor],
    gradient: Callable[[list[Tensor]], list[Tensor]],
    *,
    step: float | Tensor,
    steps: int,
    every: int = 1,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
    momentum: float = 0.0,
    label: str = "",
) -> Recording:
    """Train `weights` in place for `steps` steps of size `step`; observe before, every `every` steps, and at the end.

    `gradient(weights)` returns one tensor per weight. `step` may be a tensor that broadcasts against every weight, so
    that each ensemble member has its own. With momentum m, the velocity is v ← m v + gradient and the step is along v.
    Stops with a FloatingPointError as soon as an observed value is not finite, instead of recording nonsense.
    """
    if steps < 0 or every < 1:
        raise ValueError(f"steps must be at least 0 and every at least 1, got {steps} and {every}")
    times, seen = [], []
    velocity = [torch.zeros_like(w) for w in weights] if momentum else None

    def look(now: int) -> None:
        if observe is None:
            return
        values = {name: torch.as_tensor(value).clone() for name, value in observe(weights).items()}
        for name, value in values.items():
            if value.is_floating_point() and not torch.isfinite(value).all():
                raise FloatingPointError(f"training diverged: '{name}' is not finite at step {now}; try a smaller step")
        times.append(now)
        seen.append(values)

    # A bar only where somebody watches a terminal: never into a page, a log file or a test report.
    bar = tqdm(total=steps, desc=label or "steps", disable=not (label and sys.stderr.isatty()), leave=False)
    with torch.no_grad(), bar:
        look(0)
        for now in range(1, steps + 1):
            for i, (w, g) in enumerate(zip(weights, gradient(weights), strict=True)):
                if velocity is not None:
                    g = velocity[i].mul_(momentum).add_(g)
                if isinstance(step, Tensor):
                    w.sub_(g * step)
                else:
                    w.sub_(g, alpha=step)  # no temporary: a tenth of the time of small runs
            if now % every == 0 or now == steps:
                look(now)
                bar.update(now - bar.n)
    names = seen[0] if seen else {}
    return Recording(torch.tensor(times), {name: torch.stack([row[name] for row in seen]) for name in names})

"""What a few seeds tell: their mean with an interval by Student's t."""

import math
from dataclasses import asdict, dataclass

from lib.press.errors import ClaimError

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with the range that holds the true one 95 times in a hundred; `spread` is the standard deviation."""

    mean: float
    low: float
    high: float
    spread: float
    seeds: int

    def plain(self) -> dict[str, float]:
        """As a record keeps it."""
        return asdict(self)


def over_seeds(values: list[float]) -> Interval:
    """The interval of the mean of one number per seed, by Student's t, which is honest for few of them."""
    n = len(values)
    if n < 2:
        raise ClaimError(f"an interval over seeds needs at least two of them, not {n}")
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        raise ClaimError(f"an interval over seeds needs finite numbers, not {values[:3]} …")
    from scipy.special import stdtrit  # imported late: not every page has seeds

    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    reach = float(stdtrit(n - 1, 0.5 + LEVEL / 2)) * spread / math.sqrt(n)
    return Interval(mean, mean - reach, mean + reach, spread, n)


def of_parts(values) -> Interval | dict[str, Interval]:
    """The interval of a list of numbers, one per seed, or of each named part."""
    return {name: over_seeds(part) for name, part in values.items()} if isinstance(values, dict) else over_seeds(values)


def plain(interval: Interval | dict[str, Interval]) -> dict:
    """As a record keeps it: {"mean", "low", …}, or these for each part."""
    return {name: part.plain() for name, part in interval.items()} if isinstance(interval, dict) else interval.plain()

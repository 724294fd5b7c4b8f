"""What a few seeds tell: their mean with an interval by Student's t, or, for a share of yes and no, by Wilson's score."""

import math
from dataclasses import asdict, dataclass

from lib.press.errors import ClaimError

LEVEL = 0.95
NATURES = {"": (-math.inf, math.inf), "share": (0.0, 1.0), "size": (0.0, math.inf)}  # what a number can be at all


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


def over_seeds(values: list[float], nature: str = "") -> Interval:
    """The interval of the mean of one number per seed, by Student's t, which is honest for few of them.

    It ends where a number of this `nature` can no longer be: a "share" lies between 0 and 1, a "size" is not negative. The
    share of seeds that say yes (each number is 0 or 1) has Wilson's interval, which is right even if all of them do.
    """
    n = len(values)
    if n < 2:
        raise ClaimError(f"an interval over seeds needs at least two of them, not {n}")
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        raise ClaimError(f"an interval over seeds needs finite numbers, not {values[:3]} …")
    from scipy.special import stdtrit  # imported late: not every page has seeds

    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if nature == "share" and all(value in (0, 1) for value in values):
        return Interval(mean, *wilson(mean, n), spread, n)
    reach = float(stdtrit(n - 1, 0.5 + LEVEL / 2)) * spread / math.sqrt(n)
    least, most = NATURES[nature]
    return Interval(mean, max(least, mean - reach), min(most, mean + reach), spread, n)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's score interval of a share of `n` that was counted: the shares from which it is not surprising."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + LEVEL / 2)) ** 2 / n
    reach = math.sqrt(z * share * (1 - share) + z * z / 4)
    return max(0.0, (share + z / 2 - reach) / (1 + z)), min(1.0, (share + z / 2 + reach) / (1 + z))


def of_parts(values, nature: str = "") -> Interval | dict[str, Interval]:
    """The interval of a list of numbers, one per seed, or of each named part."""
    if isinstance(values, dict):
        return {name: over_seeds(part, nature) for name, part in values.items()}
    return over_seeds(values, nature)


def plain(interval: Interval | dict[str, Interval]) -> dict:
    """As a record keeps it: {"mean", "low", …}, or these for each part."""
    return {name: part.plain() for name, part in interval.items()} if isinstance(interval, dict) else interval.plain()

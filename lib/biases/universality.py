"""Why biases are enough: the constructions behind the universality theorems, and their constants, made executable.

Networks are y(x) = A phi(B x + b): `Units` B (units, inputs), b (units,), A (outputs, units), and points x (points, inputs);
recurrent ones are `recurrent.Recurrent`. The proof of Williams et al. has three steps: (1) any network can be traded for a
wider one with small parameters, (2) a very wide random network contains, by chance, units near any that one may wish for,
(3) a very negative bias silences the rest. Where print and algebra differ, a step is here in both forms.
"""

import math
from typing import NamedTuple

import torch
from scipy import stats
from torch import Tensor

from lib.linear import Streams
from lib.linear.shapes import check

RARE = 1e-9  # below this probability, laws of whole numbers are taken in their continuous limit
TUNINGS = ("nothing", "bias", "kink")


class Units(NamedTuple):
    """Input weights (..., units, inputs), biases (..., units) and output weights (..., outputs, units) of hidden units."""

    b_in: Tensor
    bias: Tensor
    a: Tensor


def evaluate(units: Units, x: Tensor) -> Tensor:
    """Outputs (..., points, outputs) for x (points, inputs). Eq. D.1."""
    units = Units(*units)
    layout = {"b_in": "units inputs", "bias": "units", "a": "outputs units", "x": "points inputs"}
    check("evaluate", units._asdict() | {"x": x}, {name: text.split() for name, text in layout.items()})
    return torch.relu(x @ units.b_in.mT + units.bias[..., None, :]) @ units.a.mT


# --- Step 1: small parameters ----------------------------------------------------------------------------------------


def bounded(units: Units, alpha: int) -> Units:
    """The same function of ReLUs with all parameters divided by `alpha`, each unit repeated alpha² times. Eqs A.1 and A.2."""
    copies = alpha**2
    b_in, bias, a = units
    return Units((b_in / alpha).repeat(copies, 1), (bias / alpha).repeat(copies), (a / alpha).repeat(1, copies))


# --- Step 2: a lucky unit --------------------------------------------------------------------------------------------


def log_match_probability(parameters: int, near: float, gamma: float) -> float:
    """Logarithm of the probability that uniform numbers in ±(gamma + 1) are all within `near` of given ones below gamma."""
    if not 0 < near <= 1 or gamma <= 0 or parameters < 1:
        raise ValueError(f"near must be in (0, 1] and gamma and parameters positive, got {near}, {gamma} and {parameters}")
    return parameters * math.log(near / (gamma + 1))


def match_probability(parameters: int, near: float, gamma: float) -> float:
    """That probability, (near / (gamma + 1))^parameters."""
    return math.exp(log_match_probability(parameters, near, gamma))


def log10_block_width(n: int, parameters: int, near: float, gamma: float, delta: float) -> float:
    """Base-10 logarithm of `block_width`, also where that is beyond all floats."""
    log_p = log_match_probability(parameters, near, gamma)
    log_miss = math.log(-math.log1p(-math.exp(log_p))) if log_p > math.log(RARE) else log_p
    return math.log10(-n * math.log(delta)) - log_miss / math.log(10)


def block_width(n: int, parameters: int, near: float, gamma: float, delta: float) -> float:
    """The width that Lemma 3 asks for, so that n given units are found with probability 1 - delta; inf beyond all floats.

    `parameters` counts those of all n units (the paper's pi). Only whole blocks of n consecutive units are tried.
    """
    return _power_of_ten(log10_block_width(n, parameters, near, gamma, delta))


def block_probability(width: int, n: int, parameters: int, near: float, gamma: float) -> float:
    """Probability that one of the blocks of n consecutive units is near the wanted ones. Eq. E.2, for any width."""
    return -math.expm1((width // n) * math.log1p(-match_probability(parameters, near, gamma)))


def mask_probability(width: int, n: int, per_unit: int, near: float, gamma: float) -> float:
    """Probability that *any* mask works for a feed-forward network: P(Binomial(width, p) ≥ n), p that of one unit.

    Scan the units in order and take each one that is near the next wanted unit: no mask can do better, and each unit is taken
    with probability p whatever was wanted. Not in the paper.
    """
    return float(stats.binom.sf(n - 1, width, match_probability(per_unit, near, gamma)))


def log10_mask_width(n: int, per_unit: int, near: float, gamma: float, delta: float) -> float:
    """Base-10 logarithm of `mask_width`. When p is small, its negative binomial law is a gamma law, stretched by 1/p."""
    log_p = log_match_probability(per_unit, near, gamma)
    if log_p > math.log(RARE):
        return math.log10(mask_width(n, per_unit, near, gamma, delta))
    return math.log10(stats.gamma.ppf(1 - delta, n)) - log_p / math.log(10)


def mask_width(n: int, per_unit: int, near: float, gamma: float, delta: float) -> int | float:
    """The least width at which some mask works with probability 1 - delta, about n / p; a float below RARE, inf beyond all."""
    p = match_probability(per_unit, near, gamma)
    if p > RARE:
        return n + int(stats.nbinom.ppf(1 - delta, n, p))
    return _power_of_ten(log10_mask_width(n, per_unit, near, gamma, delta))


def _power_of_ten(logarithm: float) -> float:
    return 10**logarithm if logarithm < 308 else math.inf


def simulate_feedforward(
    width: int, wanted: Tensor, near: float, gamma: float, trials: int, seed: int = 0, chunk: int = 500
) -> tuple[float, float]:
    """Draw random networks and look for units near `wanted` (n, per_unit): shares in which (a block, any mask) works."""
    streams, reach = Streams(1, seed), gamma + 1
    n, blocks, masks = len(wanted), 0, 0
    for start in range(0, trials, chunk):
        count = min(chunk, trials - start)
        drawn = streams.uniform(count, width, wanted.shape[1], low=-reach, high=reach)[0]
        close = ((drawn[:, :, None] - wanted).abs() < near).all(-1)  # (trials, width, n)
        whole = close[:, : width // n * n].view(count, -1, n, n)
        blocks += int(whole.diagonal(dim1=-2, dim2=-1).all(-1).any(-1).sum())
        found = torch.zeros(count, dtype=torch.long)  # how many of the wanted units were met so far, in order
        for unit in range(width):
            hit = close[:, unit].gather(1, found.clamp(max=n - 1)[:, None])[:, 0]
            found += hit & (found < n)
        masks += int((found == n).sum())
    return blocks / trials, masks / trials


def simulate_recurrent_blocks(
    blocks: int, wanted_w: Tensor, wanted_rest: Tensor, near: float, gamma: float, trials: int, seed: int = 0
) -> float:
    """Share of random recurrent networks in which a block of n units is near W (n, n) and the other parameters (n, k)."""
    streams, reach = Streams(1, seed), gamma + 1

    def near_enough(wanted: Tensor) -> Tensor:
        drawn = streams.uniform(trials, blocks, *wanted.shape, low=-reach, high=reach)[0]
        return ((drawn - wanted).abs() < near).flatten(2).all(-1)

    return float((near_enough(wanted_w) & near_enough(wanted_rest)).any(-1).double().mean())


def simulate_recurrent_masks(
    width: int, wanted_w: Tensor, wanted_rest: Tensor, near: float, gamma: float, trials: int, seed: int = 0
) -> float:
    """Share of random recurrent networks in which *some* mask selects units near W (n, n) and the other parameters (n, k).

    Weights between units are drawn only for units whose own weight and k other parameters fit, which changes no probability.
    """
    streams, reach, n = Streams(1, seed), gamma + 1, len(wanted_w)
    alone = torch.cat([wanted_w.diagonal()[:, None], wanted_rest], 1)  # (n, 1 + k)
    found = 0
    for _ in range(trials):
        drawn = streams.uniform(width, alone.shape[1], low=-reach, high=reach)[0]
        fits = ((drawn[:, None] - alone).abs() < near).all(-1)  # (width, n)
        some = fits.any(1).nonzero()[:, 0]  # in order
        between = streams.uniform(len(some), len(some), low=-reach, high=reach)[0]
        close = (between[..., None, None] - wanted_w).abs() < near  # (to, from, n, n): weight from unit b to unit a as W[s, t]
        found += _ordered(fits[some], close, n)
    return found / trials


def _ordered(fits: Tensor, close: Tensor, n: int, taken: tuple[int, ...] = ()) -> bool:
    """Whether units with increasing indices can be found for the wanted units from number len(taken) on."""
    slot = len(taken)
    if slot == n:
        return True
    first = taken[-1] + 1 if taken else 0
    for unit in (fits[first:, slot].nonzero()[:, 0] + first).tolist():
        agrees = all(close[unit, b, slot, t] and close[b, unit, t, slot] for t, b in enumerate(taken))
        if agrees and _ordered(fits, close, n, (*taken, unit)):
            return True
    return False


def log10_recurrent_width(n: int, rest: int, near: float, gamma: float) -> float:
    """Base-10 logarithm of the width at which a random recurrent network is expected to have one good mask of n units.

    There are (width choose n) masks, each good with probability q^(n (n + rest)), q = near / (gamma + 1). No mask can be likely
    at a smaller width, since the first moment bounds the probability. Not in the paper.
    """
    needed = -log_match_probability(n * (n + rest), near, gamma)  # logarithm of the number of masks that it takes
    low, high = math.log(n), (needed + math.lgamma(n + 1)) / n + math.log(n) + 1
    for _ in range(100):
        middle = (low + high) / 2
        many = sum(math.log(math.exp(middle) - k) for k in range(n)) if middle < 30 else n * middle  # ln width!/(width - n)!
        low, high = (middle, high) if many - math.lgamma(n + 1) < needed else (low, middle)
    return high / math.log(10)


# --- Step 3: silence -------------------------------------------------------------------------------------------------


def silencing_bias(size: float, x: Tensor) -> float:
    """A bias that silences any unit with input weights in ±size, for all the points x (points, inputs)."""
    return -size * float(x.abs().sum(1).max())


# --- All three: a function out of random units -----------------------------------------------------------------------


def hat() -> Units:
    """A function of four ReLUs on [-1, 1]: up, down and level again; parameters in [-1, 1], one input, one output."""
    b_in = torch.ones(4, 1, dtype=torch.float64)
    kinks = torch.tensor([-0.6, -0.2, 0.2, 0.6], dtype=torch.float64)
    slopes = torch.tensor([[0.9, -0.9, -0.9, 0.9]], dtype=torch.float64)
    return Units(0.9 * b_in, -0.9 * kinks, slopes)


def from_random_units(wanted: Units, width: int, gamma: float, tune: str, seeds: int = 1, seed: int = 0) -> Units:
    """`Units` (seeds, …): each wanted unit, of one input and one output, is replaced by the nearest of `width` random ones.

    tune "nothing": biases stay random and must be near as well (the proof of Theorem 3); "bias": biases are set to the wanted
    ones and only weights must be near (the main text); "kink": the bias puts the unit's kink where it is wanted, so that only
    the sign of the input weight and the slope a · b_in matter (ours).
    """
    if tune not in TUNINGS:
        raise ValueError(f"tune is one of {', '.join(TUNINGS)}, not {tune!r}")
    if width < len(wanted.bias) or wanted.b_in.shape[1] != 1 or len(wanted.a) != 1:
        raise ValueError("units must have one input and one output, and there must be at least as many random ones as wanted")
    found = []
    for k in range(seeds):
        drawn = Streams(1, seed, k).uniform(width, 3, low=-1, high=1)[0].T * (gamma + 1)
        found.append(_nearest(wanted, drawn, tune))
    return Units(*(torch.stack(part) for part in zip(*found, strict=True)))


def _nearest(wanted: Units, drawn: Tensor, tune: str) -> Units:
    """`wanted` with the nearest of the random units `drawn` (3, width): input weight, bias, output weight, in their place."""
    b_in, bias, a = wanted.b_in, wanted.bias[:, None], wanted.a.mT  # (n, 1)
    new_in, new_bias, new_a = drawn
    if tune == "kink":
        same_side = torch.sign(new_in) == torch.sign(b_in)
        apart = (new_a * new_in - a * b_in).abs().where(same_side, math.inf)
    else:  # the parameter that is furthest from the wanted one, (n, width)
        apart = torch.maximum((new_in - b_in).abs(), (new_a - a).abs())
        if tune == "nothing":
            apart = torch.maximum(apart, (new_bias - bias).abs())
    chosen: list[int] = []
    for i in range(len(bias)):
        apart[i, chosen] = math.inf  # a unit can stand for one wanted unit only
        chosen.append(int(apart[i].argmin()))
    tuned = {"nothing": new_bias[chosen], "bias": wanted.bias, "kink": wanted.bias * new_in[chosen] / b_in[:, 0]}[tune]
    return Units(new_in[chosen, None], tuned, new_a[None, chosen])


# --- The constants of the appendix -----------------------------------------------------------------------------------


def powers(k: float, last: int) -> float:
    """1 + k + … + k^last."""
    return sum(k**t for t in range(last + 1))


def one_step_error(goal: float, steps: int, k: float, readout: float, corrected: bool) -> float:
    """How well one step must be approximated so that a trajectory's summed error stays below `goal`. Eq. E.7.

    As printed the maximum is over (readout · powers, 1); with a readout below one that lets the state leave its set.
    """
    total = powers(k, steps - 1)
    return goal / (steps * (max(readout, 1.0) * total if corrected else max(readout * total, 1.0)))


def compounded_error(one_step: float, steps: int, k: float) -> list[float]:
    """Largest possible state error after 1, 2, … steps: e ← one_step + k e. Eqs E.8 to E.10."""
    errors, e = [], 0.0
    for _ in range(steps):
        e = one_step + k * e
        errors.append(e)
    return errors

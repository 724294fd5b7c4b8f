"""Why biases are enough: the constructions behind the universality theorems, and their constants, made executable.

Networks are y(x) = A phi(B x + b) with B (units, inputs), b (units,), A (outputs, units) and x (points, inputs).
The proof of Williams et al. has three steps: (1) any network can be traded for a wider one with small parameters, (2) a very
wide random network contains, by chance, units near any that one may wish for, (3) a very negative bias silences the rest.
Each step is here in two forms where they differ: as printed in the paper, and as it must read.
"""

import math

import torch
from scipy import stats
from torch import Tensor


def network(x: Tensor, b_in: Tensor, bias: Tensor, a: Tensor, phi=torch.relu) -> Tensor:
    """Outputs (points, outputs) for x (points, inputs). Eq. D.1."""
    return phi(x @ b_in.mT + bias) @ a.mT


def heaviside(x: Tensor) -> Tensor:
    """1 where x > 0, else 0."""
    return (x > 0).to(x.dtype)


def rnn(x: Tensor, w: Tensor, b_in: Tensor, bias: Tensor, c: Tensor, r0: Tensor, keep: float = 0.0, beta: float = 1.0) -> Tensor:
    """Outputs (steps, outputs) of r ← keep · r + beta · relu(W r + B x + b), for x (steps, inputs). Eq. D.2, keep = -alpha."""
    r, out = r0, []
    for now in x:
        r = keep * r + beta * torch.relu(w @ r + b_in @ now + bias)
        out.append(c @ r)
    return torch.stack(out)


# --- Step 1: small parameters ----------------------------------------------------------------------------------------


def bounded(b_in: Tensor, bias: Tensor, a: Tensor, alpha: int, copies: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """A network with all parameters divided by `alpha`, and each unit repeated `copies` times (alpha² if not given).

    For the ReLU it computes the same function. Proposition 1, Eqs A.1 and A.2. For the Heaviside function alpha copies are
    right, not alpha²: it does not see the size of its argument.
    """
    copies = alpha**2 if copies is None else copies
    return (b_in / alpha).repeat(copies, 1), (bias / alpha).repeat(copies), (a / alpha).repeat(1, copies)


def bounded_recurrent(w: Tensor, b_in: Tensor, bias: Tensor, c: Tensor, r0: Tensor, alpha: int, recurrent_power: int = 2):
    """The same for a recurrent network: (w, b_in, bias, c, r0) with alpha² copies of each unit.

    Every copy hears all alpha² copies of every other, each at 1/alpha of its size: recurrent weights must be divided by
    alpha² (`recurrent_power` 2). Dividing all parameters by alpha, as the proof of Lemma 2 needs it from Eq. A.2, is power 1.
    """
    copies = alpha**2
    wide = (w / alpha**recurrent_power).repeat(copies, copies)
    return wide, *bounded(b_in, bias, c, alpha), (r0 / alpha).repeat(copies)


# --- Step 2: a lucky unit --------------------------------------------------------------------------------------------


def luck(parameters: int, near: float, gamma: float) -> float:
    """Probability that `parameters` uniform numbers in ±(gamma + 1) are all within `near` of given ones below gamma."""
    return (near / (gamma + 1)) ** parameters


def block_width(n: int, parameters: int, near: float, gamma: float, delta: float) -> float:
    """The width that Lemma 3 asks for, so that n given units are found with probability 1 - delta.

    `parameters` counts those of all n units (the paper's pi). Only whole blocks of n consecutive units are tried.
    """
    return n * math.log(delta) / math.log1p(-luck(parameters, near, gamma))


def block_probability(width: int, n: int, parameters: int, near: float, gamma: float) -> float:
    """Probability that one of the blocks of n consecutive units is near the wanted ones. Eq. E.2, for any width."""
    return 1 - (1 - luck(parameters, near, gamma)) ** (width // n)


def mask_probability(width: int, n: int, per_unit: int, near: float, gamma: float) -> float:
    """Probability that *any* mask works for a feed-forward network: P(Binomial(width, p) ≥ n), p the luck of one unit.

    Units are wanted in a given order. Scan them from left to right and take each one that is near the next wanted unit:
    no mask can do better, and each unit is taken with probability p whatever was wanted. So the number of units scanned
    until all n are found has a negative binomial law. Not in the paper.
    """
    return float(stats.binom.sf(n - 1, width, luck(per_unit, near, gamma)))


def mask_width(n: int, per_unit: int, near: float, gamma: float, delta: float) -> int:
    """The least width at which some mask works with probability 1 - delta. Grows like n / p: linearly in n."""
    return n + int(stats.nbinom.ppf(1 - delta, n, luck(per_unit, near, gamma)))


def simulate_feedforward(
    width: int, wanted: Tensor, near: float, gamma: float, trials: int, seed: int = 0, chunk: int = 500
) -> tuple[float, float]:
    """Draw random networks and look for units near `wanted` (n, per_unit): shares in which (a block, any mask) works."""
    generator = torch.Generator().manual_seed(seed)
    n, blocks, masks = len(wanted), 0, 0
    for start in range(0, trials, chunk):
        count = min(chunk, trials - start)
        drawn = (2 * torch.rand(count, width, wanted.shape[1], generator=generator, dtype=torch.float64) - 1) * (gamma + 1)
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
    generator = torch.Generator().manual_seed(seed)
    n, k = wanted_rest.shape

    def near_enough(wanted: Tensor) -> Tensor:
        drawn = (2 * torch.rand(trials, blocks, *wanted.shape, generator=generator, dtype=torch.float64) - 1) * (gamma + 1)
        return ((drawn - wanted).abs() < near).flatten(2).all(-1)

    return float((near_enough(wanted_w) & near_enough(wanted_rest)).any(-1).double().mean())


def sweet_spot(per_unit: int) -> float:
    """The range gamma at which the least random units are needed, 2 / (per_unit - 2): a closed form for the paper's remark.

    Parameters of size M cost (M/gamma)² copies (step 1), and each copy ((gamma + 1)/near)^per_unit draws (step 2).
    """
    return 2 / (per_unit - 2)


def draws(gamma: Tensor, per_unit: int, size: float, near: float, n: int = 1) -> Tensor:
    """Expected number of random units until n units with parameters of size `size` are found in their bounded form."""
    return n * (size / gamma) ** 2 * ((gamma + 1) / near) ** per_unit


# --- Step 3: silence -------------------------------------------------------------------------------------------------


def silencing_bias(gamma: float, x: Tensor) -> float:
    """A bias that silences any unit with input weights in ±(gamma + 1), for all the points x (points, inputs)."""
    return -(gamma + 1) * float(x.abs().sum(1).max())


# --- All three: a function out of random units -----------------------------------------------------------------------


def hat() -> tuple[Tensor, Tensor, Tensor]:
    """A function of four ReLUs on [-1, 1]: up, down and level again; (b_in (4, 1), bias (4,), a (1, 4)), all in [-1, 1]."""
    b_in = torch.ones(4, 1, dtype=torch.float64)
    kinks = torch.tensor([-0.6, -0.2, 0.2, 0.6], dtype=torch.float64)
    slopes = torch.tensor([[0.9, -0.9, -0.9, 0.9]], dtype=torch.float64)
    return 0.9 * b_in, -0.9 * kinks, slopes


def from_random_units(
    wanted: tuple[Tensor, Tensor, Tensor], width: int, gamma: float, tune: str, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The network that a mask and biases make of `width` random units: each wanted unit is replaced by the nearest random one.

    tune "nothing": biases stay random and must be near as well (the proof of Theorem 3); "bias": biases are set to the wanted
    ones and only weights must be near (the main text); "kink": the bias puts the unit's kink where it is wanted, so that only
    the sign of the input weight and the slope a · b_in matter (one input, one output; ours).
    """
    generator = torch.Generator().manual_seed(seed)
    b_in, bias, a = wanted
    drawn = (2 * torch.rand(width, 3, generator=generator, dtype=torch.float64) - 1) * (gamma + 1)
    new_in, new_bias, new_a = drawn.T
    target = torch.stack([b_in[:, 0], bias, a[0]], 1)  # (n, 3)
    if tune == "kink":
        apart = (new_a * new_in - (a[0] * b_in[:, 0])[:, None]).abs()
        apart[torch.sign(new_in) != torch.sign(b_in)] = math.inf
    elif tune in ("bias", "nothing"):
        used = [0, 2] if tune == "bias" else [0, 1, 2]
        apart = (drawn[:, used] - target[:, None, used]).abs().amax(-1)  # (n, width)
    else:
        raise ValueError(f"tune is 'nothing', 'bias' or 'kink', not {tune!r}")
    chosen: list[int] = []
    for i in range(len(target)):
        apart[i, chosen] = math.inf  # a unit can stand for one wanted unit only
        chosen.append(int(apart[i].argmin()))
    tuned = {"nothing": new_bias[chosen], "bias": bias, "kink": bias * new_in[chosen] / b_in[:, 0]}[tune]
    return new_in[chosen, None], tuned, new_a[None, chosen]


# --- The constants of the appendix -----------------------------------------------------------------------------------


def output_error_bound(n: int, outputs: int, gamma: float, near: float, largest_x: float, domain: float) -> float:
    """Bound on the output's error when n ReLU units are met within `near`. Eq. D.6.

    `domain` bounds the parameters that the activation sees when M_phi is taken: gamma as printed, gamma + near to be right.
    """
    largest_phi = domain * (1 + largest_x)
    return n * outputs * (gamma * (1 + largest_x) + largest_phi) * near


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

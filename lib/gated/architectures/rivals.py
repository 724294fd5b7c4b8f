"""The shared code and its rivals: which solution of a routing task wins the race, and how much of the others is left over.

Beyond The Neural Race Reduction, whose Section 4 and Fig. 4 show that sharing wins; here is when, and why.

From small weights each pair of singular vectors of the mask races: if every domain has equally many trained routes, the first
pair is flat (one code for all domains), and a rival with ratio ρ of singular values learns at ρ times its speed. In wide
networks they do not disturb each other, and the race has a closed form without any fitted number: `strength_before` the flat
solution saturates, `rival_strengths` when it does, and `predicted_loss` on the untrained routes. For two trained routes per
domain one rival is an exact solution: `winding_weights`.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from scipy.optimize import brentq
from torch import Tensor

from lib.gated.architectures.routing import Task, all_routes, trained_and_not
from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams, random_matrix
from lib.linear.shapes import axes

ESCAPE: float = brentq(lambda t: math.cosh(t) - t * math.sinh(t), 1, 2)  # coth T = T


def strength_before(time: float | Tensor) -> Tensor:
    """Strength of a mode of a wide network that starts from random orthogonal weights, in units of scale³, before it saturates.

    `time` is in units of tau / (scale · singular value); the strength diverges at `ESCAPE` = 1.19968, the root of coth T = T.
    The encoders p along the mode and the hidden matrix N move in a plane, dp/dt = N p and dN/dt = p pᵀ, from a p of length
    1 and an N that swaps p with its complement; N² - p pᵀ is conserved. What comes back is pᵀ N p.
    """
    t = torch.as_tensor(time, dtype=torch.float64)
    c, s = torch.cosh(t), torch.sinh(t)
    return (s * c**2 + 2 * t * c + t**2 * (t * c - s)) / (c - t * s) ** 3


def effective_start(scale: float, domains: int) -> float:
    """The decoupled start b0 (outer and hidden alike) that saturates when random orthogonal weights of this `scale` do.

    Neural Race Eqs. 13 and 14 from b1 = b2 = b0 diverge after atan(√(M-1)) / (b0 √(M-1)), in the units of `strength_before`.
    The paper gives no b0; its released notebooks take scale / 2.5. For M = 7 this is scale / 2.48.
    """
    root = math.sqrt(domains - 1)
    return scale * (math.atan(root) / root if domains > 1 else 1.0) / ESCAPE


@axes(mask="domains domains")
def spectrum(mask: Tensor) -> Tensor:
    """Singular values of a mask divided by the first, without it: the speeds of the rivals, (M - 1,), largest first."""
    per_input, per_output = mask.sum(-2), mask.sum(-1)
    if (per_input != per_input.flatten()[0]).any() or (per_output != per_output.flatten()[0]).any():
        raise ValueError("domains differ in their numbers of trained routes: the first singular vector is not the shared code")
    values = torch.linalg.svdvals(mask.double())
    return values[..., 1:] / values[..., :1]


def rival_strengths(speed: Tensor, scale: float, target: float) -> Tensor:
    """What rivals of relative `speed` ρ have learned when the shared code has learned everything, relative to it.

    `target` is the singular value that the shared code ends with in the stacked map, M s/d. Saturation takes the last
    scale / ∛target off the time of the race. For small weights this is x³ with 1/x = ρ + (1 - ρ) T ∛target / scale.
    """
    used = ESCAPE - scale / target ** (1 / 3)
    if used <= 0:
        raise ValueError(f"weights of scale {scale} are not small beside the solution, {target ** (1 / 3):.3g}")
    return strength_before(speed * used) * scale**3 / target


def predicted_loss(mask: Tensor, task: Task, scale: float) -> float:
    """Loss on untrained routes at the end, relative to the loss before training, for a wide network from small weights.

    Rivals leave a table Σ a u vᵀ behind, the shared code gives way until trained routes are right on average, Σ ρ a, and the
    error remains where nobody corrects it. Mask (M, M) with equally many routes per domain; every domain has the same data.
    """
    domains, speed = len(mask), spectrum(mask)
    _, s, vt = torch.linalg.svd(task.yx[0].double(), full_matrices=False)
    weight = s**2 / (vt**2 @ task.variance[0].double())  # what a mode contributes to the squared target
    total = 0.0
    for one, part in zip((weight / s).tolist(), (weight / weight.sum()).tolist(), strict=True):  # s/d of each mode
        a = rival_strengths(speed, scale, domains * one)
        total += part * float((a**2).sum() + (speed * a).sum() ** 2)
    return total / (1 - float(mask.double().mean()))


def boundary(scale: float, target: float, share: float, rivals: int = 2, level: float = 0.01) -> float:
    """The largest speed ρ of `rivals` equal rivals at which the predicted loss stays below `level`; `share` of routes trained."""

    def excess(speed: float) -> float:
        a = float(rival_strengths(torch.tensor(speed, dtype=torch.float64), scale, target))
        return (rivals * a**2 + (rivals * speed * a) ** 2) / (1 - share) - level

    return brentq(excess, 0.01, 1.0) if excess(0.01) < 0 < excess(1.0) else math.nan


def winding_weights(task: Task, hidden: int, winding: int = 1, seed: int = 0) -> list[Tensor]:
    """Weights with loss zero on the trained routes of `circulant(M, 2)` whose code turns `winding` times around the ring.

    Domain i's code for an item is the shared one turned by 2π w i/M in a plane of its own, output j reads at the angle
    2π w (j - ½)/M, and a factor 1/cos(πw/M) makes both routes of a domain exact. The three layers are balanced. A list like
    `routing.initial_weights` with one seed; needs twice as many hidden units as the dataset has modes.
    """
    domains = task.sizes[0]
    u, s, vt = torch.linalg.svd(task.yx[0].double(), full_matrices=False)
    modes = int((s > 1e-9 * s[0]).sum())
    u, s, vt = u[:, :modes], s[:modes], vt[:modes]
    if not 1 <= winding < domains / 2:
        raise ValueError(f"a ring of {domains} domains holds codes with winding numbers from 1 to {math.ceil(domains / 2) - 1}")
    if hidden < 2 * modes:
        raise ValueError(f"a turning code of {modes} modes needs {2 * modes} hidden units, there are {hidden}")
    middle = (domains * s / (vt**2 @ task.variance[0].double()) / 2 / math.cos(math.pi * winding / domains)) ** (1 / 3)
    outer = middle * math.sqrt(2 / domains)
    first, second = random_matrix(Streams(1, seed).normal(2, hidden, 2 * modes)[0], 1.0, "orthogonal")
    angle = 2 * math.pi * winding / domains * torch.arange(domains, dtype=torch.float64)
    read = angle - math.pi * winding / domains

    def turned(frame: Tensor, angles: Tensor) -> Tensor:  # (domains, hidden, modes)
        return torch.cos(angles)[:, None, None] * frame[:, :modes] + torch.sin(angles)[:, None, None] * frame[:, modes:]

    encoders = (turned(first, angle) * outer) @ vt  # (domains, hidden, features)
    decoders = u @ (turned(second, read) * outer).mT  # (domains, outputs, hidden)
    weights = [encoders.transpose(0, 1).flatten(1), (second * middle.repeat(2)) @ first.mT, decoders.flatten(0, 1)]
    return [w.unsqueeze(0) for w in weights]


def winding_loss(domains: int, winding: int = 1) -> float:
    """Mean loss of `winding_weights` on untrained routes, relative to answering nothing: M (1 + 1/(2 cos²(πw/M))) / (M - 2)."""
    return domains / (domains - 2) * (1 + 0.5 / math.cos(math.pi * winding / domains) ** 2)


@axes(maps="domains domains")
def harmonics(maps: Tensor) -> Tensor:
    """How much of a table of routes (..., M, M) turns w times around the ring, w = 0, …, M//2: shares of its squared size.

    `maps` holds one number per route (the answer as a multiple of the right one). w = 0 is the shared code.
    """
    domains = maps.shape[-1]
    turning = torch.fft.fft2(maps.to(torch.complex128)).abs() ** 2  # e^{-2πi(w j + v i)/M}: a turning code has v = -w
    w = torch.arange(domains // 2 + 1)
    power = turning[..., w, (-w) % domains]
    both = (w > 0) & (2 * w != domains)  # left and right turns
    power = power + both * turning[..., (-w) % domains, w]
    return power / turning.sum((-2, -1)).unsqueeze(-1)


@axes(mask="domains domains")
def train_to_the_end(
    weights: list[Tensor],
    task: Task,
    mask: Tensor,
    *,
    steps: int,
    pace: float = 0.01,
    last: float = 0.5,
    every: int | None = None,
) -> Recording:
    """Train all networks to the end whatever their scale, in place: gradient descent in larger steps while weights are small.

    No step moves the weights by more than `pace` of their length, nor is it larger than `last` times what is stable at their
    present size: the path through weight space is that of the flow. Records `trained` and `untrained` as `routing.train` does.
    """
    _, s, vt = torch.linalg.svd(task.yx[0].double(), full_matrices=False)
    d = float((vt[0] ** 2 * task.variance[0]).sum())
    mask = mask.to(weights[0].device)
    first = torch.linalg.svdvals(mask.double())[..., 0] / mask.sum((-2, -1))
    stiff = (3 * d / task.sizes[0] * first).to(weights[0])  # largest curvature, for outer weights of length 1
    plain = all_routes(task.yx, task.variance, mask, weights[0])
    moving, at_rest, put_back = _moving_part(weights)

    def paced(w: list[Tensor]) -> list[Tensor]:
        slope = plain(w)
        into, within, out = ((one**2).sum((-2, -1)) for one in w)
        steep = sum((one**2).sum((-2, -1)) for one in slope).sqrt().clamp(min=1e-30)
        step = torch.minimum(pace * (into + within + at_rest + out).sqrt() / steep, last / (stiff * into * out))
        return [step[:, None, None] * one for one in slope]

    look = partial(trained_and_not, task=task, mask=mask)
    run = descend(moving, paced, step=1.0, steps=steps, every=every or steps, observe=look)
    put_back(moving)
    return Recording(run.time, {name: value.cpu() for name, value in run.values.items()})


def _moving_part(weights: list[Tensor]) -> tuple[list[Tensor], Tensor | float, Callable[[list[Tensor]], None]]:
    """Weights with fewer hidden units that train alike, the squared length that never moves, and the way back, in place.

    If the hidden matrix starts as s times an orthogonal O, encoders stay in the span Q of their own columns and of Oᵀ times the
    decoders' rows, decoders in O Q, and the hidden matrix changes by O Q (...) Qᵀ alone: in these bases it starts as s times
    the identity. Exact; the weights themselves come back where that saves nothing or the hidden matrix is not orthogonal.
    """
    encoders, middle, decoders = (w.double() for w in weights)
    hidden, span = middle.shape[-1], encoders.shape[-1] + decoders.shape[-2]
    square = (middle**2).sum((-2, -1), keepdim=True) / hidden  # s²
    off = middle.mT @ middle - square * torch.eye(hidden).to(middle)
    if span >= hidden or not ((off**2).sum((-2, -1)) <= 1e-8 * square[..., 0, 0] ** 2).all():
        return weights, 0.0, lambda moved: None
    size = square.sqrt()
    turn = middle / size
    into = torch.linalg.qr(torch.cat([encoders, turn.mT @ decoders.mT], -1)).Q  # (seeds, hidden, span)
    out = turn @ into
    start = size * torch.eye(span).to(middle)
    small = [into.mT @ encoders, start, decoders @ out]

    def put_back(moved: list[Tensor]) -> None:
        first, between, last = (w.double() for w in moved)
        for old, new in zip(weights, (into @ first, middle + out @ (between - start) @ into.mT, last @ out.mT), strict=True):
            old.copy_(new)

    like = weights[0]
    at_rest = square[..., 0, 0] * (hidden - span)
    return [w.to(like, copy=True).contiguous() for w in small], at_rest.to(like), put_back

"""Recurrent networks, trained in all their parameters or in their biases alone.

    r_t = keep · r_{t-1} + beta · phi(W r_{t-1} + B x_t + b),        y_t = C r_t

Williams et al., Eq. D.2 with keep = -alpha; Euler's method with a leak has keep = 1 - leak and beta = leak (Section 3.2
leaves the form of the network open). Time runs along rows: x (windows, steps, inputs), y (windows, steps, outputs).
Ensembles are a leading dimension. The gradient through time is written by hand; learning biases alone never forms a
product of units × units. The loss is the mean squared error over windows, steps and outputs.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from tqdm import tqdm

from lib.linear import Streams, axes
from lib.linear.adam import Adam
from lib.linear.shapes import check

PARAMETERS = ("w", "b_in", "bias", "c")
WINDOWS = 2**30  # the stream of random numbers that training windows come from; no network's parameters do
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "tanh": torch.tanh, "identity": torch.clone}


@dataclass(eq=False)
class Recurrent:
    """An ensemble of recurrent networks; see the module's docstring.

    w (seeds, units, units), b_in (seeds, units, inputs), bias (seeds, units), c (seeds, outputs, units) and the state r0
    (seeds, units) before the first step, zero if not given. All without the first axis: a single network. `phi` is one of
    the ACTIVATIONS or any function that works element by element.
    """

    w: Tensor
    b_in: Tensor
    bias: Tensor
    c: Tensor
    r0: Tensor | None = None
    keep: float = 0.0
    beta: float = 1.0
    phi: str | Callable[[Tensor], Tensor] = "relu"

    def __post_init__(self):
        if isinstance(self.phi, str) and self.phi not in ACTIVATIONS:
            raise ValueError(f"phi is one of {', '.join(ACTIVATIONS)} or a function, not {self.phi!r}")
        if self.w.dim() == 2:
            for name in (*PARAMETERS, "r0"):
                value = getattr(self, name)
                setattr(self, name, value if value is None else value[None])
        self.r0 = torch.zeros_like(self.bias) if self.r0 is None else self.r0
        layout = {"w": "seeds units units", "b_in": "seeds units inputs", "bias": "seeds units", "c": "seeds outputs units"}
        layout["r0"] = "seeds units"
        check("Recurrent", {name: getattr(self, name) for name in layout}, {n: text.split() for n, text in layout.items()})

    @property
    def seeds(self) -> int:
        return len(self.w)

    @property
    def units(self) -> int:
        return self.w.shape[1]


def recurrent(
    units: int,
    *,
    inputs: int = 1,
    outputs: int = 1,
    leak: float = 0.6,
    gain: float = 0.95,
    input_scale: float = 1.0,
    output_scale: float = 0.3,
    bias_scale: float = 1.0,
    phi: str | Callable[[Tensor], Tensor] = "relu",
    seeds: int = 1,
    seed: int = 0,
    first: int = 0,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Recurrent:
    """Uniform random parameters. W has standard deviation gain · sqrt(2/units), at which relu activity keeps its size.

    The networks `first`, …, `first + seeds - 1` of the ensemble `seed`: each is the same in an ensemble of any size.
    """
    streams = Streams(seeds, seed, first)
    width = gain * math.sqrt(2 / units) * math.sqrt(3)  # a uniform number in [-w, w] has standard deviation w / sqrt 3
    shapes = ((width, units, units), (input_scale, units, inputs), (bias_scale, units), (output_scale, outputs, units))
    drawn = [streams.uniform(*shape, low=-scale, high=scale).to(device, dtype) for scale, *shape in shapes]
    return Recurrent(*drawn, keep=1 - leak, beta=leak, phi=phi)


def predict(network: Recurrent, x: Tensor, start: Tensor | None = None) -> Tensor:
    """Outputs (seeds, windows, steps, outputs) for x (windows, steps, inputs), or for one window (steps, inputs).

    Every window begins at the state `start`, (seeds, units) or (seeds, windows, units), the network's r0 if not given.
    """
    x = _signals("predict", network, x)
    c = network.c.mT.contiguous()
    with torch.no_grad():
        return torch.stack([r @ c for _, r in _steps(network, len(x), start, _drives(network, _in_blocks(x)))], 2)


def states(network: Recurrent, x: Tensor, start: Tensor | None = None) -> Tensor:
    """States (seeds, windows, steps, units) after each step, for x and `start` as in `predict`.

    The last one, states(...)[:, :, -1], is the start of a window that goes on where this one ends.
    """
    x = _signals("states", network, x)
    with torch.no_grad():
        return torch.stack([r for _, r in _steps(network, len(x), start, _drives(network, _in_blocks(x)))], 2)


def closed_loop(network: Recurrent, x: Tensor, free: int, lead: int, start: Tensor | None = None) -> Tensor:
    """Let the networks live on their own forecasts: after the window x (steps, inputs) of the true signal, `free` more steps.

    For networks whose outputs forecast their inputs. The input at time s is the forecast made at s - lead; the result
    (seeds, free + lead, inputs) continues the signal from the first step after x. (So `lead` forecasts are made from true
    inputs before the first prediction based on predictions.)
    """
    x = _signals("closed_loop", network, x)
    if network.c.shape[1] != x.shape[-1] or len(x) != 1 or not 1 <= lead <= x.shape[1]:
        raise ValueError("a closed loop needs as many outputs as inputs, one window, and one that is at least `lead` steps long")
    given, c, forecast = x.shape[1], network.c.mT.contiguous(), []

    def heard() -> Iterator[Tensor]:
        for t in range(given + free):
            yield x[None, None, :, t] if t < given else forecast[t - lead][None]

    with torch.no_grad():
        for _, r in _steps(network, len(x), start, _drives(network, heard())):
            forecast.append(r @ c)  # (seeds, 1, outputs): the signal at t + lead
    return torch.cat(forecast[given - lead :], 1)


def train(
    network: Recurrent,
    x: Tensor,
    y: Tensor,
    *,
    learn: str | Sequence[str] = "bias",
    steps: int = 600,
    batch: int = 16,
    window: int = 120,
    skip: int = 0,
    start: Tensor | None = None,
    rate: float = 0.05,
    clip: float = 1.0,
    epsilon: float = 1e-8,
    seed: int = 0,
    label: str = "",
) -> tuple[Recurrent, Tensor]:
    """Train on random windows of x (steps, inputs) to answer y (steps, outputs); returns networks and losses (steps, seeds).

    To forecast a signal some steps ahead, x is signal[:-lead] and y is signal[lead:]. `learn` is "bias", "all" (of
    PARAMETERS), or names, among them "r0", the state before the first step. Adam with a rate that falls along half a cosine;
    each network's gradient is clipped to norm `clip`. All see the same windows, which start at the state `start`
    (seeds, units), r0 if not given; their first `skip` steps are not in the loss.
    """
    names = {"bias": ("bias",), "all": PARAMETERS}.get(learn, learn) if isinstance(learn, str) else tuple(learn)
    if isinstance(names, str) or not names or not set(names) <= {*PARAMETERS, "r0"}:
        raise ValueError(f"learn is 'bias', 'all' or some of {', '.join(PARAMETERS)}, r0, not {learn!r}")
    _checked("train", network, x, y)
    if not 0 <= skip < window <= len(x):
        raise ValueError(f"a window of {window} steps must fit into {len(x)}, and skip ({skip}) into the window")
    network = replace(network, **{name: getattr(network, name).clone() for name in (*PARAMETERS, "r0")})
    values = [getattr(network, name) for name in names]
    adam, room = Adam(values, epsilon), _room(network, batch, window)
    order, losses = Streams(1, seed, WINDOWS), []
    quiet = not (label and sys.stderr.isatty())
    with torch.no_grad():
        for now in tqdm(range(steps), desc=label, disable=quiet, leave=False):
            begin = order.integers(len(x) - window + 1, batch)[0]
            index = (begin[:, None] + torch.arange(window)).to(x.device)
            loss, slopes = loss_and_gradients(network, x[index], y[index], names, skip, start, room)
            size = torch.stack([g.flatten(1).square().sum(1) for g in slopes.values()]).sum(0).sqrt()  # (seeds,)
            shrink = (clip / size).clamp(max=1.0)
            for g in slopes.values():
                g *= shrink.view(-1, *[1] * (g.dim() - 1))
            adam.step(list(slopes.values()), rate * 0.5 * (1 + math.cos(math.pi * now / steps)))
            losses.append(loss)
    return network, torch.stack(losses)


def loss_and_gradients(
    network: Recurrent,
    x: Tensor,
    y: Tensor,
    names: Sequence[str] = PARAMETERS,
    skip: int = 0,
    start: Tensor | None = None,
    room: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Mean squared error (seeds,) on windows x (windows, steps, inputs), and its gradients {name: dL/dparameter}.

    y (windows, steps, outputs) is what is wanted; the first `skip` steps are not counted; `start` as in `predict`. What is
    worked out on the way is written into `room`, which training asks for once and hands to all of its steps.
    """
    windows, steps, _ = x.shape
    keep, beta = network.keep, network.beta
    room = _room(network, windows, steps) if room is None else room
    with torch.no_grad():
        r, h, q = room[0], room[1, :, 1:], room[2, :, 1:]  # (seeds, steps, windows, units), and the state before the first step
        r[:, 0] = _first(network, windows, start)
        after = iter(r.unbind(1)[1:])
        torch.add(_drive(x.transpose(0, 1), network.b_in.mT[:, None]), network.bias[:, None, None], out=h)
        for _ in _steps(network, windows, start, h.unbind(1), after):
            pass
        error = _as_rows(r[:, 1:]) @ network.c.mT - y.transpose(0, 1).flatten(0, 1)  # (seeds, steps · windows, outputs)
        error[:, : skip * windows] = 0
        count = windows * (steps - skip) * y.shape[-1]
        loss = error.square().sum((1, 2)) / count
        error *= 2 / count
        torch.mul(error, network.c, out=_as_rows(q)) if y.shape[-1] == 1 else torch.bmm(error, network.c, out=_as_rows(q))
        back = _backwards(network, h, q)
        flat = _as_rows(h)
        formulas = {
            "bias": lambda: flat.sum(1).mul_(beta),
            "b_in": lambda: (flat.mT @ x.transpose(0, 1).flatten(0, 1)).mul_(beta),
            "w": lambda: (flat.mT @ _as_rows(r[:, :-1])).mul_(beta),
            "c": lambda: error.mT @ _as_rows(r[:, 1:]),
            "r0": lambda: torch.baddbmm(back, h[:, 0], network.w, beta=keep, alpha=beta).sum(1),
        }
        return loss, {name: formulas[name]() for name in names}


@axes(prediction="steps outputs", target="steps outputs")
def r_squared(prediction: Tensor, target: Tensor, skip: int = 0) -> Tensor:
    """1 - squared error / variance of the target, over steps from `skip` on: (..., steps, outputs) twice -> (..., outputs)."""
    prediction, target = prediction[..., skip:, :], target[..., skip:, :]
    spread = (target - target.mean(-2, keepdim=True)).square().sum(-2)
    return 1 - (prediction - target).square().sum(-2) / spread


def autocorrelation(signal: Tensor, lags: int) -> Tensor:
    """Autocorrelation at lags 0 … lags of a signal (steps, ...), mean removed, 1 at lag 0: (lags + 1, ...)."""
    if not 0 <= lags < len(signal):
        raise ValueError(f"a signal of {len(signal)} steps has lags from 0 to {len(signal) - 1}, not {lags}")
    centred = signal - signal.mean(0)
    values = [(centred[: len(centred) - k] * centred[k:]).mean(0) for k in range(lags + 1)]
    return torch.stack(values) / values[0]


def half_width(correlation: Tensor, level: float = 0.5) -> int:
    """The first lag at which an autocorrelation (lags,) is below `level`: how far ahead the paper's networks forecast."""
    below = (correlation < level).nonzero()
    if not len(below):
        raise ValueError(f"the autocorrelation stays above {level} at all {len(correlation)} lags: take more of them")
    return int(below[0])


def _steps(
    network: Recurrent, windows: int, start: Tensor | None, drives: Iterable[Tensor], after: Iterator[Tensor] | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pre-activations and state (seeds, windows, units) of each step, given what drives it: inputs and biases.

    Pre-activations are written over the drives, and states into `after`, if there is room for them.
    """
    r, phi = _first(network, windows, start), ACTIVATIONS.get(network.phi, network.phi)
    w, keep, beta = network.w.mT.contiguous(), network.keep, network.beta
    for drive in drives:
        h, out = torch.baddbmm(drive, r, w, out=drive), None if after is None else next(after)
        r = torch.lerp(r, phi(h), beta, out=out) if keep == 1 - beta else torch.add(keep * r, phi(h), alpha=beta, out=out)
        yield h, r


def _drives(network: Recurrent, blocks: Iterable[Tensor]) -> Iterator[Tensor]:
    """Inputs and biases (seeds, windows, units) step by step, from blocks of inputs (steps, 1 or seeds, windows, inputs)."""
    b_in, bias = network.b_in.mT.contiguous(), network.bias[:, None]
    for block in blocks:  # the drive of many steps at once
        yield from (_drive(block, b_in) + bias).unbind()


def _drive(x: Tensor, b_in: Tensor) -> Tensor:
    """x (..., inputs) through input weights (..., inputs, units)."""
    return x * b_in if b_in.shape[-2] == 1 else x @ b_in


def _backwards(network: Recurrent, h: Tensor, q: Tensor) -> Tensor:
    """Back through time, in place, on (seeds, steps, windows, units); returns q of the first step.

    h are pre-activations and become phi'(h) q, the gradient towards them over beta; q are gradients towards the states by way
    of the outputs of the same step, and become those by way of all steps that follow.
    """
    known = network.phi == "relu"
    if not known:
        h.copy_(_slope(network.phi, h))
    later = delta = None
    for here, now in zip(reversed(q.unbind(1)), reversed(h.unbind(1)), strict=True):
        if later is not None:
            torch.baddbmm(here, delta, network.w, alpha=network.beta, out=here).add_(later, alpha=network.keep)
        if known:
            torch.ops.aten.threshold_backward.grad_input(here, now, 0, grad_input=now)
        else:
            now *= here
        later, delta = here, now
    return later


def _room(network: Recurrent, windows: int, steps: int) -> Tensor:
    """Room for states, pre-activations and gradients of windows, (3, seeds, steps + 1, windows, units)."""
    return network.w.new_empty(3, network.seeds, steps + 1, windows, network.units)


def _as_rows(values: Tensor) -> Tensor:
    """(seeds, steps, windows, units) as (seeds, steps · windows, units)."""
    return values.flatten(1, 2)


def _in_blocks(x: Tensor) -> Iterator[Tensor]:
    """x (windows, steps, inputs) as blocks (some steps, 1, windows, inputs)."""
    return (block[:, None] for block in x.transpose(0, 1).split(100))


def _first(network: Recurrent, windows: int, start: Tensor | None) -> Tensor:
    """The state (seeds, windows, units) before the first step."""
    r = network.r0 if start is None else start
    return (r[:, None] if r.dim() == 2 else r).expand(network.seeds, windows, network.units)


def _slope(phi: str | Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """phi'(h) of other functions than relu; of an unknown function by automatic differentiation."""
    if phi == "tanh":
        return 1 - torch.tanh(h).square()
    if phi == "identity":
        return torch.ones_like(h)
    with torch.enable_grad():
        h = h.detach().requires_grad_()
        return torch.autograd.grad(phi(h).sum(), h)[0]


def _signals(caller: str, network: Recurrent, x: Tensor) -> Tensor:
    """x as (windows, steps, inputs), or one sentence about what does not fit the network."""
    x = torch.as_tensor(x)
    x = x[None] if x.dim() == 2 else x
    layout = {"the network": ["units", "inputs"], "x": ["windows", "steps", "inputs"]}
    check(caller, {"the network": network.b_in, "x": x}, layout)
    return x


def _checked(caller: str, network: Recurrent, x: Tensor, y: Tensor) -> None:
    layout = {"b_in": ["units", "inputs"], "c.T": ["units", "outputs"], "x": ["steps", "inputs"], "y": ["steps", "outputs"]}
    check(caller, {"b_in": network.b_in, "c.T": network.c.mT, "x": x, "y": y}, layout)

"""Recurrent networks, trained in all their parameters or in their biases alone.

    r_t = keep · r_{t-1} + beta · relu(W r_{t-1} + B x_t + b),        y_t = C r_t

Williams et al., Eq. D.2 with keep = -alpha; Euler's method with a leak has keep = 1 - leak and beta = leak (Section 3.2
leaves the form of the network open). Time runs along rows: x (windows, steps, inputs), y (windows, steps, outputs).
Ensembles are a leading dimension. The loss is the mean squared error over windows, steps and outputs.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lib.linear import Streams, axes
from lib.linear.descent import Adam, cosine, descend
from lib.linear.shapes import check

PARAMETERS = ("w", "b_in", "bias", "c")
WINDOWS = 2**30  # the stream of random numbers that training windows come from; no network's parameters do


@dataclass(eq=False, repr=False)
class Recurrent:
    """An ensemble of recurrent networks; see the module's docstring.

    w (seeds, units, units), b_in (seeds, units, inputs), bias (seeds, units), c (seeds, outputs, units) and the state r0
    (seeds, units) before the first step, zero if not given. All without the first axis: a single network.
    """

    w: Tensor
    b_in: Tensor
    bias: Tensor
    c: Tensor
    r0: Tensor | None = None
    keep: float = 0.0
    beta: float = 1.0

    def __post_init__(self):
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

    def __repr__(self) -> str:
        kind = str(self.w.dtype).removeprefix("torch.")
        return f"Recurrent({self.seeds} × {self.b_in.shape[2]}-{self.units}-{self.c.shape[1]}, {kind})"


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
    return Recurrent(*drawn, keep=1 - leak, beta=leak)


def states(network: Recurrent, drives: Iterable[Tensor], windows: int) -> Iterator[Tensor]:
    """The state r_t (seeds, windows, units) after each step: the whole model, Eq. D.2.

    `drives` are B x_t + b (seeds, windows, units), step by step; see `drive`.
    """
    w, r = network.w.mT, network.r0[:, None].expand(-1, windows, -1)
    for now in drives:
        r = network.keep * r + network.beta * torch.relu(r @ w + now)
        yield r


def drive(network: Recurrent, x: Tensor) -> Tensor:
    """B x + b, (seeds, steps, windows, units), of inputs x (steps, windows, inputs) or (seeds, steps, windows, inputs)."""
    return x @ network.b_in.mT[:, None] + network.bias[:, None, None]


def predict(network: Recurrent, x: Tensor) -> Tensor:
    """Outputs (seeds, windows, steps, outputs) for x (windows, steps, inputs), or for one window (steps, inputs)."""
    x = _signals("predict", network, x)
    with torch.no_grad():
        return _outputs(network, x)


def closed_loop(network: Recurrent, x: Tensor, free: int, lead: int) -> Tensor:
    """Feed networks their own forecasts: after the window x (steps, inputs) of the true signal, `free` more steps.

    For networks whose outputs forecast their inputs: the input at time s is the forecast made at s - lead. The result
    (seeds, free + lead, inputs) continues the signal from the first step after x.
    """
    x = _signals("closed_loop", network, x)
    if network.c.shape[1] != x.shape[-1] or len(x) != 1 or not 1 <= lead <= x.shape[1]:
        raise ValueError("a closed loop needs as many outputs as inputs, one window, and one that is at least `lead` steps long")
    given, forecasts = x.shape[1], []

    def heard() -> Iterator[Tensor]:
        for t in range(given + free):
            signal = x[None, :, t] if t < given else forecasts[t - lead]  # (1 or seeds, 1, inputs)
            yield drive(network, signal[:, None])[:, 0]

    with torch.no_grad():
        for r in states(network, heard(), windows=1):
            forecasts.append(r @ network.c.mT)  # (seeds, 1, outputs): the signal at t + lead
    return torch.cat(forecasts[given - lead :], 1)


def train(
    network: Recurrent,
    x: Tensor,
    y: Tensor,
    *,
    learn: str = "bias",
    steps: int = 600,
    batch: int = 16,
    window: int = 120,
    rate: float = 0.05,
    clip: float = 1.0,
    seed: int = 0,
) -> tuple[Recurrent, Tensor]:
    """Train on random windows of x (steps, inputs) to answer y (steps, outputs); returns networks and losses (steps, seeds).

    To forecast a signal some steps ahead, x is signal[:-lead] and y is signal[lead:]. `learn` is "bias" or "all". Adam with a
    rate that falls along half a cosine; each network's gradient is clipped to norm `clip`. All see the same windows, each of
    which starts at r0.
    """
    if learn not in ("bias", "all"):
        raise ValueError(f"learn is 'bias' or 'all', not {learn!r}")
    names = PARAMETERS if learn == "all" else ("bias",)
    layout = {"b_in": ["units", "inputs"], "c.T": ["units", "outputs"], "x": ["steps", "inputs"], "y": ["steps", "outputs"]}
    check("train", {"b_in": network.b_in, "c.T": network.c.mT, "x": x, "y": y}, layout)
    if not 1 <= window <= len(x):
        raise ValueError(f"a window of {window} steps must fit into {len(x)}")
    weights = {name: getattr(network, name).clone() for name in names}
    order, losses = Streams(1, seed, WINDOWS), []

    def gradient(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        begin = order.integers(len(x) - window + 1, batch)[0]
        index = (begin[:, None] + torch.arange(window)).to(x.device)
        leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
        with torch.enable_grad():
            error = _outputs(replace(network, **leaves), x[index]) - y[index]
            loss = error.square().mean((1, 2, 3))
            slopes = torch.autograd.grad(loss.sum(), list(leaves.values()))
        losses.append(loss.detach())
        norm = torch.stack([g.flatten(1).square().sum(1) for g in slopes]).sum(0).sqrt()  # (seeds,)
        shrink = (clip / norm).clamp(max=1.0)
        return {name: g * shrink.view(-1, *[1] * (g.dim() - 1)) for name, g in zip(names, slopes, strict=True)}

    descend(weights, gradient, update=Adam(rate, schedule=cosine(steps)), steps=steps)
    return replace(network, **weights), torch.stack(losses)


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


def _outputs(network: Recurrent, x: Tensor) -> Tensor:
    """`predict`, with gradients."""
    drives = drive(network, x.transpose(0, 1)).unbind(1)
    r = torch.stack(list(states(network, drives, len(x))), 2)  # (seeds, windows, steps, units)
    return r @ network.c.mT[:, None]


def _signals(caller: str, network: Recurrent, x: Tensor) -> Tensor:
    """x as (windows, steps, inputs), or one sentence about what does not fit the network."""
    x = torch.as_tensor(x)
    x = x[None] if x.dim() == 2 else x
    layout = {"the network": ["units", "inputs"], "x": ["windows", "steps", "inputs"]}
    check(caller, {"the network": network.b_in, "x": x}, layout)
    return x

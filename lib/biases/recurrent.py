"""Recurrent networks that forecast a signal, trained in all their parameters or in their biases alone.

    r_t = (1 - leak) r_{t-1} + leak · relu(W r_{t-1} + B x_t + b),        prediction of x_{t+lead} = C r_t

Ensembles are a leading dimension: W (members, units, units), B and b (members, units), C (members, units). The gradient
through time is written by hand; learning biases alone never forms a product of units × units.
Williams et al., Section 3.2 (which leaves the form of the network open; this one is Eq. D.2 with the sign of Euler's method).
"""

import math
import sys
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from tqdm import tqdm


@dataclass
class Recurrent:
    """An ensemble of recurrent networks with one input and one output; see the module's docstring."""

    w: Tensor
    b_in: Tensor
    bias: Tensor
    c: Tensor
    leak: float

    @property
    def members(self) -> int:
        return len(self.w)


def recurrent(
    units: int,
    *,
    leak: float = 0.6,
    gain: float = 0.95,
    input_scale: float = 1.0,
    output_scale: float = 0.3,
    bias_scale: float = 1.0,
    members: int = 1,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Recurrent:
    """Uniform random parameters. W has standard deviation gain · sqrt(2/units), at which relu activity keeps its size.

    Member k is drawn from seed + k alone.
    """

    def uniform(scale: float, *shape: int) -> Tensor:
        return (2 * torch.rand(*shape, generator=generator) - 1) * scale

    drawn = []
    for k in range(members):
        generator = torch.Generator().manual_seed(seed + k)
        width = gain * math.sqrt(2 / units) * math.sqrt(3)  # a uniform number in [-w, w] has standard deviation w / sqrt 3
        shapes = ((width, units, units), (input_scale, units), (bias_scale, units), (output_scale, units))
        drawn.append([uniform(scale, *shape) for scale, *shape in shapes])
    return Recurrent(*(torch.stack(part).to(device) for part in zip(*drawn, strict=True)), leak)


def predict(network: Recurrent, x: Tensor) -> Tensor:
    """Predictions (members, windows, steps) from windows x (windows, steps) of the signal, each from r = 0."""
    with torch.no_grad():
        r = network.w.new_zeros(network.members, len(x), network.w.shape[1])
        w_t, out = network.w.mT.contiguous(), []
        for t in range(x.shape[1]):
            r = _next(network, w_t, r, x[:, t])[1]
            out.append((r @ network.c[..., None])[..., 0])
    return torch.stack(out, -1)


def closed_loop(network: Recurrent, x: Tensor, free: int, lead: int) -> Tensor:
    """Let the networks live on their own forecasts: after the window x (steps,) of the true signal, `free` more steps.

    The input at time s is the forecast made at s - lead; the result (members, free + lead) continues the signal from the first
    step after x. (So `lead` forecasts are made from true inputs before the first prediction based on predictions.)
    """
    with torch.no_grad():
        r = network.w.new_zeros(network.members, 1, network.w.shape[1])
        w_t, forecast = network.w.mT.contiguous(), []
        for t in range(len(x) + free):
            now = x[t].expand(network.members, 1) if t < len(x) else forecast[t - lead]
            r = _next(network, w_t, r, now)[1]
            forecast.append((r @ network.c[..., None])[..., 0])  # (members, 1): the signal at t + lead
    return torch.cat(forecast[len(x) - lead :], 1)


def train(
    network: Recurrent,
    signal: Tensor,
    *,
    lead: int,
    learn: str = "bias",
    steps: int = 600,
    batch: int = 16,
    window: int = 120,
    skip: int = 0,
    rate: float = 0.05,
    clip: float = 1.0,
    seed: int = 0,
    label: str = "",
) -> tuple[Recurrent, Tensor]:
    """Train on random windows of `signal` to forecast it `lead` steps ahead; returns the networks and losses (steps, members).

    `learn` is "bias" or "all". Adam with a rate that falls along half a cosine; each member's gradient is clipped to norm
    `clip`. The loss is the mean squared error after the first `skip` steps. All members see the same windows.
    """
    if learn not in ("bias", "all"):
        raise ValueError(f"learn is 'bias' or 'all', not {learn!r}")
    network = replace(network, **{name: getattr(network, name).clone() for name in ("w", "b_in", "bias", "c")})
    names = ["bias"] if learn == "bias" else ["w", "b_in", "bias", "c"]
    values = [getattr(network, name) for name in names]
    optimiser = torch.optim.Adam(values, lr=rate)
    generator, losses = torch.Generator().manual_seed(seed), []
    watched = not (label and sys.stderr.isatty())
    with torch.no_grad():
        for now in tqdm(range(steps), desc=label, disable=watched, leave=False):
            starts = torch.randint(len(signal) - window - lead, (batch,), generator=generator)
            index = (starts[:, None] + torch.arange(window)).to(signal.device)
            loss, gradients = loss_and_gradients(network, signal[index], signal[index + lead], names, skip)
            size = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()  # (members,)
            shrink = (clip / size).clamp(max=1.0)
            for value, g in zip(values, gradients, strict=True):
                value.grad = g * shrink.view(-1, *[1] * (g.dim() - 1))
            optimiser.param_groups[0]["lr"] = rate * 0.5 * (1 + math.cos(math.pi * now / steps))
            optimiser.step()
            losses.append(loss)
    return network, torch.stack(losses)


def loss_and_gradients(
    network: Recurrent, x: Tensor, target: Tensor, names: list[str], skip: int = 0
) -> tuple[Tensor, list[Tensor]]:
    """Mean squared error of each member on windows x (windows, steps), and its gradients towards the named parameters."""
    windows, steps = x.shape
    keep, leak = 1 - network.leak, network.leak
    r = network.w.new_zeros(steps + 1, network.members, windows, network.w.shape[1])
    on = torch.empty(steps, *r.shape[1:], dtype=torch.bool, device=x.device)
    w_t = network.w.mT.contiguous()
    for t in range(steps):
        h, r[t + 1] = _next(network, w_t, r[t], x[:, t])
        torch.gt(h, 0, out=on[t])
    error = (r[1:] @ network.c[:, :, None])[..., 0] - target.T[:, None]  # (steps, members, windows)
    error[:skip] = 0
    count = windows * (steps - skip)
    loss = error.square().sum((0, 2)) / count
    from_output = (2 / count) * error[..., None] * network.c[:, None]  # (steps, members, windows, units)
    delta = torch.empty_like(from_output)  # towards the pre-activations
    back = torch.zeros_like(r[0])
    for t in reversed(range(steps)):
        back += from_output[t]
        torch.mul(back, on[t], out=delta[t]).mul_(leak)
        back = torch.baddbmm(back, delta[t], network.w, beta=keep)
    flat = delta.transpose(0, 1).flatten(1, 2)  # (members, steps · windows, units)
    formulas = {
        "bias": lambda: flat.sum(1),
        "b_in": lambda: (flat * x.T.reshape(-1, 1)).sum(1),
        "w": lambda: flat.mT @ r[:-1].transpose(0, 1).flatten(1, 2),
        "c": lambda: (2 / count) * (error[..., None] * r[1:]).sum((0, 2)),
    }
    return loss, [formulas[name]() for name in names]


def r_squared(prediction: Tensor, target: Tensor, skip: int = 0) -> Tensor:
    """1 - squared error / variance of the target, over the last dimension from step `skip` on."""
    prediction, target = prediction[..., skip:], target[..., skip:]
    spread = (target - target.mean(-1, keepdim=True)).square().sum(-1)
    return 1 - (prediction - target).square().sum(-1) / spread


def autocorrelation(signal: Tensor, lags: int) -> Tensor:
    """Autocorrelation of a signal (steps,) at lags 0 … lags, mean removed, 1 at lag 0."""
    centred = signal - signal.mean()
    values = [(centred[: len(centred) - k] * centred[k:]).mean() for k in range(lags + 1)]
    return torch.stack(values) / values[0]


def _next(network: Recurrent, w_t: Tensor, r: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Pre-activations and next state (members, windows, units); x is (windows,) or (members, windows)."""
    x = x if x.dim() == 2 else x.expand(network.members, -1)
    h = torch.baddbmm(network.bias[:, None] + x[..., None] * network.b_in[:, None], r, w_t)
    return h, torch.lerp(r, h.relu(), network.leak)

"""Networks with random weights, evaluated on a grid: whole ensembles in one tensor program, all depths in one pass.

A network of depth L has L hidden layers and a linear readout. An ensemble is a list of layers whose tensors carry one
leading dimension, the seeds: weights (seeds, out, in), biases (seeds, 1, out). Points are rows, (points, inputs). The twin
of the sampling functions is `infinite_width`, which predicts the same measures without sampling.

Neural Redshift Sections 2 and 3, Appendix D.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lib.complexity import grid
from lib.linear import Streams, WrongAxes
from lib.redshift.activations import Activation, phi

Layer = dict[str, Tensor]
VARIANTS = ("plain", "layer norm", "residual", "gated")
PRIORS = ("uniform", "gaussian", "ball", "long-tailed")
GATES = ("none", "hidden", "all")


@dataclass(frozen=True)
class Prior:
    """The distribution that weights and biases are drawn from.

    Weights have the standard deviation of U(-s, s), s = magnitude * sqrt(6 / (fan_in + fan_out)); biases that of
    U(-bias, bias). `first_fan` replaces the first layer's fan_out (the width) in s, so that networks of different
    widths can start from the same first layer. Neural Redshift Section 2.
    """

    magnitude: float = 1.0
    bias: float = 1.0
    shape: str = "uniform"
    first_fan: int | None = None

    def __post_init__(self) -> None:
        if self.shape not in PRIORS:
            raise ValueError(f"the prior's shape is one of {', '.join(PRIORS)}, not {self.shape!r}")

    def weight_std(self, fan_in: int, fan_out: int, first: bool = False) -> float:
        """Standard deviation of a layer's weights, (fan_out, fan_in); `first_fan` counts in the `first` layer."""
        fan_out = self.first_fan if first and self.first_fan else fan_out
        return self.magnitude * math.sqrt(2 / (fan_in + fan_out))  # s / sqrt(3)

    @property
    def bias_std(self) -> float:
        """Standard deviation of the biases."""
        return self.bias / math.sqrt(3)


def traversal(
    inputs: int, m: int = 64, seed: int = 0, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu"
) -> Tensor:
    """m straight walks of m points each between random corners of [-1, 1]^inputs, one after the other: (m * m, inputs).

    Stands in for the grid where there are too many inputs for one. Neural Redshift Appendix D (LZ complexity).
    """
    corners = 2 * Streams(1, seed).integers(2, m + 1, inputs)[0].to(device=device, dtype=dtype) - 1
    share = torch.arange(m, device=device, dtype=dtype)[:, None] / m
    return torch.lerp(corners[:-1, None], corners[1:, None], share).reshape(m * m, inputs)


def draw(
    seeds: int,
    sizes: Sequence[int],
    prior: Prior | None = None,
    *,
    gates: str = "none",
    seed: int | Streams = 0,
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> list[Layer]:
    """Random weights and biases for an ensemble with layer sizes `sizes` = (inputs, hidden, ..., outputs).

    Returns a list of dicts with "weight" (seeds, out, in) and "bias" (seeds, 1, out); `gates` = "hidden" or "all" adds
    "gate weight" and "gate bias" to all layers but the last, or to all. `linear.Streams` in the place of a `seed` go on.
    """
    prior = prior or Prior()
    if gates not in GATES:
        raise ValueError(f"gates is one of {', '.join(GATES)}, not {gates!r}")
    streams = seed if isinstance(seed, Streams) else Streams(seeds, seed)
    if len(streams) != seeds:
        raise ValueError(f"there are {len(streams)} streams of random numbers for {seeds} seeds")
    layers = []
    for index, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        gated = gates == "all" or (gates == "hidden" and index < len(sizes) - 2)
        layers.append(_draw_layer(streams, prior, fan_in, fan_out, first=index == 0, gated=gated))
    return _moved(layers, dtype, device)


def hidden_layer(
    layer: Layer, x: Tensor, activation: Activation, variant: str = "plain", prefactor: float | Tensor = 1.0
) -> Tensor:
    """One hidden layer; x (points, in) or (seeds, points, in) becomes (seeds, points, out).

    plain: phi(a z) with z = Wx + b and a the prefactor; layer norm: z is first brought to mean 0 and variance 1 across
    channels; residual: az + phi(az); gated: phi(az) * sigmoid(W'x + b'). Neural Redshift Section 3; the prefactor is that
    of Section 4.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant is one of {', '.join(VARIANTS)}, not {variant!r}")
    z = affine(x, layer["weight"], layer["bias"])
    if variant == "layer norm":
        z = functional.layer_norm(z, z.shape[-1:], eps=torch.finfo(z.dtype).tiny)
    z = prefactor * z
    h = phi(activation)(z)
    if variant == "residual":
        return z + h
    if variant == "gated":
        return h * torch.sigmoid(affine(x, layer["gate weight"], layer["gate bias"]))
    return h


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Wx + b of each network: x (points, in) or (seeds, points, in) becomes (seeds, points, out)."""
    return torch.baddbmm(bias, x.expand(len(weight), -1, -1), weight.mT)


def forward(
    layers: list[Layer], x: Tensor, activation: Activation, *, variant: str = "plain", prefactor: float | Tensor = 1.0
) -> Tensor:
    """Outputs of an ensemble: x (points, inputs) shared by all networks, or (seeds, points, inputs); returns (seeds,
    points, outputs). `prefactor` multiplies every preactivation: a number, or one per network, (seeds, 1, 1)."""
    x = torch.as_tensor(x)
    weight = layers[0]["weight"]
    if x.ndim < 2 or x.shape[-1] != weight.shape[-1]:
        raise WrongAxes(f"forward: x has shape {tuple(x.shape)}, the networks have {weight.shape[-1]} inputs; points are rows")
    if x.dtype != weight.dtype or x.device != weight.device:
        raise WrongAxes(f"forward: x is {x.dtype} on {x.device}, the weights {weight.dtype} on {weight.device}; use x.to(weight)")
    for layer in layers[:-1]:
        x = hidden_layer(layer, x, activation, variant, prefactor)
    return affine(x, layers[-1]["weight"], layers[-1]["bias"])


def images(
    activation: Activation,
    seeds: int,
    depth: int = 3,
    width: int = 64,
    prior: Prior | None = None,
    *,
    variant: str = "plain",
    m: int = 64,
    depths: bool = False,
    seed: int = 0,
    dtype: torch.dtype | None = None,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Random functions of the plane as images: (seeds, m, m), or with `depths` (depth, seeds, m, m) for all depths up to
    `depth`.

    A network's first l layers are themselves a random network of depth l once they get a readout of their own, so all
    depths come from one pass; neighbouring depths then share layers, which leaves every average unchanged.

    Unless `dtype` says otherwise, networks are evaluated in float32, and those that turn out nearly constant, whose image
    would be mostly rounding noise, again in float64.
    """
    prior = prior or Prior()
    points = grid(m, device=device)
    out = torch.empty(depth if depths else 1, seeds, m, m, dtype=dtype or torch.float64, device=device)
    chunk = max(1, (2**19 if str(device) == "cpu" else 2**25) // (m * m * width))  # networks at a time; caches are small
    for start in range(0, seeds, chunk):
        count = min(chunk, seeds - start)
        streams = Streams(count, seed, first=start)
        layers = draw(count, (2, *[width] * depth), prior, gates="all" if variant == "gated" else "none", seed=streams)
        readouts = [_draw_layer(streams, prior, width, 1) for _ in out]
        part = _evaluate(layers, readouts, points, activation, variant, dtype or torch.float32)
        part = part.double()  # (depths, count, points)
        flat = (part.std(-1) < 1e-3 * part.mean(-1).abs()).any(0)
        if dtype is None and flat.any():
            few = flat.cpu()
            layers, readouts = ([{k: v[few] for k, v in layer.items()} for layer in group] for group in (layers, readouts))
            part[:, flat] = _evaluate(layers, readouts, points, activation, variant, torch.float64)
        out[:, start : start + count] = part.reshape(-1, count, m, m)
    return out if depths else out[0]


def unbiased_images(seeds: int, m: int = 64, magnitude: float = 1.0, *, seed: int = 0) -> Tensor:
    """Functions of the unbiased model with random parameters: (seeds, m, m), float64.

    A sum of one sine per frequency of the grid, amplitude * sin(2 pi k x / m + phase): no frequency is preferred.
    Neural Redshift Section 3 and Appendix D.
    """
    frequencies, amplitude, phase = unbiased_parameters(seeds, m, magnitude, seed=seed)
    spectrum = torch.zeros(seeds, m, m, dtype=torch.complex128)
    spectrum[:, frequencies[:, 0], frequencies[:, 1]] = amplitude * torch.exp(1j * (phase - math.pi / 2))
    return torch.fft.ifft2(spectrum).real * m * m  # sin(a) = Re exp(i (a - pi/2))


def unbiased_parameters(seeds: int, m: int = 64, magnitude: float = 1.0, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Random parameters of the unbiased model on an m x m grid: its wave vectors (waves, 2), one of each pair k, -k and
    no constant; amplitudes uniform in ±magnitude and phases uniform in [0, 2 pi), (seeds, waves) each, float64."""
    k = torch.cartesian_prod(torch.arange(m), torch.arange(m))
    partner = (-k) % m
    first = k[:, 0] * m + k[:, 1] <= partner[:, 0] * m + partner[:, 1]
    frequencies, streams = k[first & (k.sum(1) > 0)], Streams(seeds, seed)
    amplitude = streams.uniform(len(frequencies), low=-magnitude, high=magnitude)
    return frequencies, amplitude, streams.uniform(len(frequencies), high=2 * math.pi)


def _evaluate(
    layers: list[Layer], readouts: list[Layer], x: Tensor, activation: Activation, variant: str, dtype: torch.dtype
) -> Tensor:
    """Outputs of the last `len(readouts)` depths at the points x, in this precision: (depths, seeds, points)."""
    layers, readouts = _moved(layers, dtype, x.device), _moved(readouts, dtype, x.device)
    h, outputs = x.to(dtype), []
    for layer, readout in zip(layers, [None] * (len(layers) - len(readouts)) + readouts, strict=True):
        h = hidden_layer(layer, h, activation, variant)
        if readout:
            outputs.append(affine(h, readout["weight"], readout["bias"])[..., 0])
    return torch.stack(outputs)


def _draw_layer(streams: Streams, prior: Prior, fan_in: int, fan_out: int, *, first: bool = False, gated: bool = False) -> Layer:
    """One layer in double precision, with the weights of its gates if it is `gated`."""
    std, layer = prior.weight_std(fan_in, fan_out, first), {}
    for kind in ("", "gate ") if gated else ("",):
        layer[kind + "weight"] = std * _unit_variance(prior.shape, (fan_out, fan_in), streams)
        layer[kind + "bias"] = prior.bias_std * _unit_variance(prior.shape, (1, fan_out), streams)
    return layer


def _moved(layers: list[Layer], dtype: torch.dtype, device: str | torch.device) -> list[Layer]:
    return [{name: tensor.to(device=device, dtype=dtype) for name, tensor in layer.items()} for layer in layers]


def _unit_variance(shape: str, size: tuple[int, int], streams: Streams) -> Tensor:
    """Random numbers of mean 0 and variance 1; `size` is one layer's matrix: (seeds, *size)."""
    if shape == "uniform":
        return streams.uniform(*size, low=-math.sqrt(3), high=math.sqrt(3))
    if shape == "gaussian":
        return streams.normal(*size)
    if shape == "ball":  # each layer's matrix is a random direction times a radius that is nearly always the full one
        direction, count = streams.normal(*size), math.prod(size)
        radius = streams.uniform(1, 1) ** (1 / count)
        return direction * (math.sqrt(count + 2) * radius / direction.square().sum((-2, -1), keepdim=True).sqrt())
    sign = 2 * streams.integers(2, *size).double() - 1  # long-tailed (Laplace): a random sign times an exponential
    return sign * -torch.log1p(-streams.uniform(*size)) / math.sqrt(2)

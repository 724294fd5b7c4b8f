"""Networks with random weights, evaluated on a grid: whole ensembles in one tensor program, all depths in one pass.

A network of depth L has L hidden layers and a linear readout. An ensemble is a list of layers whose tensors carry one
leading dimension, the networks: weights (networks, inputs, outputs), biases (networks, 1, outputs). The twin of the
sampling functions is `infinite_width`, which predicts the same measures without sampling.

Neural Redshift Sections 2 and 3, Appendix D.
"""

import math
from dataclasses import dataclass

import torch
from torch.nn import functional


class _Gaussian(torch.autograd.Function):
    """exp(-x^2/2) with a gradient that reuses the output: half the memory traffic of composing it."""

    @staticmethod
    def forward(ctx, x):
        y = x.square().mul_(-0.5).exp_()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        return (gradient * x).mul_(y).neg_()


ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "swish": functional.silu,
    "selu": functional.selu,
    "tanh": torch.tanh,
    "gaussian": _Gaussian.apply,
    "sine": torch.sin,
    "erf": torch.erf,  # not in the paper: tanh's twin, for which the infinite-width kernel has a closed form
}
VARIANTS = ("plain", "layer norm", "residual", "gated")
PRIORS = ("uniform", "gaussian", "ball", "long-tailed")


@dataclass(frozen=True)
class Prior:
    """The distribution that weights and biases are drawn from.

    Weights have the standard deviation of U(-s, s), s = magnitude * sqrt(6 / (fan_in + fan_out)); biases that of
    U(-bias, bias). `first_fan` replaces the first layer's fan_out (the width) in s, so that networks of different
    widths can start from the same first layer.

    Neural Redshift Section 2.
    """

    magnitude: float = 1.0
    bias: float = 1.0
    shape: str = "uniform"
    first_fan: int | None = None

    def weight_std(self, fan_in, fan_out, first=False):
        fan_out = self.first_fan if first and self.first_fan else fan_out
        return self.magnitude * math.sqrt(2 / (fan_in + fan_out))

    @property
    def bias_std(self):
        return self.bias / math.sqrt(3)


def grid(m=64, dims=2, dtype=torch.float64, device="cpu"):
    """The m^dims points of a regular grid on [-1, 1]^dims, first coordinate slowest; (m^dims, dims)."""
    axis = torch.linspace(-1, 1, m, dtype=dtype, device=device)
    return torch.cartesian_prod(*[axis] * dims).reshape(-1, dims)


def traversal(inputs, m=64, generator=None, dtype=torch.float32, device="cpu"):
    """m straight walks of m points each between random corners of [-1, 1]^inputs, one after the other: (m * m, inputs).

    Stands in for the grid where there are too many inputs for one. Neural Redshift Appendix D (LZ complexity).
    """
    corners = 2 * torch.randint(2, (m + 1, inputs), generator=generator).to(device=device, dtype=dtype) - 1
    share = torch.arange(m, device=device, dtype=dtype)[:, None] / m
    return torch.lerp(corners[:-1, None], corners[1:, None], share).reshape(m * m, inputs)


def draw(networks, sizes, prior=None, gates="none", generator=None, dtype=torch.float64, device="cpu"):
    """Random weights and biases for an ensemble with layer sizes `sizes` = (inputs, hidden, ..., outputs).

    Returns a list of dicts with "weight" (networks, fan_in, fan_out) and "bias" (networks, 1, fan_out); `gates` =
    "hidden" or "all" adds "gate weight" and "gate bias" to all layers but the last, or to all. Every precision and
    device gets the same numbers.
    """
    prior = prior or Prior()
    layers = []
    for index, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        gated = gates == "all" or (gates == "hidden" and index < len(sizes) - 2)
        std = prior.weight_std(fan_in, fan_out, first=index == 0 and len(sizes) > 2)
        layer = {}
        for kind in ("", "gate ") if gated else ("",):
            layer[kind + "weight"] = std * _unit_variance(prior.shape, (networks, fan_in, fan_out), generator)
            layer[kind + "bias"] = prior.bias_std * _unit_variance(prior.shape, (networks, 1, fan_out), generator)
        layers.append({name: tensor.to(device=device, dtype=dtype) for name, tensor in layer.items()})
    return layers


def hidden_layer(layer, x, activation, variant="plain", prefactor=1.0):
    """One hidden layer; x (networks, points, fan_in) becomes (networks, points, fan_out).

    plain: phi(a z) with z = Wx + b and a the prefactor; layer norm: z is first brought to mean 0 and variance 1 across
    channels; residual: z + phi(z); gated: phi(z) * sigmoid(W'x + b'). Neural Redshift Section 3; the prefactor is that
    of Section 4.
    """
    z = _affine(layer, x, "")
    if variant == "layer norm":
        z = functional.layer_norm(z, z.shape[-1:], eps=torch.finfo(z.dtype).tiny)
    if isinstance(prefactor, torch.Tensor) or prefactor != 1:
        z = prefactor * z
    out = ACTIVATIONS[activation](z)
    if variant == "residual":
        out = z + out
    elif variant == "gated":
        out = out * torch.sigmoid(_affine(layer, x, "gate "))
    return out


def forward(layers, x, activation, variant="plain", prefactor=1.0):
    """Outputs of an ensemble: x (points, inputs) shared by all networks, or (networks, points, inputs); returns
    (networks, points, outputs).

    `prefactor` multiplies every preactivation: a number, or one per network with shape (networks, 1, 1).
    """
    for layer in layers[:-1]:
        x = hidden_layer(layer, x, activation, variant, prefactor)
    return _affine(layers[-1], x, "")


def images(
    activation,
    networks,
    depth=3,
    width=64,
    prior=None,
    variant="plain",
    m=64,
    depths=False,
    seed=0,
    dtype=None,
    device="cpu",
):
    """Random functions of the plane as images: (networks, m, m), or with `depths` (depth, networks, m, m) for all
    depths up to `depth`.

    A network's first l layers are themselves a random network of depth l once they get a readout of their own, so all
    depths come from one pass; neighbouring depths then share layers, which leaves every average unchanged.

    Unless `dtype` says otherwise, networks are evaluated in float32, and those that turn out nearly constant again in
    float64: a deep gated network with small weights can be constant to six digits, and its image in float32 is mostly
    rounding noise.
    """
    generator = torch.Generator().manual_seed(seed)
    points = grid(m, device=device)
    out = torch.empty(depth if depths else 1, networks, m, m, dtype=dtype or torch.float64, device=device)
    # On a processor, the activations of a chunk of networks (here 4 MB in float64) should fit into the cache.
    chunk = max(1, (2**19 if str(device) == "cpu" else 2**25) // (m * m * width))
    for start in range(0, networks, chunk):
        count = min(chunk, networks - start)
        layers = draw(count, (2, *[width] * depth), prior, "all" if variant == "gated" else "none", generator, device=device)
        readouts = [draw(count, (width, 1), prior, generator=generator, device=device)[0] for _ in out]
        part = _evaluate(layers, readouts, points, activation, variant, dtype or torch.float32)
        part = part.double()  # (depths, count, points)
        if dtype is None:
            flat = (part.std(-1) < 1e-3 * part.mean(-1).abs()).any(0)
            if flat.any():
                layers, readouts = ([{k: v[flat] for k, v in layer.items()} for layer in group] for group in (layers, readouts))
                part[:, flat] = _evaluate(layers, readouts, points, activation, variant, torch.float64)
        out[:, start : start + count] = part.reshape(-1, count, m, m)
    return out if depths else out[0]


def unbiased_images(networks, m=64, magnitude=1.0, seed=0, dtype=torch.float64, device="cpu"):
    """Functions of the unbiased model with random parameters: (networks, m, m).

    A sum of one sine per frequency of the grid with amplitude U(-magnitude, magnitude) and phase U(0, 2 pi): no
    frequency is preferred. Neural Redshift Section 3 and Appendix D.
    """
    generator = torch.Generator().manual_seed(seed)
    frequencies = unbiased_frequencies(m)
    amplitude = magnitude * (2 * torch.rand(networks, len(frequencies), generator=generator, dtype=torch.float64) - 1)
    phase = 2 * math.pi * torch.rand(networks, len(frequencies), generator=generator, dtype=torch.float64)
    spectrum = torch.zeros(networks, m, m, dtype=torch.complex128)
    spectrum[:, frequencies[:, 0], frequencies[:, 1]] = amplitude * torch.exp(1j * (phase - math.pi / 2))
    return (torch.fft.ifft2(spectrum).real * m * m).to(device=device, dtype=dtype)  # real part: sin(a) = Re exp(i (a - pi/2))


def unbiased_frequencies(m=64):
    """The wave vectors of all distinct waves on an m x m grid, one of each pair k, -k, without the constant: (count,
    2)."""
    k = torch.cartesian_prod(torch.arange(m), torch.arange(m))
    partner = (-k) % m
    first = k[:, 0] * m + k[:, 1] <= partner[:, 0] * m + partner[:, 1]
    return k[first & (k.sum(1) > 0)]


def _evaluate(layers, readouts, x, activation, variant, dtype):
    """Outputs of the last `len(readouts)` depths: (depths, networks, points)."""
    layers, readouts = ([{k: v.to(dtype) for k, v in layer.items()} for layer in group] for group in (layers, readouts))
    h, out = x.to(dtype), []
    for index, layer in enumerate(layers):
        h = hidden_layer(layer, h, activation, variant)
        if index >= len(layers) - len(readouts):
            out.append(_affine(readouts[index - len(layers) + len(readouts)], h, "")[..., 0])
    return torch.stack(out)


def _affine(layer, x, kind):
    weight, bias = layer[kind + "weight"], layer[kind + "bias"]
    if x.ndim == 2:  # inputs shared by all networks: one large product instead of many small ones
        networks, fan_in, fan_out = weight.shape
        product = x @ weight.transpose(0, 1).reshape(fan_in, networks * fan_out)  # (points, networks * fan_out)
        return product.reshape(-1, networks, fan_out).transpose(0, 1) + bias
    return torch.baddbmm(bias, x, weight)


def _unit_variance(shape, size, generator):
    """Random numbers of variance 1; the last two dimensions of `size` are one layer's matrix."""
    options = {"generator": generator, "dtype": torch.float64}
    if shape == "uniform":
        return math.sqrt(3) * (2 * torch.rand(size, **options) - 1)
    if shape == "gaussian":
        return torch.randn(size, **options)
    if shape == "ball":  # each layer's matrix is a random direction times a radius that is nearly always the full one
        direction = torch.randn(size, **options)
        count = size[-2] * size[-1]
        radius = torch.rand((*size[:-2], 1, 1), **options) ** (1 / count)
        return direction * (math.sqrt(count + 2) * radius / direction.square().sum((-2, -1), keepdim=True).sqrt())
    if shape == "long-tailed":  # Laplace: a random sign times an exponential
        sign = torch.randint(0, 2, size, generator=generator).double() * 2 - 1
        return sign * -torch.log1p(-torch.rand(size, **options)) / math.sqrt(2)
    raise ValueError(f"the prior's shape is one of {PRIORS}, not {shape!r}")

"""Cases of the bench: random functions and their complexity, networks trained by Adam, frozen weights with learned biases."""

import math
from functools import partial

import numpy as np
import torch
from numpy.polynomial import chebyshev, legendre
from scipy.fft import dctn
from torch import Tensor
from torch.nn import functional

from lib import biases, complexity
from lib.biases import recurrent, training
from lib.linear import Streams
from lib.press.bench.timing import Case, Pair
from lib.redshift import random_networks, trained_networks, transformers
from lib.redshift.random_networks import Prior

ROUNDING = {torch.float32: 2e-5, torch.float64: 1e-11}


def random_functions(dtype: torch.dtype, seeds: int, width: int, depth: int = 6, m: int = 64) -> Pair:
    """Networks with random weights on a grid, all depths (`random_networks.images`): networks in chunks, depths in one pass."""
    prior, few = Prior(magnitude=2.0), min(2, seeds)

    def fast() -> Tensor:
        return random_networks.images("sine", seeds, depth, width, prior, depths=True, m=m, dtype=dtype)[:, :few]

    def plain() -> Tensor:
        x, out = complexity.grid(m).to(dtype), torch.empty(depth, few, m, m, dtype=dtype)
        for k in range(few):
            streams = Streams(1, 0, first=k)
            layers = random_networks.draw(1, (2, *[width] * depth), prior, seed=streams, dtype=dtype)
            readouts = [random_networks.draw(1, (width, 1), prior, seed=streams, dtype=dtype)[0] for _ in range(depth)]
            for last, readout in enumerate(readouts):
                h = x
                for layer in layers[: last + 1]:
                    h = torch.sin(functional.linear(h, layer["weight"][0], layer["bias"][0, 0]))
                out[last, k] = functional.linear(h, readout["weight"][0], readout["bias"][0, 0]).reshape(m, m)
        return out

    flops = seeds * m * m * 2 * (2 * width + (depth - 1) * width**2 + depth * width)
    return Pair(fast, plain, (seeds * depth, few * depth), ROUNDING[dtype], flops=flops)


def pictures(images: int, m: int) -> Tensor:
    """Some images of random networks, smooth and noisy ones: (images, m, m), float64."""
    drawn = random_networks.images("sine", -(-images // 4), 4, 32, Prior(magnitude=3.0), depths=True, m=m)
    return drawn.flatten(0, 1)[:images].contiguous()


def plain_phrases(sequence: list[int]) -> int:
    """LZ78 as a textbook writes it: a set of all phrases so far."""
    seen, phrase = set(), ()
    for symbol in sequence:
        phrase += (symbol,)
        if phrase not in seen:
            seen.add(phrase)
            phrase = ()
    return len(seen)


def lempel_ziv(dtype: torch.dtype, images: int, m: int) -> Pair:
    """Phrases of quantised images (`complexity.phrases`): four trees side by side in compiled code."""
    symbols, few = complexity.traverse(complexity.quantise(pictures(images, m))), min(8, images)
    lists = symbols[:few].tolist()

    def plain() -> Tensor:
        return torch.tensor([plain_phrases(sequence) for sequence in lists])

    return Pair(lambda: complexity.phrases(symbols, 10)[:few], plain, (images, few), 0.0, bytes=images * m * m * 3)


def plain_measures(y: np.ndarray) -> list[float]:
    """Fourier on quadrant and half plane, cosine, Chebyshev and Legendre complexity of one image (m, m), one by one."""
    m, centred = len(y), y - y.mean()

    def mean_frequency(magnitude: np.ndarray, k1: np.ndarray, k2: np.ndarray) -> float:
        norm = np.hypot(k1[:, None], k2[None, :])
        weight = np.where(norm > 0, np.abs(magnitude), 0)
        return (weight * norm).sum() / weight.sum()

    spectrum, k, signed = np.fft.fft2(centred), np.arange(m // 2 + 1), np.fft.fftfreq(m, 1 / m)
    found = [mean_frequency(spectrum[: m // 2 + 1, : m // 2 + 1], k, k), mean_frequency(spectrum, signed, signed)]
    found.append(mean_frequency(dctn(centred, norm="ortho"), np.arange(m) / 2, np.arange(m) / 2))
    x, order = np.linspace(-1, 1, m), complexity.default_order(m)
    edges = np.concatenate([[-1], (x[1:] + x[:-1]) / 2, [1]])
    for basis, cells in ((chebyshev.chebvander, np.arcsin(edges)), (legendre.legvander, edges)):
        root = np.sqrt(np.diff(cells))[:, None]
        design = basis(x, order) * root
        first = np.linalg.lstsq(design, root * centred, rcond=None)[0]
        coefficients = np.linalg.lstsq(design, root * first.T, rcond=None)[0].T
        found.append(mean_frequency(coefficients, np.arange(order + 1), np.arange(order + 1)))
    return found


def measures(dtype: torch.dtype, images: int, m: int) -> Pair:
    """Five measures of complexity of many images at once (`complexity`), against NumPy and SciPy image by image."""
    y, few = pictures(images, m), min(8, images)

    def fast() -> Tensor:
        waves = [complexity.fourier(y, "quadrant"), complexity.fourier(y, "half plane"), complexity.cosine(y)]
        return torch.stack([*waves, complexity.chebyshev(y), complexity.legendre(y)], -1)[:few]

    def plain() -> Tensor:
        return torch.tensor([plain_measures(image) for image in y[:few].numpy()], dtype=torch.float64)

    order = complexity.default_order(m) + 1
    transforms = 2 * 2.5 * m * m * math.log2(m * m) + 2 * m * m * m * 2  # two of Fourier, the cosine's two products
    flops = images * (transforms + 2 * 2 * order * m * (m + order))
    return Pair(fast, plain, (images, few), 1e-8, flops=flops)


def fitted(dtype: torch.dtype, seeds: int, width: int, points: int, steps: int = 12) -> Pair:
    """Ensembles trained by full-batch Adam (`trained_networks.fit_network`), against one network of modules at a time."""
    streams = Streams(1, 3)
    x, y = streams.uniform(points, 2, low=-1.0)[0].to(dtype), streams.normal(points)[0].to(dtype)
    start = random_networks.draw(seeds, (2, width, width, 1), dtype=dtype)

    def fast() -> Tensor:
        layers = trained_networks.copied(start)
        trained_networks.fit_network(layers, x, y, "tanh", rate=0.01, steps=steps)
        return torch.cat([(now[k] - then[k])[0].flatten() for now, then in zip(layers, start, strict=True) for k in now])

    def plain() -> Tensor:
        sizes = ((2, width), (width, width), (width, 1))
        linears = [torch.nn.Linear(*size, dtype=dtype) for size in sizes]
        with torch.no_grad():
            for module, layer in zip(linears, start, strict=True):
                module.weight.copy_(layer["weight"][0]), module.bias.copy_(layer["bias"][0, 0])
        net = torch.nn.Sequential(linears[0], torch.nn.Tanh(), linears[1], torch.nn.Tanh(), linears[2])
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            (net(x)[:, 0] - y).square().mean().backward()
            optimiser.step()
        pairs = ((m, layer) for m, layer in zip(linears, start, strict=True))
        parts = [(m.weight - layer["weight"][0], m.bias - layer["bias"][0, 0]) for m, layer in pairs]
        return torch.cat([part.detach().flatten() for both in parts for part in both])

    flops = seeds * steps * 2 * points * (3 * width**2 + 3 * width + 2 * 2 * width)
    return Pair(fast, plain, (seeds * steps, steps), ROUNDING[dtype], flops=flops)


def bias_learning(dtype: torch.dtype, units: int, images: int, cache: str = "float32") -> Pair:
    """An epoch of biases learned on frozen weights (`biases.train_biases`): cached pre-activations, one compiled loop.

    What is compared are the networks' answers: Adam's first steps follow the sign of a gradient, which for a unit that hardly
    matters is rounding. Filling the cache is not counted; it is one product, paid once for all epochs.
    """
    streams = Streams(1, 4)
    x, y = streams.uniform(images, 784)[0].float(), streams.integers(10, images)[0]
    network = biases.frozen(units, 784, 10)
    known = biases.PreActivations(network, x, cache)

    def fast() -> Tensor:
        return biases.train_biases(network, known, y, epochs=1).bias

    def plain() -> Tensor:
        hidden, output = torch.nn.Linear(784, units), torch.nn.Linear(units, 10, bias=False)
        with torch.no_grad():
            hidden.weight.copy_(network.w[0]), hidden.bias.zero_(), output.weight.copy_(network.a[0])
        hidden.weight.requires_grad_(False), output.weight.requires_grad_(False)
        optimiser = torch.optim.Adam([hidden.bias], lr=0.02)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, -(-images // 200))
        for chosen in Streams(1, 0, training.ORDER).permutation(images)[0].split(200):
            optimiser.zero_grad()
            functional.cross_entropy(output(hidden(x[chosen]).relu()), y[chosen]).backward()
            optimiser.step()
            schedule.step()
        return hidden.bias.detach()[None]

    def look(bias: Tensor) -> Tensor:
        return biases.answers(network, bias, x[:100]) - biases.answers(network, torch.zeros_like(bias), x[:100])

    traffic = images * units * (4 if cache == "float32" else 2)
    rounding = 2e-5 if cache == "float32" else 2e-3
    return Pair(fast, plain, (images, images), rounding, images * units * 40, traffic, look)


def recurrent_biases(dtype: torch.dtype, seeds: int, units: int, window: int, steps: int = 4) -> Pair:
    """Biases of recurrent networks (`recurrent.train`): all seeds at once."""
    wave = torch.sin(torch.arange(400, dtype=torch.float64) / 7)[:, None].to(dtype)
    x, y = wave[:-5], wave[5:]
    network = recurrent.recurrent(units, seeds=seeds, dtype=dtype)

    def fast() -> Tensor:
        learned, _ = recurrent.train(network, x, y, steps=steps, window=window)
        return learned.bias[0] - network.bias[0]

    def plain() -> Tensor:
        w, b_in, c = network.w[0], network.b_in[0], network.c[0]
        bias = network.bias[0].clone().requires_grad_()
        optimiser, order = torch.optim.Adam([bias], lr=0.05), Streams(1, 0, recurrent.WINDOWS)
        for now in range(steps):
            index = order.integers(len(x) - window + 1, 16)[0][:, None] + torch.arange(window)
            r, answers = torch.zeros(16, units, dtype=dtype), []
            for t in range(window):
                drive = functional.linear(r, w) + functional.linear(x[index[:, t]], b_in) + bias
                r = network.keep * r + network.beta * torch.relu(drive)
                answers.append(functional.linear(r, c))
            optimiser.zero_grad()
            (torch.stack(answers, 1) - y[index]).square().mean().backward()
            torch.nn.utils.clip_grad_norm_([bias], 1.0)
            optimiser.param_groups[0]["lr"] = 0.05 * 0.5 * (1 + math.cos(math.pi * now / steps))
            optimiser.step()
        return bias.detach() - network.bias[0]

    flops = seeds * steps * 2 * 2 * units**2 * 16 * window
    rounding = 1e-7 if dtype == torch.float64 else 2e-5  # torch's clipping divides by the norm plus 1e-6
    return Pair(fast, plain, (seeds * steps, steps), rounding, flops=flops)


def written(dtype: torch.dtype, seeds: int, scales: int, length: int, blocks: int = 4) -> Pair:
    """What untrained transformers write at many scales of their layer norm (`transformers.write_grid`): all at once, keys and
    values kept in place, against one transformer at a time that keeps them too, by appending."""
    shape = transformers.Shape(width=64, heads=4, blocks=blocks, vocabulary=200)
    weights = transformers.draw(shape, seeds, dtype=dtype)
    prompts, sizes = transformers.draw_prompts(shape, seeds, 1), torch.linspace(0.5, 4.0, scales).tolist()

    def fast() -> Tensor:
        return transformers.write_grid(weights, shape, prompts, "gelu", sizes, length=length)[-1, 0, 0]

    def layer(x: Tensor, block: dict[str, Tensor], kept: Tensor | None) -> tuple[Tensor, Tensor]:
        heads = (sizes[-1] * functional.layer_norm(x, (64,)) @ block["attend"][0].T).view(3, 4, 1, 16)
        kept = heads[1:] if kept is None else torch.cat([kept, heads[1:]], -2)  # keys and values of all tokens so far
        x = x + functional.scaled_dot_product_attention(heads[0], *kept).reshape(64) @ block["attended"][0].T
        units = functional.gelu(sizes[-1] * functional.layer_norm(x, (64,)) @ block["expand"][0].T)
        return x + units @ block["contract"][0].T, kept

    def plain() -> Tensor:
        token, kept, said = prompts[0, 0], [None] * blocks, []
        with torch.no_grad():
            for place in range(length):
                x = weights["tokens"][0, token] + weights["positions"][0, place]
                for k, block in enumerate(weights["blocks"]):
                    x, kept[k] = layer(x, block, kept[k])
                token = (weights["tokens"][0] @ functional.layer_norm(x, (64,))).argmax()
                said.append(token)
        return torch.stack(said)

    products = blocks * (12 * 64**2 + 64 * length) + 64 * 200  # a token's multiplications; it sees half of the others
    return Pair(fast, plain, (seeds * scales * length, length), 0.0, flops=2 * seeds * scales * length * products)


CASES = {
    "random-functions": Case(
        "random networks of six depths on a grid", "one network and depth at a time", "function", random_functions,
        {"seeds": 16, "width": 64}, {"seeds": ((8, 16, 32, 64), {}), "width": ((32, 64, 128, 256), {"seeds": 4})},
    ),
    "measures": Case(
        "five measures of complexity", "NumPy and SciPy, image by image", "image", measures, {"images": 64, "m": 64},
        {"images": ((16, 64, 256), {}), "m": ((32, 64, 128), {})}, ("float64",),
    ),
    "lempel-ziv": Case(
        "Lempel-Ziv complexity of 64 × 64 images", "a Python set of phrases", "image", lempel_ziv, {"images": 64, "m": 64},
        {"images": ((16, 64, 256), {}), "m": ((32, 64, 128), {})}, ("whole numbers",),
    ),
    "adam": Case(
        "networks trained by full-batch Adam", "a loop over networks of modules", "network and step", fitted,
        {"seeds": 16, "width": 32, "points": 256},
        {"seeds": ((8, 16, 32, 64), {}), "points": ((256, 512, 1024, 2048), {"seeds": 8}),
         "width": ((32, 64, 128), {"seeds": 8})},
    ),
    "biases": Case(
        "biases learned on frozen weights, 8,000 units", "linear layers, automatic differentiation, Adam", "image", bias_learning,
        {"units": 8000, "images": 1000},
        {"units": ((1000, 2000, 4000, 8000), {}), "images": ((400, 800, 1600), {"units": 4000})}, ("float32",),
    ),
    "biases-16-bit": Case(
        "the same with the cache in 16 bits", "the same, in single precision", "image", partial(bias_learning, cache="int16"),
        {"units": 8000, "images": 1000}, {}, ("float32",),
    ),
    "recurrent": Case(
        "biases of recurrent networks, 64 units", "a loop over networks, automatic differentiation", "network and step",
        recurrent_biases, {"seeds": 8, "units": 64, "window": 60},
        {"seeds": ((4, 8, 16, 32), {}), "units": ((64, 128, 256), {"seeds": 4}), "window": ((30, 60, 120), {})},
    ),
    "transformers": Case(
        "sequences that untrained transformers write", "one transformer at a time, keys and values kept", "token", written,
        {"seeds": 8, "scales": 6, "length": 50},
        {"seeds": ((4, 8, 16, 32), {}), "scales": ((2, 4, 8, 16), {}), "length": ((25, 50, 100), {})},
    ),
}  # fmt: skip

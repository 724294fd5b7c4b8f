"""Ensembles of small networks trained with full-batch Adam, and what is left of them when their weights are shuffled.

The networks are those of `random_networks`. The losses of all networks are added up and Adam acts on each weight by
itself, so every network learns exactly as it would alone. Points are rows, (points, inputs). Neural Redshift Section 4 and
Appendix E.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from lib.data import tasks
from lib.linear import Recording, Streams, WrongAxes, axes
from lib.linear.descent import Adam, descend
from lib.redshift import random_networks
from lib.redshift.activations import Activation
from lib.redshift.random_networks import Layer, Prior

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of outputs and targets (seeds, points): each network's (seeds,)
    "squared": lambda out, target: (out - target).square().mean(1),
    "logistic": lambda out, target: functional.binary_cross_entropy_with_logits(out, target, reduction="none").mean(1),
}


def fit(
    parameters: list[Tensor],
    predict: Callable[[], Tensor],
    target: Tensor,
    *,
    rate: float,
    steps: int,
    loss: str = "squared",
    every: int = 0,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
) -> Recording:
    """Train `parameters` (changed in place) by Adam with this `rate`, so that predict() approaches `target`.

    predict() returns (seeds, points), computed from the parameters; `target` is (points,) or (seeds, points). `loss` is
    "squared", the mean squared error, or "logistic", the mean cross-entropy (targets 0 and 1). Returns a `Recording` of
    each network's "loss" and of what observe(parameters) returns, before training, after it, and every `every` steps if
    that is not 0.
    """
    if loss not in LOSSES:
        raise ValueError(f"loss is one of {', '.join(LOSSES)}, not {loss!r}")
    shape, target = tuple(predict().shape), torch.as_tensor(target)
    if len(shape) != 2 or tuple(target.shape) not in (shape, shape[1:]):
        raise WrongAxes(f"fit: target has shape {tuple(target.shape)} and the networks answer {shape}, (seeds, points)")
    target = target.expand(shape)

    def gradient(parameters: list[Tensor]) -> tuple[Tensor, ...]:
        for tensor in parameters:
            tensor.requires_grad_(True)
        with torch.enable_grad():
            slopes = torch.autograd.grad(LOSSES[loss](predict(), target).sum(), parameters)
        for tensor in parameters:
            tensor.requires_grad_(False)
        return slopes

    def look(parameters: list[Tensor]) -> dict[str, Tensor]:
        return {"loss": LOSSES[loss](predict(), target)} | (observe(parameters) if observe else {})

    return descend(parameters, gradient, update=Adam(rate), steps=steps, every=every or max(1, steps), observe=look)


def fit_network(
    layers: list[Layer],
    x: Tensor,
    target: Tensor,
    activation: Activation,
    *,
    rate: float,
    steps: int,
    prefactor: float | Tensor = 1.0,
    loss: str = "squared",
    every: int = 0,
    observe: Callable[[list[Layer]], dict[str, Tensor]] | None = None,
) -> Recording:
    """`fit` for the weights and biases of an ensemble with one output, on x (points, inputs) or (seeds, points, inputs);
    the recording has what observe(layers) returns. `prefactor` as in `random_networks.forward`."""

    def predict() -> Tensor:
        return random_networks.forward(layers, x, activation, prefactor=prefactor)[..., 0]

    parameters = [tensor for layer in layers for tensor in layer.values()]
    look = (lambda _: observe(layers)) if observe else None
    return fit(parameters, predict, target, rate=rate, steps=steps, loss=loss, every=every, observe=look)


def render(layers: list[Layer], activation: Activation, m: int = 64) -> Tensor:
    """The functions of an ensemble with two inputs and one output as images (seeds, m, m)."""
    weight = layers[0]["weight"]
    points = random_networks.grid(m, dtype=weight.dtype, device=weight.device)
    with torch.no_grad():
        return random_networks.forward(layers, points, activation).reshape(-1, m, m)


def shuffled(layers: list[Layer], seed: int = 0, seeds: int | None = None) -> list[Layer]:
    """A copy of the ensemble in which the weights of each layer, and its biases, have changed places at random within the
    network. Networks k, k + seeds, k + 2 seeds, ... share an order: one network at several magnitudes. Neural Redshift
    Appendix E.1."""
    networks = len(layers[0]["weight"])
    seeds = seeds or networks
    if networks % seeds:
        raise ValueError(f"{networks} networks are not a multiple of {seeds} seeds")
    streams = Streams(seeds, seed)

    def shuffle(tensor: Tensor) -> Tensor:
        flat = tensor.reshape(networks, -1)
        order = streams.permutation(flat.shape[1]).repeat(networks // seeds, 1).to(flat.device)
        return flat.gather(1, order).reshape(tensor.shape)

    return [{name: shuffle(tensor) for name, tensor in layer.items()} for layer in layers]


def copied(layers: list[Layer]) -> list[Layer]:
    """An independent copy of an ensemble."""
    return [{name: tensor.clone() for name, tensor in layer.items()} for layer in layers]


def repeated(layers: list[Layer], times: int) -> list[Layer]:
    """The ensemble `times` times over, one copy after the other: (times * seeds, ...)."""
    return [{name: tensor.repeat(times, 1, 1) for name, tensor in layer.items()} for layer in layers]


@axes(values="samples")
def excess_kurtosis(values: Tensor) -> Tensor:
    """How long the tails of values (..., samples) are, (...): -1.2 for a uniform, 0 for a Gaussian, 3 for a Laplace law."""
    centred = values - values.mean(-1, keepdim=True)
    return centred.pow(4).mean(-1) / centred.square().mean(-1).square() - 3


def learn_modulo_sums(
    activation: Activation,
    prefactors: Sequence[float],
    moduli: Sequence[int],
    share: float,
    *,
    numbers: int,
    dims: int = 2,
    depth: int = 3,
    width: int = 128,
    bias: float = 1.0,
    seeds: int = 2,
    seed: int = 0,
    rate: float = 0.002,
    steps: int = 300,
    every: int = 0,
    device: str | torch.device = "cpu",
) -> tuple[Tensor, Tensor, Tensor]:
    """Networks with `depth` hidden layers on a `share` of all points of `tasks.modulo_sums`, tested on the others.

    All tasks and seeds of a prefactor train side by side. Each seed has its own split of the points and its own initial
    weights, which all tasks and prefactors have in common; biases start uniform in ±`bias`. Returns test and training
    accuracy, each (times, tasks, prefactors, seeds), and the times. Neural Redshift Section 4.1.
    """
    made = [tasks.modulo_sums(modulus, numbers, dims) for modulus in moduli]
    x = tasks.as_rows(made[0][0]).to(device)  # (points, dims)
    labels = torch.stack([y[0] for _, y in made]).float().to(device)  # (tasks, points)
    streams = Streams(seeds, seed)
    order = streams.permutation(len(x)).to(device)
    sizes = (dims, *[width] * depth, 1)
    start = random_networks.draw(seeds, sizes, Prior(bias=bias), seed=streams, dtype=torch.float32, device=device)
    y, order = labels.repeat_interleave(seeds, 0), order.repeat(len(moduli), 1)  # (tasks * seeds, points)
    train, test = order.split([round(share * len(x)), len(x) - round(share * len(x))], 1)

    def learn(prefactor: float) -> Recording:
        def accuracy(layers: list[Layer], points: Tensor) -> Tensor:
            out = random_networks.forward(layers, x[points], activation, prefactor=prefactor)[..., 0]
            return ((out > 0) == (y.gather(1, points) > 0.5)).double().mean(1).cpu()

        return fit_network(
            repeated(start, len(moduli)), x[train], y.gather(1, train), activation, prefactor=prefactor, rate=rate, steps=steps,
            loss="logistic", every=every, observe=lambda now: {"test": accuracy(now, test), "train": accuracy(now, train)},
        )  # fmt: skip

    runs = [learn(prefactor) for prefactor in prefactors]
    shape = (len(runs[0].time), len(moduli), seeds)
    results = (torch.stack([run[name].reshape(shape) for run in runs], 2) for name in ("test", "train"))
    return *results, runs[0].time


@axes(pixels="pixels", target="pixels")
def fit_unbiased(
    pixels: Tensor,
    target: Tensor,
    m: int,
    *,
    seeds: int = 1,
    magnitude: float = 0.01,
    rate: float = 0.02,
    steps: int = 300,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Recording]:
    """Train the amplitudes and phases of the unbiased model on some `pixels`, flat indices into an m x m image, from
    `random_networks.unbiased_images` of the same seed. Returns the images before and after training, (seeds, m, m) each,
    and the `Recording`. Neural Redshift Appendices D and E.1."""
    k, *start = random_networks.unbiased_parameters(seeds, m, magnitude, seed=seed)
    amplitude, phase = (tensor.float()[:, None] for tensor in start)  # (seeds, 1, waves)
    points = torch.cartesian_prod(torch.arange(m), torch.arange(m)).float()
    angle = (2 * math.pi / m) * (points @ k.float().T % m)  # (pixels of the image, waves)

    def values(sine: Tensor, cosine: Tensor) -> Tensor:
        # sin(angle + phase) as sin cos + cos sin: two matrix products instead of one sine for each pixel, wave and seed
        return ((amplitude * phase.cos()) @ sine.T + (amplitude * phase.sin()) @ cosine.T)[:, 0]

    everywhere, shown = (angle.sin(), angle.cos()), (angle[pixels].sin(), angle[pixels].cos())
    before = values(*everywhere).reshape(seeds, m, m)
    recording = fit([amplitude, phase], lambda: values(*shown), target.float(), rate=rate, steps=steps)
    return before, values(*everywhere).reshape(seeds, m, m), recording

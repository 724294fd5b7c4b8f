"""Ensembles of small networks trained with full-batch Adam, and what is left of them when their weights are shuffled.

The networks are those of `random_networks`, and so is the forward pass: a trained network is a random one that was
moved. All networks of an ensemble train side by side in one tensor program; Adam works on each weight by itself and the
losses are summed, so every network learns exactly as it would alone.

Neural Redshift Section 4 and Appendix E.
"""

import math
import sys

import torch
from torch.nn import functional
from tqdm import tqdm

from lib.data import tasks
from lib.linear.descent import Recording
from lib.redshift import random_networks
from lib.redshift.random_networks import Prior


def fit(parameters, predict, target, *, rate, steps, loss="squared", every=0, observe=None, label=""):
    """Train `parameters` (a list of tensors, changed in place) so that predict() approaches `target`; returns a
    `Recording`.

    predict() returns (networks, points); `target` is (points,) or (networks, points). `loss` is "squared" or "logistic"
    (targets 0 and 1). The recording has each network's "loss" and whatever observe() returns, before training, every
    `every` steps and after it.
    """
    target = target.expand(predict().shape)
    each_loss = {
        "squared": lambda out: (out - target).square().mean(1),
        "logistic": lambda out: functional.binary_cross_entropy_with_logits(out, target, reduction="none").mean(1),
    }[loss]
    for tensor in parameters:
        tensor.requires_grad_()
    optimiser = torch.optim.Adam(parameters, lr=rate, fused=True)
    times, seen = [], []
    for now in tqdm(range(steps + 1), desc=label or "steps", disable=not (label and sys.stderr.isatty()), leave=False):
        losses = each_loss(predict())
        if now == steps or now == 0 or (every and now % every == 0):
            with torch.no_grad():
                times.append(now)
                extra = observe() if observe else {}
                seen.append({name: value.detach().clone() for name, value in ({"loss": losses} | extra).items()})
        if now < steps:
            optimiser.zero_grad()
            losses.sum().backward()
            optimiser.step()
    for tensor in parameters:
        tensor.requires_grad_(False)
        tensor.grad = None
    if not torch.isfinite(seen[-1]["loss"]).all():
        raise FloatingPointError("training diverged: try a smaller rate")
    return Recording(torch.tensor(times), {name: torch.stack([row[name] for row in seen]) for name in seen[0]})


def fit_network(layers, x, target, activation, *, prefactor=1.0, **options):
    """`fit` for an ensemble of networks with one output, on x (points, inputs) or (networks, points, inputs)."""
    parameters = [tensor for layer in layers for tensor in layer.values()]
    return fit(
        parameters,
        lambda: random_networks.forward(layers, x, activation, prefactor=prefactor)[..., 0],
        target,
        **options,
    )


def render(layers, activation, m=64, prefactor=1.0):
    """The functions of an ensemble with two inputs as images (networks, m, m)."""
    points = random_networks.grid(m, dtype=layers[0]["weight"].dtype, device=layers[0]["weight"].device)
    with torch.no_grad():
        return random_networks.forward(layers, points, activation, prefactor=prefactor).reshape(-1, m, m)


def shuffled(layers, seed=0):
    """A copy of the ensemble in which each layer's weights, and each layer's biases, have changed places at random
    within the network.

    The distribution of magnitudes in each layer stays exactly as it was; which unit connects to which is lost. Neural
    Redshift App. E.1.
    """
    generator = torch.Generator().manual_seed(seed)

    def shuffle(tensor):
        flat = tensor.reshape(len(tensor), -1)
        order = torch.rand(flat.shape, generator=generator).argsort(1).to(flat.device)
        return flat.gather(1, order).reshape(tensor.shape).clone()

    return [{name: shuffle(tensor) for name, tensor in layer.items()} for layer in layers]


def copied(layers):
    """An independent copy of an ensemble."""
    return [{name: tensor.clone() for name, tensor in layer.items()} for layer in layers]


def repeated(layers, times):
    """The ensemble `times` times over, one copy after the other: (times * networks, ...)."""
    return [{name: tensor.repeat(times, 1, 1) for name, tensor in layer.items()} for layer in layers]


def weight_magnitude(layers):
    """Mean absolute value of all weights (biases left out) of each network: (networks,)."""
    weights = torch.cat([layer["weight"].flatten(1) for layer in layers], 1)
    return weights.abs().mean(1)


def excess_kurtosis(values):
    """How long the tails are, over the last dimension: -1.2 for a uniform distribution, 0 for a Gaussian, 3 for a
    Laplace."""
    centred = values - values.mean(-1, keepdim=True)
    return centred.pow(4).mean(-1) / centred.square().mean(-1).square() - 3


def learn_modulo_sums(activation, moduli, prefactors, share, *, width=128, seeds=2, rate=0.002, steps=300, every=0, device="cpu"):
    """Networks with three hidden layers on a `share` of all points of `tasks.modulo_sums`, tested on the others.

    All tasks and seeds of a prefactor train side by side; more at once would not fit into a processor's cache. Each
    seed has its own split of the points and its own initial weights, which all tasks and prefactors have in common.
    Returns test and training accuracy, each (times, tasks, prefactors, seeds), and the times.
    Neural Redshift Section 4.1.
    """
    x = tasks.modulo_sums(moduli[0])[0].T.float().to(device)  # (points, 2)
    labels = torch.stack([tasks.modulo_sums(modulus)[1][0] for modulus in moduli]).float().to(device)
    generator = torch.Generator().manual_seed(0)
    order = torch.stack([torch.randperm(len(x), generator=generator) for _ in range(seeds)]).to(device)
    sizes = (2, width, width, width, 1)
    start = random_networks.draw(seeds, sizes, Prior(bias=0.0), "none", generator, torch.float32, device)
    y, order = labels.repeat_interleave(seeds, 0), order.repeat(len(moduli), 1)  # (tasks * seeds, points)
    train, test = order.split([round(share * len(x)), len(x) - round(share * len(x))], 1)

    def learn(prefactor):
        layers = repeated(start, len(moduli))

        def accuracy(points):
            out = random_networks.forward(layers, x[points], activation, prefactor=prefactor)[..., 0]
            return ((out > 0) == (y.gather(1, points) > 0.5)).double().mean(1).cpu()

        return fit_network(
            layers, x[train], y.gather(1, train), activation, prefactor=prefactor, rate=rate, steps=steps,
            loss="logistic", every=every, observe=lambda: {"test": accuracy(test), "train": accuracy(train)},
        )  # fmt: skip

    runs = [learn(prefactor) for prefactor in prefactors]
    shape = (len(runs[0].time), len(moduli), seeds)
    results = (torch.stack([run[name].reshape(shape) for run in runs], 2) for name in ("test", "train"))
    return *results, runs[0].time


def fit_unbiased(pixels, target, m=64, *, seeds=1, magnitude=0.01, rate=0.02, steps=300, seed=0):
    """Train the unbiased model (one sine per frequency of the grid, amplitudes and phases learned) on some pixels of an
    m x m image.

    pixels are flat indices into the image. Returns the images before and after training, (seeds, m, m) each, and the
    `Recording`. Neural Redshift Appendices D and E.1.
    """
    generator = torch.Generator().manual_seed(seed)
    k = random_networks.unbiased_frequencies(m).float()
    points = torch.cartesian_prod(torch.arange(m), torch.arange(m)).float()
    angle = (2 * math.pi / m) * (points @ k.T % m)  # (pixels of the image, waves)
    amplitude = magnitude * (2 * torch.rand(seeds, 1, len(k), generator=generator) - 1)
    phase = 2 * math.pi * torch.rand(seeds, 1, len(k), generator=generator)

    def predict(rows=pixels):
        # sin(angle + phase) as sin cos + cos sin: two matrix products instead of one sine per pixel, wave and seed
        sine, cosine = angle[rows].sin(), angle[rows].cos()
        return ((amplitude * phase.cos()) @ sine.T + (amplitude * phase.sin()) @ cosine.T)[:, 0]

    everything = torch.arange(m * m)
    before = predict(everything).reshape(seeds, m, m)
    recording = fit([amplitude, phase], predict, target, rate=rate, steps=steps)
    return before, predict(everything).reshape(seeds, m, m), recording

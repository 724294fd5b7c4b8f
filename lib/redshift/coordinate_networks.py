"""Networks that paint a picture from some of its pixels, and networks that learn one texture after another.

A coordinate network has two inputs, the place, and one output, the brightness. Pixels are rows. Neural Redshift Appendix E.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lib import complexity
from lib.linear import Recording, WrongAxes, axes
from lib.redshift import random_networks
from lib.redshift.activations import Activation
from lib.redshift.random_networks import Layer, Prior
from lib.redshift.trained_networks import copied, fit_network, render, repeated, shuffled


@dataclass(frozen=True)
class Painting:
    """What `paint` returns: images (magnitudes, seeds, m, m) before and after training and with the trained weights
    shuffled, the recording with each network's "loss" (times, magnitudes * seeds), and the trained layers."""

    before: Tensor
    trained: Tensor
    shuffled: Tensor
    run: Recording
    layers: list[Layer]


def coordinate_networks(
    magnitudes: Sequence[float],
    *,
    depth: int = 3,
    width: int = 64,
    bias: float = 0.0,
    seeds: int = 1,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> list[Layer]:
    """An ensemble with two inputs, `depth` hidden layers and one output for each magnitude and seed, biases uniform in
    ±`bias`; the same draw is used at every magnitude. Networks of one magnitude come together."""
    sizes = (2, *[width] * depth, 1)
    layers = random_networks.draw(seeds, sizes, Prior(bias=bias), seed=seed, dtype=torch.float32, device=device)
    scale = torch.tensor(magnitudes, dtype=torch.float32, device=device).repeat_interleave(seeds)[:, None, None]
    layers = repeated(layers, len(magnitudes))
    return [{"weight": scale * layer["weight"], "bias": layer["bias"]} for layer in layers]


@axes(picture="m m", pixels="pixels")
def paint(
    activation: Activation,
    magnitudes: Sequence[float],
    picture: Tensor,
    pixels: Tensor,
    *,
    steps: int,
    rate: float,
    depth: int = 3,
    width: int = 64,
    bias: float = 0.0,
    seeds: int = 1,
    seed: int = 0,
    every: int = 0,
    observe: Callable[[list[Layer]], dict[str, Tensor]] | None = None,
    device: str | torch.device = "cpu",
) -> Painting:
    """Train coordinate networks on the flat indices `pixels` of a picture (m, m): a `Painting`.

    With `every`, the recording also has the images' "cosine" complexity, the mean size of the "weights", and what
    observe(layers) returns. Neural Redshift Appendix E.1 and E.2.
    """
    if observe and not every:
        raise ValueError("observe is called every `every` steps; every is 0")
    m = len(picture)
    layers = coordinate_networks(magnitudes, depth=depth, width=width, bias=bias, seeds=seeds, seed=seed, device=device)
    places = random_networks.grid(m, dtype=torch.float32, device=device)[pixels]

    def images(layers: list[Layer]) -> Tensor:
        return render(layers, activation, m).cpu().reshape(len(magnitudes), seeds, m, m)

    def look(layers: list[Layer]) -> dict[str, Tensor]:
        size = torch.cat([layer["weight"].flatten(1) for layer in layers], 1).abs().mean(1)
        seen = {"cosine": complexity.cosine(render(layers, activation, m)), "weights": size}
        return seen | observe(layers) if observe else seen

    before = images(layers)
    target = picture.flatten()[pixels].float().to(device)
    watched = {"every": every, "observe": look if every else None}
    run = fit_network(layers, places, target, activation, rate=rate, steps=steps, **watched)
    return Painting(before, images(layers), images(shuffled(layers, seed, seeds)), run, layers)


@axes(angles="waves")
def stripes(cycles: float, angles: Tensor, m: int = 64) -> Tensor:
    """Sine waves with `cycles` periods over [-1, 1] in the directions `angles` (waves,): images (waves, m, m)."""
    direction = torch.stack([angles.cos(), angles.sin()]).float()  # (2, waves)
    wave = torch.sin(torch.pi * cycles * random_networks.grid(m, dtype=torch.float32) @ direction)
    return wave.T.reshape(-1, m, m)


@axes(first="seeds m m", then="seeds m m", pixels="pixels")
def fine_tune(
    activation: Activation,
    first: Tensor,
    then: Tensor,
    pixels: Tensor,
    *,
    pretraining: int,
    steps: int,
    rate: float,
    depth: int = 3,
    width: int = 64,
    bias: float = 0.0,
    seed: int = 0,
    cut: float = 3.0,
    every: int = 10,
    device: str | torch.device = "cpu",
) -> tuple[Tensor, dict[str, Tensor]]:
    """Networks that learn the images `first` (seeds, m, m) and afterwards `then`, from the same pixels.

    Returns the times (times,) and a dict with the share of variance above `cut` cycles while `then` is learned, (times,
    seeds), for networks that start "fresh", "pretrained" on `first`, and pretrained but "shuffled" in between.
    Neural Redshift Appendix E.3.
    """
    if first.ndim != 3:
        raise WrongAxes(f"fine_tune: first has shape {tuple(first.shape)}; it must be (seeds, m, m), an image for each network")
    m = first.shape[-1]
    places = random_networks.grid(m, dtype=torch.float32, device=device)[pixels]
    first, then = (images.flatten(1)[:, pixels].to(device) for images in (first, then))
    fresh = coordinate_networks([1.0], depth=depth, width=width, bias=bias, seeds=len(first), seed=seed, device=device)
    pretrained = copied(fresh)
    fit_network(pretrained, places, first, activation, rate=rate, steps=pretraining)

    def high(layers: list[Layer]) -> dict[str, Tensor]:
        return {"high": complexity.energy_above(render(layers, activation, m), cut)}

    share = {}
    for name, start in (("fresh", fresh), ("pretrained", pretrained), ("shuffled", shuffled(pretrained, seed))):
        run = fit_network(copied(start), places, then, activation, rate=rate, steps=steps, every=every, observe=high)
        share[name] = run["high"].cpu()
    return run.time, share

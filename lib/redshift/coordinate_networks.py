"""Networks that paint a picture from some of its pixels, and networks that learn one texture after another.

A coordinate network has two inputs, the place, and one output, the brightness. Neural Redshift Appendix E.
"""

from dataclasses import dataclass

import torch

from lib import complexity
from lib.linear.descent import Recording
from lib.redshift import random_networks, trained_networks
from lib.redshift.random_networks import Prior
from lib.redshift.trained_networks import copied, fit_network, render, shuffled


@dataclass(frozen=True)
class Painting:
    """What `paint` returns: images (magnitudes, seeds, m, m) before and after training and with the trained weights
    shuffled, the recording with each network's "loss" (times, magnitudes * seeds), and the trained layers."""

    before: torch.Tensor
    trained: torch.Tensor
    shuffled: torch.Tensor
    run: Recording
    layers: list


def coordinate_networks(magnitudes, width=64, seeds=1, seed=1, device="cpu"):
    """An ensemble with two inputs, three hidden layers and one output for each magnitude and seed, biases 0; the same
    draw of weights is used at every magnitude. Networks of one magnitude come together."""
    sizes, generator = (2, width, width, width, 1), torch.Generator().manual_seed(seed)
    layers = random_networks.draw(seeds, sizes, Prior(bias=0.0), "none", generator, torch.float32, device)
    scale = torch.tensor(magnitudes, dtype=torch.float32, device=device).repeat_interleave(seeds)[:, None, None]
    layers = trained_networks.repeated(layers, len(magnitudes))
    return [{"weight": scale * layer["weight"], "bias": layer["bias"]} for layer in layers]


def paint(picture, pixels, activation, magnitudes, *, steps, rate, width=64, seeds=1, every=0, device="cpu"):
    """Train coordinate networks on the flat indices `pixels` of a picture (m, m): a `Painting`.

    With `every`, the recording also has the images' "cosine" complexity and the mean size of the "weights".
    Neural Redshift Appendix E.1 and E.2.
    """
    m = len(picture)
    layers = coordinate_networks(magnitudes, width, seeds, device=device)
    places = random_networks.grid(m, dtype=torch.float32, device=device)[pixels]

    def look(these):
        return render(these, activation, m).cpu().reshape(len(magnitudes), seeds, m, m)

    def observe():
        image = render(layers, activation, m)
        return {"cosine": complexity.cosine(image), "weights": trained_networks.weight_magnitude(layers)}

    before = look(layers)
    target = picture.flatten()[pixels].float().to(device)
    observe = observe if every else None
    run = fit_network(layers, places, target, activation, rate=rate, steps=steps, every=every, observe=observe)
    return Painting(before, look(layers), look(shuffled(layers)), run, layers)


def stripes(cycles, angles, m=64):
    """Sine waves with `cycles` periods over [-1, 1] in the directions `angles` (waves,): images (waves, m, m)."""
    direction = torch.stack([angles.cos(), angles.sin()])  # (2, waves)
    wave = torch.sin(torch.pi * cycles * random_networks.grid(m, dtype=torch.float32) @ direction)
    return wave.T.reshape(-1, m, m)


def fine_tune(activation, first, then, pixels, *, pretraining, steps, rate, width=64, cut=3.0, every=10, device="cpu"):
    """Networks that learn the images `first` (networks, m, m) and afterwards `then`, from the same pixels.

    Returns the times (times,) and a dict with the share of variance above `cut` cycles while `then` is learned, (times,
    networks), for networks that start "fresh", "pretrained" on `first`, and pretrained but "shuffled" in between.
    Neural Redshift Appendix E.3.
    """
    m = first.shape[-1]
    places = random_networks.grid(m, dtype=torch.float32, device=device)[pixels]
    first, then = (images.flatten(1)[:, pixels].to(device) for images in (first, then))
    fresh = coordinate_networks([1.0], width, len(first), device=device)
    pretrained = copied(fresh)
    fit_network(pretrained, places, first, activation, rate=rate, steps=pretraining)
    share = {}
    for name, start in (("fresh", fresh), ("pretrained", pretrained), ("shuffled", shuffled(pretrained))):
        layers = copied(start)

        def observe(layers=layers):
            return {"high": complexity.energy_above(render(layers, activation, m), cut)}

        run = fit_network(layers, places, then, activation, rate=rate, steps=steps, every=every, observe=observe)
        share[name] = run["high"].cpu()
    return run.time, share

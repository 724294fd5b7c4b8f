"""Learning biases, masks or everything: Adam on cached pre-activations (Williams et al., Section 3 and Appendix G)."""

import math
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from lib.biases import kernels
from lib.biases.networks import CLASSES, Frozen


class PreActivations:
    """W x of every image, computed once: `values` (images, members · units) times `scale` (images,).

    "int16" (default) stores each image's pre-activations in 16-bit fixed point of the image's own range: the memory of half
    precision, with an error of at most 1/65534 of the largest pre-activation everywhere. "float32" stores them exactly.
    Above `limit` bytes they go to a temporary file that is mapped into memory and disappears with this object.
    """

    def __init__(self, x: Tensor, network: Frozen, dtype: str = "int16", limit: float = 6e9, chunk: int = 1000):
        if dtype not in ("int16", "float32"):
            raise ValueError(f"dtype is 'int16' or 'float32', not {dtype!r}")
        x = x.flatten(1)
        shape, kind = (len(x), len(network.w)), np.dtype(dtype)
        self.bytes = math.prod(shape) * kind.itemsize
        self.spilled = self.bytes > limit and x.device.type == "cpu"
        if x.device.type != "cpu":
            self.values = torch.empty(shape, dtype=getattr(torch, dtype), device=x.device)
        elif self.spilled:
            with tempfile.TemporaryFile() as file:  # nameless: the map keeps it alive
                self.values = torch.from_numpy(np.memmap(file, kind, "w+", shape=shape))
        else:
            self.values = torch.from_numpy(np.empty(shape, kind))  # NumPy asks for huge pages: rows are read at random
        self.scale = torch.ones(len(x), device=x.device)
        for start in range(0, len(x), chunk):
            part = slice(start, start + chunk)
            exact = x[part] @ network.w.T  # (chunk, units)
            if dtype == "int16":
                largest = torch.maximum(exact.amax(1), -exact.amin(1))  # not abs(): no second copy of the chunk
                self.scale[part] = (largest / 32767).clamp(min=1e-30)
                exact.div_(self.scale[part, None]).round_()
            self.values[part] = exact.to(self.values.dtype)

    def __len__(self) -> int:
        return len(self.values)


@dataclass
class Learned:
    """What an ensemble has learned: `bias` and `mask` are (members, units), `loss` (epochs, members) on the training batches.

    `soft` is the mask of the last training step, before it was cut at one half.
    """

    bias: Tensor
    mask: Tensor
    soft: Tensor
    loss: Tensor


def train_biases(
    cache: PreActivations,
    y: Tensor,
    network: Frozen,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.02,
    start: Tensor | None = None,
    seed: int = 0,
    constant_rate: bool = False,
    kernel: str = "fused",
    label: str = "",
) -> Learned:
    """Learn the hidden biases by Adam on the cross-entropy; the rate falls to zero along half a cosine.

    `start` (members, units) are the initial biases, zero if not given. All members see the same batches. The gradient is
    ∂L/∂b = Σ_images 1[W x + b > 0] · Aᵀ(softmax(y) - onehot): no automatic differentiation.
    """
    bias = torch.zeros(network.a.shape[1]) if start is None else start.flatten().clone()
    bias = bias.to(network.a.device)
    step = _step(cache, y, network, kernel)

    def gradient(values: Tensor, chosen: Tensor, progress: float) -> tuple[Tensor, Tensor]:
        return step(chosen, values, network.a, False)

    losses = _adam(bias, gradient, len(cache), epochs, batch, rate, seed, constant_rate, label)
    bias = bias.view(network.members, -1)
    one = torch.ones_like(bias)
    return Learned(bias, one, one, losses)


def train_masks(
    cache: PreActivations,
    y: Tensor,
    network: Frozen,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.03,
    slopes: tuple[float, float] = (1.0, 30.0),
    start: Tensor | None = None,
    bias: Tensor | None = None,
    seed: int = 0,
    constant_rate: bool = False,
    kernel: str = "fused",
    label: str = "",
) -> Learned:
    """Learn masks: sigmoid(slope · s) while training, with a slope that grows geometrically; s > 0 in the end. Appendix G.

    `start` (members, units) are the initial s, uniform in [-0.1, 0.1] if not given (the paper's choice); `bias` stays fixed
    (zero if not given).
    """
    count = network.a.shape[1]
    if start is None:
        start = 0.2 * torch.rand(count, generator=torch.Generator().manual_seed(1000 + seed)) - 0.1
    s = start.flatten().clone().to(network.a.device)
    fixed = torch.zeros_like(s) if bias is None else bias.flatten().to(s)
    step = _step(cache, y, network, kernel)

    def gradient(values: Tensor, chosen: Tensor, progress: float) -> tuple[Tensor, Tensor]:
        slope = slopes[0] * (slopes[1] / slopes[0]) ** progress
        soft = torch.sigmoid(slope * values)
        loss, towards_mask = step(chosen, fixed, network.a * soft, True)
        # The kernel returns the gradient of a unit's gain times its mask; the mask's own is that divided by `soft`, which
        # cancels against the sigmoid's slope · soft · (1 - soft).
        return loss, towards_mask * slope * (1 - soft)

    losses = _adam(s, gradient, len(cache), epochs, batch, rate, seed, constant_rate, label)
    s = s.view(network.members, -1)
    return Learned(fixed.view(network.members, -1), (s > 0).float(), torch.sigmoid(slopes[1] * s), losses)


def train_fully(
    x: Tensor,
    y: Tensor,
    network: Frozen,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.001,
    seed: int = 0,
) -> tuple[Frozen, Tensor, Tensor]:
    """The comparison: the same architecture from the same start, with every weight and bias trained by Adam.

    Takes one member; returns the trained weights, the hidden biases (1, units) and the output biases (classes,).
    """
    if network.members != 1:
        raise ValueError("a fully trained network is trained alone: its weights are its own")
    x = x.flatten(1)
    w, a = network.w.clone().requires_grad_(), network.a.clone().requires_grad_()
    b = torch.zeros(network.units, device=w.device, requires_grad=True)
    c = torch.zeros(len(a), device=w.device, requires_grad=True)
    optimiser = torch.optim.Adam([w, b, a, c], lr=rate, fused=True)
    total = epochs * math.ceil(len(x) / batch)
    generator, now = torch.Generator().manual_seed(seed), 0
    for _ in range(epochs):
        for chosen in torch.randperm(len(x), generator=generator).split(batch):
            chosen = chosen.to(x.device)
            optimiser.param_groups[0]["lr"] = rate * _cosine(now / total)
            loss = functional.cross_entropy(functional.linear(functional.linear(x[chosen], w, b).relu_(), a, c), y[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            now += 1
    return Frozen(w.detach(), a.detach()), b.detach()[None], c.detach()


# ---------------------------------------------------------------------------------------------------------------------
# Training


def _step(cache: PreActivations, y: Tensor, network: Frozen, kernel: str):
    """A function (chosen, bias, a, gain) -> (loss (members,), gradient (members · units,)) on a batch of images.

    gain False: the gradient towards the biases; True: towards the gains of the units, given `a` times the gains.
    """
    if kernel not in ("fused", "plain"):
        raise ValueError(f"kernel is 'fused' or 'plain', not {kernel!r}")
    if len(network.a) > CLASSES:
        raise ValueError(f"at most {CLASSES} classes, got {len(network.a)}")
    fused = kernel == "fused" and cache.values.device.type == "cpu"
    operations = kernels.Fused if fused else kernels.Plain
    work = operations(cache.values, cache.scale, network.members)

    def step(chosen: Tensor, bias: Tensor, a: Tensor, gain: bool) -> tuple[Tensor, Tensor]:
        outputs = work.forward(chosen, bias, a)  # (members, batch, classes)
        log_p = outputs.log_softmax(-1)
        target = y[chosen].expand(len(outputs), -1)[..., None]
        loss = -log_p.gather(-1, target).mean((1, 2))
        error = log_p.exp_()
        error.scatter_add_(-1, target, torch.full_like(target, -1.0, dtype=error.dtype))
        return loss, work.backward(chosen, bias, a, error.div_(len(chosen)), gain)

    return step


def _adam(values, gradient, images, epochs, batch, rate, seed, constant_rate, label) -> Tensor:
    """Adam on `values` in place; returns the mean training loss of each epoch, (epochs, members)."""
    optimiser = torch.optim.Adam([values], lr=rate)
    generator = torch.Generator().manual_seed(seed)
    total, now, losses = epochs * math.ceil(images / batch), 0, []
    with torch.no_grad():
        for _ in tqdm(range(epochs), desc=label, disable=not (label and sys.stderr.isatty()), leave=False):
            seen = []
            for chosen in torch.randperm(images, generator=generator).split(batch):
                chosen = chosen.to(values.device)
                optimiser.param_groups[0]["lr"] = rate if constant_rate else rate * _cosine(now / total)
                loss, values.grad = gradient(values, chosen, now / total)
                optimiser.step()
                seen.append(loss)
                now += 1
            losses.append(torch.stack(seen).mean(0))
    return torch.stack(losses)


def _cosine(progress: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * progress))

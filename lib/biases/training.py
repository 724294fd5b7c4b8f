"""Learning biases, masks or everything: Adam on cached pre-activations (Williams et al., Section 3 and Appendix G).

Frozen input weights have a gift: W x never changes. `PreActivations` computes it once for all images, keeps it in 16 bits,
and spills it to disk when it outgrows a stated limit. What is left of a training step is elementwise work and a product
with a few columns (one per class), done by two fused kernels in `biases.kernels` that read each cached number once.

The loss is the cross-entropy with labels y (items,), or half the squared error with targets y (items, classes); both are
means over items. All networks of an ensemble see the same batches.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm import tqdm

from lib.biases import kernels
from lib.biases.full import Full
from lib.biases.networks import Frozen, PreActivations, mean_loss, rows, targets, towards_outputs
from lib.linear import Streams
from lib.linear.adam import Adam

PRECISIONS = ("float32", "bfloat16")
ORDER, STARTS = 2**30, 2**29  # streams of random numbers that no network's weights come from: order of batches, first masks


@dataclass
class Learned:
    """What an ensemble has learned: `bias` and `mask` are (seeds, units), `loss` (epochs, seeds) on the training batches.

    `soft` is the mask before it was cut at one half. `validation` (epochs, seeds) is the loss on the validation set, if any.
    `network` and `output_bias` (classes,) are the frozen weights and zero, except after full training.
    """

    network: Frozen
    bias: Tensor
    mask: Tensor
    soft: Tensor
    loss: Tensor
    validation: Tensor | None
    output_bias: Tensor


def train_biases(
    network: Frozen,
    data: Tensor | PreActivations,
    y: Tensor,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.02,
    loss: str = "cross-entropy",
    validation: tuple[Tensor, Tensor] | None = None,
    keep: str = "last",
    start: Tensor | None = None,
    seed: int = 0,
    constant_rate: bool = False,
    epsilon: float = 1e-8,
    kernel: str = "fused",
    label: str = "",
) -> Learned:
    """Learn the hidden biases by Adam on the loss; the rate falls to zero along half a cosine.

    `data` are images x (items, pixels), or their `PreActivations` where these serve several times. `start` (seeds, units)
    are the initial biases, zero if not given. `validation` is a pair (x, y) on which the loss is taken after each epoch;
    with keep="best" each network returns from the epoch at which it was least. `epsilon` is Adam's. The gradient is
    ∂L/∂b = Σ_items 1[W x + b > 0] · Aᵀ(softmax(y) - onehot): no automatic differentiation.
    """
    cache, work, y = _prepare("train_biases", network, data, y, loss, kernel, start=start)
    bias = torch.zeros(network.a.shape[1]) if start is None else start.flatten().clone()
    bias = bias.to(network.a.device)

    def gradient(chosen: Tensor, progress: float) -> tuple[Tensor, list[Tensor]]:
        now, slope = _step(work, chosen, y, loss, bias, network.a, False)
        return now, [slope]

    fused, state = isinstance(work, kernels.Fused), kernels.Learning(bias, epsilon=epsilon)
    epoch = _compiled(work, state, y, network.a, batch) if fused else _by_steps([bias], gradient, batch, epsilon)

    def validate() -> Tensor:
        return mean_loss(network, bias.view(network.seeds, -1), *validation, loss=loss)

    curves = _train(
        [bias], epoch, len(cache), network.seeds, validate if validation else None, keep,
        epochs=epochs, batch=batch, rate=rate, seed=seed, constant_rate=constant_rate, label=label,
    )  # fmt: skip
    bias = bias.view(network.seeds, -1)
    one = torch.ones_like(bias)
    return Learned(network, bias, one, one, *curves, network.a.new_zeros(network.classes))


def train_masks(
    network: Frozen,
    data: Tensor | PreActivations,
    y: Tensor,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.03,
    slopes: tuple[float, float] = (1.0, 30.0),
    loss: str = "cross-entropy",
    validation: tuple[Tensor, Tensor] | None = None,
    keep: str = "last",
    start: Tensor | None = None,
    bias: Tensor | None = None,
    seed: int = 0,
    constant_rate: bool = False,
    epsilon: float = 1e-8,
    kernel: str = "fused",
    label: str = "",
) -> Learned:
    """Learn masks: sigmoid(slope · s) while training, with a slope that grows geometrically; s > 0 in the end. Appendix G.

    `start` (seeds, units) are the initial s, uniform in [-0.1, 0.1] if not given (the paper's choice); `bias` stays fixed
    (zero if not given). The validation loss is that of the masks cut at one half. The rest as in `train_biases`.
    """
    cache, work, y = _prepare("train_masks", network, data, y, loss, kernel, start=start, bias=bias)
    s = first_masks(network, seed) if start is None else start
    s = s.flatten().clone().to(network.a.device)
    fixed = torch.zeros_like(s) if bias is None else bias.flatten().to(s)

    def slope_at(progress: float) -> float:
        return slopes[0] * (slopes[1] / slopes[0]) ** progress

    def gradient(chosen: Tensor, progress: float) -> tuple[Tensor, list[Tensor]]:
        slope = slope_at(progress)
        soft = torch.sigmoid(slope * s)
        now, towards_mask = _step(work, chosen, y, loss, fixed, network.a * soft, True)
        # The kernel returns the gradient of a unit's gain times its mask; the mask's own is that divided by `soft`, which
        # cancels against the sigmoid's slope · soft · (1 - soft).
        return now, [towards_mask * slope * (1 - soft)]

    fused, state = isinstance(work, kernels.Fused), kernels.Learning(s, fixed, epsilon)
    epoch = _compiled(work, state, y, network.a, batch, slope_at) if fused else _by_steps([s], gradient, batch, epsilon)

    def validate() -> Tensor:
        hard = (s > 0).float().view(network.seeds, -1)
        return mean_loss(network, fixed.view(network.seeds, -1), *validation, mask=hard, loss=loss)

    curves = _train(
        [s], epoch, len(cache), network.seeds, validate if validation else None, keep,
        epochs=epochs, batch=batch, rate=rate, seed=seed, constant_rate=constant_rate, label=label,
    )  # fmt: skip
    s = s.view(network.seeds, -1)
    soft, hard = torch.sigmoid(slopes[1] * s), (s > 0).float()
    return Learned(network, fixed.view_as(s), hard, soft, *curves, network.a.new_zeros(network.classes))


def first_masks(network: Frozen, seed: int = 0) -> Tensor:
    """The s from which masks start, (seeds, units), uniform in [-0.1, 0.1]. Appendix G."""
    streams = Streams(network.seeds, seed, STARTS + network.first)
    return streams.uniform(network.units, low=-0.1, high=0.1).to(network.a)


def train_fully(
    network: Frozen,
    x: Tensor,
    y: Tensor,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.001,
    loss: str = "cross-entropy",
    validation: tuple[Tensor, Tensor] | None = None,
    keep: str = "last",
    seed: int = 0,
    constant_rate: bool = False,
    epsilon: float = 1e-8,
    precision: str = "float32",
    label: str = "",
) -> Learned:
    """The comparison: the same architecture from the same start, a single network with all weights and biases trained.

    The result holds the trained weights as `network`, and biases (1, units) and (classes,). Options as in `train_biases`.
    With precision="bfloat16" the products of matrices are taken in 16 bits (sums and weights stay in 32), which is up to
    three times faster on processors that have such instructions, and slower on others.
    """
    if network.seeds != 1:
        raise ValueError("a fully trained network is trained alone: its weights are its own")
    if precision not in PRECISIONS:
        raise ValueError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")
    x = rows("train_fully", network, x)
    y = targets("train_fully", network, y, loss, x)
    # Weights of pixels that are dark in all images have no gradient and stay as they are: they are left out.
    lit = (x != 0).any(0)
    x = x[:, lit]
    full = Full(network.w[:, lit], network.a)
    w, b, a, c = full.parameters

    def gradient(chosen: Tensor, progress: float) -> tuple[Tensor, list[Tensor]]:
        slopes = full.by_hand if precision == "float32" else full.by_autograd
        return slopes(x[chosen], y[chosen], loss)

    def now_trained() -> Frozen:
        whole = network.w.clone()
        whole[:, lit] = w.T
        return Frozen(whole, a.clone(), first=network.first)

    def validate() -> Tensor:
        return mean_loss(now_trained(), b[None], *validation, output_bias=c, loss=loss)

    epoch = _by_steps([w, b, a, c], gradient, batch, epsilon)
    curves = _train(
        [w, b, a, c], epoch, len(x), 1, validate if validation else None, keep,
        epochs=epochs, batch=batch, rate=rate, seed=seed, constant_rate=constant_rate, label=label,
    )  # fmt: skip
    bias = b[None]
    one = torch.ones_like(bias)
    return Learned(now_trained(), bias, one, one, *curves, c)


# The loop that all three share


def _prepare(
    caller: str, network: Frozen, data: Tensor | PreActivations, y: Tensor, loss: str, kernel: str, **per_unit: Tensor | None
) -> tuple[PreActivations, kernels.Fused | kernels.Plain, Tensor]:
    """The cache, the kernels on it, and y as the loss needs it."""
    cache = data if isinstance(data, PreActivations) else PreActivations(network, data)
    rows(caller, network, cache, **per_unit)
    y = targets(caller, network, y, loss, cache)
    return cache, kernels.of(cache.values, cache.scale, network.seeds, kernel), y


def _step(
    work: kernels.Fused | kernels.Plain, chosen: Tensor, y: Tensor, loss: str, bias: Tensor, a: Tensor, gain: bool
) -> tuple[Tensor, Tensor]:
    """The loss (seeds,) on a batch of images, and its gradient (seeds · units,).

    gain False: towards the biases; True: towards the gains of the units, given `a` times the gains.
    """
    outputs = work.forward(chosen, bias, a)  # (seeds, batch, classes)
    now, error = towards_outputs(outputs, y[chosen], loss)
    return now, work.backward(chosen, bias, a, error.div_(len(chosen)), gain)


def _compiled(
    work: kernels.Fused,
    state: kernels.Learning,
    y: Tensor,
    a: Tensor,
    batch: int,
    slope_at: Callable[[float], float] | None = None,
) -> Callable:
    """An epoch in compiled code, for `_train`."""

    def epoch(order: Tensor, progress: list[float], rates: list[float]) -> Tensor:
        slopes = None if slope_at is None else [slope_at(over) for over in progress]
        return work.epoch(state, order, batch, y, a, rates, slopes)

    return epoch


def _by_steps(parameters: list[Tensor], gradient: Callable, batch: int, epsilon: float) -> Callable:
    """An epoch of `Adam` on `parameters` in place, for `_train`.

    `gradient` is given the items of a batch and the share of training that is over, and returns losses (seeds,) and the
    gradients.
    """
    adam, device = Adam(parameters, epsilon), parameters[0].device

    def epoch(order: Tensor, progress: list[float], rates: list[float]) -> Tensor:
        losses = []
        for chosen, over, rate in zip(order.split(batch), progress, rates, strict=True):
            now, slopes = gradient(chosen.to(device), over)
            adam.step(slopes, rate)
            losses.append(now)
        return torch.stack(losses)

    return epoch


def _train(
    parameters: list[Tensor],
    epoch: Callable[[Tensor, list[float], list[float]], Tensor],
    items: int,
    seeds: int,
    validate: Callable[[], Tensor] | None,
    keep: str,
    *,
    epochs: int,
    batch: int,
    rate: float,
    seed: int,
    constant_rate: bool,
    label: str,
) -> tuple[Tensor, Tensor | None]:
    """Train `parameters` in place; returns the mean training loss of each epoch, (epochs, seeds), and `validate`'s.

    `epoch` is given the order of the items and, for each step, the share of training that is over and the rate; it returns
    losses (steps, seeds). With keep="best" every network ends with what it had after its best epoch.
    """
    if keep not in ("last", "best") or (keep == "best" and validate is None):
        raise ValueError(f"keep is 'last', or 'best' with a validation set, not {keep!r}")
    order, device = Streams(1, seed, ORDER), parameters[0].device
    steps, curve, seen = math.ceil(items / batch), [], []
    best, kept = torch.full((seeds,), math.inf, device=device), []
    if keep == "best":
        kept = [p.detach().clone() for p in parameters]
    with torch.no_grad():
        for k in tqdm(range(epochs), desc=label, disable=not (label and sys.stderr.isatty()), leave=False):
            progress = [now / (epochs * steps) for now in range(k * steps, (k + 1) * steps)]
            rates = [rate if constant_rate else rate * _cosine(over) for over in progress]
            curve.append(epoch(order.permutation(items)[0], progress, rates).mean(0))
            if validate is not None:
                seen.append(validate())
                better, best = seen[-1] < best, torch.minimum(best, seen[-1])
                for old, p in zip(kept, parameters, strict=False):  # nothing is kept unless the best is wanted
                    old.view(seeds, -1)[better] = p.view(seeds, -1)[better]
        for old, p in zip(kept, parameters, strict=False):
            p.copy_(old)
    return torch.stack(curve), torch.stack(seen) if seen else None


def _cosine(progress: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * progress))

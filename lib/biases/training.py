"""Learning biases, masks or everything by Adam (Williams et al., Section 3 and Appendix G).

W x never changes, so `PreActivations` compute it once for all items. What is left of a training step is elementwise work and
a product with one column per output:

    h = relu(W x + b),   e = ∂L/∂(A (m · h)),   ∂L/∂b = Σ_items m · 1[h > 0] · Aᵀe,   ∂L/∂m = Σ_items h · Aᵀe.

The loss is one of `networks.LOSSES`. All networks see the same batches; the rate falls to zero along half a cosine.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.biases import _fast
from lib.biases.networks import LOSSES, Frozen, PreActivations, inputs_of, per_unit, targets_of
from lib.linear import Streams
from lib.linear.descent import Adam, cosine, descend

# the items of a batch and the fraction of training that is over -> losses (seeds,) and gradients
Gradient = Callable[[Tensor, float], tuple[Tensor, list[Tensor]]]
PRECISIONS = ("float32", "bfloat16")
ORDER, STARTS = 2**30, 2**29  # streams of random numbers that no network's weights come from: order of batches, first masks


@dataclass(repr=False, eq=False)
class Learned:
    """What an ensemble has learned: `bias` and `mask` are (seeds, units), `loss` (epochs, seeds) on the training batches.

    `soft` is the mask before it was cut at one half; after `train_biases` both are one. `network` and `output_bias` (seeds,
    outputs) are the frozen weights and zero, except after full training. Outputs for other inputs x are
    answers(learned.network, learned.bias, x, learned.mask, learned.output_bias).
    """

    network: Frozen
    bias: Tensor
    mask: Tensor
    soft: Tensor
    loss: Tensor
    output_bias: Tensor

    def __repr__(self) -> str:
        first, last = (float(self.loss[k].mean()) for k in (0, -1))
        return f"Learned({self.network!r}, {len(self.loss)} epochs, mean loss {first:.4g} → {last:.4g})"


def train_biases(
    network: Frozen,
    data: Tensor | PreActivations,
    y: Tensor,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.02,
    loss: str = "cross-entropy",
    start: Tensor | None = None,
    seed: int = 0,
    constant_rate: bool = False,
) -> Learned:
    """Learn the hidden biases by Adam, from `start` (seeds, units), zero if not given.

    `data` are inputs x (items, inputs), or their `PreActivations` where these serve several times. y are labels (items,) for
    loss="cross-entropy", numbers (items, outputs) for "squared".
    """
    data, y = _prepared("train_biases", network, data, y, loss)
    bias = _zeros(network, network.units) if start is None else per_unit("train_biases", network, start=start).clone()

    def gradient(chosen: Tensor, progress: float) -> tuple[Tensor, list[Tensor]]:
        now, slope = bias_gradient(data.values, data.scale, bias, network.a, y, chosen, loss)
        return now, [slope]

    curve = _train([bias], gradient, len(data), epochs, batch, rate, seed, constant_rate)
    one = torch.ones_like(bias)
    return Learned(network, bias, one, one, curve, _zeros(network, network.outputs))


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
    start: Tensor | None = None,
    seed: int = 0,
    constant_rate: bool = False,
) -> Learned:
    """Learn masks: sigmoid(slope · s) while training, s > 0 in the end. Appendix G.

    The slope grows geometrically from slopes[0] to slopes[1], so that masks become sharp; biases are zero. `start` (seeds,
    units) are the initial s, uniform in [-0.1, 0.1] if not given (the paper's choice). The rest as in `train_biases`.
    """
    data, y = _prepared("train_masks", network, data, y, loss)
    drawn = Streams(network.seeds, seed, STARTS + network.first).uniform(network.units, low=-0.1, high=0.1)
    s = drawn.to(network.a) if start is None else per_unit("train_masks", network, start=start).clone()
    zero = torch.zeros_like(s)

    def gradient(chosen: Tensor, progress: float) -> tuple[Tensor, list[Tensor]]:
        slope = slopes[0] * (slopes[1] / slopes[0]) ** progress
        soft = torch.sigmoid(slope * s)
        h = _fast.activity(data.values, data.scale, zero, chosen)
        now, error = LOSSES[loss](_outputs(network.a * soft[:, None], h), y[chosen])
        return now, [_towards_units(error, network.a, h) * slope * soft * (1 - soft)]

    curve = _train([s], gradient, len(data), epochs, batch, rate, seed, constant_rate)
    return Learned(network, zero, (s > 0).to(s), torch.sigmoid(slopes[1] * s), curve, _zeros(network, network.outputs))


def train_fully(
    network: Frozen,
    x: Tensor,
    y: Tensor,
    *,
    epochs: int = 20,
    batch: int = 200,
    rate: float = 0.001,
    loss: str = "cross-entropy",
    seed: int = 0,
    constant_rate: bool = False,
    precision: str = "float32",
) -> Learned:
    """The comparison: the same architecture from the same start with all weights and biases trained, y = A relu(W x + b) + c.

    The result holds the trained weights as `network`, and biases (seeds, units) and (seeds, outputs). With
    precision="bfloat16" the products of matrices are taken in 16 bits (sums and weights stay in 32), which is up to three
    times faster on processors that have such instructions, and slower on others. The rest as in `train_biases`.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")
    x = inputs_of("train_fully", network, x)
    y = targets_of("train_fully", network, y, loss, len(x))
    parameters = [network.w.clone(), _zeros(network, network.units), network.a.clone(), _zeros(network, network.outputs)]

    def gradient(chosen: Tensor, progress: float) -> tuple[Tensor, list[Tensor]]:
        w, b, a, c = leaves = [p.detach().requires_grad_() for p in parameters]
        with torch.enable_grad():
            with torch.autocast(w.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                outputs = (x[chosen] @ w.mT + b[:, None]).relu() @ a.mT + c[:, None]
            now = LOSSES[loss](outputs.to(w.dtype), y[chosen])[0]
            return now.detach(), torch.autograd.grad(now.sum(), leaves)

    curve = _train(parameters, gradient, len(x), epochs, batch, rate, seed, constant_rate)
    w, b, a, c = parameters
    one = torch.ones_like(b)
    return Learned(Frozen(w, a, network.first), b, one, one, curve, c)


def batches(items: int, batch: int, epochs: int, seed: int = 0) -> Iterator[Tensor]:
    """Indices of the items of each batch, (batch,), in another random order in every epoch; the last batch of an epoch may be
    a short one."""
    order = Streams(1, seed, ORDER)
    for _ in range(epochs):
        yield from order.permutation(items)[0].split(batch)


def _prepared(caller: str, network: Frozen, data: Tensor | PreActivations, y: Tensor, loss: str) -> tuple[PreActivations, Tensor]:
    data = inputs_of(caller, network, data)
    y = targets_of(caller, network, y, loss, len(data))
    return data if isinstance(data, PreActivations) else PreActivations(network, data), y


def _zeros(network: Frozen, number: int) -> Tensor:
    return network.a.new_zeros(network.seeds, number)


def bias_gradient(
    z: Tensor, scale: Tensor, bias: Tensor, a: Tensor, y: Tensor, chosen: Tensor, loss: str
) -> tuple[Tensor, Tensor]:
    """The loss (seeds,) on the `chosen` items, and ∂L/∂b = Σ_items 1[h > 0] · Aᵀe, (seeds, units).

    z · scale (seeds, items, units) are pre-activations, bias (seeds, units), a (seeds, outputs, units), y as the loss has it.
    """
    h = _fast.activity(z, scale, bias, chosen)
    now, error = LOSSES[loss](_outputs(a, h), y[chosen])
    return now, _towards_units(error, a, h.sign_())  # the sign of a rectified number is its gate


def _outputs(a: Tensor, h: Tensor) -> Tensor:
    """A h, (seeds, items, outputs); in this order the product takes half the time of h @ a.mT."""
    return (a @ h.mT).mT


def _towards_units(error: Tensor, a: Tensor, h: Tensor) -> Tensor:
    """Σ_items h · Aᵀe, (seeds, units), of errors (seeds, items, outputs) and h (seeds, items, units): items are summed first."""
    return ((error.mT @ h) * a).sum(1)


def _train(
    weights: list[Tensor], gradient: Gradient, items: int, epochs: int, batch: int, rate: float, seed: int, constant_rate: bool
) -> Tensor:
    """Train `weights` in place by Adam on batches in random order; returns the mean loss of each epoch, (epochs, seeds).

    Stops with a FloatingPointError after training if a loss was not finite.
    """
    per_epoch = math.ceil(items / batch)
    steps, done, chosen = epochs * per_epoch, 0, batches(items, batch, epochs, seed)
    losses = weights[0].new_empty(steps, len(weights[0]))  # thousands of small tensors would keep large ones from being freed

    def slopes(weights: list[Tensor]) -> list[Tensor]:
        nonlocal done
        losses[done], gradients = gradient(next(chosen).to(weights[0].device), done / steps)
        done += 1
        return gradients

    adam = Adam(rate, schedule=None if constant_rate else cosine(steps))
    descend(weights, slopes, update=adam, steps=steps)
    curve = losses.view(epochs, per_epoch, -1).mean(1)
    if not curve.isfinite().all():
        raise FloatingPointError("the loss is not finite: look for NaN or infinity in x and y, or try a smaller rate")
    return curve

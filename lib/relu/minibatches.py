"""Two-layer networks trained on images by minibatch gradient descent, with and without a constant pixel, side by side.

Images are rows here, unlike in the rest of the package: x (images, pixels), y (images, outputs), in single precision. Network k
starts from the same weights and sees the same batches whatever the constant and the activation, so that only these differ.
Bias-mediated early linearization, Section 3 and Appendices C and E.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lib import complexity
from lib.data.datasets import Images
from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.shapes import as_array
from lib.relu.networks import Layer, backpropagate, initial_weights


def prepared(images: Images, how: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(x_train, y_train, x_test, y_test) of `datasets.Images`, as rows, with one-hot labels.

    how "pixel mean": each pixel's mean over the training images is taken away, so that no pixel is a constant (Fig. 1);
    "standard": one mean and one standard deviation over all images and pixels (Figs 7 and 8b), which leaves the mean image in.
    """
    train, test = images.x_train.flatten(1), images.x_test.flatten(1)
    if how == "pixel mean":
        mean, scale = train.mean(0), 1.0
    elif how == "standard":
        mean, scale = train.mean(), train.std()
    else:
        raise ValueError(f"how is 'pixel mean' or 'standard', not {how!r}")
    y_train, y_test = (one_hot(y, len(images.classes)).to(train.dtype) for y in (images.y_train, images.y_test))
    return (train - mean) / scale, y_train, (test - mean) / scale, y_test


@dataclass
class Ensemble:
    """Networks ŷ = W2 φ(W1 [x, constant]) for every constant and every seed, constants first.

    `weights` [w1 (networks, hidden, pixels + 1), w2 (networks, outputs, hidden)] are changed in place by training. The last
    column of w1 belongs to the constant pixel, which is not part of x (images, pixels).
    """

    weights: list[Tensor]
    constant: Tensor  # (networks,) the size of the constant pixel, the last one
    number: Tensor  # (networks,) which of the seeds each one is
    activation: str = "relu"  # or "linear"

    def hidden(self, x: Tensor) -> Tensor:
        """Hidden activity for x (images, pixels): (networks, images, hidden). The constant is added after the product, so
        that x is never copied."""
        h = x @ self.weights[0][..., :-1].mT
        h += (self.constant[:, None] * self.weights[0][..., -1])[:, None]
        return h.relu_() if self.activation == "relu" else h

    def answers(self, x: Tensor) -> Tensor:
        """Outputs for x (images, pixels): (networks, images, outputs)."""
        return self.hidden(x) @ self.weights[1].mT

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Half the squared error, summed over outputs and averaged over images, (networks,); y (images, outputs)."""
        return _loss(self.answers(x), y)

    def loss_and_error(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the fraction of images whose largest output is the wrong one; (networks,) each."""
        answers = self.answers(x)
        return _loss(answers, y), (answers.argmax(-1) != y.argmax(-1)).double().mean(-1)

    def effective_rank(self, x: Tensor, centred: bool = False) -> Tensor:
        """Effective rank of the hidden layer's Gram matrix for the images x, (networks,). Early Linearization Eq. 1."""
        return complexity.effective_rank_of_gram(self.hidden(x).mT.double(), centred)

    def only(self, chosen: Tensor) -> "Ensemble":
        """A copy of the chosen networks; `chosen` (networks,) is boolean."""
        return Ensemble([w[chosen] for w in self.weights], self.constant[chosen], self.number[chosen.cpu()], self.activation)


def draw(
    pixels: int,
    outputs: int,
    hidden: int,
    std: float,
    constants: Sequence[float],
    seeds: int,
    *,
    activation: str = "relu",
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Ensemble:
    """Normal weights of standard deviation `std` for every constant in `constants` and every seed."""
    if activation not in ("relu", "linear"):
        raise ValueError(f"activation is relu or linear, not {activation!r}")
    options = dict(seeds=seeds, conditions=(len(constants),), seed=seed, dtype=torch.float32, device=device)
    weights = [w.flatten(0, 1) for w in initial_weights([pixels + 1, hidden, outputs], std, **options)]
    constant = torch.tensor(constants).repeat_interleave(seeds).to(device)
    return Ensemble(weights, constant, torch.arange(seeds).repeat(len(constants)), activation)


def _loss(answers: Tensor, y: Tensor) -> Tensor:
    return (answers - y).square().sum(-1).mean(-1) / 2


def batches(images: int, batch: int, seeds: int, seed: int = 1) -> Iterator[Tensor]:
    """Indices of random batches, (seeds, batch) each, without end: a new order of the images in every epoch and for every seed.

    Use another `seed` than that of the networks, or both come from the same random numbers.
    """
    if not 1 <= batch <= images:
        raise ValueError(f"a batch has between 1 and all {images} images, not {batch}")
    streams = Streams(seeds, seed)
    while True:
        yield from streams.permutation(images)[:, : images // batch * batch].split(batch, 1)


def _batch_gradient(networks: Ensemble, x: Tensor, y: Tensor, drawn: Iterator[Tensor]) -> Callable[[list[Tensor]], list[Tensor]]:
    """The function that draws the next batch of every network and returns the gradient of its mean loss."""
    layers = [Layer(0.0, networks.activation), Layer(0.0, "linear")]
    seen = torch.cat([x, x.new_ones(len(x), 1)], -1)

    def gradient(weights: list[Tensor]) -> list[Tensor]:
        chosen = next(drawn)[networks.number].to(x.device)  # (networks, batch)
        images = seen[chosen]  # (networks, batch, pixels + 1)
        images[..., -1] = networks.constant[:, None]
        parts = [as_array(w) for w in weights], layers, as_array(images.mT), as_array(y[chosen].mT)
        return [torch.as_tensor(g) for g in backpropagate(*parts, share=1 / chosen.shape[-1])]

    return gradient


def train(
    networks: Ensemble,
    x: Tensor,
    y: Tensor,
    *,
    step: float,
    steps: int,
    batch: int,
    every: int = 10,
    watched: int | None = None,
    seed: int = 1,
) -> Recording:
    """Train for `steps` batches, in place, and look at the first `watched` images (all if None) every `every` batches.

    Records, (times, networks) each: "loss"; "on", the fraction of hidden units that none of these images switches off; and
    "open", the fraction of images for which a unit is on, in the mean over units weighted by the size of their weights.
    """

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        h = networks.hidden(x[:watched])  # (networks, images, hidden)
        share = (h > 0).float().mean(1)  # (networks, hidden)
        size = w[0].norm(dim=2) * w[1].norm(dim=1)
        return {
            "loss": _loss(h @ w[1].mT, y[:watched]),
            "on": (share == 1).double().mean(-1),
            "open": (share * size).sum(-1) / size.sum(-1),
        }

    gradient = _batch_gradient(networks, x, y, batches(len(x), batch, int(networks.number.max()) + 1, seed))
    run = descend(networks.weights, gradient, step=step, steps=steps, every=every, observe=watch)
    return Recording(run.time, {name: values.double().cpu() for name, values in run.values.items()})


def train_to(
    networks: Ensemble,
    x: Tensor,
    y: Tensor,
    levels: Sequence[float],
    examine: Callable[[Ensemble], dict[str, Tensor]],
    *,
    step: float,
    batch: int,
    every: int = 50,
    growth: float = 0.0,
    watched: int | None = None,
    limit: int = 200_000,
    seed: int = 1,
) -> dict[str, Tensor]:
    """Train each network until its loss on the training images is below each of the falling `levels`, and examine it there.

    The loss is looked at on the first `watched` images (all if None), every `every` steps or after a fraction `growth` of the
    steps done so far, whichever is later. `examine(networks)` returns one number per network; the result has them as (levels,
    networks), NaN where a network did not get there in `limit` steps, and beside them "steps" and "training loss" at each
    stop. A network that has reached the last level leaves the ensemble.
    """
    count = len(networks.constant)
    drawn = batches(len(x), batch, int(networks.number.max()) + 1, seed)
    left, reached, now = torch.arange(count), torch.zeros(count, dtype=torch.long), 0  # who still trains, levels behind each
    seen: dict[str, Tensor] = {}
    networks = networks.only(torch.ones(count, dtype=torch.bool))
    while True:
        parts = zip(x[:watched].split(1000), y[:watched].split(1000), strict=True)  # all at once would need much memory
        losses = (sum(networks.loss(*part) * len(part[0]) for part in parts) / len(x[:watched])).cpu()
        if not losses.isfinite().all():
            raise FloatingPointError(f"training diverged: the loss is not finite at step {now}; try a smaller step")
        for k, level in enumerate(levels):
            here = (losses <= level) & (reached[left] == k)
            if here.any():
                stop = {"steps": torch.full((int(here.sum()),), now), "training loss": losses[here]}
                for name, values in (stop | examine(networks.only(here))).items():
                    seen.setdefault(name, torch.full((len(levels), count), torch.nan, dtype=torch.float64))
                    seen[name][k, left[here]] = values.double().cpu()
                reached[left[here]] += 1
        going = reached[left] < len(levels)
        steps = min(max(every, int(growth * now)), limit - now)
        if not going.any() or steps == 0:
            return seen
        networks, left, now = networks.only(going), left[going], now + steps
        descend(networks.weights, _batch_gradient(networks, x, y, drawn), step=step, steps=steps)

"""Two-layer networks trained on images by minibatch gradient descent, with and without a constant pixel, side by side.

Images are rows here, unlike in the rest of the room: x (images, pixels), y (images, outputs), in single precision. Networks
and their gradient are those of `relu.networks`; conditions are the constants. Network k starts from the same weights and
sees the same batches whatever the constant and the activation, so that only these differ.
Bias-mediated early linearization, Section 3 and Appendices C and E.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lib import complexity
from lib.data.datasets import Images
from lib.linear.backpropagation import Program
from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams
from lib.linear.products import Products
from lib.relu.networks import initial_weights


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
    classes = len(images.classes)
    labels = (one_hot(y, classes).to(train.dtype) for y in (images.y_train, images.y_test))
    y_train, y_test = labels
    return (train - mean) / scale, y_train, (test - mean) / scale, y_test


class Ensemble:
    """Networks for every constant in `constants` and every seed, at the start of their training.

    `weights` is [w1 (networks, hidden, pixels + 1), w2 (networks, outputs, hidden)], constants first, then seeds.
    """

    def __init__(self, pixels: int, outputs: int, hidden: int, std: float, constants: Sequence[float], seeds: int, *,
                 activation: str = "relu", seed: int = 0, device: str | torch.device = "cpu"):  # fmt: skip
        if activation not in ("relu", "linear"):
            raise ValueError(f"activation is relu or linear, not {activation!r}")
        options = dict(seeds=seeds, conditions=(len(constants),), seed=seed, dtype=torch.float32, device=device)
        first, second = (w.flatten(0, 1) for w in initial_weights([pixels + 1, hidden, outputs], std, **options))
        self.weights = [first.mT.contiguous().mT, second]  # units last in memory, as `linear.backpropagation` likes them
        self.constant = torch.tensor(constants).repeat_interleave(seeds).to(device)  # (networks,)
        self.number = torch.arange(seeds).repeat(len(constants))  # (networks,) which of the seeds each one is
        self.activation = activation

    def rows(self, x: Tensor) -> Tensor:
        """Images (images, pixels) or (networks, images, pixels) with each network's own constant pixel behind them."""
        x = x.expand(len(self.constant), *x.shape[-2:])
        return torch.cat([x, self.constant[:, None, None].expand(*x.shape[:2], 1)], -1)

    def hidden(self, x: Tensor) -> Tensor:
        """(networks, images, hidden). The constant pixel is added after the product, so that x is never copied."""
        h = x @ self.weights[0][..., :-1].mT
        h += (self.constant[:, None] * self.weights[0][..., -1])[:, None]
        return h.relu_() if self.activation == "relu" else h

    def answers(self, x: Tensor) -> Tensor:
        """(networks, images, outputs)."""
        return self.hidden(x) @ self.weights[1].mT

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Half the squared error per image, (networks,)."""
        return (self.answers(x) - y).square().sum(-1).mean(-1) / 2

    def loss_and_error(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the share of images whose largest output is the wrong one; (networks,) each."""
        answers = self.answers(x)
        wrong = (answers.argmax(-1) != y.argmax(-1)).double().mean(-1)
        return (answers - y).square().sum(-1).mean(-1) / 2, wrong

    def effective_rank(self, x: Tensor, centred: bool = False) -> Tensor:
        """Effective rank of the hidden layer's Gram matrix for the images x, (networks,). Early Linearization Eq. 1."""
        return complexity.effective_rank_of_gram(self.hidden(x).mT.double(), centred)

    def only(self, chosen: Tensor) -> "Ensemble":
        """The chosen networks alone; `chosen` (networks,) is boolean, or their numbers."""
        part = object.__new__(Ensemble)
        part.weights = [self.weights[0].mT[chosen].mT, self.weights[1][chosen]]
        part.constant, part.number, part.activation = self.constant[chosen], self.number[chosen], self.activation
        return part

    def seeing(self, pixels: Tensor) -> "Ensemble":
        """The same networks without the weights of all but some pixels, given by their numbers; the constant pixel stays."""
        part = self.only(slice(None))
        columns = torch.cat([pixels, pixels.new_tensor([self.weights[0].shape[-1] - 1])])
        part.weights = [self.weights[0].mT.index_select(1, columns).mT, self.weights[1].clone()]
        return part

    def take(self, part: "Ensemble", pixels: Tensor) -> "Ensemble":
        """Take over the weights of `part`, the same networks `seeing` some pixels."""
        first, second = part.weights
        self.weights[0].mT[:, pixels], self.weights[0].mT[:, -1] = first.mT[:, :-1], first.mT[:, -1]
        self.weights[1].copy_(second)
        return self

    def gradient(self, x: Tensor, y: Tensor) -> list[Tensor]:
        """+dL/dW of the mean loss of a batch: x (networks, images, pixels), or `rows` of it; y (networks, images, outputs)."""
        x = self.rows(x) if x.shape[-1] < self.weights[0].shape[-1] else x
        return Program(x, y, [self.activation], [0.0, 0.0], [None], 1 / x.shape[1]).slope(self.weights)


class Batches:
    """Random batches, drawn anew in every epoch, each seed with an order of its own.

    `seed` says which orders; another one than that of the networks, or both come from the same random numbers.
    """

    def __init__(self, images: int, batch: int, seeds: int, seed: int = 1):
        if not 1 <= batch <= images:
            raise ValueError(f"a batch has between 1 and all {images} images, not {batch}")
        self.streams = Streams(seeds, seed)
        self.images, self.batch = images, batch
        self.order, self.place = None, images

    def next(self) -> Tensor:
        """Indices of the next batch, (seeds, batch)."""
        if self.place + self.batch > self.images:
            self.order, self.place = self.streams.permutation(self.images), 0
        self.place += self.batch
        return self.order[:, self.place - self.batch : self.place]


def _bright(x: Tensor) -> Tensor:
    """The numbers of the pixels that some image has, (pixels,): the weights of all others never change."""
    return (x != 0).any(0).nonzero()[:, 0]


class _Linear:
    """`Program` for linear networks: the two matrices are multiplied with each other and not with the images.

    The same numbers in another order of sums, with a third of the work: there are fewer outputs than units.
    """

    def __init__(self, rows: Tensor, labels: Tensor, share: float):
        self.rows, self.labels, self.share, self.products = rows, labels, share, Products()

    def renew(self) -> None:
        """As in `Program`; nothing is kept of the rows here."""

    def slope(self, weights: list[Tensor]) -> list[Tensor]:
        """+dL/dW, which holds until the next call."""
        first, second = weights
        both = self.products("both", first.mT, second.mT)  # (networks, pixels + 1, outputs)
        error = self.products("error", self.rows, both).sub_(self.labels).mul_(self.share)  # (networks, images, outputs)
        towards = self.products("towards", self.rows.mT, error)  # (networks, pixels + 1, outputs)
        return [self.products("first", towards, second).mT, self.products("second", towards.mT, first.mT)]


def _slope(networks: Ensemble, x: Tensor, y: Tensor, batch: int, seed: int) -> Callable[[Ensemble], list[Tensor]]:
    """The function that draws the next batch of every network and returns the gradient on it."""
    batches = Batches(len(x), batch, int(networks.number.max()) + 1, seed)
    whole = torch.cat([x, x.new_ones(len(x), 1)], -1)  # with room for the constant pixel: a batch is copied once

    programs: dict[int, Program | _Linear] = {}  # by the number of networks that still train

    def slope(networks: Ensemble) -> list[Tensor]:
        chosen = batches.next()[networks.number].to(x.device)  # (networks, batch)
        if len(chosen) not in programs:
            rows, labels = (part.new_empty(*chosen.shape, part.shape[1]) for part in (whole, y))
            made = _Linear(rows, labels, 1 / batch)
            if networks.activation == "relu":
                made = Program(rows, labels, ["relu"], [0.0, 0.0], [None], 1 / batch)
            programs[len(chosen)] = made
        program = programs[len(chosen)]
        for part, room in ((whole, program.rows), (y, program.labels)):
            torch.index_select(part, 0, chosen.flatten(), out=room.flatten(0, 1))
        program.rows[..., -1] = networks.constant[:, None]
        program.renew()
        return program.slope(networks.weights)

    return slope


def train(networks: Ensemble, x: Tensor, y: Tensor, *, step: float, steps: int, batch: int, every: int = 10,
          watched: int | None = None, seed: int = 1) -> Recording:  # fmt: skip
    """Train for `steps` batches, in place, and look at the first `watched` images (all if None) every `every` batches.

    Records, (times, networks) each: "loss"; of ReLU networks also "on", the share of hidden units that none of these images
    switches off, and "open", the share of images for which a unit is on, in the mean over units weighted by the size of their
    weights.
    """
    pixels = _bright(x)
    x, whole, networks = x[:, pixels], networks, networks.seeing(pixels)
    others = whole.weights[0][..., :-1].clone()
    others[..., pixels] = 0.0
    others = others.square().sum(-1)  # (networks, hidden): what the weights of all other pixels add to a unit's size

    def watch(w: list[Tensor]) -> dict[str, Tensor]:
        if networks.activation == "linear":
            both = w[1] @ w[0]  # (networks, outputs, pixels + 1)
            answers = x[:watched] @ both[..., :-1].mT + (networks.constant[:, None] * both[..., -1])[:, None]
            return {"loss": (answers - y[:watched]).square().sum(-1).mean(-1) / 2}
        h = networks.hidden(x[:watched])  # (networks, images, hidden)
        share = (h > 0).float().mean(1)  # (networks, hidden)
        size = (w[0].norm(dim=2).square() + others).sqrt() * w[1].norm(dim=1)
        return {
            "loss": (h @ w[1].mT - y[:watched]).square().sum(-1).mean(-1) / 2,
            "on": (share == 1).double().mean(-1),
            "open": (share * size).sum(-1) / size.sum(-1),
        }

    slope = _slope(networks, x, y, batch, seed)
    run = descend(networks.weights, lambda _: slope(networks), step=step, steps=steps, every=every, observe=watch)
    whole.take(networks, pixels)
    return Recording(run.time, {name: values.double().cpu() for name, values in run.values.items()})


def train_to(networks: Ensemble, x: Tensor, y: Tensor, levels: Sequence[float],
             examine: Callable[[Ensemble], dict[str, Tensor]], *, step: float, batch: int, every: int = 50, growth: float = 0.0,
             watched: int | None = None, limit: int = 200_000, seed: int = 1) -> dict[str, Tensor]:  # fmt: skip
    """Train each network until its loss on the training images is below each of the falling `levels`, and examine it there.

    The loss is looked at on the first `watched` images (all if None), every `every` steps or after a share `growth` of the steps
    done so far, whichever is later: a loss that falls like a power of time then falls by the same factor between two looks.
    `examine(networks)` returns one number per network; the result has them as (levels, networks), NaN where a network did
    not get there in `limit` steps, and beside them "steps" and "training loss" (that on the watched images) at each stop. A
    network that has reached the last level leaves the ensemble.
    """
    count, pixels = len(networks.constant), _bright(x)
    x, whole, networks = x[:, pixels], networks, networks.seeing(pixels)
    slope = _slope(networks, x, y, batch, seed)
    seen: dict[str, Tensor] = {}
    left, reached = torch.arange(count), torch.zeros(count, dtype=torch.long)  # who still trains, levels behind each
    seen_x, seen_y, look = x[:watched], y[:watched], 0
    for now in range(limit + 1):
        if now == look:
            look += max(every, int(growth * now))
            parts = zip(seen_x.split(1000), seen_y.split(1000), strict=True)
            loss = torch.stack([networks.loss(*part) * len(part[0]) for part in parts]).sum(0) / len(seen_x)
            for k, level in enumerate(levels):
                here = (loss <= level).cpu() & (reached[left] == k)
                if here.any():
                    stop = {"steps": torch.full((int(here.sum()),), now), "training loss": loss[here]}
                    for name, values in (stop | examine(whole.only(left[here]).take(networks.only(here), pixels))).items():
                        seen.setdefault(name, torch.full((len(levels), count), torch.nan, dtype=torch.float64))
                        seen[name][k, left[here]] = values.double().cpu()
                    reached[left[here]] += 1
            going = reached[left] < len(levels)
            if not going.any():
                break
            if not going.all():
                networks, left = networks.only(going), left[going]
        for w, g in zip(networks.weights, slope(networks), strict=True):
            w.sub_(g, alpha=step)
    return seen

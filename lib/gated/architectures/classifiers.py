"""Routing networks on real images (Neural Race, Section 5 and Appendix D).

Every input domain sees the same images through a transformation of its own (permuted pixels, a rotation), every output
domain names the classes in an order of its own. Linear pathways with squared loss see the images only through their
correlations, so training runs on a `routing.Task` (`task_of`). A permutation of pixels or labels is undone by re-ordering an
encoder's columns or a decoder's rows, which start random: permuted domains are copies of one dataset with other weights.

Cross-entropy and the leaky ReLU need the images themselves: `train_classifier` runs on minibatches, all networks at once.
"""

import torch
from torch import Tensor

from lib.data.image_domains import Domains
from lib.gated.architectures import routing
from lib.gated.network import one_per_seed
from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams, random_matrix
from lib.linear.shapes import axes


@axes(labels="images")
def targets(labels: Tensor, classes: int | None = None) -> Tensor:
    """Centred one-hot targets, (classes, images): with centred inputs no biases are needed."""
    hot = torch.nn.functional.one_hot(labels, -1 if classes is None else classes).mT.float()
    return hot - hot.mean(-1, keepdim=True)


def task_of(domains_data: Domains, domains: int) -> routing.Task:
    """The `routing.Task` of squared loss on the training images: everything that linear pathways see of them."""
    classes = 1 + int(max(domains_data.y_train.max(), domains_data.y_test.max()))
    y = targets(domains_data.y_train, classes).to(domains_data.train)
    yx = y @ domains_data.train.mT / y.shape[-1]
    return routing.Task(yx.expand(domains, -1, -1), domains_data.variance.expand(domains, -1), float((y**2).sum() / y.shape[-1]))


def regression_errors(domains_data: Domains) -> Tensor:
    """Share of test images that least squares gets wrong, (domains or 1,): where linear pathways on squared loss end.

    Independent of any training, so a network that learned nothing cannot pass for one that transfers.
    """
    task = task_of(domains_data, len(domains_data.train))  # features are uncorrelated
    best = torch.where(task.variance > 0, 1 / task.variance, 0.0)
    answers = task.yx * best.unsqueeze(-2) @ domains_data.test
    return (answers.argmax(-2) != domains_data.y_test).float().mean(-1)


def route_errors(weights: list[Tensor], domains_data: Domains) -> Tensor:
    """Share of test images that each route gets wrong, (seeds, output domain, input domain)."""
    encoders, middle, decoders = weights
    test, labels = domains_data.test, domains_data.y_test
    features = test.shape[-2]
    domains = encoders.shape[-1] // features
    inner = (middle @ encoders).unflatten(-1, (domains, features))  # (seeds, hidden, M, features)
    wrong = []
    for i in range(domains):
        answers = decoders @ (inner[..., i, :] @ test[i % len(test)])  # (seeds, M classes, images)
        wrong.append((answers.unflatten(-2, (domains, -1)).argmax(-2) != labels).float().mean(-1))
    return torch.stack(wrong, -1)


# ---- networks that need the images: cross-entropy, biases, leaky ReLU ------------------------------------------------


def initial_classifier(
    domains: int,
    features: int,
    hidden: int,
    classes: int,
    gain: float | Tensor,
    seeds: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> list[Tensor]:
    """Weights and zero biases, Xavier times `gain`: encoders (seeds, M, hidden, features), hidden matrix (seeds, 1, hidden,
    hidden), decoders (seeds, 1, M · classes, hidden), each followed by its bias as a column.

    `gain` is one number or one for each seed.
    """
    streams, gain = Streams(seeds, seed), one_per_seed(gain, seeds, axes=3)
    encoders = random_matrix(streams.normal(domains, hidden, features), gain, "xavier")
    middle = random_matrix(streams.normal(1, hidden, hidden), gain, "xavier")
    decoders = random_matrix(streams.normal(domains, classes, hidden), gain, "xavier").reshape(seeds, 1, -1, hidden)
    weights = []
    for w in (encoders, middle, decoders):
        weights += [w, torch.zeros(*w.shape[:-1], 1, dtype=torch.float64)]
    return [w.to(device, dtype) for w in weights]


def scores(weights: list[Tensor], x: Tensor, leak: float = 1.0) -> Tensor:
    """Scores of all routes for images x (M or 1, features, images): (seeds, input domain, output domain, classes, images).

    `leak` is the slope of the hidden units below zero: 1 is a linear network.
    """
    encoders, b1, middle, b2, decoders, b3 = weights
    first = torch.nn.functional.leaky_relu(encoders @ x + b1, leak)  # (seeds, input domain, hidden, images)
    second = torch.nn.functional.leaky_relu(middle @ first + b2, leak)
    return (decoders @ second + b3).unflatten(-2, (encoders.shape[1], -1))


@axes(x="features images", labels="images", mask="domains domains")
def classifier_loss(weights: list[Tensor], x: Tensor, labels: Tensor, mask: Tensor, leak: float = 1.0) -> Tensor:
    """The cross-entropy, averaged over trained routes and images, (seeds,).

    x is (M or 1, features, images); labels (images,) or (M, images) with an order of classes for each output domain;
    mask (seeds, M, M) or (M, M).
    """
    answers = scores(weights, x, leak)
    right = labels.expand(answers.shape[2], -1)[:, None].expand(*answers.shape[:2], -1, 1, -1)
    each = torch.logsumexp(answers, -2) - answers.gather(-2, right)[..., 0, :]  # (seeds, in, out, images)
    share = (mask / mask.sum((-2, -1), keepdim=True)).mT.to(each)  # of each route in the loss, (..., in, out)
    return (each.mean(-1) * share).sum((-2, -1))


def classifier_gradient(weights: list[Tensor], x: Tensor, labels: Tensor, mask: Tensor, leak: float = 1.0) -> list[Tensor]:
    """Gradient of `classifier_loss`, for all seeds at once, in the shapes of the weights."""
    with torch.enable_grad():
        leaves = [w.detach().requires_grad_() for w in weights]
        return list(torch.autograd.grad(classifier_loss(leaves, x, labels, mask, leak).sum(), leaves))


@axes(mask="domains domains")
def train_classifier(
    weights: list[Tensor],
    domains_data: Domains,
    mask: Tensor,
    *,
    step: float,
    steps: int,
    generator: torch.Generator,
    batch: int = 64,
    every: int | None = None,
    momentum: float = 0.9,
    leak: float = 1.0,
) -> Recording:
    """Minibatch descent on cross-entropy for all seeds together, in place; every network and route sees the same images.

    `generator` draws the batches. Records "loss" (times, seeds), the cross-entropy of trained routes on the first 500
    training images, before and after and every `every` steps.
    """
    mask, number = mask.to(weights[0]), domains_data.train.shape[-1]

    def slope(w: list[Tensor]) -> list[Tensor]:
        chosen = torch.randint(number, (batch,), generator=generator).to(domains_data.train.device)
        return classifier_gradient(w, domains_data.train[..., chosen], domains_data.y_train[chosen], mask, leak)

    def look(w: list[Tensor]) -> dict[str, Tensor]:
        return {"loss": classifier_loss(w, domains_data.train[..., :500], domains_data.y_train[:500], mask, leak)}

    return descend(weights, slope, step=step, steps=steps, every=every or max(steps, 1), momentum=momentum, observe=look)


def classifier_errors(weights: list[Tensor], domains_data: Domains, leak: float = 1.0) -> Tensor:
    """Share of test images that each route gets wrong, (seeds, output domain, input domain)."""
    x, labels = domains_data.test, domains_data.y_test
    parts = []
    for i in range(0, x.shape[-1], 250):  # in parts: the scores of all routes are large
        parts.append(scores(weights, x[..., i : i + 250], leak).argmax(-2) != labels[i : i + 250])
    return torch.cat(parts, -1).float().mean(-1).mT

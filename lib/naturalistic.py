"""Routing networks on real images (Neural Race, Section 5 and Appendix D).

Every input domain sees the same images through a transformation of its own (permuted pixels, a rotation), every output
domain names the classes in an order of its own. Three facts make this cheap at identical results:

*Linear pathways and squared loss* see the images only through their correlations, so training runs on a
`routing.Task`, whatever the number of images (`task_of`).
*A rotation of pixels is linear*, so the correlations of all rotated domains follow from those of the upright images
(`rotated_domains`).
*A permutation of pixels or labels is undone* by re-ordering an encoder's columns or a decoder's rows, and these start
random anyway: permuted domains are copies of one dataset with other random weights.

Cross-entropy and the leaky ReLU need the images themselves: `train_classifier` runs on minibatches, all networks at once.
"""

import math
from dataclasses import dataclass

import torch

from lib import routing
from lib.gated import random_matrix

CLASSES = 10


@dataclass
class Domains:
    """Inputs of all domains in a basis in which they are uncorrelated, with labels.

    `train` and `test` are (domains, features, images), or (1, features, images) when all domains see the same;
    `variance` is (domains or 1, features); labels are (images,).
    """

    train: torch.Tensor
    test: torch.Tensor
    variance: torch.Tensor
    y_train: torch.Tensor
    y_test: torch.Tensor

    def to(self, device):
        return Domains(*(part.to(device) for part in vars(self).values()))


def principal(train, test, components, whiten=False):
    """Leading principal components of centred inputs: train (..., images, pixels) -> (..., components, images), test alike.

    Also returns the variances (..., components) on the training images: 1 if `whiten`, 0 where nothing varies.
    """
    mean = train.mean(-2, keepdim=True)
    covariance = (train - mean).mT @ (train - mean) / train.shape[-2]
    axes, variance = _axes(covariance, components, whiten)
    return axes.mT @ (train - mean).mT, axes.mT @ (test - mean).mT, variance


def _axes(covariance, components, whiten):
    values, vectors = torch.linalg.eigh(covariance.double())
    values, vectors = values[..., -components:].flip(-1), vectors[..., -components:].flip(-1)
    # an eigenvector's sign is arbitrary; fixing it keeps reruns on other machines comparable
    vectors = vectors * torch.where(vectors.sum(-2, keepdim=True) < 0, -1.0, 1.0)
    if whiten:  # but leave out directions in which nothing varies, such as the always empty corner pixels
        keep = (values > 1e-6 * values.amax(-1, keepdim=True)).double()
        scale = keep / values.clamp(min=1e-30).sqrt()
        return (vectors * scale.unsqueeze(-2)).to(covariance), keep.to(covariance)
    return vectors.to(covariance), values.to(covariance)


def permuted_domains(images, components, whiten=False):
    """Domains whose pixels are permuted, without permuting anything: one copy of the principal components for all."""
    train, test, variance = principal(images.x_train.flatten(1), images.x_test.flatten(1), components, whiten)
    return Domains(train[None], test[None], variance[None], images.y_train, images.y_test)


def rotation_matrix(side, degrees):
    """The (side², side²) matrix that rotates a flattened image by bilinear interpolation."""
    basis = torch.eye(side * side).reshape(-1, side, side)
    return rotate(basis, degrees).reshape(-1, side * side).mT


def rotate(images, degrees):
    """Images (n, height, width) rotated about their centre, empty corners filled with 0."""
    angle = math.radians(degrees)
    turn = torch.tensor([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]])
    grid = torch.nn.functional.affine_grid(turn[None].expand(len(images), -1, -1), (len(images), 1, *images.shape[-2:]), False)
    grid = grid.to(images)
    return torch.nn.functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


def rotated_domains(images, domains, components, span=180.0, whiten=False):
    """Domain i sees all images turned by span · i / domains degrees, each in its own principal components.

    The turned correlations are R Σ Rᵀ with the upright Σ and one matrix R per angle, so images are never turned one by one.
    """
    train, test = images.x_train.flatten(1), images.x_test.flatten(1)
    mean = train.mean(0)
    covariance = (train - mean).mT @ (train - mean) / len(train)
    parts = []
    for i in range(domains):
        turn = rotation_matrix(images.x_train.shape[-1], span * i / domains).to(train)
        axes, variance = _axes(turn @ covariance @ turn.mT, components, whiten)
        look = axes.mT @ turn
        parts.append((look @ (train - mean).mT, look @ (test - mean).mT, variance))
    train, test, variance = (torch.stack(part) for part in zip(*parts, strict=True))
    return Domains(train, test, variance, images.y_train, images.y_test)


def random_features(images, filters):
    """A frozen convolution with random filters at every second pixel, its ReLU, averaged over a 4 × 4 grid: (n, filters · 16).

    `filters` (number, 1, side, side) come from `patch_filters`. It stands in for the paper's pretrained network: the
    same number of features, but nothing in it has been learned from labels.
    """
    parts = []
    for batch in images.split(500):
        response = torch.relu(torch.nn.functional.conv2d(batch[:, None], filters.to(batch), stride=2) - 0.5)
        parts.append(torch.nn.functional.adaptive_avg_pool2d(response, 4).flatten(1))
    return torch.cat(parts)


def patch_filters(images, number=32, side=6, samples=20_000, seed=0):
    """Filters made of random patches of the images, whitened: (number, 1, side, side)."""
    generator = torch.Generator().manual_seed(seed)
    height, width = images.shape[-2:]
    which = torch.randint(len(images), (samples,), generator=generator)
    top = torch.randint(height - side + 1, (samples,), generator=generator)
    left = torch.randint(width - side + 1, (samples,), generator=generator)
    step = torch.arange(side)
    patches = images[which[:, None, None], (top[:, None] + step)[:, :, None], (left[:, None] + step)[:, None, :]].flatten(1)
    patches = patches - patches.mean(1, keepdim=True)
    values, vectors = torch.linalg.eigh((patches.mT @ patches / samples).double())
    whitening = (vectors / (values + 0.05 * values.mean()).sqrt()) @ vectors.mT
    filters = patches[:number].double() @ whitening @ whitening  # once for the patch, once for what it is compared with
    return (filters / (patches.double() @ filters.mT).std(0)[:, None]).to(images).reshape(number, 1, side, side)


def featured_domains(images, domains, components, span=180.0, filters=32, front_end=None, seed=0, whiten=False):
    """Rotated images seen through a frozen front end, each domain in its own principal components of those features.

    `front_end` maps images (n, height, width) to features (n, features); without one it is `random_features`.
    """
    if front_end is None:
        kernel = patch_filters(images.x_train, filters, seed=seed)

        def front_end(x):
            return random_features(x, kernel)

    parts = []
    for i in range(domains):
        seen = [front_end(rotate(x, span * i / domains)) for x in (images.x_train, images.x_test)]
        parts.append(principal(*seen, components, whiten))
    train, test, variance = (torch.stack(part) for part in zip(*parts, strict=True))
    return Domains(train, test, variance, images.y_train, images.y_test)


def targets(labels):
    """Centred one-hot targets, (classes, images): with centred inputs no biases are needed."""
    hot = torch.nn.functional.one_hot(labels, CLASSES).mT.float()
    return hot - hot.mean(-1, keepdim=True)


def task_of(domains_data, domains):
    """The `routing.Task` of squared loss on the training images: everything that linear pathways see of them."""
    y = targets(domains_data.y_train).to(domains_data.train)
    yx = y @ domains_data.train.mT / y.shape[-1]
    return routing.Task(yx.expand(domains, -1, -1), domains_data.variance.expand(domains, -1), float((y**2).sum() / y.shape[-1]))


def route_errors(weights, domains_data, images=None):
    """Share of test images that each route gets wrong, (runs, output domain, input domain)."""
    encoders, middle, decoders = weights
    test, labels = domains_data.test, domains_data.y_test
    if images is not None:
        test, labels = test[..., :images], labels[:images]
    features = test.shape[-2]
    domains = encoders.shape[-1] // features
    inner = (middle @ encoders).unflatten(-1, (domains, features))  # (runs, hidden, M, features)
    wrong = []
    for i in range(domains):
        scores = decoders @ (inner[..., i, :] @ test[i % len(test)])  # (runs, M classes, images)
        wrong.append((scores.unflatten(-2, (domains, CLASSES)).argmax(-2) != labels).float().mean(-1))
    return torch.stack(wrong, -1)


# ---- networks that need the images: cross-entropy, biases, leaky ReLU ------------------------------------------------


def initial_classifier(domains, features, hidden, gain, runs, seed=0, dtype=torch.float32):
    """Weights and zero biases, Xavier times `gain`: encoders (runs, M, hidden, features), hidden matrix (runs, 1, hidden,
    hidden), decoders (runs, 1, M · classes, hidden), each followed by its bias as a column."""
    generator = torch.Generator().manual_seed(seed)
    encoders = random_matrix(runs * domains, hidden, features, gain, "xavier", generator).reshape(runs, domains, hidden, features)
    middle = random_matrix(runs, hidden, hidden, gain, "xavier", generator)[:, None]
    decoders = random_matrix(runs * domains, CLASSES, hidden, gain, "xavier", generator).reshape(runs, 1, -1, hidden)
    weights = []
    for w in (encoders, middle, decoders):
        weights += [w.to(dtype), torch.zeros(*w.shape[:-1], 1, dtype=dtype)]
    return weights


def _forward(weights, x, leak):
    encoders, b1, middle, b2, decoders, b3 = weights
    first = encoders @ x + b1  # (runs, M, hidden, images)
    first = torch.nn.functional.leaky_relu(first, leak)
    second = torch.nn.functional.leaky_relu(middle @ first + b2, leak)
    return first, second, decoders @ second + b3  # scores: (runs, input domain, M classes, images)


def classifier_gradient(weights, x, labels, mask, leak=1.0):
    """Gradient of the cross-entropy, averaged over trained routes and images, for all runs at once.

    x is (M or 1, features, images); labels (images,) or (M, images) with an order of classes for each output domain;
    mask (runs, M, M) or (M, M). `leak` is the slope of the hidden units below zero: 1 is a linear network.
    """
    encoders, _, middle, _, decoders, _ = weights
    domains = encoders.shape[1]
    first, second, scores = _forward(weights, x, leak)
    error = torch.softmax(scores.unflatten(-2, (domains, CLASSES)), -2)  # (runs, in, out, classes, images)
    hot = torch.nn.functional.one_hot(labels.expand(domains, -1), CLASSES).mT.to(error)  # (out, classes, images)
    share = (mask / mask.sum((-2, -1), keepdim=True)).mT / x.shape[-1]  # (..., in, out)
    error = ((error - hot) * share[..., None, None].to(error)).flatten(-3, -2)  # (runs, in, M classes, images)
    back2 = decoders.mT @ error
    back2 = torch.where(second > 0, back2, leak * back2)
    back1 = middle.mT @ back2
    back1 = torch.where(first > 0, back1, leak * back1)
    return [
        back1 @ x.mT,
        back1.sum(-1, keepdim=True),
        (back2 @ first.mT).sum(1, keepdim=True),
        back2.sum((1, -1), keepdim=True),
        (error @ second.mT).sum(1, keepdim=True),
        error.sum((1, -1), keepdim=True),
    ]


def train_classifier(weights, domains_data, mask, *, step, steps, batch=64, momentum=0.9, leak=1.0, seed=0):
    """Minibatch descent on cross-entropy for all runs together, in place; every run and route sees the same images."""
    generator = torch.Generator().manual_seed(seed)
    mask = mask.to(weights[0])
    velocity = [torch.zeros_like(w) for w in weights]
    number = domains_data.train.shape[-1]
    with torch.no_grad():
        for _ in range(steps):
            chosen = torch.randint(number, (batch,), generator=generator)
            x, labels = domains_data.train[..., chosen], domains_data.y_train[chosen]
            for w, v, g in zip(weights, velocity, classifier_gradient(weights, x, labels, mask, leak), strict=True):
                w.sub_(v.mul_(momentum).add_(g), alpha=step)
    return weights


def classifier_errors(weights, domains_data, leak=1.0, images=None):
    """Share of test images that each route gets wrong, (runs, output domain, input domain)."""
    domains = weights[0].shape[1]
    x, labels = domains_data.test[..., :images], domains_data.y_test[:images]
    parts = []
    for i in range(0, x.shape[-1], 250):  # in parts: the scores of all routes are large
        scores = _forward(weights, x[..., i : i + 250], leak)[-1].unflatten(-2, (domains, CLASSES))
        parts.append(scores.argmax(-2) != labels[i : i + 250])
    return torch.cat(parts, -1).float().mean(-1).mT

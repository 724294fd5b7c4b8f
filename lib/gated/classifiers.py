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

import torch

from lib.gated import routing
from lib.linear.draws import Streams, random_matrix

CLASSES = 10


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
    streams = Streams(runs, seed)
    encoders = random_matrix(streams.normal(domains, hidden, features), gain, "xavier")
    middle = random_matrix(streams.normal(1, hidden, hidden), gain, "xavier")
    decoders = random_matrix(streams.normal(domains, CLASSES, hidden), gain, "xavier").reshape(runs, 1, -1, hidden)
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

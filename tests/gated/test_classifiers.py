"""Routing on images: every shortcut against the plain way of doing it."""

from types import SimpleNamespace

import pytest
import torch

from lib.data import image_domains
from lib.gated.architectures import classifiers, routing

MASK = routing.circulant(3, 2)


@pytest.fixture(scope="module")
def images():
    """Sixty blurred random pictures of 8 × 8 pixels with ten kinds of labels."""
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.rand(10, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.arange(60) % 10
    pictures = prototypes[labels] + 0.3 * torch.rand(60, 8, 8, generator=generator, dtype=torch.float64)
    return SimpleNamespace(x_train=pictures[:40], y_train=labels[:40], x_test=pictures[40:], y_test=labels[40:])


def test_training_on_statistics_is_training_on_the_images(images):
    data = image_domains.rotated_domains(images, 3, components=6)
    task = classifiers.task_of(data, 3)
    start = routing.initial_weights(task, 5, 0.7, seeds=1, law="xavier")
    weights = [w.clone() for w in start]
    routing.train(weights, task, MASK, step=0.05, steps=40, every=40, momentum=0.9)

    encoders = [w.clone().requires_grad_() for w in start[0][0].split(6, -1)]
    middle = start[1][0].clone().requires_grad_()
    decoders = [w.clone().requires_grad_() for w in start[2][0].split(10, -2)]
    parameters = [*encoders, middle, *decoders]
    optimiser = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    y = classifiers.targets(images.y_train).double()
    for _ in range(40):
        optimiser.zero_grad()
        loss = sum(
            0.5 * (y - decoders[out] @ (middle @ (encoders[into] @ data.train[into]))).square().sum(0).mean()
            for out, into in MASK.nonzero().tolist()
        )
        (loss / MASK.sum()).backward()
        optimiser.step()
    plain = [torch.cat(encoders, -1), middle, torch.cat(decoders, -2)]
    for fast, slow in zip(weights, plain, strict=True):
        assert (fast[0] - slow).abs().max() < 1e-7  # targets are rounded to single precision once

    errors = classifiers.route_errors(weights, data)[0]
    for out in range(3):
        for into in range(3):
            scores = decoders[out] @ (middle @ (encoders[into] @ data.test[into]))
            assert errors[out, into].item() == pytest.approx((scores.argmax(0) != images.y_test).double().mean().item())


def test_classifier_gradient_is_autograd(images, leak=0.01):
    data = image_domains.rotated_domains(images, 3, components=6)
    weights = classifiers.initial_classifier(3, 6, 5, 10, 1.0, seeds=2, dtype=torch.float64)
    weights = [w + 0.1 for w in weights]  # biases too
    leaves = [w.clone().requires_grad_() for w in weights]
    encoders, b1, middle, b2, decoders, b3 = leaves
    total = torch.zeros(2, dtype=torch.float64)
    for run in range(2):
        for out, into in MASK.nonzero().tolist():
            h = torch.nn.functional.leaky_relu(encoders[run, into] @ data.train[into] + b1[run, into], leak)
            h = torch.nn.functional.leaky_relu(middle[run, 0] @ h + b2[run, 0], leak)
            own = slice(10 * out, 10 * out + 10)
            scores = decoders[run, 0, own] @ h + b3[run, 0, own]
            total[run] += torch.nn.functional.cross_entropy(scores.T, images.y_train) / MASK.sum()
    total.sum().backward()
    assert torch.allclose(classifiers.classifier_loss(weights, data.train, images.y_train, MASK, leak), total.detach())
    formula = classifiers.classifier_gradient(weights, data.train, images.y_train, MASK.double(), leak)
    for leaf, by_hand in zip(leaves, formula, strict=True):
        assert (leaf.grad - by_hand).abs().max() < 1e-12


def test_training_lowers_the_error(images):
    data = image_domains.permuted_domains(images, 8)
    data = image_domains.Domains(*(v.float() if v.is_floating_point() else v for v in vars(data).values()))
    weights = classifiers.initial_classifier(3, 8, 12, 10, 0.5, seeds=2)
    before = classifiers.classifier_errors(weights, data)
    draw = torch.Generator().manual_seed(0)
    run = classifiers.train_classifier(weights, data, MASK, step=0.1, steps=300, batch=20, every=100, generator=draw)
    after = classifiers.classifier_errors(weights, data)
    assert run.time.tolist() == [0, 100, 200, 300] and run["loss"].shape == (4, 2)
    last = classifiers.classifier_loss(weights, data.train, data.y_train, MASK)
    assert torch.allclose(run["loss"][-1], last) and (last < 0.5 * run["loss"][0]).all()
    assert before.shape == (2, 3, 3)
    assert routing.over(after, MASK).max() < 0.5 * routing.over(before, MASK).min()


@pytest.mark.parametrize("classes", [2, 13])
def test_any_number_of_classes(images, classes):
    few = SimpleNamespace(**vars(images) | {"y_train": images.y_train % classes, "y_test": images.y_test % classes})
    few.y_train[0] = classes - 1
    data = image_domains.rotated_domains(few, 3, components=6)
    task = classifiers.task_of(data, 3)
    assert task.sizes == (3, classes, 6)
    weights = routing.initial_weights(task, 5, 0.7, seeds=2)
    assert classifiers.route_errors(weights, data).shape == (2, 3, 3)
    net = classifiers.initial_classifier(3, 6, 5, classes, 0.5, seeds=2, dtype=torch.float64)
    expected = torch.full((2,), float(torch.tensor(classes).double().log()), dtype=torch.float64)
    flat = [0 * w for w in net]
    assert torch.allclose(classifiers.classifier_loss(flat, data.train, few.y_train, MASK), expected)
    classifiers.train_classifier(net, data, MASK, step=0.1, steps=2, batch=4, generator=torch.Generator().manual_seed(0))
    assert classifiers.classifier_errors(net, data).shape == (2, 3, 3)


def test_targets_by_hand():
    expected = torch.tensor([[1.0, 1, -2], [-1, -1, 2]]) / 3
    assert torch.allclose(classifiers.targets(torch.tensor([0, 0, 1])), expected)


def test_errors_of_many_images_are_those_of_each(images):
    """More than 250, which are looked at in parts."""
    many = image_domains.Domains(*vars(image_domains.permuted_domains(images, 8)).values())
    many.test, many.y_test = torch.cat([many.test * scale for scale in torch.linspace(-3, 1, 27)], -1), many.y_test.repeat(27)
    weights = classifiers.initial_classifier(3, 8, 5, 10, 1.0, seeds=2, dtype=torch.float64)
    errors = classifiers.classifier_errors(weights, many)
    w1, _, w2, _, w3, _ = weights  # biases start at zero, and the network is linear
    for out in range(3):
        for into in range(3):
            scores = w3[:, 0].unflatten(1, (3, 10))[:, out] @ (w2[:, 0] @ (w1[:, into] @ many.test[0]))
            assert torch.allclose(errors[:, out, into], (scores.argmax(1) != many.y_test).float().mean(1))


def test_regression_is_least_squares_and_the_end_of_training(images):
    turned = image_domains.rotated_domains(images, 3, components=6)
    y = classifiers.targets(images.y_train).double()
    wanted = []
    for train, test in zip(turned.train, turned.test, strict=True):
        best = torch.linalg.lstsq(train.mT, y.mT).solution.mT
        wanted.append(((best @ test).argmax(0) != images.y_test).double().mean())
    assert torch.allclose(classifiers.regression_errors(turned).double(), torch.stack(wanted))

    white = image_domains.rotated_domains(images, 3, components=6, whiten=True)
    task = classifiers.task_of(white, 3)
    weights = routing.initial_weights(task, 8, 0.3, seeds=1, law="xavier")
    routing.train(weights, task, torch.ones(3, 3, dtype=torch.bool), step=0.5, steps=4000, every=4000, momentum=0.9)
    ends = classifiers.route_errors(
        [w.float() for w in weights],
        image_domains.Domains(*(part.float() if part.is_floating_point() else part for part in vars(white).values())),
    )
    assert torch.allclose(ends[0].mean(0).double(), classifiers.regression_errors(white).double(), atol=1e-6)

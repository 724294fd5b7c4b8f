"""Routing on images: every shortcut against the plain way of doing it."""

from types import SimpleNamespace

import pytest
import torch

from lib.data import front_ends, image_domains
from lib.gated import classifiers, routing

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
    start = routing.initial_weights(task, 5, 0.7, runs=1, law="xavier")
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


def test_rotated_correlations_follow_from_the_upright_ones(images):
    data = image_domains.rotated_domains(images, 4, components=6)
    for i in range(4):
        turned = image_domains.rotate(images.x_train, 180 * i / 4).flatten(1)
        train, _, variance = image_domains.principal(turned, turned, 6)
        assert torch.allclose(variance, data.variance[i], rtol=1e-5)
        assert torch.allclose(train.abs(), data.train[i].abs(), atol=1e-4)


def test_a_half_turn_and_a_quarter_turn():
    picture = torch.zeros(1, 5, 5)
    picture[0, 0, 1] = 1
    assert torch.allclose(image_domains.rotate(picture, 180), picture.flip(1, 2), atol=1e-5)
    quarter = image_domains.rotate(picture, 90)
    assert torch.allclose(image_domains.rotate(quarter, 90), picture.flip(1, 2), atol=1e-5)
    assert quarter.argmax().item() in (15, 9)  # a corner neighbour moves to a corner neighbour


@pytest.mark.parametrize("leak", [1.0, 0.01])
def test_classifier_gradient_is_autograd(images, leak):
    data = image_domains.rotated_domains(images, 3, components=6)
    weights = classifiers.initial_classifier(3, 6, 5, 1.0, runs=2, dtype=torch.float64)
    weights = [w + 0.1 for w in weights]  # biases too
    leaves = [w.clone().requires_grad_() for w in weights]
    encoders, b1, middle, b2, decoders, b3 = leaves
    total = 0
    for run in range(2):
        for out, into in MASK.nonzero().tolist():
            h = torch.nn.functional.leaky_relu(encoders[run, into] @ data.train[into] + b1[run, into], leak)
            h = torch.nn.functional.leaky_relu(middle[run, 0] @ h + b2[run, 0], leak)
            own = slice(10 * out, 10 * out + 10)
            scores = decoders[run, 0, own] @ h + b3[run, 0, own]
            total = total + torch.nn.functional.cross_entropy(scores.T, images.y_train) / MASK.sum()
    total.backward()
    formula = classifiers.classifier_gradient(weights, data.train, images.y_train, MASK.double(), leak)
    for leaf, by_hand in zip(leaves, formula, strict=True):
        assert (leaf.grad - by_hand).abs().max() < 1e-12


def test_training_lowers_the_error(images):
    data = image_domains.permuted_domains(images, 8)
    data = image_domains.Domains(*(v.float() if v.is_floating_point() else v for v in vars(data).values()))
    weights = classifiers.initial_classifier(3, 8, 12, 0.5, runs=2)
    before = classifiers.classifier_errors(weights, data)
    classifiers.train_classifier(weights, data, MASK, step=0.1, steps=300, batch=20)
    after = classifiers.classifier_errors(weights, data)
    assert before.shape == (2, 3, 3)
    assert routing.over(after, MASK).max() < 0.5 * routing.over(before, MASK).min()


def test_whitened_components_have_unit_variance_and_no_correlation(images):
    train, _, variance = image_domains.principal(images.x_train.flatten(1), images.x_test.flatten(1), 6, whiten=True)
    assert torch.allclose(train @ train.mT / 40, torch.eye(6).double(), atol=1e-9)
    assert (variance == 1).all()


def test_directions_without_variance_are_left_out_of_whitening():
    flat = torch.cat([torch.randn(50, 3, generator=torch.Generator().manual_seed(0)).double(), torch.zeros(50, 2)], 1)
    train, test, variance = image_domains.principal(flat, flat + 1, 5, whiten=True)
    assert variance.tolist() == [1, 1, 1, 0, 0]
    assert torch.isfinite(test).all() and (test[3:] == 0).all()


def test_patch_filters_respond_with_unit_size(images):
    filters = front_ends.patch_filters(images.x_train, number=4, side=3, samples=500)
    assert filters.shape == (4, 1, 3, 3)
    features = front_ends.random_features(images.x_train, filters)
    assert features.shape == (40, 4 * 16)
    assert (features >= 0).all() and features.std(0).max() > 0

"""Domains made of images: every shortcut against the plain way of doing it."""

import math
from types import SimpleNamespace

import pytest
import torch

from lib.data import front_ends, image_domains
from lib.linear import WrongAxes


@pytest.fixture(scope="module")
def images():
    """Sixty blurred random pictures of 8 × 8 pixels with ten kinds of labels."""
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.rand(10, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.arange(60) % 10
    pictures = prototypes[labels] + 0.3 * torch.rand(60, 8, 8, generator=generator, dtype=torch.float64)
    return SimpleNamespace(x_train=pictures[:40], y_train=labels[:40], x_test=pictures[40:], y_test=labels[40:])


def blob(height, width, top, left):
    """A smooth spot at a place measured from the centre, downwards and to the right: (1, height, width)."""
    rows = torch.arange(height, dtype=torch.float64) - (height - 1) / 2
    columns = torch.arange(width, dtype=torch.float64) - (width - 1) / 2
    return torch.exp(-((rows[:, None] - top) ** 2 + (columns - left) ** 2) / 18)[None]


def test_a_half_turn_and_a_quarter_turn():
    picture = torch.zeros(1, 5, 5)
    picture[0, 0, 1] = 1
    assert torch.allclose(image_domains.rotate(picture, 180), picture.flip(1, 2), atol=1e-5)
    quarter = image_domains.rotate(picture, 90)
    assert torch.allclose(quarter, torch.rot90(picture, 1, (1, 2)), atol=1e-5)
    assert torch.allclose(image_domains.rotate(quarter, 90), picture.flip(1, 2), atol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(41, 41), (41, 61)])
@pytest.mark.parametrize("degrees", [30.0, -75.0])
def test_a_spot_turns_with_the_picture(height, width, degrees):
    """Counter-clockwise on the screen, also where the picture is not square; a hundredth of a pixel would be noticed."""
    turned = image_domains.rotate(blob(height, width, 0.0, 9.0), degrees)
    angle = math.radians(degrees)
    expected = blob(height, width, -9 * math.sin(angle), 9 * math.cos(angle))
    assert (turned - expected).abs().max() < 2 / 8 / 9  # of bilinear sampling, at a curvature of 1/9 in both directions
    for axis in (1, 2):
        place = torch.arange(turned.shape[axis], dtype=torch.float64)
        centres = [(image.sum(3 - axis)[0] * place).sum() / image.sum() for image in (turned, expected)]
        assert abs(float(centres[0] - centres[1])) < 0.01


def test_rotation_is_a_matrix(images):
    turn = image_domains.rotation_matrix(8, 8, 33.0)
    plain = image_domains.rotate(images.x_train, 33.0).flatten(1)
    assert torch.allclose(images.x_train.flatten(1) @ turn.mT, plain, atol=1e-14)
    wide = torch.rand(3, 4, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    turn = image_domains.rotation_matrix(4, 7, 33.0)
    assert torch.allclose(wide.flatten(1) @ turn.mT, image_domains.rotate(wide, 33.0).flatten(1), atol=1e-14)


def test_rotated_correlations_follow_from_the_upright_ones(images):
    data = image_domains.rotated_domains(images, 4, components=6, span=100.0)
    for i in range(4):
        turned, tested = (image_domains.rotate(x, 100 * i / 4).flatten(1) for x in (images.x_train, images.x_test))
        train, test, variance = image_domains.principal(turned, tested, 6)
        assert torch.allclose(variance, data.variance[i], rtol=1e-9)
        assert torch.allclose(train, data.train[i], atol=1e-9)
        assert torch.allclose(test, data.test[i], atol=1e-9)
    assert data.y_test is images.y_test


def test_permuting_pixels_changes_no_component(images):
    data = image_domains.permuted_domains(images, 6)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(2))
    train, test, variance = image_domains.principal(images.x_train.flatten(1)[:, order], images.x_test.flatten(1)[:, order], 6)
    assert torch.allclose(train, data.train[0], atol=1e-9) and torch.allclose(test, data.test[0], atol=1e-9)
    assert torch.allclose(variance, data.variance[0], rtol=1e-9)


@pytest.mark.parametrize("whiten", [False, True])
def test_featured_domains_are_components_of_features_of_turned_images(images, whiten):
    def halves(x):  # a front end: sums over the upper and lower rows
        return torch.cat([x[:, :4].sum(1), x[:, 4:].sum(1)], 1)

    data = image_domains.featured_domains(images, 3, 5, halves, span=90.0, whiten=whiten)
    assert data.train.shape == (3, 5, 40) and data.test.shape == (3, 5, 20)
    for i, degrees in enumerate((0, 30, 60)):
        train, test = (halves(image_domains.rotate(x, degrees)) for x in (images.x_train, images.x_test))
        centred = train - train.mean(0)
        strongest = torch.linalg.svdvals(centred)[:5].square() / 40
        assert torch.allclose(data.train[i].square().mean(1), torch.ones(5).double() if whiten else strongest, rtol=1e-9)
        wanted = image_domains.principal(train, test, 5, whiten=whiten)
        for ours, plain in zip((data.train[i], data.test[i], data.variance[i]), wanted, strict=True):
            assert torch.allclose(ours, plain, atol=1e-9)


def test_featured_domains_take_the_front_ends(images):
    front = front_ends.front_end("random", images, filters=4, epochs=0, seed=3)
    data = image_domains.featured_domains(images, 2, 7, front)
    assert data.train.shape == (2, 7, 40)
    moved = data.to("cpu")
    assert isinstance(moved, image_domains.Domains) and torch.equal(moved.train, data.train)


def test_components_are_those_of_a_singular_value_decomposition(images):
    flat = images.x_train.flatten(1)
    train, test, variance = image_domains.principal(flat, images.x_test.flatten(1), 6)
    u, s, vt = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)
    assert torch.allclose(variance, s[:6].square() / 40, rtol=1e-9)
    assert torch.allclose(train.abs(), (u[:, :6] * s[:6]).mT.abs(), atol=1e-9)
    assert torch.allclose(test.abs(), (vt[:6] @ (images.x_test.flatten(1) - flat.mean(0)).mT).abs(), atol=1e-9)


def test_whitened_components_have_unit_variance_and_no_correlation(images):
    train, _, variance = image_domains.principal(images.x_train.flatten(1), images.x_test.flatten(1), 6, whiten=True)
    assert torch.allclose(train @ train.mT / 40, torch.eye(6).double(), atol=1e-9)
    assert (variance == 1).all()


def test_directions_without_variance_are_left_out_of_whitening():
    flat = torch.cat([torch.randn(50, 3, generator=torch.Generator().manual_seed(0)).double(), torch.zeros(50, 2)], 1)
    train, test, variance = image_domains.principal(flat, flat + 1, 5, whiten=True)
    assert variance.tolist() == [1, 1, 1, 0, 0]
    assert torch.isfinite(test).all() and (test[3:] == 0).all()


def test_bad_calls_are_answered_in_one_sentence(images):
    flat = images.x_train.flatten(1)
    refused = [
        (lambda: image_domains.rotate(flat, 30), r"rotate: images has shape \(40, 64\); its last axes must be"),
        (lambda: image_domains.principal(flat, flat[:, :9], 3), "principal: test has 9 pixels .*, train has 64"),
        (lambda: image_domains.principal(flat, flat.float(), 3), "principal: test is float32 and train is float64"),
        (lambda: image_domains.principal(flat, flat, 65), "components must lie between 1 and the 64 pixels or features, got 65"),
        (lambda: image_domains.rotated_domains(images, 0, 3), "at least one domain"),
    ]
    for call, sentence in refused:
        with pytest.raises(ValueError, match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert issubclass(WrongAxes, ValueError)

"""Front ends: the residual network learns, freezes and leaves the global random numbers alone; patches are patches."""

from types import SimpleNamespace

import pytest
import torch

from lib.data import front_ends


@pytest.fixture(scope="module")
def images():
    """Forty pictures of 16 × 16 pixels, far from mean 0 and deviation 1, with ten kinds of labels."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 10
    prototypes = torch.rand(10, 16, 16, generator=generator)
    pictures = prototypes[labels] + 0.2 * torch.rand(40, 16, 16, generator=generator)
    return SimpleNamespace(x_train=pictures, y_train=labels)


def test_front_end_learns_and_freezes(images):
    before = torch.random.get_rng_state()
    front_end = front_ends.pretrained_front_end(images, epochs=2, batch=20, seed=1)
    again = front_ends.front_end("resnet", images, filters=1, epochs=0, seed=1)
    untrained = front_ends.pretrained_front_end(images, epochs=0, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    features = front_end(images.x_train)
    assert features.shape == (40, 512)
    assert not features.requires_grad
    assert torch.equal(untrained(images.x_train), again(images.x_train))
    assert not torch.allclose(features, untrained(images.x_train))


def plain_training(images, epochs, batch, step, seed):
    """The same training spelt out, image by image: shift, mirror, cross-entropy, momentum, decay."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = front_ends.ResNet20(1, 10).to(memory_format=torch.channels_last)  # the same rounding
    x = (images.x_train - images.x_train.mean()) / images.x_train.std()
    velocity = [torch.zeros_like(w) for w in network.parameters()]
    for epoch in range(epochs):
        now = step * 0.1 ** ((epoch >= epochs // 2) + (epoch >= 3 * epochs // 4))
        for chosen in torch.randperm(len(x), generator=generator).split(batch):
            top, left = torch.randint(9, (2,), generator=generator).tolist()
            mirror = bool(torch.rand(1, generator=generator) < 0.5)
            part = torch.zeros(len(chosen), 1, 16, 16)
            for k, i in enumerate(chosen.tolist()):  # what is moved in from outside is 0, the mean
                for row in range(16):
                    for column in range(16):
                        a, b = row + top - 4, (15 - column if mirror else column) + left - 4
                        if 0 <= a < 16 and 0 <= b < 16:
                            part[k, 0, row, column] = x[i, a, b]
            loss = torch.nn.functional.cross_entropy(network(part), images.y_train[chosen])
            slopes = torch.autograd.grad(loss, list(network.parameters()))
            with torch.no_grad():
                for w, v, g in zip(network.parameters(), velocity, slopes, strict=True):
                    v.mul_(0.9).add_(g + 1e-4 * w)
                    w.sub_(now * v)
    return network.eval().requires_grad_(False), x


@pytest.mark.parametrize("epochs", [0, 2])
def test_front_end_is_features_of_the_normalised_input_after_plain_training(images, epochs):
    """With the input 1 % too large, while training or afterwards, features differ by about 1 %."""
    fast = front_ends.pretrained_front_end(images, epochs, batch=20, step=0.02, seed=4)(images.x_train)
    network, x = plain_training(images, epochs, 20, 0.02, seed=4)
    plain = network.features(x[:, None])
    assert (fast - plain).abs().max() < 2e-4 * plain.abs().max()


def test_it_has_the_known_number_of_parameters():
    # 20 layers, 0.27 million parameters in colour (He et al. 2016, Table 6)
    number = sum(weight.numel() for weight in front_ends.ResNet20(channels=3, classes=10).parameters())
    assert 0.265e6 < number < 0.275e6


def test_patches_are_pieces_of_the_images(images):
    pictures = images.x_train[:5, :, :12]  # not square
    patches = front_ends._patches(pictures, 3, 400, seed=1)
    every = pictures.unfold(1, 3, 1).unfold(2, 3, 1).reshape(-1, 9)  # all 5 · 14 · 10 pieces
    found = (patches.reshape(400, 1, 9) == every).all(-1)
    assert patches.shape == (400, 3, 3) and found.any(1).all()
    assert found.any(0).double().mean() > 0.35  # of 700 places 400 draws hit 43.5 % on average
    assert torch.equal(patches, front_ends._patches(pictures, 3, 400, seed=1))


def test_filters_are_whitened_patches(images):
    """A filter is Z⁻¹ p for its patch p, Z the covariance of patches plus a twentieth of its mean variance, at unit response."""
    filters = front_ends.patch_filters(images.x_train.double(), 4, side=3, samples=500, seed=2)
    assert filters.shape == (4, 1, 3, 3)
    patches = front_ends._patches(images.x_train.double(), 3, 500, seed=2).flatten(1)
    patches = patches - patches.mean(1, keepdim=True)
    covariance = patches.mT @ patches / 500
    ridge = covariance + 0.05 * covariance.trace() / 9 * torch.eye(9).double()
    plain = torch.linalg.solve(ridge, patches[:4].mT).mT
    plain = plain / (patches @ plain.mT).std(0)[:, None]
    assert torch.allclose(filters.flatten(1), plain, rtol=1e-6)
    front = front_ends.random_front_end(images.x_train.double(), 4, side=3, seed=2)
    wanted = front_ends.patch_filters(images.x_train.double(), 4, side=3, seed=2)
    assert torch.equal(front(images.x_train.double()), front_ends.random_features(images.x_train.double(), wanted))


def test_random_features_by_hand(images):
    filters = front_ends.patch_filters(images.x_train, 2, side=2, samples=500)
    features = front_ends.random_features(images.x_train, filters).reshape(40, 2, 4, 4)
    # 16 pixels, filters of side 2 at every second: 8 × 8 responses, averaged in cells of 2 × 2
    cell = torch.zeros(40, 2)
    for top in (4, 6):
        for left in (8, 10):
            piece = images.x_train[:, None, top : top + 2, left : left + 2]
            cell += ((piece * filters[:, 0]).sum((2, 3)) - 0.5).clamp(min=0) / 4
    assert torch.allclose(features[:, :, 1, 2], cell, atol=1e-5)


def test_bad_calls_are_answered_in_one_sentence(images):
    x = images.x_train
    filters = torch.zeros(2, 1, 3, 3)
    refused = [
        (lambda: front_ends.front_end("nonsense", images, filters=2, epochs=1), "'nonsense'; choose random or resnet"),
        (lambda: front_ends.patch_filters(x, 2, side=17), "patches of side 17 do not fit into images of 16 × 16 pixels"),
        (lambda: front_ends.patch_filters(x[0], 2, side=3), r"patch_filters: images has shape \(16, 16\)"),
        (lambda: front_ends.patch_filters(x, 600, samples=500), "between 1 and the 500 patches that are drawn, got 600"),
        (lambda: front_ends.random_features(x, filters[:, 0]), "random_features: filters has shape"),
        (lambda: front_ends.random_features(x, filters.double()), "filters is float64 and images is float32"),
        (lambda: front_ends.random_features(x, filters.to("meta")), "filters is on meta and images on cpu"),
    ]  # fmt: skip
    for call, sentence in refused:
        with pytest.raises(ValueError, match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)

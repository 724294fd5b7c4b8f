"""The pretrained front end learns, freezes, and leaves the global random numbers alone."""

from types import SimpleNamespace

import torch

from lib.data import front_ends


def test_front_end_learns_and_freezes():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 10
    prototypes = torch.rand(10, 16, 16, generator=generator)
    pictures = prototypes[labels] + 0.2 * torch.rand(40, 16, 16, generator=generator)
    images = SimpleNamespace(x_train=pictures, y_train=labels)
    before = torch.random.get_rng_state()
    front_end = front_ends.pretrained_front_end(images, epochs=2, batch=20, seed=1)
    again = front_ends.pretrained_front_end(images, epochs=2, batch=20, seed=1)
    untrained = front_ends.pretrained_front_end(images, epochs=0, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    features = front_end(pictures)
    assert features.shape == (40, 512)
    assert not features.requires_grad
    assert torch.equal(features, again(pictures))
    assert not torch.allclose(features, untrained(pictures))


def test_it_has_the_known_number_of_parameters():
    # 20 layers, 0.27 million parameters in colour (He et al. 2016, Table 6)
    number = sum(weight.numel() for weight in front_ends.ResNet20(channels=3).parameters())
    assert 0.265e6 < number < 0.275e6

"""Coordinate networks: what is painted is what was trained, and the stages of fine-tuning are what they say."""

import math

import pytest
import torch

from lib import complexity
from lib.redshift import coordinate_networks, random_networks, trained_networks


def picture(m=16):
    x = random_networks.grid(m)
    return (0.5 + 0.4 * torch.sin(3 * x[:, 0]) * x[:, 1]).reshape(m, m)


def test_magnitudes_scale_the_same_draw():
    layers = coordinate_networks.coordinate_networks([1.0, 4.0], width=8, seeds=3)
    assert layers[0]["weight"].shape == (6, 8, 2) and layers[3]["weight"].shape == (6, 1, 8)
    for layer in layers:
        assert torch.equal(layer["weight"][3:], 4 * layer["weight"][:3])
        assert (layer["bias"] == 0).all()
    drawn = random_networks.draw(3, (2, 8, 8, 8, 1), random_networks.Prior(bias=0.0), dtype=torch.float32)
    assert all(torch.equal(a["weight"][:3], b["weight"]) for a, b in zip(layers, drawn, strict=True))


def test_paint_trains_on_the_given_pixels():
    target, pixels = picture().float(), torch.arange(0, 256, 3)
    made = coordinate_networks.paint("tanh", [1.0, 2.0], target, pixels, steps=150, rate=0.02, width=16, seeds=2, every=50)
    assert made.before.shape == made.trained.shape == made.shuffled.shape == (2, 2, 16, 16)
    assert made.run.time.tolist() == [0, 50, 100, 150] and made.run["cosine"].shape == (4, 4)
    seen = (made.trained.flatten(2)[..., pixels] - target.flatten()[pixels]).square().mean(-1)
    assert torch.allclose(seen.flatten(), made.run["loss"][-1], atol=1e-6)
    assert (made.run["loss"][-1] < 0.1 * made.run["loss"][0]).all()
    assert torch.allclose(complexity.cosine(made.trained).flatten(), made.run["cosine"][-1], atol=1e-4)
    assert torch.equal(trained_networks.render(made.layers, "tanh", 16).reshape(2, 2, 16, 16), made.trained)
    again = coordinate_networks.paint("tanh", [1.0, 2.0], target, pixels, steps=150, rate=0.02, width=16, seeds=2)
    assert torch.equal(again.trained, made.trained)  # looking on changes nothing, and a rerun is the same run
    alone = coordinate_networks.paint("tanh", [2.0], target, pixels, steps=20, rate=0.02, width=16)
    pair = coordinate_networks.paint("tanh", [1.0, 2.0], target, pixels, steps=20, rate=0.02, width=16, seeds=2)
    for state in ("before", "trained", "shuffled"):  # the first of two networks, whatever else is painted
        assert torch.allclose(getattr(pair, state)[1, 0], getattr(alone, state)[0, 0], atol=1e-4)


def test_what_observes_a_painting_sees_each_layer_on_the_way():
    target, pixels = picture().float(), torch.arange(0, 256, 3)
    watch = lambda layers: {"first": layers[0]["weight"][:1].abs().amax((1, 2)), "last": layers[-1]["bias"].flatten()}  # noqa: E731
    options = {"steps": 12, "rate": 0.02, "width": 8, "seeds": 2, "every": 5}
    plain = coordinate_networks.paint("relu", [1.0], target, pixels, **options)
    seen = coordinate_networks.paint("relu", [1.0], target, pixels, observe=watch, **options)
    assert seen.run.time.tolist() == [0, 5, 10, 12] and seen.run["first"].shape == (4, 1) and seen.run["last"].shape == (4, 2)
    assert torch.equal(seen.trained, plain.trained) and torch.equal(seen.run["cosine"], plain.run["cosine"])
    assert torch.equal(seen.run["last"][-1], seen.layers[-1]["bias"].flatten()) and len(seen.run["last"].unique(dim=0)) == 4
    with pytest.raises(ValueError, match="every is 0"):
        coordinate_networks.paint("relu", [1.0], target, pixels, observe=watch, **(options | {"every": 0}))


def test_stripes_have_their_frequency():
    waves = coordinate_networks.stripes(4, torch.tensor([0.0, 0.7]), 64)
    assert waves.shape == (2, 64, 64)
    assert (complexity.energy_above(waves, 3) > 0.8).all() and (complexity.energy_above(waves, 6) < 0.1).all()
    along = coordinate_networks.stripes(5, torch.tensor([0.0]), 65)[0, :, 0]  # five periods: 0 at both edges, 9 times between
    assert float(along[[0, 32, 64]].abs().max()) < 1e-5
    assert int((along[1:-1].sign().diff() != 0).sum()) >= 9
    whole = coordinate_networks.stripes(5, torch.tensor([math.pi / 2]), 65)[0]
    assert torch.allclose(whole, torch.sin(5 * math.pi * torch.linspace(-1, 1, 65)).expand(65, 65), atol=1e-5)


def test_fine_tuning_is_its_stages_one_by_one():
    """Drawn without biases at magnitude 1, trained on the first images, trained on the second from three starts."""
    angles, pixels = torch.tensor([0.3, 1.2, 2.0]), torch.arange(0, 256, 3)
    first, then = coordinate_networks.stripes(3, angles, 16), coordinate_networks.stripes(1, angles + 1, 16)
    plan = {"pretraining": 12, "steps": 6, "rate": 0.01, "depth": 2, "width": 8, "every": 3, "seed": 5}
    _, share = coordinate_networks.fine_tune("tanh", first, then, pixels, cut=2.0, **plan)
    fresh = random_networks.draw(3, (2, 8, 8, 1), random_networks.Prior(bias=0.0), seed=5, dtype=torch.float32)
    places = random_networks.grid(16, dtype=torch.float32)[pixels]
    known = {"fresh": trained_networks.copied(fresh), "pretrained": fresh}
    trained_networks.fit_network(fresh, places, first.reshape(3, 256)[:, pixels], "tanh", rate=0.01, steps=12)
    known["shuffled"] = trained_networks.shuffled(fresh, 5)
    for name, start in known.items():
        layers = trained_networks.copied(start)
        seen = [complexity.energy_above(trained_networks.render(layers, "tanh", 16), 2.0)]
        trained_networks.fit_network(layers, places, then.reshape(3, 256)[:, pixels], "tanh", rate=0.01, steps=6)
        seen.append(complexity.energy_above(trained_networks.render(layers, "tanh", 16), 2.0))
        assert torch.allclose(share[name][[0, -1]], torch.stack(seen), atol=1e-5)

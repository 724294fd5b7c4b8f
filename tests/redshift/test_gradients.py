"""Quick activations and gradients by hand, against torch's functions and automatic differentiation."""

import pytest
import torch

from lib.linear import WrongAxes
from lib.redshift import random_networks, trained_networks
from lib.redshift.random_networks import Prior
from lib.redshift.units import activations, gradients

DTYPES = {torch.float64: 1e-13, torch.float32: 1e-5}


@pytest.mark.parametrize("name", activations.QUICK)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_quick_activation_and_its_slope_are_those_of_torch(name, dtype):
    z = torch.cat([torch.linspace(-40, 40, 1001, dtype=dtype), torch.linspace(-3, 3, 1000, dtype=dtype)]).requires_grad_()
    delta = torch.linspace(-2, 3, len(z), dtype=dtype)
    value = activations.phi(name)(z)
    (slope,) = torch.autograd.grad(value, z, delta)
    forward, back = activations.QUICK[name]
    kept, out, towards = z.detach().clone(), torch.empty_like(z), delta.clone()
    assert forward(kept, out) is out and torch.equal(kept, z)
    assert torch.allclose(out, value, rtol=DTYPES[dtype], atol=DTYPES[dtype])
    assert back(towards, kept, out) is towards
    assert torch.allclose(towards, slope, rtol=DTYPES[dtype], atol=5 * DTYPES[dtype])


@pytest.mark.parametrize("name", activations.QUICK)
def test_values_are_quick_where_no_gradient_is_wanted_and_in_place_unless_kept(name):
    z = torch.linspace(-3, 3, 50, dtype=torch.float32)
    kept = z.clone()
    value = activations.apply(name, kept, keep=True)
    assert torch.equal(kept, z) and torch.allclose(value, activations.phi(name)(z), atol=1e-6)
    assert activations.apply(name, kept) is kept and torch.equal(kept, value)
    z.requires_grad_()
    assert activations.apply(name, z).requires_grad and torch.equal(z.detach(), torch.linspace(-3, 3, 50))


def ensemble(x):
    sizes = (x.shape[-1], 7, 9, 1)
    return random_networks.draw(4, sizes, Prior(1.5, 0.4), seed=3)


@pytest.mark.parametrize("name", activations.QUICK)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("prefactor", [1.0, 1.7, "each its own"])
def test_by_hand_an_ensemble_learns_as_by_automatic_differentiation(name, loss, prefactor):
    if prefactor == "each its own":
        prefactor = torch.tensor([0.5, 1.0, 2.0, 2.5]).double()[:, None, None]
    x = random_networks.grid(5)
    y = (x.prod(1) > 0).double().expand(4, -1) + (0.3 * torch.arange(4)[:, None] if loss == "squared" else 0)
    fits = {}
    for by_hand in (True, False):
        layers = ensemble(x)
        seen = lambda layers=layers: {"size": trained_networks.weight_magnitude(layers)}  # noqa: E731
        options = {"rate": 0.02, "steps": 30, "every": 7, "loss": loss, "prefactor": prefactor, "observe": seen}
        fits[by_hand] = trained_networks.fit_network(layers, x, y, name, by_hand=by_hand, **options), layers
    (hand, moved), (auto, expected) = fits[True], fits[False]
    assert hand.time.tolist() == auto.time.tolist() == [0, 7, 14, 21, 28, 30]
    assert torch.allclose(hand["loss"], auto["loss"], atol=1e-10) and torch.allclose(hand["size"], auto["size"], atol=1e-10)
    assert (hand["loss"][-1] < hand["loss"][0]).all()
    for a, b in zip(moved, expected, strict=True):
        assert torch.allclose(a["weight"], b["weight"], atol=1e-8) and torch.allclose(a["bias"], b["bias"], atol=1e-8)


def test_by_hand_every_network_may_have_points_of_its_own():
    x = torch.stack([random_networks.grid(4) * (1 + k / 4) for k in range(4)])  # (seeds, points, inputs)
    y = x.prod(-1).sin()
    one, two = ensemble(x), ensemble(x)
    trained_networks.fit_network(one, x, y, "tanh", rate=0.02, steps=12)
    trained_networks.fit_network(two, x, y, "tanh", rate=0.02, steps=12, by_hand=False)
    assert all(torch.allclose(a["weight"], b["weight"], atol=1e-10) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("prefactor", [1.0, 1.7])
def test_equal_inputs_are_learned_as_one_to_the_same_weights_as_by_automatic_differentiation(prefactor):
    x = random_networks.grid(5)
    x = torch.cat([x, x[:, :1].expand(-1, 7), torch.full((len(x), 5), -1.0).double(), x.square()], 1)  # 5 kinds of 16 inputs
    distinct, which, counts = gradients.folded(x)
    assert torch.equal(distinct[:, which], x) and sorted(counts.tolist()) == [1, 1, 1, 5, 8]
    y = x[:, :2].prod(1).sin()
    one, two = ensemble(x), ensemble(x)
    before = one[0]["weight"].clone()
    seen = lambda: {"size": trained_networks.weight_magnitude(one)}  # noqa: E731
    options = {"rate": 0.02, "steps": 40, "prefactor": prefactor}
    run = trained_networks.fit_network(one, x, y, "tanh", every=10, observe=seen, **options)
    trained_networks.fit_network(two, x, y, "tanh", by_hand=False, **options)
    assert all(torch.allclose(a["weight"], b["weight"], atol=1e-9) for a, b in zip(one, two, strict=True))
    assert all(torch.allclose(a["bias"], b["bias"], atol=1e-9) for a, b in zip(one, two, strict=True))
    assert run["loss"][-1].max() < 0.5 * run["loss"][0].min() and len(run["size"].unique(dim=0)) == 5
    assert not torch.allclose(one[0]["weight"], before, atol=0.01)  # equal weights would stay equal: these did not start so


def test_inputs_are_folded_only_where_it_saves_something():
    x = torch.randn(6, 20, generator=torch.Generator().manual_seed(0))
    assert gradients.folded(x) is None  # all differ
    assert gradients.folded(x[:, [0] * 9]) is None  # few inputs
    assert gradients.folded(torch.stack([x, x])) is None  # each network has its own points
    few = x.clone()
    few[:, 1] = few[:, 0]
    assert gradients.folded(few) is None  # one of twenty
    few[:, 2] = few[:, 0]
    assert gradients.folded(few)[0].shape == (6, 18)  # two of twenty


@pytest.mark.parametrize("prefactor", [1.0, 1.7])
@pytest.mark.parametrize("name", ["relu", "gaussian", "sine"])
@pytest.mark.parametrize("m", [10, 15])  # less than a block of points, and more
def test_by_hand_many_points_are_learned_as_by_automatic_differentiation(m, name, prefactor):
    x = random_networks.grid(m)
    one, two = ensemble(x), ensemble(x)
    options = {"rate": 0.02, "steps": 12, "prefactor": prefactor}
    trained_networks.fit_network(one, x, x.prod(-1).sin(), name, **options)
    trained_networks.fit_network(two, x, x.prod(-1).sin(), name, by_hand=False, **options)
    assert all(torch.allclose(a[kind], b[kind], atol=1e-10) for a, b in zip(one, two, strict=True) for kind in a)


def test_by_hand_layers_may_have_any_width():
    x = random_networks.grid(15)
    start = lambda: random_networks.draw(2, (2, 9, 80, 7, 1), seed=1)  # noqa: E731
    one, two = start(), start()
    trained_networks.fit_network(one, x, x.prod(-1), "sine", rate=0.02, steps=5)
    trained_networks.fit_network(two, x, x.prod(-1), "sine", rate=0.02, steps=5, by_hand=False)
    assert all(torch.allclose(a[kind], b[kind], atol=1e-10) for a, b in zip(one, two, strict=True) for kind in a)


def test_by_hand_in_single_precision_the_loss_falls_alike():
    x, layers = random_networks.grid(8, dtype=torch.float32), []
    losses = []
    for by_hand in (True, False):
        layers = random_networks.draw(3, (2, 16, 16, 1), seed=1, dtype=torch.float32)
        run = trained_networks.fit_network(layers, x, x.prod(1), "sine", rate=0.01, steps=60, by_hand=by_hand)
        losses.append(run["loss"])
        assert layers[0]["weight"].dtype == torch.float32
    assert torch.allclose(*losses, rtol=1e-2) and float((losses[0][-1] / losses[0][0]).max()) < 0.5


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_makes_no_sense_is_refused(by_hand):
    x = random_networks.grid(3)
    options = {"rate": 0.1, "steps": 1, "by_hand": by_hand}
    with pytest.raises(WrongAxes, match="target has shape"):
        trained_networks.fit_network(ensemble(x), x, torch.zeros(8).double(), "relu", **options)
    with pytest.raises(ValueError, match="loss is one of"):
        trained_networks.fit_network(ensemble(x), x, torch.zeros(9).double(), "relu", loss="absolute", **options)
    with pytest.raises(FloatingPointError, match="diverged"):
        trained_networks.fit_network(ensemble(x), x, torch.full((9,), torch.nan).double(), "relu", **options)

"""Gating patterns of the room's own networks and of any torch module; shares by weight; the area between curves."""

import pytest
import torch
from torch import nn

from lib import relu
from lib.linear import WrongAxes


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def as_weights(*layers):
    """The room's matrices of torch's layers: the bias is one more column, for a constant input of 1."""
    return [torch.cat([layer.weight, layer.bias[:, None]], 1).detach() for layer in layers]


class Nested(nn.Module):
    """A block inside a block, with a ReLU that works in place."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 7)
        self.body = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(7, 5), nn.ReLU(inplace=True)), nn.Dropout(0.5))
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        return self.last(self.body(self.first(x)))


def test_a_module_has_the_gates_of_the_same_weights():
    """Sequential and nested, with biases, against `relu.gates`: the very same patterns."""
    x = random(9, 4)  # rows, as torch modules take them
    plain = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    nested = Nested().double()
    for module, layers in ((plain, plain[::2]), (nested, (nested.first, nested.body[1][0], nested.last))):
        for parameter in module.parameters():
            parameter.data.mul_(1e-3)  # units that are on by a hair are on
        found = relu.gates_of(module, x)
        assert list(found) == (["1", "3"] if module is plain else ["body.0", "body.1.1"])
        for layer, on in enumerate(found.values()):
            expected = relu.gates(as_weights(*layers), x.mT, layer, bias=1.0)
            assert on.dtype == torch.bool and on.shape == ((7, 5)[layer], 9) and torch.equal(on, expected)


def test_the_module_is_left_as_it_was():
    module = nn.Sequential(nn.Linear(4, 7), nn.BatchNorm1d(7), nn.ReLU(inplace=True), nn.Dropout(0.9), nn.Linear(7, 2))
    module.train()
    module[3].eval()  # modes of the parts are kept one by one
    x = random(9, 4).float().requires_grad_()
    before = {name: value.clone() for name, value in module.state_dict().items()}, x.detach().clone()
    first = relu.gates_of(module, x)["2"]
    assert torch.equal(first, relu.gates_of(module, x)["2"])  # no dropout, no batch statistics
    assert [part.training for part in module] == [True, True, True, False, True] and module.training
    assert all(torch.equal(value, before[0][name]) for name, value in module.state_dict().items())
    assert torch.equal(x, before[1]) and x.grad is None and all(p.requires_grad and p.grad is None for p in module.parameters())
    assert not any(part._forward_hooks for part in module.modules()) and torch.is_grad_enabled()
    with pytest.raises(RuntimeError):
        relu.gates_of(module, random(9, 5))
    assert not any(part._forward_hooks for part in module.modules()) and module.training and not module[3].training


def test_images_and_relus_used_twice():
    images = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 16, 3))
    assert relu.gates_of(images, random(5, 1, 6, 6))["1"].shape == (2 * 4 * 4, 5)
    again = nn.ReLU()
    twice = nn.Sequential(nn.Linear(4, 7), again, nn.Linear(7, 5), again)
    found = relu.gates_of(twice, random(9, 4))
    assert {name: len(on) for name, on in found.items()} == {"1": 7, "1 (2)": 5}
    with pytest.raises(ValueError, match="no nn.ReLU"):
        relu.gates_of(nn.Linear(4, 2), random(9, 4))


def test_shares_by_weight():
    """Units of weight 10 and 5, by hand; per network of an ensemble; and as a mean of numbers."""
    weights = [torch.tensor([[3.0, 4.0], [0.0, 1.0]]), torch.tensor([[2.0, 0.0], [0.0, 5.0]])]
    assert float(relu.share(weights, torch.tensor([True, False]))) == pytest.approx(2 / 3)
    assert float(relu.share(weights, torch.tensor([0.1, 0.4]))) == pytest.approx(0.2)
    many = relu.initial_weights([3, 8, 6, 2], 0.5, seeds=4)
    mask = random(4, 6, seed=2) > 0
    heavy = relu.unit_weight(many, 1)
    expected = torch.stack([heavy[k][mask[k]].sum() / heavy[k].sum() for k in range(4)])
    torch.testing.assert_close(relu.share(many, mask, layer=1), expected)
    with pytest.raises(ValueError, match="mask has 6 units"):
        relu.share(many, mask)


def test_wrong_axes_are_named():
    with pytest.raises(WrongAxes, match="units, items"):
        relu.unit_states(torch.ones(3).bool())
    with pytest.raises(WrongAxes, match="weight has 4 units"):
        relu.unit_states(torch.ones(3, 5).bool(), torch.ones(4))
    with pytest.raises(ValueError, match="only 2 different patterns"):
        relu.cluster_gates(torch.eye(3)[:2].bool(), 3)


def test_effective_gates_of_many_networks_are_those_of_each_counted_gate_by_gate():
    generator = torch.Generator().manual_seed(2)
    on = torch.rand(2, 3, 30, 3, generator=generator) > 0.4
    weight = torch.rand(2, 3, 30, generator=generator, dtype=torch.float64)
    for i in range(2):
        for j in range(3):
            total = {}
            for pattern, w in zip(on[i, j].tolist(), weight[i, j].tolist(), strict=True):
                total[tuple(pattern)] = total.get(tuple(pattern), 0.0) + w
            share = torch.tensor(list(total.values()), dtype=torch.float64) / weight[i, j].sum()
            plain = (-share * share.log()).sum().exp()
            torch.testing.assert_close(relu.effective_gates(on, weight)[i, j], plain, rtol=1e-13, atol=0)

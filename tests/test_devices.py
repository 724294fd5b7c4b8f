"""The fake GPU refuses what a GPU refuses, and runs what no page runs on a device (for pages see `book/test_pages_run.py`)."""

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from lib import gated
from lib.data import datasets, front_ends, image_domains, tasks
from lib.gated import random_graphs
from lib.gated.architectures import classifiers, routing
from lib.linear import chains
from lib.redshift import random_networks, trained_networks
from tests.fake_gpu import DEVICE, FakeGpuTensor, WrongDevice, fake_gpu, operations

MADE_THERE = {
    "named": lambda x: torch.ones(3, device=x.device),
    "moved": lambda x: torch.ones(3).to("meta"),
    "moved with a precision": lambda x: torch.ones(3).to(x.device, torch.float64),
    "moved to where another is": lambda x: torch.ones(3).to(x),
    "like another": lambda x: torch.ones(3).type_as(x),
    "in a list": lambda x: torch.cat([x, x]),
    "inside of a function": lambda x: torch.block_diag(x, x),
}


@pytest.mark.parametrize("call", MADE_THERE.values(), ids=MADE_THERE)
def test_what_is_made_on_the_device_is_seen(call):
    """Calls that stay on the CPU are not looked at; these are all of the others."""
    with fake_gpu() as device:
        made = call(torch.arange(6.0).reshape(2, 3).to(device).requires_grad_())
    assert isinstance(made, FakeGpuTensor)


def test_the_fake_gpu_refuses_what_a_gpu_refuses():
    with fake_gpu() as device:
        a = torch.tensor([1.0, 2.0, 3.0], device=device)
        w = torch.ones(2, 3).to(device).requires_grad_()
        (w @ a).square().sum().backward()
        assert isinstance(w.grad, FakeGpuTensor) and w.grad.cpu().tolist() == [[12, 24, 36], [12, 24, 36]]
        a[torch.tensor([0])] = 5.0  # an index may come from the CPU, a single number too
        assert (a * torch.tensor(2.0)).tolist() == [10, 4, 6] and a.sum().item() == 10 and a.device.type == device
        a += 1
        assert a.new_zeros(2).device == DEVICE and a[1:].cpu().numpy().tolist() == [3, 4]
        refused = (
            lambda: a + torch.ones(3),
            lambda: torch.ones(2, 3) @ a,
            lambda: torch.cat([a, torch.ones(1)]),
            lambda: torch.ones(3)[a.long() > 3],
            lambda: torch.randn(3, device=device),
            lambda: a.normal_(),
            lambda: a.numpy(),
        )
        for wrong in refused:
            with pytest.raises(WrongDevice):
                wrong()
        assert (torch.ones(3) + torch.randn(3)).device.type == "cpu"


X, Y = tasks.hierarchy(8)


def rows(count=40, seed=0):
    """Random images of 8 × 8 pixels and their labels, as a data set."""
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.rand(count, 8, 8, generator=generator), torch.arange(count) % 3
    return datasets.Images("noise", x, y, x[:20], y[:20], ("a", "b", "c"), "")


def chain(device):
    weights = chains.small_weights([(5, X.shape[0]), (Y.shape[0], 5)], 0.1, seeds=2, device=device)
    run = chains.train_on_statistics(weights, X.to(device), Y.to(device), step=0.1, steps=20, every=5)
    return weights, run.values, run.time_to(float(run["loss"].cpu()[2, 0]))


def network(device):
    net, data, _ = random_graphs.random_example(seed=3)
    data = tree_map_data(data, device)
    weights = gated.initial_weights(net, 0.3, seeds=2, device=device)
    statistics = gated.effective_datasets(net, data)
    before = gated.loss(net, weights, data), gated.backpropagate(net, weights, data)
    run = gated.train(net, weights, statistics, step=0.05, steps=10, every=5)
    return before, run.values, weights


def tree_map_data(data, device):
    """A gated network's data on a device."""
    parts = {name: tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, value)
             for name, value in vars(data).items()}  # fmt: skip
    return type(data)(**parts)


def classified(device):
    """Images, a random front end, and a classifier of several domains."""
    images = rows()
    see = front_ends.front_end("random", images, filters=4, epochs=1, device=device)
    data = image_domains.rotated_domains(rows(), 3, components=6).to(device)
    mask = routing.circulant(3, 2).to(device)
    weights = classifiers.initial_classifier(3, 6, 5, 3, 0.5, seeds=2, device=device)
    data = image_domains.Domains(*(v.float() if v.is_floating_point() else v for v in vars(data).values()))
    how = {"step": 0.1, "steps": 6, "batch": 5, "every": 3, "generator": torch.Generator().manual_seed(0)}
    run = classifiers.train_classifier(weights, data, mask, leak=0.1, **how)
    return (
        see(images.x_test.to(device)),
        weights,
        run.values,
        classifiers.classifier_errors(weights, data, 0.1),
        classifiers.regression_errors(data),
    )


# What no page runs on a device; everything else meets the fake GPU with its page (`book/test_pages_run.py`).
CASES = {
    "linear": chain,
    "gated": network,
    "data": classified,
    "camera": lambda device: datasets.camera(device),
    "traversal": lambda device: random_networks.traversal(3, 6, device=device),
    "modulo sums": lambda device: trained_networks.learn_modulo_sums(
        "relu", (1.0, 2.0), (2, 3), 0.5, numbers=5, width=8, steps=4, every=2, device=device
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_is_left_behind_on_the_cpu(case):
    here = [leaf for leaf in tree_leaves(case("cpu")) if isinstance(leaf, torch.Tensor)]
    before = operations[0]
    with fake_gpu() as device:
        back = [leaf.cpu() for leaf in tree_leaves(case(device)) if isinstance(leaf, torch.Tensor)]
    assert operations[0] > before, "nothing happened on the device"
    assert len(here) == len(back) > 0
    for a, b in zip(here, back, strict=True):  # the CPU has fused loops of its own, which round otherwise
        assert a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)

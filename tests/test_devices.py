"""The fake GPU refuses what a GPU refuses, and runs what no page runs on a device (for pages see `book/test_pages_run.py`)."""

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from lib import gated
from lib.data import datasets, image_domains, tasks
from lib.gated import random_graphs
from lib.gated.architectures import classifiers, routing
from lib.linear import chains
from lib.redshift import random_networks, trained_networks
from tests.fake_gpu import DEVICE, FakeGpuTensor, WrongDevice, fake_gpu, operations


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


def test_what_is_made_on_the_device_is_seen():
    """Calls that stay on the CPU are not looked at; these are all of the others."""
    with fake_gpu() as device:
        x = torch.arange(6.0).reshape(2, 3).to(device).requires_grad_()
        made = [torch.ones(3, device=x.device), torch.ones(3).to("meta"), torch.ones(3).to(x.device, torch.float64)]
        made += [torch.ones(3).to(x), torch.ones(3).type_as(x), torch.cat([x, x]), torch.block_diag(x, x)]
    assert all(isinstance(one, FakeGpuTensor) for one in made)


def chain(device):
    x, y = tasks.hierarchy(8)
    weights = chains.small_weights([(5, x.shape[0]), (y.shape[0], 5)], 0.1, seeds=2, device=device)
    run = chains.train_on_statistics(weights, x.to(device), y.to(device), step=0.1, steps=20, every=5)
    return weights, run.values, run.time_to(float(run["loss"].cpu()[2, 0]))


def gated_network(device):
    net, data, _ = random_graphs.random_example(seed=3)
    parts = tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, vars(data))
    data = type(data)(**parts)
    weights = gated.initial_weights(net, 0.3, seeds=2, device=device)
    run = gated.train(net, weights, gated.effective_datasets(net, data), step=0.05, steps=10, every=5)
    return gated.loss(net, weights, data), gated.backpropagate(net, weights, data), run.values, weights


def classifier(device):
    """A classifier of three domains of random images of 8 × 8 pixels."""
    x, y = torch.rand(40, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    images = datasets.Images("noise", x, y, x[:20], y[:20], ("a", "b", "c"), "")
    data = vars(image_domains.rotated_domains(images, 3, components=6).to(device)).values()
    data = image_domains.Domains(*(value.float() if value.is_floating_point() else value for value in data))
    weights = classifiers.initial_classifier(3, 6, 5, 3, 0.5, seeds=2, device=device)
    how = {"step": 0.1, "steps": 6, "batch": 5, "every": 3, "generator": torch.Generator().manual_seed(0)}
    run = classifiers.train_classifier(weights, data, routing.circulant(3, 2).to(device), leak=0.1, **how)
    return weights, run.values, classifiers.classifier_errors(weights, data, 0.1), classifiers.regression_errors(data)


# What no page runs on a device; everything else meets the fake GPU with its page (`book/test_pages_run.py`).
CASES = {
    "linear": chain,
    "gated": gated_network,
    "classifier": classifier,
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

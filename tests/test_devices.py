"""Everything in `lib` that takes a `device` runs on the fake GPU (pages do in `book/test_pages_run.py`)."""

import importlib
import inspect
import pkgutil

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from lib import biases, complexity, gated, relu
from lib.data import datasets, front_ends, image_domains, tasks
from lib.gated import random_graphs
from lib.gated.architectures import classifiers, routing
from lib.linear import chains
from lib.redshift import coordinate_networks, random_networks, trained_networks, transformers
from lib.relu import minibatches
from tests.fake_gpu import DEVICE, FakeGpuTensor, WrongDevice, fake_gpu, operations

ROOMS = ("linear", "data", "complexity", "gated", "relu", "redshift", "biases")
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


def moved(images, device):
    parts = {name: value.to(device) for name, value in vars(images).items() if isinstance(value, torch.Tensor)}
    return datasets.Images(**(vars(images) | parts))


def chain(device):
    weights = chains.small_weights([(5, X.shape[0]), (Y.shape[0], 5)], 0.1, seeds=2, device=device)
    run = chains.train_on_statistics(weights, X.to(device), Y.to(device), step=0.1, steps=20, every=5)
    return weights, run.values, run.time_to(float(run["loss"].cpu()[2, 0]))


def front_end(kind):
    def case(device):
        images = rows()
        if kind == "pretrained":
            see = front_ends.pretrained_front_end(images, 1, batch=10, device=device)
        else:
            see = front_ends.front_end(kind, images, filters=4, epochs=1, device=device)
        return see(images.x_test.to(device)), see(images.x_test)

    return case


def domains(device):
    return vars(image_domains.rotated_domains(rows(), 3, components=6).to(device))


def classifier(device):
    data = image_domains.rotated_domains(rows(), 3, components=6).to(device)
    mask = routing.circulant(3, 2).to(device)
    weights = classifiers.initial_classifier(3, 6, 5, 3, 0.5, seeds=2, device=device)
    data = image_domains.Domains(*(v.float() if v.is_floating_point() else v for v in vars(data).values()))
    how = {"step": 0.1, "steps": 6, "batch": 5, "every": 3, "generator": torch.Generator().manual_seed(0)}
    run = classifiers.train_classifier(weights, data, mask, leak=0.1, **how)
    return weights, run.values, classifiers.classifier_errors(weights, data, 0.1), classifiers.regression_errors(data)


def routed(device):
    task = routing.shared_task(X, Y, 3).to(device=device)
    mask = routing.circulant(3, 2).to(device)
    weights = routing.initial_weights(task, 6, 0.1, seeds=2, device=device)
    run = routing.train(weights, task, mask, step=routing.step_of_rate(0.1, task, mask), steps=20, every=5, momentum=0.5)
    seen = [look(weights, task) for look in (routing.route_losses, routing.singular_values, routing.domain_cosine)]
    seen += [routing.similarity(weights), routing.over(seen[0], mask), routing.domain_share(weights, task)]
    return weights, run.values, seen


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


def small_batches(device):
    x, y, x_test, y_test = minibatches.prepared(moved(rows(), device), "pixel mean")
    networks = minibatches.draw(64, 3, 5, 0.3, (2.0, 0.0), 2, device=device)
    run = minibatches.train(networks, x, y, step=0.1, steps=6, batch=8, every=3)
    level = float(run["loss"].cpu()[-1].max()) * 0.9
    again = minibatches.draw(64, 3, 5, 0.3, (2.0, 0.0), 2, device=device)
    how = {"step": 0.1, "batch": 8, "every": 3, "limit": 60}
    reached = minibatches.train_to(again, x, y, [level], lambda e: {"rank": e.effective_rank(x)}, **how)
    return run.values, networks.weights, networks.loss_and_error(x_test, y_test), reached


def rectified(device):
    weights = relu.initial_weights((X.shape[0], 6, Y.shape[0]), 0.1, seeds=2, conditions=(2,), bias=0.5, device=device)
    x, y = X.to(device), Y.to(device)
    run = relu.train(weights, x, y, step=0.05, steps=10, every=5, bias=0.5)
    deep = relu.initial_weights((X.shape[0], 6, 5, Y.shape[0]), 0.3, seeds=2, seed=1, device=device)
    on = relu.gates(deep, x)
    slopes, after = relu.gradient(deep, x, y), relu.train(deep, x, y, step=0.05, steps=4)
    return run.values, weights, slopes, on, relu.unit_states(on), after.values


def painting(device):
    picture = torch.linspace(0, 1, 64).reshape(8, 8)
    how = {"steps": 4, "rate": 0.01, "width": 8, "seeds": 2, "every": 2}
    made = coordinate_networks.paint("tanh", (1.0, 2.0), picture, torch.arange(0, 64, 2), **how, device=device)
    return tree_leaves(vars(made))


def tuning(device):
    picture = torch.linspace(0, 1, 64).reshape(8, 8)
    first, then = (one.expand(2, 8, 8) for one in (picture, picture.T))
    how = {"pretraining": 4, "steps": 4, "rate": 0.01, "width": 8, "every": 2}
    return coordinate_networks.fine_tune("relu", first, then, torch.arange(0, 64, 2), **how, device=device)


def drawn(device):
    layers = random_networks.draw(3, (2, 6, 1), random_networks.Prior(2.0, 1.0), gates="all", dtype=torch.float32, device=device)
    plain = random_networks.draw(3, (2, 6, 1), dtype=torch.float32, device=device)
    points = complexity.grid(6, dtype=torch.float32, device=device)
    target = points[:, 0].expand(3, -1)
    run = trained_networks.fit_network(plain, points, target, "relu", rate=0.01, steps=4, every=2)
    mixed = trained_networks.shuffled(plain)
    return layers, run.values, mixed, trained_networks.render(plain, "relu", 6)


def pictured(device):
    made = [random_networks.images(kind, 3, width=8, m=8, device=device) for kind in ("relu", "gaussian", "sine")]
    made += [
        random_networks.images("relu", 3, width=8, m=8, variant=kind, device=device)
        for kind in ("layer norm", "residual", "gated")
    ]
    return made, [complexity.of(made[0], measure=None)]


def written(device):
    shape = transformers.Shape(width=8, heads=2, blocks=2, vocabulary=11, context=12)
    weights = transformers.draw(shape, 2, device=device)
    prompts = transformers.draw_prompts(shape, 2, 2).to(device)
    return transformers.write(weights, shape, prompts, "relu", length=6), transformers.write_grid(
        weights, shape, prompts, "gelu", (1.0, 2.0), length=4, centred=True
    )


def frozen(device):
    images = moved(rows(), device)
    x, y = images.x_train.flatten(1), images.y_train
    net, how = biases.frozen(12, 64, 3, seeds=2, device=device), {"epochs": 2, "batch": 10}
    made = [
        biases.train_biases(net, x, y, **how),
        biases.train_biases(net, biases.PreActivations(net, x), y, **how),
        biases.train_masks(net, x, y, **how),
        biases.train_fully(net, x, y, **how),
    ]
    right = [biases.accuracy(one.network, one.bias, x, y, one.mask, one.output_bias) for one in made]
    spread = [biases.unit_variance(one.network, one.bias, x, one.mask) for one in made]
    return [[one.bias, one.mask, one.loss, one.output_bias] for one in made], right, spread


def remembering(device):
    signal = torch.sin(torch.arange(60.0) / 5)[:, None].to(device)
    net = biases.recurrent.recurrent(8, seeds=2, device=device)
    learned, losses = biases.recurrent.train(net, signal[:-1], signal[1:], steps=3, batch=2, window=10)
    answer = biases.recurrent.predict(learned, signal)
    free = biases.recurrent.closed_loop(learned, signal, free=5, lead=10)
    return losses, learned.bias, answer, free, biases.recurrent.r_squared(answer[..., :-1, :], signal[1:])


CASES = {
    "linear.chains.small_weights": chain,
    "data.datasets.load": lambda device: vars(datasets.load("mnist", train=20, test=10, device=device)),
    "data.datasets.camera": lambda device: datasets.camera(device),
    "data.front_ends.front_end": front_end("random"),
    "data.front_ends.pretrained_front_end": front_end("pretrained"),
    "data.image_domains.Domains.to": domains,
    "complexity.measures.grid": lambda device: complexity.grid(5, device=device),
    "gated.architectures.classifiers.initial_classifier": classifier,
    "gated.architectures.routing.Task.to": routed,
    "gated.architectures.routing.initial_weights": routed,
    "gated.engine.initial_weights": network,
    "relu.minibatches.draw": small_batches,
    "relu.networks.initial_weights": rectified,
    "redshift.coordinate_networks.coordinate_networks": painting,
    "redshift.coordinate_networks.paint": painting,
    "redshift.coordinate_networks.fine_tune": tuning,
    "redshift.random_networks.traversal": lambda device: random_networks.traversal(3, 6, device=device),
    "redshift.random_networks.draw": drawn,
    "redshift.random_networks.images": pictured,
    "redshift.trained_networks.learn_modulo_sums": lambda device: trained_networks.learn_modulo_sums(
        "relu", (1.0, 2.0), (2, 3), 0.5, numbers=5, width=8, steps=4, every=2, device=device
    ),
    "redshift.transformers.draw": written,
    "biases.networks.frozen": frozen,
    "biases.recurrent.recurrent": remembering,
}


def takers() -> set[str]:
    """Everything public in the rooms of science that has an argument `device`."""
    found = set()
    for room in ROOMS:
        top = importlib.import_module(f"lib.{room}")
        for module in (importlib.import_module(info.name) for info in pkgutil.walk_packages(top.__path__, f"lib.{room}.")):
            for path, function in functions_of(module):
                if "device" in inspect.signature(function).parameters:
                    found.add(f"{module.__name__.removeprefix('lib.')}.{path}")
    return found


def functions_of(module):
    """(name, function) of a module's own public functions and methods."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(thing):
            yield name, thing
        for part, method in vars(thing).items() if inspect.isclass(thing) else ():
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and (part == "__init__" or not part.startswith("_")):
                yield f"{name}.{part}", method


def test_everything_that_takes_a_device_has_a_case():
    found = takers()
    assert len(found) >= 20
    assert found == set(CASES), f"without a case: {sorted(found - set(CASES))}; gone: {sorted(set(CASES) - found)}"


NAMED = {case: name for name, case in reversed(CASES.items())}


@pytest.mark.parametrize("case", NAMED, ids=NAMED.get)
def test_nothing_is_left_behind_on_the_cpu(case):
    here = [leaf for leaf in tree_leaves(case("cpu")) if isinstance(leaf, torch.Tensor)]
    before = operations[0]
    with fake_gpu() as device:
        back = [leaf.cpu() for leaf in tree_leaves(case(device)) if isinstance(leaf, torch.Tensor)]
    assert operations[0] > before, "nothing happened on the device"
    assert len(here) == len(back) > 0
    for a, b in zip(here, back, strict=True):  # the CPU has fused loops of its own, which round otherwise
        assert a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)

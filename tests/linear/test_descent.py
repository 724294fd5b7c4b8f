"""The training loop: steps, momentum, recordings, crossings, divergence."""

import os
import subprocess
import sys

import pytest
import torch

from lib.linear import Adam, GradientDescent, Recording, WrongAxes, cosine, crossing, descend


def quadratic(weights):
    return [2 * w for w in weights]


def test_plain_steps_and_recording_times():
    w = torch.tensor([1.0, 2.0], dtype=torch.float64)
    run = descend([w], quadratic, step=0.1, steps=7, every=3, observe=lambda ws: {"w": ws[0], "loss": ws[0].square().sum()})
    assert run.time.tolist() == [0, 3, 6, 7]
    assert torch.allclose(run["w"][:, 0], 0.8 ** run.time.double())
    assert torch.allclose(w, torch.tensor([1.0, 2.0], dtype=torch.float64) * 0.8**7)  # in place
    with pytest.raises(KeyError, match="there is w, loss"):
        run["strength"]


def test_momentum_equals_torch_sgd():
    start = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours, theirs = start.clone(), start.clone().requires_grad_()
    descend([ours], quadratic, step=0.05, steps=40, momentum=0.9)
    optimiser = torch.optim.SGD([theirs], lr=0.05, momentum=0.9)
    for _ in range(40):
        optimiser.zero_grad()
        theirs.square().sum().backward()
        optimiser.step()
    assert torch.allclose(ours, theirs, atol=1e-14)


def test_weights_may_be_a_dict_of_edges():
    """The same steps for a list and for a dict, whatever the order in which the gradient names the edges."""
    start = torch.randn(2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    listed, edges = [start[0].clone(), start[1].clone()], {("x", "h"): start[0].clone(), ("h", "y"): start[1].clone()}
    step = torch.tensor(0.05, dtype=torch.float64)
    descend(listed, lambda w: [2 * w[0], 3 * w[1]], step=step, steps=20, momentum=0.5)

    def slope(w):
        return {("h", "y"): 3 * w["h", "y"], ("x", "h"): 2 * w["x", "h"]}

    run = descend(edges, slope, step=step, steps=20, momentum=0.5, observe=lambda w: {"size": w["x", "h"].square().sum()})
    assert torch.equal(edges["x", "h"], listed[0]) and torch.equal(edges["h", "y"], listed[1])
    assert float(run["size"][-1]) == float(listed[0].square().sum())


def test_an_update_rule_goes_on_where_it_stopped():
    """Twice twenty steps of one rule are forty; two rules, each starting with nothing, are not."""
    whole, halves, torn = ([torch.full((2,), 1.0, dtype=torch.float64)] for _ in range(3))
    rule = GradientDescent(0.05, momentum=0.9)
    descend(whole, quadratic, step=0.05, steps=40, momentum=0.9)
    for _ in range(2):
        descend(halves, quadratic, update=rule, steps=20)
        descend(torn, quadratic, step=0.05, steps=20, momentum=0.9)
    assert torch.equal(halves[0], whole[0])
    assert not torch.allclose(torn[0], whole[0], rtol=0.01)


@pytest.mark.parametrize("dtype, near", [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_adam_equals_torch(dtype, near):
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(*shape, generator=generator, dtype=dtype) for shape in ((3, 4), (5,))]
    ours, theirs = [w.clone() for w in start], [w.clone().requires_grad_() for w in start]
    run = descend(
        ours, quadratic, update=Adam(0.1, epsilon=1e-3, schedule=cosine(30)), steps=30, every=10,
        observe=lambda w: {"size": w[1].norm()},
    )  # fmt: skip
    optimiser = torch.optim.Adam(theirs, lr=0.1, eps=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 30)
    for _ in range(30):
        optimiser.zero_grad()
        sum(w.square().sum() for w in theirs).backward()
        optimiser.step()
        schedule.step()
    assert all(torch.allclose(p, q.detach(), atol=near) for p, q in zip(ours, theirs, strict=True))
    assert run.time.tolist() == [0, 10, 20, 30] and float(run["size"][-1]) == float(ours[1].norm())


def test_either_a_step_or_a_rule():
    for plan in ({}, {"step": 0.1, "update": Adam(0.1)}):
        with pytest.raises(ValueError, match="either the step of gradient descent or an update rule"):
            descend([torch.ones(1)], quadratic, steps=1, **plan)


def test_structures_that_do_not_fit_are_named():
    w = {"a": torch.ones(2), "b": torch.ones(3)}
    for wrong in ({"a": torch.ones(2)}, [torch.ones(2), torch.ones(3)], w | {"b": torch.ones(2)}):
        with pytest.raises(WrongAxes, match=r"the structure of the weights, \{'a': \(2,\), 'b': \(3,\)\}, not"):
            descend(w, lambda _, wrong=wrong: wrong, step=0.1, steps=1)


def test_divergence_stops_with_a_message():
    w = torch.ones(2, dtype=torch.float64)
    with pytest.raises(FloatingPointError, match="'loss' is not finite"):
        descend([w], quadratic, step=1e10, steps=100, observe=lambda ws: {"loss": ws[0].square().sum()})


@pytest.mark.parametrize(("steps", "every"), [(-1, 1), (5, 0)])
def test_bad_arguments(steps, every):
    with pytest.raises(ValueError, match="at least"):
        descend([torch.ones(1)], quadratic, step=0.1, steps=steps, every=every)


def test_crossings():
    time = torch.arange(4)
    values = torch.tensor([[4.0, 1.0, 4.0], [3.0, 1.0, 3.9], [1.0, 0.0, 3.8], [0.0, 5.0, 3.7]], dtype=torch.float64)
    falling = crossing(time, values, 2.0)
    assert falling[:2].tolist() == [1.5, 0.0] and falling[2].isnan()
    assert crossing(time, values, 2.0, rising=True)[1] == pytest.approx(2.4)
    assert crossing(time, values, 3.25)[0] == 0.75  # between the first two times
    assert Recording(time, {"loss": values}).time_to(2.0)[0] == 1.5


def test_no_steps_leave_the_start_and_one_row():
    w = torch.tensor([1.0, 2.0])
    run = descend([w], quadratic, step=0.1, steps=0, observe=lambda ws: {"w": ws[0]})
    assert run.time.tolist() == [0] and run["w"].tolist() == [[1.0, 2.0]] == [w.tolist()]


@pytest.mark.parametrize(("given", "threads"), [(None, 1), ("2", 2)])
def test_importing_any_package_sets_one_thread_unless_told(given, threads):
    """Threads of many small operations wait for each other; a researcher's script has no environment of ours."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"OMP_NUM_THREADS": given} if given else {}
    code = "from lib import relu; import torch; print(torch.get_num_threads())"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert int(asked.stdout) == threads

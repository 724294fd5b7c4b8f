"""The training loop: steps, momentum, recordings, crossings, divergence."""

import pytest
import torch

from lib.data import tasks
from lib.linear import Recording, crossing, descend


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


def test_each_member_of_an_ensemble_has_its_own_step():
    w = torch.ones(3, 1, dtype=torch.float64)
    steps = torch.tensor([[0.1], [0.2], [0.3]], dtype=torch.float64)
    descend([w], quadratic, step=steps, steps=5)
    assert torch.allclose(w, (1 - 2 * steps) ** 5)


def test_divergence_stops_with_a_message():
    w = torch.ones(2, dtype=torch.float64)
    with pytest.raises(FloatingPointError, match="'loss' is not finite"):
        descend([w], quadratic, step=1e10, steps=100, observe=lambda ws: {"loss": ws[0].square().sum()})


@pytest.mark.parametrize(("steps", "every"), [(-1, 1), (5, 0)])
def test_bad_arguments(steps, every):
    with pytest.raises(ValueError, match="at least"):
        descend([torch.ones(1)], quadratic, step=0.1, steps=steps, every=every)


def test_no_progress_bar_reaches_a_page(capsys):
    descend([torch.ones(1)], quadratic, step=0.1, steps=3, label="training")
    assert capsys.readouterr() == ("", "")


def test_crossings():
    time = torch.arange(4)
    values = torch.tensor([[4.0, 1.0, 4.0], [3.0, 1.0, 3.9], [1.0, 0.0, 3.8], [0.0, 5.0, 3.7]], dtype=torch.float64)
    falling = crossing(time, values, 2.0)
    assert falling[:2].tolist() == [1.5, 0.0] and falling[2].isnan()
    assert crossing(time, values, 2.0, rising=True)[1] == pytest.approx(2.4)
    assert Recording(time, {"loss": values}).time_to(2.0)[0] == 1.5


def test_tree():
    assert tasks.tree(4).tolist() == [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    assert tasks.tree(8, root=False).shape == (14, 8)
    with pytest.raises(ValueError, match="binary tree"):
        tasks.tree(6)

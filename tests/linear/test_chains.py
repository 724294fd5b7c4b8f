"""Chains of matrices: bad calls are answered in one sentence, arrays are welcome, ensembles of data train side by side."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lib import linear
from lib.data import tasks
from lib.linear import WrongAxes, check_chain

X, Y = tasks.hierarchy(4)
SIGMA = linear.correlations(X, Y)
MODE = linear.modes(*SIGMA)
W = linear.small_weights([(5, 4), (7, 5)], 0.1, seeds=3)
W1, W2 = W


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: linear.correlations(X, Y.mT), r"correlations: y has 7 items .*; are rows and columns swapped\?"),
        (lambda: linear.modes(SIGMA[0].mT, SIGMA[1]), "modes: sigma_x has 4 features .*, sigma_yx has 7"),
        (lambda: linear.modes(SIGMA[0][None], SIGMA[1]), "modes: one data set at a time; sigma_yx has shape"),
        (lambda: linear.initial_strength(W2, W1, MODE.u, MODE.v), "initial_strength: w2 has 4 hidden .*, w1 has 7"),
        (lambda: linear.loss_of_modes(MODE.s[:3], MODE.s, MODE.d, 1.0), "loss_of_modes: s has 4 modes .* has 3"),
        (lambda: check_chain("chain", [W2, W1]), r"chain: weights\[1\] has 4 units of layer 1 .*, weights\[0\] has 7"),
        (lambda: check_chain("chain", [W1, W2[:2]]), r"chain: the ensembles of the weights differ"),
        (lambda: check_chain("chain", [W1, W2.float()]), r"chain: weights\[1\] is float32 and weights\[0\] is float64"),
        (lambda: check_chain("chain", [torch.ones(2, 2, dtype=torch.int64)]), "chain: weights must be real numbers, not int64"),
        (lambda: check_chain("chain", W1), "chain: weights must be a list of matrices from input to output, not Tensor"),
        (lambda: linear.train_on_statistics(W, X[:3], Y, step=0.1, steps=1), "train_on_statistics: x has 3 features .*, weights"),
        (lambda: linear.random_matrix(torch.zeros(3), 1.0), r"random_matrix: normal has shape \(3,\)"),
        (lambda: linear.crossing(torch.arange(3), torch.zeros(4), 1.0), r"crossing: values has shape \(4,\) and time \(3,\)"),
    ],
)  # fmt: skip
def test_bad_calls_are_answered_in_one_sentence(call, sentence):
    with pytest.raises(WrongAxes, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: linear.deep_mode_strength(1.0, 1.0, 1.0, 2.0, 2), r"a start between 0 and s/d = 1, got 2 and 2"),
        (lambda: linear.mode_strength_discrete(-1, 1.0, 1.0, 0.1, 0.1), "steps must be at least 0, got -1"),
    ],
)
def test_bad_numbers_are_answered_too(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_the_answer_printed_in_the_book():
    page = Path(__file__).parents[2] / "book" / "notation.md"
    with pytest.raises(WrongAxes) as caught:
        linear.correlations(torch.zeros(30, 6), torch.zeros(5, 30))
    assert f"WrongAxes: {caught.value}\n" in page.read_text(encoding="utf-8")


def test_arrays_and_whole_numbers_are_welcome():
    sigma = linear.correlations(X.numpy(), Y.numpy())
    assert all(torch.equal(a, b) for a, b in zip(sigma, SIGMA, strict=True))
    whole = linear.correlations(X.long(), Y)  # one-hot items as integers
    assert torch.equal(whole[0], SIGMA[0]) and torch.equal(whole[1], SIGMA[1])
    assert linear.correlations([[1, 0], [0, 1]], [[1, 1]])[0].dtype == torch.float64
    mode = linear.modes(SIGMA[0].numpy(), SIGMA[1].numpy())
    arrays = [w.numpy() for w in W]
    assert torch.equal(linear.initial_strength(*arrays, mode.u, mode.v), linear.initial_strength(W1, W2, MODE.u, MODE.v))
    s, d, t = MODE.s.numpy(), MODE.d.numpy(), np.linspace(0, 5, 4)[:, None]
    tensors = linear.mode_strength(torch.tensor(t), MODE.s, MODE.d, 1e-3)
    assert torch.allclose(linear.mode_strength(t, s, d, 1e-3), tensors, rtol=1e-14)
    assert torch.allclose(linear.half_time(s, d, 1e-3), linear.half_time(MODE.s, MODE.d, 1e-3), rtol=1e-14)
    assert float(linear.deep_mode_velocity(0.5, 1.0, 1.0, 2)) == 0.5
    falling = linear.crossing(np.arange(3), np.array([3.0, 2.0, 1.0]), 1.5)
    assert float(falling) == 1.5


def test_data_that_no_input_predicts_have_no_mode():
    nothing = linear.modes(torch.zeros(3, 4).double(), torch.eye(4).double())
    assert nothing.s.shape == (0,) and nothing.u.shape == (3, 0) and nothing.misalignment == 0


def test_ensembles_of_data_sets_train_side_by_side():
    """Two data sets as a leading dimension, the loss of each its own."""
    x, y = torch.stack([X, X]), torch.stack([Y, 3 * Y])
    weights = [w[:2].clone() for w in W]
    alone = [w[1:2].clone() for w in W]
    run = linear.train_on_statistics(weights, x, y, step=0.02, steps=50)
    single = linear.train_on_statistics(alone, X, 3 * Y, step=0.02, steps=50)
    assert torch.allclose(run["loss"][:, 1], single["loss"][:, 0], rtol=1e-12)
    assert torch.allclose(weights[1][1], alone[1][0], rtol=1e-10)


def test_networks_depend_on_the_seed_alone():
    few, many = (linear.small_weights([(5, 4), (7, 5)], 0.1, seeds, seed=2) for seeds in (4, 8))
    single = linear.small_weights([(5, 4), (7, 5)], 0.1, 4, seed=2, dtype=torch.float32)
    for a, b, c in zip(few, many, single, strict=True):
        assert torch.equal(a, b[:4]) and torch.equal(a.float(), c)
    assert not torch.equal(few[0], linear.small_weights([(5, 4)], 0.1, 4, seed=3)[0])
    large = linear.small_weights([(100, 50), (50, 100)], 0.1, 20)
    assert all(float(w.square().mean()) == pytest.approx(0.01, rel=0.008) for w in large)  # 100,000 numbers: 0.45 % each
    assert float((large[0] * large[1].mT).mean()) == pytest.approx(0, abs=2e-4)

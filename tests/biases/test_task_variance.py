"""Clusters of units: known clusters are found, and the small statistics are what they say."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from lib.biases import task_variance


@pytest.fixture(scope="module")
def four():
    """400 units in four well separated groups over three tasks."""
    random = np.random.RandomState(0)
    group = np.repeat(np.arange(4), 100)
    centres = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    return centres[group] + 0.05 * random.randn(400, 3), group


def test_clusters_and_specialisation(four):
    vectors, group = four
    found = task_variance.k_means(vectors, 4)
    assert task_variance.agreement(found.labels_, group) == adjusted_rand_score(found.labels_, group) == 1
    assert task_variance.specialised(found.cluster_centers_).sum() == 3  # the fourth is shared by all tasks
    assert task_variance.specialised(np.array([[2.0, 1.0, 0], [1.9, 1.0, 0]])).tolist() == [True, False]


def test_correlation_is_numpys():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 5, 30, generator=generator, dtype=torch.float64)
    expected = [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(30)]
    assert np.allclose(task_variance.correlation_over_tasks(a, b), expected)
    a[:, 3] = 0
    assert task_variance.correlation_over_tasks(a, b)[3].isnan()


def test_single_task_units_are_counted_without_clusters():
    variance = torch.tensor([[4.0, 1.0, 0.0, 1.0], [2.0, 0.9, 0.0, 0.0], [1.0, 0.0, 0.0, 0.3]])
    assert task_variance.single_task(variance) == 0.5  # the first, just so, and the last; a silent unit has no task
    assert task_variance.single_task(variance, factor=4) == 0
    assert task_variance.main_task(variance).tolist() == [0, -1, -1, 0]


def test_matched_units_are_others_and_near():
    values = torch.tensor([1.0, 1.1, 5.0, 5.2, 5.3, 9.0])
    chosen = torch.tensor([True, False, True, True, False, False])
    assert task_variance.matched(values, chosen).tolist() == [False, True, False, False, True, True]
    many = torch.rand(2000, generator=torch.Generator().manual_seed(0))
    some = many > 0.9  # nobody else is as large: the next best are taken
    assert task_variance.matched(many, some).sum() == some.sum() and not (task_variance.matched(many, some) & some).any()


def test_controls_keep_what_they_say():
    bias = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0)) * torch.tensor([[1.0], [2.0], [3.0]]) + 1
    dealt, gaussian = (task_variance.control(bias, kind, seed=1) for kind in ("dealt", "Gaussian"))
    assert torch.equal(dealt.sort(1).values, bias.sort(1).values) and not torch.equal(dealt, bias)
    orders = [row.argsort() for row in dealt]
    assert not torch.equal(orders[0], orders[1])  # each task has an order of its own
    assert torch.allclose(gaussian.mean(1), bias.mean(1), atol=0.2) and torch.allclose(gaussian.std(1), bias.std(1), rtol=0.05)
    assert torch.equal(task_variance.control(bias, "learned"), bias) and task_variance.control(bias, "none").abs().max() == 0
    with pytest.raises(ValueError, match="dealt, Gaussian"):
        task_variance.control(bias, "shuffled")


def test_rectified_variance_by_hand():
    """Of N(0, s²): s² (1/2 - 1/2π). Of N(-1, 1), from tables of the normal law: 0.07534 - 0.08332²."""
    zero, minus = torch.tensor([[0.0, 3.0], [-1.0, 1.0]], dtype=torch.float64)
    assert float(task_variance.rectified_variance(*zero)) == pytest.approx(9 * (0.5 - 0.5 / np.pi), rel=1e-12)
    assert float(task_variance.rectified_variance(*minus)) == pytest.approx(0.068398, abs=2e-6)

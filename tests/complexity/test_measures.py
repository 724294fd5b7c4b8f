"""Any function by any measure: callables, arrays and tensors give the same number."""

import numpy as np
import pytest
import torch

from lib import complexity
from lib.linear import WrongAxes


def waves(points):
    """Three functions of the plane: (points, 3)."""
    x, y = points[:, 0], points[:, 1]
    return torch.stack([x + y, torch.sin(9 * x * y), torch.cos(20 * x)], -1)


def on_grid(m=32):
    return waves(complexity.grid(m)).T.reshape(3, m, m)


@pytest.mark.parametrize("measure", complexity.MEASURES)
def test_values_and_callables_are_the_same(measure):
    expected = complexity.MEASURES[measure](on_grid())
    assert torch.equal(complexity.of(waves, measure, m=32), expected)
    assert torch.equal(complexity.of(on_grid().numpy(), measure), expected)
    assert torch.equal(complexity.of(lambda points: waves(points).numpy(), measure, m=32), expected)
    assert torch.equal(complexity.of(lambda points: waves(points).T, measure, m=32), expected)  # (functions, points)
    assert torch.equal(complexity.of(lambda points: waves(points).T[..., None], measure, m=32), expected)
    one = complexity.of(lambda points: waves(points)[:, 1], measure, m=32)
    assert float(one) == pytest.approx(float(expected[1]), rel=1e-12)


def test_all_measures_at_once():
    every = complexity.of(waves, None, m=32)
    assert set(every) == set(complexity.MEASURES)
    for name, value in every.items():
        assert torch.equal(value, complexity.of(waves, name, m=32))
    assert set(complexity.of(lambda points: points.sum(1), None, m=8, dims=3)) == set(complexity.MEASURES) - {"lempel_ziv"}


def test_modules_get_points_of_their_own_precision():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    with torch.no_grad():
        expected = complexity.cosine(network(complexity.grid(16).float()).reshape(16, 16))
    assert torch.equal(complexity.of(network, m=16), expected)
    assert not expected.requires_grad


def test_what_is_no_function_is_refused():
    with pytest.raises(ValueError, match="cosine, fourier, chebyshev, legendre, lempel_ziv"):
        complexity.of(waves, "entropy")
    with pytest.raises(WrongAxes, match=r"returned shape \(3,\) for 64 points"):
        complexity.of(lambda points: torch.zeros(3), m=8)
    with pytest.raises(ValueError, match="not finite"):
        complexity.of(lambda points: 1 / (points[:, 0] - points[:, 0]), m=8)
    with pytest.raises(WrongAxes, match="its last 2 axes must be the grid"):
        complexity.of(np.zeros(5))

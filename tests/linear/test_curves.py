"""Curve metrics, against curves whose differences are known."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.linear import curves


def sigmoids(t):
    return 3 / (1 + torch.exp(4 * (t - 2))) + 1 / (1 + torch.exp(2 * (t - 5)))


@settings(max_examples=20, deadline=None)
@given(by=st.floats(-0.08, 0.28))
def test_best_stretch_finds_the_stretch(by):
    t = torch.linspace(0, 12, 1201, dtype=torch.float64)
    found = curves.best_stretch(t, sigmoids(t)[:, None], sigmoids(t / (1 + by))[:, None])
    assert abs(float(found.amount) - by) < 2e-3 and float(found.distance) < 1e-3


@settings(max_examples=20, deadline=None)
@given(by=st.floats(-0.9, 0.9))
def test_best_shift_finds_the_shift(by):
    t = torch.linspace(0, 12, 1201, dtype=torch.float64)
    found = curves.best_shift(t, sigmoids(t), sigmoids(t - by))
    assert abs(float(found.amount) - by) < 6e-3 and float(found.distance) < 1e-2


def test_stretching_does_not_excuse_another_shape():
    t = torch.linspace(0, 12, 601, dtype=torch.float64)
    other = 4 / (1 + torch.exp(1.2 * (t - 3)))
    assert curves.best_stretch(t, sigmoids(t), other).distance > 0.03
    early = curves.best_stretch(t, sigmoids(t), other, until=torch.tensor(1.0))
    assert early.distance < 0.05
    with pytest.raises(ValueError, match="evenly"):
        curves.best_stretch(t.square(), sigmoids(t), other)


def test_stages_counts_drops():
    t = torch.linspace(0, 12, 601, dtype=torch.float64)
    one = 4 / (1 + torch.exp(4 * (t - 3)))
    from_the_start = 4 * torch.exp(-t)
    assert curves.stages(t, torch.stack([sigmoids(t), one, from_the_start], 1)).tolist() == [2, 1, 1]


def test_a_longer_recording_does_not_change_the_distance():
    """The converged tail agrees whatever came before: it must not dilute what is left."""
    other = lambda t: 4 / (1 + torch.exp(1.2 * (t - 3)))  # noqa: E731
    found = []
    for end in (14, 100):
        t = torch.linspace(0, end, 50 * end + 1, dtype=torch.float64)
        found.append(curves.best_stretch(t, sigmoids(t), other(t)))
    assert float(found[1].distance) == pytest.approx(float(found[0].distance), rel=0.01)
    t = torch.linspace(0, 100, 5001)  # single precision is even enough
    assert torch.isfinite(curves.best_stretch(t, sigmoids(t), other(t)).distance)
    t = t.double()
    assert float(curves.progress_time(t, sigmoids(t))) == pytest.approx(float(t[(sigmoids(t) <= 0.04).int().argmax()]), abs=0.03)


def test_an_amount_at_the_edge_is_reported():
    t = torch.linspace(0, 20, 1001, dtype=torch.float64)
    slower = torch.stack([sigmoids(t / 1.2), sigmoids(t / 1.5), sigmoids(t / 0.8)], 1)
    found = curves.best_stretch(t, sigmoids(t)[:, None].expand(-1, 3), slower, low=-0.1)
    assert found.at_bound.tolist() == [False, True, True]
    assert torch.allclose(found.amount, torch.tensor([0.2, 0.3, -0.1]).double(), atol=2e-3)
    wider = curves.best_stretch(t, sigmoids(t)[:, None].expand(-1, 3), slower, low=-0.3, high=0.7)
    assert not wider.at_bound.any() and wider.distance.max() < 2e-3
    assert curves.best_shift(t, sigmoids(t), sigmoids(t - 2)).at_bound


def test_a_window_that_was_not_recorded_is_refused():
    """With stretches up to 30 %, a recording of 13 can be compared up to 10."""
    t = torch.linspace(0, 13, 651, dtype=torch.float64)
    curve = sigmoids(t / 1.05)
    assert float(curves.best_stretch(t, sigmoids(t), curve, until=9.9).amount) == pytest.approx(0.05, abs=2e-3)
    for until in (10.1, 12.0, float("nan"), torch.tensor(11.0)):
        with pytest.raises(ValueError, match="up to 10, not later"):
            curves.best_stretch(t, sigmoids(t), curve, until=until)
    with pytest.raises(ValueError, match="up to 12"):
        curves.best_shift(t, sigmoids(t), curve, until=12.5)


def test_gap_is_relative_to_the_progress():
    t = torch.arange(11.0)
    reference = 2 - 0.1 * t  # from 2 to 1: nine tenths of the progress are made at t = 9
    curve = reference + 0.25
    curve[10] = 100.0  # outside of the window
    assert float(curves.gap(t, reference, curve)) == pytest.approx(0.25)
    assert float(curves.gap(t, 2 * reference, 2 * curve)) == pytest.approx(0.25)
    curve[8] = 100.0
    assert float(curves.gap(t, reference, curve, share=0.75)) == pytest.approx(0.25)


def test_distance_relative_to_the_size_of_the_reference():
    t = torch.arange(10.0)
    reference = torch.cat([torch.full((5, 2), 2.0), torch.full((5, 2), 4.0)])
    curve = reference + 1
    assert torch.allclose(curves.distance(t, reference, curve, relative_to="norm"), torch.full((2,), 10**-0.5))
    assert torch.allclose(curves.distance(t, reference, curve, 4.0, relative_to="norm"), torch.full((2,), 0.5))
    with pytest.raises(ValueError, match="'start' or 'norm'"):
        curves.distance(t, reference, curve, relative_to="end")


def test_intervals_cover_the_mean_as_often_as_they_say():
    """Three seeds, 95 %: 1.96 standard errors cover the mean in 81 % of all cases only."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(40_000, 3, generator=generator, dtype=torch.float64)
    covered = lambda half: float((values.mean(-1).abs() <= half).double().mean())  # noqa: E731
    assert covered(curves.interval(values)) == pytest.approx(0.95, abs=0.005)
    assert covered(curves.interval(values, confidence=0.5)) == pytest.approx(0.5, abs=0.01)
    assert covered(1.96 * values.std(-1) / 3**0.5) < 0.83
    assert torch.equal(curves.interval(values.T, dim=0), curves.interval(values))
    with pytest.raises(ValueError, match="at least 2"):
        curves.interval(values[:, :1])


def test_area_between_two_curves_by_hand():
    reference = torch.tensor([[3.0, 4], [2, 3], [1, 1]])
    assert curves.area(reference + torch.tensor([1.0, -2]), reference).tolist() == pytest.approx([3 / 6, 6 / 8])

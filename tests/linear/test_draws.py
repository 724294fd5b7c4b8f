"""Random numbers that depend on the seed alone."""

import pytest
import torch

from lib.linear import Streams, random_matrix


@pytest.mark.parametrize(
    "draw", [lambda s: s.normal(3, 2), lambda s: s.uniform(5), lambda s: s.integers(9, 4), lambda s: s.permutation(6)]
)
def test_the_first_four_of_eight_networks_are_the_same_four(draw):
    few, many = Streams(4, seed=3), Streams(8, seed=3)
    for _ in range(2):  # also in the second draw of each stream
        a, b = draw(few), draw(many)
        assert torch.equal(a, b[:4])
    later = Streams(4, seed=3, first=4)
    draw(later)
    assert torch.equal(draw(later), b[4:])


def test_ensembles_with_different_seeds_share_no_network():
    drawn = torch.cat([Streams(20, seed=s).normal(1) for s in range(50)]).flatten()
    assert len(drawn.unique()) == 1000
    assert abs(float(drawn.mean())) < 4 / 1000**0.5 and abs(float(drawn.var()) - 1) < 4 * (2 / 1000) ** 0.5


def test_moments_of_the_streams():
    streams = Streams(2, seed=1)
    unit = streams.uniform(100_000)
    assert unit.min() >= 0 and unit.max() < 1 and unit.min() < 1e-3 and unit.max() > 1 - 1e-3  # missed with probability e^-100
    uniform = streams.uniform(100_000, low=-2.0, high=4.0)
    assert uniform.min() >= -2 and uniform.max() < 4
    assert torch.allclose(uniform.mean(1), torch.tensor(1.0).double(), atol=5 * 3**0.5 / 100_000**0.5)
    assert set(streams.integers(3, 1000).flatten().tolist()) == {0, 1, 2}
    assert torch.equal(streams.permutation(50).sort(1).values[0], torch.arange(50))


@pytest.mark.parametrize(("law", "variance"), [("gaussian", 0.25), ("xavier", 0.25 * 2 / 80), ("orthogonal", 0.25 / 50)])
def test_laws_have_their_variance(law, variance):
    """Entries over many matrices; 1 % would be seen at a standard error of 0.2 %."""
    w = random_matrix(Streams(400, seed=2).normal(50, 30), 0.5, law)
    assert float(w.square().mean()) == pytest.approx(variance, rel=0.008)
    if law == "orthogonal":
        assert torch.allclose(torch.linalg.svdvals(w), torch.tensor(0.5).double())
        assert abs(float(w.mean())) < 5e-4  # without the sign correction the first entries have one sign
        assert float(w[:, 0, 0].gt(0).double().mean()) == pytest.approx(0.5, abs=0.1)


def test_refusals():
    with pytest.raises(ValueError, match="at least 1"):
        Streams(0)
    with pytest.raises(ValueError, match="unknown law 'cauchy'"):
        random_matrix(torch.zeros(2, 2), 1.0, "cauchy")

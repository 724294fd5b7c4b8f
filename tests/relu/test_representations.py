"""lib.relu.representations against known matrices and plain formulas."""

import numpy as np
import pytest
import torch

from lib.linear import WrongAxes
from lib.relu import representations


def test_gram_and_distances():
    h = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plain = torch.cdist(h.mT, h.mT)
    assert torch.allclose(representations.distances(representations.gram(h)), plain, atol=1e-7)
    assert torch.allclose(representations.distances(representations.gram(h, centred=True)), plain, atol=1e-7)
    assert representations.gram(h, centred=True).sum(-1).abs().max() < 1e-12


def test_similarity_is_a_correlation():
    a = torch.rand(4, 6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    b = torch.rand(4, 6, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    i, j = torch.triu_indices(6, 6, 1)
    plain = torch.stack([torch.corrcoef(torch.stack([p[i, j], q[i, j]]))[0, 1] for p, q in zip(a, b, strict=True)])
    assert torch.allclose(representations.similarity(a, b), plain)
    assert torch.allclose(representations.similarity(a, 3 * a + 1), torch.ones(4).double())


def test_scaling_keeps_distances_of_points_in_a_plane():
    flat = torch.randn(9, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    turned = flat @ torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(4), dtype=torch.float64))[0][:2]
    place = representations.scaled(turned.mT)
    assert place.shape == (2, 9) and (place[:, -1] >= 0).all()
    assert torch.allclose(torch.cdist(place.mT, place.mT), torch.cdist(flat, flat), atol=1e-9)


def plain_variance_explained(h, features):
    """By least squares on all features and a constant, which lets numpy see to dependent ones."""
    design = np.concatenate([np.ones((1, h.shape[1])), features.numpy()]).T
    fitted = design @ np.linalg.lstsq(design, h.numpy().T, rcond=1e-10)[0]
    rest, around = h.numpy().T - fitted, h.numpy().T - h.numpy().T.mean(0)
    return 1 - (rest**2).sum() / (around**2).sum()


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
def test_dependent_features_explain_nothing_twice(size):
    """Repeated, combined and constant features, in any units: what counts is the space that they span."""
    generator = torch.Generator().manual_seed(7)
    h = torch.randn(10, 6, generator=generator, dtype=torch.float64)
    first, second = torch.randn(2, 1, 6, generator=generator, dtype=torch.float64)
    constant = torch.full((1, 6), 0.1, dtype=torch.float64)  # 0.1 minus its mean is rounding, not zero
    alone = representations.variance_explained(h, first)
    assert float(alone) == pytest.approx(plain_variance_explained(h, first), rel=1e-9)
    for others in (first * size, constant * size, -3 * first, torch.zeros_like(first)):
        assert float(representations.variance_explained(h, torch.cat([first, others]))) == pytest.approx(float(alone), rel=1e-9)
    assert float(representations.variance_explained(h, size * constant)) == 0
    three = torch.cat([first, size * second, first + second, constant])
    both = plain_variance_explained(h, torch.cat([first, second]))
    assert float(representations.variance_explained(h, three)) == pytest.approx(both, rel=1e-9)
    faint = torch.cat([first, 1e-17 * second])
    assert float(representations.variance_explained(h, faint)) == pytest.approx(both, rel=1e-9)
    assert float(representations.variance_explained(h, torch.eye(6).double())) == pytest.approx(1)


def test_wrong_axes_are_named():
    h, f = torch.zeros(10, 6).double(), torch.zeros(2, 5).double()
    with pytest.raises(WrongAxes, match="features has 5 items"):
        representations.variance_explained(h, f)
    with pytest.raises(WrongAxes, match="float32"):
        representations.variance_explained(h, torch.zeros(2, 6))
    with pytest.raises(WrongAxes, match="items"):
        representations.distances(torch.zeros(3, 4))
    assert torch.equal(representations.gram(np.eye(3)), torch.eye(3).double())  # arrays are welcome

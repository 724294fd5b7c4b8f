"""Distances between items, and pictures of them."""

import torch

from lib import geometry


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_distances_are_those_of_cdist_and_survive_rotations():
    h = random(2, 7, 5)
    full = torch.cdist(h.mT, h.mT)
    i, j = torch.triu_indices(5, 5, 1)
    torch.testing.assert_close(geometry.pairwise_distances(h), full[:, i, j])
    q = torch.linalg.qr(random(7, 7, seed=1))[0]
    torch.testing.assert_close(geometry.pairwise_distances(q @ h), geometry.pairwise_distances(h))


def test_distance_correlation():
    a = geometry.pairwise_distances(random(7, 6))
    assert (
        geometry.distance_correlation(a, 3 * a + 2).item() == 1.0 or abs(geometry.distance_correlation(a, 3 * a + 2) - 1) < 1e-12
    )
    b = geometry.pairwise_distances(random(7, 6, seed=3))
    expected = torch.corrcoef(torch.stack([a, b]))[0, 1]
    torch.testing.assert_close(geometry.distance_correlation(a, b), expected)


def test_scaling_recovers_a_plane():
    points = random(2, 9)
    points = points - points.mean(1, keepdim=True)
    found = geometry.scaling(geometry.pairwise_distances(points), 9)
    torch.testing.assert_close(geometry.pairwise_distances(found.mT), geometry.pairwise_distances(points))
    torch.testing.assert_close(geometry.onto(found, points.mT), points.mT, rtol=1e-8, atol=1e-10)

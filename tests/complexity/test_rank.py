"""The effective rank against values worked out by hand."""

import math

import pytest
import torch

from lib import complexity


def turned(values, rows, columns, seed=0):
    """A matrix with these singular values."""
    generator = torch.Generator().manual_seed(seed)
    left, right = (
        torch.linalg.qr(torch.randn(size, len(values), generator=generator, dtype=torch.float64))[0] for size in (rows, columns)
    )
    return left * torch.tensor(values, dtype=torch.float64) @ right.mT


def test_equal_singular_values_count():
    for count in (1, 2, 5):
        assert complexity.effective_rank(turned([0.3] * count, 6, 9)).item() == pytest.approx(count, rel=1e-9)


def test_unequal_ones_by_hand():
    """Shares 3/4 and 1/4: entropy ln 4 - (3/4) ln 3, so the rank is 4 / 3^(3/4), and not minus that as Eq. 1 is printed."""
    matrix = turned([3.0, 1.0], 5, 4)
    assert complexity.effective_rank(matrix).item() == pytest.approx(4 / 3**0.75, rel=1e-12)
    # its Gram matrix has the singular values 9 and 1
    by_hand = math.exp(-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)))
    assert complexity.effective_rank_of_gram(matrix).item() == pytest.approx(by_hand, rel=1e-12)
    assert complexity.effective_rank(matrix @ matrix.mT).item() == pytest.approx(by_hand, rel=1e-6)


def test_zeros_have_no_rank():
    """Once they had NaN: a layer whose units are all silent would stop a page far from the cause."""
    h = torch.stack([torch.zeros(4, 6), turned([2.0, 2.0], 4, 6).float()])
    assert complexity.effective_rank(h).tolist() == pytest.approx([0, 2], rel=1e-5)
    assert complexity.effective_rank_of_gram(h).tolist() == pytest.approx([0, 2], rel=1e-5)
    assert complexity.effective_rank(torch.zeros(3, 3)).item() == 0


def test_an_ensemble_is_its_members_and_centring_takes_the_mean_of_each_unit_away():
    h = torch.randn(3, 4, 11, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 2
    together = complexity.effective_rank_of_gram(h, centred=True)
    assert together.shape == (3,)
    for one, member in zip(h, together, strict=True):
        away = torch.stack([unit - unit.sum() / 11 for unit in one])
        assert member.item() == pytest.approx(complexity.effective_rank(away.mT @ away).item(), rel=1e-6)
    assert (together > complexity.effective_rank_of_gram(h)).all()  # the common mean was one strong direction

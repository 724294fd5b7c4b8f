"""Products with tall matrices block by block, against torch's products in one piece."""

import pytest
import torch

from lib.linear import blocks
from lib.linear.blocks import Tall

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}


@pytest.mark.parametrize("points", [7, blocks.FEWEST, blocks.POINTS, blocks.POINTS + 1, 2 * blocks.POINTS, 616])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_blocks_multiply_as_the_whole_does(points, dtype):
    generator = torch.Generator().manual_seed(points)
    draw = lambda *shape: torch.randn(3, *shape, generator=generator, dtype=dtype)  # noqa: E731
    one, two, matrix = Tall(draw(points, 5)), Tall(draw(points, 4)), draw(5, 4)
    assert (one.blocks is None) == (points < blocks.FEWEST)
    out, sums = Tall(draw(points, 4)), draw(5, 4)
    for _ in range(2):  # the second time into memory that is there
        assert one.times(matrix, out) is out.rows and one.onto(two, sums) is sums
        assert torch.allclose(out.rows, one.rows @ matrix, rtol=0, atol=TOLERANCE[dtype])
        assert torch.allclose(sums, one.rows.mT @ two.rows, rtol=0, atol=TOLERANCE[dtype])
        one.rows.mul_(1.5)  # the blocks are the same memory
        two.rows.sub_(0.5)


def test_wide_matrices_are_left_to_torch():
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(2, *shape, generator=generator, dtype=torch.float64)  # noqa: E731
    narrow, wide = Tall(draw(200, 5)), Tall(draw(200, blocks.WIDEST + 1))
    assert narrow.blocks and wide.blocks is None
    matrix = draw(5, blocks.WIDEST + 1)
    expected = narrow.rows @ matrix, narrow.rows.mT @ wide.rows, wide.rows.mT @ narrow.rows
    sums = narrow.onto(wide, torch.empty_like(matrix)), wide.onto(narrow, torch.empty_like(matrix.mT.contiguous()))
    for got, right in zip((*sums, narrow.times(matrix, wide)), (*expected[1:], expected[0]), strict=True):
        assert torch.allclose(got, right, atol=1e-12)

"""Full training: gradients by hand against automatic differentiation."""

import pytest
import torch

from lib.biases.full import Full


@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_gradients_are_those_of_autograd(loss):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    full = Full(draw(20, 6), draw(3, 20))
    for p in full.parameters:
        p += draw(*p.shape)
    for items in (8, 5):  # the last batch of an epoch may be a small one
        x, y = draw(items, 6), draw(items, 3)
        y = y.argmax(1) if loss == "cross-entropy" else y
        now, by_hand = full.by_hand(x, y, loss)
        expected, slopes = full.by_autograd(x, y, loss, short=False)
        assert torch.allclose(now, expected, rtol=1e-12)
        assert all(torch.allclose(g, slope, atol=1e-12) for g, slope in zip(by_hand, slopes, strict=True))

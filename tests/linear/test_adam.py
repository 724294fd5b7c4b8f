"""Adam in place, against torch's optimiser."""

import pytest
import torch

from lib.linear.adam import Adam


@pytest.mark.parametrize("dtype, near", [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_steps_are_those_of_torch(dtype, near):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    ours = [draw(3, 4), draw(5)]
    theirs = [p.clone().requires_grad_() for p in ours]
    adam, optimiser = Adam(ours, 1e-3), torch.optim.Adam(theirs, eps=1e-3)
    for k in range(30):
        slopes, rate = [draw(3, 4), draw(5)], 0.1 / (k + 1)
        for p, slope in zip(theirs, slopes, strict=True):
            p.grad = slope.clone()
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
        if k % 2:
            slopes[0] = slopes[0].T.contiguous().T  # in another order in memory
        adam.step(slopes, rate)
    assert all(torch.allclose(p, q.detach(), atol=near) for p, q in zip(ours, theirs, strict=True))

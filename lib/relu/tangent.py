"""The neural tangent kernel of a ReLU network with one hidden layer and one output, and gradient flow on it.

From large weights training is gradient flow on a fixed kernel (Jacot, Gabriel and Hongler 2018): `flow` is the twin of
`networks.train` in that limit, the opposite of the small weights in the rest of this package.
Weights are [w1 (..., hidden, features), w2 (..., 1, hidden)], x is (features, items).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.linear.shapes import WrongAxes, axes
from lib.relu import networks


@axes(x="features items", other="features others")
def kernel(weights: Sequence[Tensor], x: Tensor, other: Tensor) -> Tensor:
    """Inner products of the gradients of the outputs for x and for `other`: (..., items, others).

    relu(w1 x)·relu(w1 x') from the readout, and (x·x') Σ w2² 1[w1 x > 0] 1[w1 x' > 0] from the first layer.
    """
    if len(weights) != 2 or weights[1].shape[-2] != 1:
        raise WrongAxes(f"kernel: one hidden layer and one output, not matrices {[tuple(w.shape[-2:]) for w in weights]}")
    one, two = weights[0] @ x, weights[0] @ other  # (..., hidden, items), (..., hidden, others)
    gates = ((one > 0) * weights[1].mT.square()).mT @ (two > 0).to(two)
    return one.relu().mT @ two.relu() + gates * (x.mT @ other)


@axes(x="features items", y="1 items", other="features others")
def flow(weights: Sequence[Tensor], x: Tensor, y: Tensor, t: Tensor, other: Tensor) -> Tensor:
    """How far gradient flow of the linearised network moves its answers to `other` in the times t (...): (..., others).

    The loss is half the squared error, a mean over items; each network has its own time. With K = kernel/items on x it is
    k(other, x) (1 - exp(-K t)) K⁻¹ (y - f)/items, written so that eigenvalues may vanish.
    """
    items = x.shape[-1]
    rates, vectors = torch.linalg.eigh(kernel(weights, x, x) / items)
    t = torch.as_tensor(t, dtype=x.dtype)[..., None]
    slow = rates * t < 1e-9
    gone = torch.where(slow, t, -torch.expm1(-rates.clamp(min=0) * t) / rates.clamp(min=1e-300))  # (..., items)
    error = (y - networks.output(weights, x)).mT  # (..., items, 1)
    moved = vectors @ (gone[..., None] * (vectors.mT @ error)) / items
    return (kernel(weights, other, x) @ moved)[..., 0]

"""A bias as a constant input, and the mode by which it learns the mean label. Early Linearization Sections 5.1 and 5.2."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lib.linear import theory
from lib.linear.shapes import axes


@axes(x="features items")
def with_constant(x: Tensor, strength: Tensor | float = 1.0) -> Tensor:
    """The augmented inputs: `x` (..., features, items) over a last row that is `strength` for every item.

    The axes of `strength` are ensemble axes and broadcast against those of x: strengths of shape (conditions, 1) give
    (conditions, 1, features + 1, items), which goes with networks (conditions, seeds). Section 5.1 (where the row is first).
    """
    strength = torch.as_tensor(strength, dtype=x.dtype, device=x.device)
    ensemble = np.broadcast_shapes(strength.shape, x.shape[:-2])  # torch's own loads its compiler
    row = strength[..., None, None].expand(*ensemble, 1, x.shape[-1])
    return torch.cat([x.expand(*ensemble, *x.shape[-2:]), row], -2)


def input_spectrum(items: int, strength: float) -> Tensor:
    """Eigenvalues of the input correlations of one-hot items with a constant, largest first: c² + 1/P, 1/P, …, 0.

    Early Linearization Proposition 1.
    """
    return torch.tensor([strength**2 + 1 / items] + [1 / items] * (items - 1) + [0.0], dtype=torch.float64)


class BiasMode(NamedTuple):
    """The mode by which a constant input learns the mean label."""

    s: float  # its input-output strength, sqrt(c² + 1/P) |mean label|
    d: float  # its input variance, c² + 1/P
    v: Tensor  # (items + 1,) unit vector that it looks at; the constant comes last


@axes(y="outputs items")
def bias_mode(y: Tensor, strength: float) -> BiasMode:
    """The mode by which a constant input learns the mean label of one-hot items. Early Linearization Eq. 5.

    It is a singular mode of the data only if all labels have the same inner product with the mean label (which is what
    Eq. 4 asks of them), and the first one only if no other is stronger; labels with non-negative inner products suffice for that.
    """
    items = y.shape[-1]
    d = strength**2 + 1 / items
    v = torch.cat([torch.full((items,), 1 / (strength * items), dtype=torch.float64), torch.ones(1, dtype=torch.float64)])
    return BiasMode(d**0.5 * float(y.mean(-1).norm()), d, v / v.norm())


@axes(answers="outputs items", x="features items")
def mode_strengths(answers: Tensor, x: Tensor, mode: theory.Modes) -> Tensor:
    """How much of each mode a network's answers (..., outputs, items) contain, (..., modes): uᵀ⟨ŷ xᵀ⟩v / d.

    For a linear network it is the mode's strength a = uᵀ W2 W1 v; unlike that, it also makes sense for a ReLU network.
    """
    seen = x.mT @ mode.v / (mode.d * x.shape[-1])  # (items, modes)
    return (mode.u.mT @ answers * seen.mT).sum(-1)


@axes(w1="hidden features")
def bias_ratio(w1: Tensor) -> Tensor:
    """Length of a layer's biases, its last column, relative to that of its weights: |b| / |W1|, (...).

    While the bias mode is alone, it is c sqrt(P) for P one-hot items. Early Linearization Fig. 3a.
    """
    return w1[..., -1].norm(dim=-1) / w1[..., :-1].norm(dim=(-2, -1))

"""The kernel limit of bias learning: what very wide networks learn, and what N units learn of it.

Around biases of zero a network of frozen weights is linear in its biases,

    y(x) = y_0(x) + sum_i a_i 1[w_i · x > 0] b_i,

with one random feature per unit: its output weights times its gate. Two items share a unit's gate with probability
(π - angle)/2π, the arc-cosine kernel of degree zero (Cho and Saul 2009). So infinitely many units make a kernel machine for
each output, and N units are N random features for all outputs together. Their ridge regression behaves like the kernel's with
a larger ridge, at which the kernel machines of all outputs have N degrees of freedom in all (Jacot et al. 2020 and LeJeune et
al. 2024 for random features). This is not in Williams et al.; it is the theory beside their Fig. 1A.

`predicted` is the theory, `linearised` the simulation. Inputs are rows x (items, inputs), targets y (items, outputs); numbers
are float64. Ridges are in units of the kernel, as if features were divided by sqrt(units) · std(a).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.biases.networks import Frozen, PreActivations, pre_activations
from lib.linear import axes


@axes(x="items inputs", other="others inputs")
def gate_kernel(x: Tensor, other: Tensor) -> Tensor:
    """Probability (items, others) that a random gate through the origin is open for both items: (π - angle)/2π.

    Exact for weights whose law does not depend on direction, and in the limit of many inputs for independent ones.
    """
    x, other = x.double(), other.double()
    lengths = x.norm(dim=1)[:, None] * other.norm(dim=1)
    return (math.pi - torch.arccos((x @ other.mT / lengths).clamp(-1, 1))) / (2 * math.pi)


@dataclass(frozen=True, repr=False, eq=False)
class Kernel:
    """A kernel K = V diag(values) Vᵀ on training items, and its values towards test items: what `predicted` needs of the data."""

    values: Tensor  # (items,) eigenvalues
    vectors: Tensor  # (items, items)
    across: Tensor  # (tests, items) kernel of test items with training items, in the basis of `vectors`

    def __repr__(self) -> str:
        return f"Kernel({len(self.values)} training items, {len(self.across)} test items)"

    @staticmethod
    def of_gates(x: Tensor, x_test: Tensor) -> "Kernel":
        """The gate kernel of items x (items, inputs) and x_test (tests, inputs)."""
        values, vectors = torch.linalg.eigh(gate_kernel(x, x))
        return Kernel(values.clamp(min=0), vectors, gate_kernel(x_test, x) @ vectors)


@dataclass(frozen=True, repr=False, eq=False)
class Prediction:
    """Mean outputs (tests, outputs) over networks, and the variance (tests,) of each output between networks."""

    mean: Tensor
    variance: Tensor
    ridge: float  # the kernel's ridge at which it equals the mean network

    def __repr__(self) -> str:
        return f"Prediction({len(self.mean)} test items, {self.mean.shape[1]} outputs, ridge {self.ridge:.4g})"

    def error(self, y: Tensor) -> float:
        """Mean over test items of the squared error, summed over outputs, that a single network is expected to have."""
        return float((self.mean - y).square().sum(1).mean() + self.variance.mean() * y.shape[1])

    def accuracy(self, labels: Tensor, draws: int = 200, seed: int = 0) -> float:
        """Expected share of right answers of a single network, whose outputs scatter normally around their mean."""
        generator, scatter, right = torch.Generator().manual_seed(seed), self.variance.sqrt()[:, None], 0.0
        for _ in range(draws):
            normal = torch.randn(self.mean.shape, generator=generator, dtype=torch.float64)
            right += float(((self.mean + scatter * normal).argmax(1) == labels).double().mean())
        return right / draws


def effective_ridge(values: Tensor, units: float, outputs: int, ridge: float) -> float:
    """The ridge m of the kernel machine that `units` random features with ridge `ridge` make on average.

    Solves ridge = m (1 - outputs/units · sum_k v_k / (v_k + m)) for m. With no ridge and fewer units than targets, m is where
    the kernel machines of all outputs have `units` degrees of freedom.
    """
    low, high = 1e-15, float(values.sum()) * max(outputs / units, 1) + ridge + 1
    for _ in range(200):
        middle = math.sqrt(low * high)
        reached = middle * (1 - outputs / units * float((values / (values + middle)).sum()))
        low, high = (middle, high) if reached < ridge else (low, middle)
    return math.sqrt(low * high)


def predicted(kernel: Kernel, y: Tensor, units: float, ridge: float) -> Prediction:
    """What linearised networks of `units` units learn from targets y (items, outputs); units = math.inf is the kernel machine.

    The mean is kernel ridge regression with the `effective_ridge` m. Outputs vary around it by q |f|² / (units - d) with |f|²
    the squared norm of the learned function in the kernel's space, d = outputs · sum_k (v_k / (v_k + m))², and for a test item x
    q(x) = k(x, x) - 2 kₓᵀ (K + m)⁻¹ kₓ + kₓᵀ (K + m)⁻¹ K (K + m)⁻¹ kₓ, where k(x, x) = 1/2.
    """
    outputs, values = y.shape[1], kernel.values
    m = ridge if math.isinf(units) else effective_ridge(values, units, outputs, ridge)
    shrunk = (kernel.vectors.mT @ y.double()) / (values + m)[:, None]  # (items, outputs)
    mean = kernel.across @ shrunk
    if math.isinf(units):
        return Prediction(mean, torch.zeros(len(mean), dtype=torch.float64), m)
    norm = float((values[:, None] * shrunk.square()).sum())
    squares = kernel.across.square()
    outside = 0.5 - 2 * (squares / (values + m)).sum(1) + (squares * values / (values + m).square()).sum(1)
    freedom = outputs * float((values / (values + m)).square().sum())
    return Prediction(mean, outside.clamp(min=0) * norm / (units - freedom), m)


def linearised(
    network: Frozen, x: Tensor | PreActivations, y: Tensor, x_test: Tensor | PreActivations, ridge: float
) -> tuple[Tensor, Tensor]:
    """The linear network itself: its biases (units,) by ridge regression on y (items, outputs), and its test outputs.

    A single network; the output at zero bias is left out. Solves in the smaller of units and targets.
    """
    if network.seeds != 1:
        raise ValueError("one network at a time: each has biases of its own")
    gates, gates_test = ((pre_activations("linearised", network, v)[0] > 0).float() for v in (x, x_test))  # (items, units)
    size = float(network.a.double().square().mean().sqrt()) * math.sqrt(network.units)
    a, y = network.a[0].double() / size, y.double()  # a (outputs, units)
    if network.units <= y.numel():
        square = (a.mT @ a).mul_(gates.mT @ gates)  # whole numbers, exact in float32
        bias = _ridge(square, ((y.mT @ gates.double()) * a).sum(0), ridge)
    else:
        features = (a[:, None] * gates).flatten(0, 1)  # (outputs · items, units)
        bias = features.mT @ _ridge(features @ features.mT, y.mT.flatten(), ridge)
    return bias / size, gates_test.double() @ (a * bias).mT


def _ridge(square: Tensor, y: Tensor, ridge: float) -> Tensor:
    """(square + ridge · 1)⁻¹ y for a symmetric matrix (n, n), which is overwritten, and y (n,)."""
    square.diagonal().add_(ridge)
    return torch.cholesky_solve(y[:, None], torch.linalg.cholesky(square))[:, 0]

"""The kernel limit of bias learning: what very wide networks learn, and what N units learn of it.

Around biases of zero a network of frozen weights is linear in its biases,

    y(x) = y_0(x) + sum_i a_i 1[w_i · x > 0] b_i,

with one random feature per unit: its output weights times its gate. Two images share a unit's gate with probability
(π - angle)/2π, the arc-cosine kernel of degree zero (Cho and Saul 2009), and output weights of mean zero keep the classes
apart. So infinitely many units make a kernel machine for each class, and N units are N random features for all classes
together. Their ridge regression behaves like the kernel's with a larger ridge, at which the kernel machines of all classes
have N degrees of freedom in all (the equivalent of Jacot et al. 2020 and LeJeune et al. 2024 for random features). Nothing of
this is in Williams et al.; it is the theory beside their Fig. 1A.

`predicted` is the theory, `linearised` the simulation that it predicts. Images are rows x (items, pixels), targets y (items,
classes); numbers are float64. Ridges are in units of the kernel, as if features were divided by sqrt(units) · std(a).
"""

import functools
import math
from dataclasses import dataclass

import torch
from scipy.linalg import blas, lapack
from torch import Tensor

from lib.biases.networks import Frozen, PreActivations, rows
from lib.linear import axes


@axes(x="items pixels", other="others pixels")
def gate_kernel(x: Tensor, other: Tensor) -> Tensor:
    """Probability (items, others) that a random gate through the origin is open for both images: (π - angle)/2π.

    Exact for weights whose law does not depend on direction, and in the limit of many pixels for independent ones.
    """
    x, other = x.double(), other.double()
    lengths = x.norm(dim=1)[:, None] * other.norm(dim=1)
    return (math.pi - torch.arccos((x @ other.mT / lengths).clamp(-1, 1))) / (2 * math.pi)


def shared_gates(network: Frozen, x: Tensor, other: Tensor) -> Tensor:
    """Share (items, others) of a network's units that are active on both images at zero bias: the kernel of N units."""
    one = (_drive("shared_gates", network, x) > 0).float()  # sums are whole numbers, exact in float32
    two = one if other is x else (_drive("shared_gates", network, other) > 0).float()
    return (one @ two.mT).double() / len(network.w)


def gates_flipped(network: Frozen, bias: Tensor, x: Tensor | PreActivations) -> float:
    """Share of pairs of a unit and an image whose gate learning has turned; zero as long as the network is linear in b."""
    drive = _drive("gates_flipped", network, x, bias=bias)
    return int(((drive > 0) != (drive + bias.flatten() > 0)).sum()) / drive.numel()


@dataclass(frozen=True)
class Kernel:
    """A kernel on training images, diagonalised, and its values towards test images: what `predicted` needs of the data."""

    values: Tensor  # (items,) eigenvalues
    vectors: Tensor  # (items, items)
    across: Tensor  # (tests, items) kernel of test images with training images, in the basis of `vectors`
    own: Tensor  # (tests,) kernel of each test image with itself

    @staticmethod
    def of(x: Tensor, x_test: Tensor) -> "Kernel":
        """The gate kernel of images x (items, pixels) and x_test (tests, pixels)."""
        values, vectors = torch.linalg.eigh(gate_kernel(x, x))
        own = torch.full((len(x_test),), 0.5, dtype=torch.float64)
        return Kernel(values.clamp(min=0), vectors, gate_kernel(x_test, x) @ vectors, own)


@dataclass(frozen=True)
class Prediction:
    """Mean outputs (tests, classes) over networks, and the variance (tests,) of each output between networks."""

    mean: Tensor
    variance: Tensor
    ridge: float  # the kernel's ridge at which it equals the mean network

    def error(self, y: Tensor) -> float:
        """Mean over test images of the squared error, summed over classes, that a single network is expected to have."""
        return float((self.mean - y).square().sum(1).mean() + self.variance.mean() * y.shape[1])

    def accuracy(self, labels: Tensor, draws: int = 200, seed: int = 0) -> float:
        """Expected share of right answers of a single network, whose outputs scatter normally around their mean."""
        scatter = self.variance.sqrt()[:, None]
        right = [(self.mean + scatter * normal).argmax(1) == labels for normal in _normals(*self.mean.shape, draws, seed)]
        return float(torch.stack(right).double().mean())


@functools.lru_cache(1)  # predictions at many widths scatter by the same numbers
def _normals(tests: int, classes: int, draws: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(tests, classes, generator=generator, dtype=torch.float64) for _ in range(draws)]


def effective_ridge(values: Tensor, units: float, classes: int, ridge: float) -> float:
    """The ridge m of the kernel machine that `units` random features with ridge `ridge` make on average.

    Solves ridge = m (1 - classes/units · sum_k v_k / (v_k + m)) for m. With no ridge and fewer units than targets, m is where
    the kernel machines of all classes have `units` degrees of freedom.
    """
    low, high = 1e-15, float(values.sum()) * max(classes / units, 1) + ridge + 1
    for _ in range(200):
        middle = math.sqrt(low * high)
        reached = middle * (1 - classes / units * float((values / (values + middle)).sum()))
        low, high = (middle, high) if reached < ridge else (low, middle)
    return math.sqrt(low * high)


def predicted(kernel: Kernel, y: Tensor, units: float, ridge: float) -> Prediction:
    """What linearised networks of `units` units learn from targets y (items, classes); units = math.inf is the kernel machine.

    The mean is kernel ridge regression with the `effective_ridge` m. Outputs vary around it by q |f|² / (units - d) with |f|²
    the squared norm of the learned function in the kernel's space, q what a test image's features keep outside of the training
    images' at ridge m, and d = classes · sum_k (v_k / (v_k + m))².
    """
    classes, values = y.shape[1], kernel.values
    m = ridge if math.isinf(units) else effective_ridge(values, units, classes, ridge)
    shrunk = (kernel.vectors.mT @ y.double()) / (values + m)[:, None]  # (items, classes)
    mean = kernel.across @ shrunk
    if math.isinf(units):
        return Prediction(mean, torch.zeros(len(mean), dtype=torch.float64), m)
    norm = float((values[:, None] * shrunk.square()).sum())
    squares = kernel.across.square()
    outside = kernel.own - 2 * (squares / (values + m)).sum(1) + (squares * values / (values + m).square()).sum(1)
    freedom = classes * float((values / (values + m)).square().sum())
    return Prediction(mean, outside.clamp(min=0) * norm / (units - freedom), m)


def linearised(
    network: Frozen, x: Tensor | PreActivations, y: Tensor, x_test: Tensor | PreActivations, ridge: float
) -> tuple[Tensor, Tensor]:
    """The linear network itself: its biases (units,) by ridge regression on y (items, classes), and its test outputs.

    A single network; the output at zero bias is left out. Solves in the smaller of units and targets.
    """
    if network.seeds != 1:
        raise ValueError("one network at a time: each has biases of its own")
    gates, gates_test = ((_drive("linearised", network, v) > 0).float() for v in (x, x_test))
    size = float(network.a.double().square().mean().sqrt()) * math.sqrt(network.units)
    a, y, units = network.a.double() / size, y.double(), network.units  # a (classes, units)
    if units <= y.numel():
        square = torch.empty(units, units, dtype=torch.float64)  # below the diagonal, which is all that is needed
        for start in range(0, units, 500):
            part = slice(start, start + 500)
            shared = gates[:, start:].mT @ gates[:, part]  # whole numbers, exact in float32
            torch.mm(a[:, start:].mT, a[:, part], out=square[start:, part]).mul_(shared)
        towards = ((y.mT @ gates.double()) * a).sum(0)  # (units,)
        bias = _ridge(square, towards, ridge)
    else:
        features = (a[:, None] * gates).flatten(0, 1)  # (classes · items, units)
        square = torch.from_numpy(blas.dsyrk(1.0, features.numpy().T, trans=True).T)  # features · featuresᵀ below the diagonal
        bias = features.mT @ _ridge(square, y.mT.flatten(), ridge)
    return bias / size, gates_test.double() @ (a * bias).mT


def _drive(caller: str, network: Frozen, x: Tensor | PreActivations, **per_unit: Tensor) -> Tensor:
    """W x (items, units)."""
    x = rows(caller, network, x, **per_unit)
    return x.restored() if isinstance(x, PreActivations) else x @ network.w.T


def _ridge(square: Tensor, y: Tensor, ridge: float) -> Tensor:
    """(square + ridge)^-1 y for a symmetric matrix of which the lower half is given; it is overwritten."""
    square.diagonal().add_(ridge)
    _, solution, failed = lapack.dposv(square.numpy().T, y.numpy(), overwrite_a=True)  # in place; columns first, hence the turn
    if failed:
        raise torch.linalg.LinAlgError(f"the matrix is not positive definite with a ridge of {ridge}")
    return torch.from_numpy(solution)

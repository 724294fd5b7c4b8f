"""Training of the readout alone at infinite width: regression with a network's kernel (Neural Redshift Section 4).

A wide network whose readout is trained to the end, from small weights, gives the mean of its Gaussian process conditioned
on the data (the readout's bias, a constant in the kernel, is left out). `modulo_accuracy` is the twin of
`trained_networks.learn_modulo_sums`: same tasks, same splits of the points.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.data import tasks
from lib.linear import Streams, WrongAxes, axes
from lib.redshift import infinite_width, random_networks
from lib.redshift.activations import Activation
from lib.redshift.random_networks import Layer, Prior


@axes(target="tasks points")
def interpolate(k: Tensor, target: Tensor, train: Tensor, test: Tensor, jitter: float = 1e-10) -> Tensor:
    """Predictions at the points `test` of the function of smallest norm that passes through `target` at the points `train`.

    k (points, points) is a kernel, or (splits, points, points) one for each split; target (tasks, points); train (splits,
    seen) and test (splits, unseen) are indices. Returns (splits, tasks, unseen). `jitter`, relative to the kernel's mean
    diagonal, keeps nearly equal points apart.
    """
    if k.shape[-1] != target.shape[-1] or k.shape[-2] != k.shape[-1]:
        raise WrongAxes(f"interpolate: k has shape {tuple(k.shape)} for {target.shape[-1]} points")
    split = torch.arange(len(train))[:, None, None]
    k = k.expand(len(train), -1, -1)
    among = k[split, train[:, :, None], train[:, None]]  # (splits, seen, seen)
    across = k[split, test[:, :, None], train[:, None]]  # (splits, unseen, seen)
    level = jitter * among.diagonal(dim1=1, dim2=2).mean(1)[:, None, None]
    seen = target[:, train].permute(1, 2, 0)  # (splits, seen, tasks)
    weights = torch.linalg.solve(among + level * torch.eye(train.shape[1], dtype=k.dtype), seen)
    return (across @ weights).mT


def prefactor_kernel(activation: str, x: Tensor, prefactor: float, depth: int = 3, width: int = 128, bias: float = 1.0) -> Tensor:
    """Kernel of networks whose activations have a prefactor, phi(a (Wx + b)), at the points x: (points, points).

    The prefactor multiplies weights and biases (uniform in ±`bias`) of the hidden layers alike. Neural Redshift Section 4.
    """
    return infinite_width.kernel(activation, x, x, depth, width, Prior(prefactor, bias=prefactor * bias))


def feature_kernel(layers: list[Layer], x: Tensor, activation: Activation, prefactor: float = 1.0) -> Tensor:
    """The same kernel from the last of the hidden `layers` of drawn networks, at the points x: (seeds, points, points).

    Regression with it is what a network does that trains its readout alone.
    """
    for layer in layers:
        x = random_networks.hidden_layer(layer, x, activation, prefactor=prefactor)
    return x @ x.mT / x.shape[-1]


def modulo_accuracy(
    activation: Activation,
    prefactors: Sequence[float],
    moduli: Sequence[int],
    share: float,
    *,
    numbers: int = 16,
    dims: int = 2,
    depth: int = 3,
    width: int = 128,
    bias: float = 1.0,
    splits: int = 20,
    seed: int = 0,
    drawn: bool = False,
) -> Tensor:
    """Share of the points left out that kernel regression on the others labels rightly: (tasks, prefactors, splits).

    Split k sees the points that network k of `trained_networks.learn_modulo_sums` sees. With `drawn`, each split has the
    drawn network from which that one starts, and only its readout is trained. Neural Redshift Section 4.1, Figs 7 and 8.
    """
    made = [tasks.modulo_sums(modulus, numbers, dims) for modulus in moduli]
    x = tasks.as_rows(made[0][0]).double()
    target = torch.stack([2 * y[0] - 1 for _, y in made]).double()  # (tasks, points), +1 and -1
    streams = Streams(splits, seed)
    order = streams.permutation(len(x))
    train, test = order.split([round(share * len(x)), len(x) - round(share * len(x))], 1)
    right = target[:, test].transpose(0, 1) > 0  # (splits, tasks, unseen)

    layers = random_networks.draw(splits, (dims, *[width] * depth), Prior(bias=bias), seed=streams) if drawn else []

    def accuracy(prefactor: float) -> Tensor:
        if drawn:
            k = feature_kernel(layers, x, activation, prefactor)
        else:
            k = prefactor_kernel(activation, x, prefactor, depth, width, bias)
        return ((interpolate(k, target, train, test) > 0) == right).double().mean(2).T  # (tasks, splits)

    return torch.stack([accuracy(prefactor) for prefactor in prefactors], 1)

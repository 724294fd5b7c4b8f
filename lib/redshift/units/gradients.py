"""Gradients of ensembles of plain networks, written out by hand, and Adam on all their weights as one vector.

Automatic differentiation takes new memory for every result of every step. Here all results go into the same memory again,
with the quick twins of `activations` and products in `blocks` of points: one step takes less than half of the time.
`trained_networks.fit` is the plain version, which tests hold this against.

Inputs that are equal at all points, such as the background of images, are `folded` into one. Their weights get the same gradient,
so Adam moves them all by the same amount, and it is enough to follow the mean of them.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from lib.linear.adam import Adam
from lib.linear.blocks import Tall
from lib.redshift.random_networks import Layer
from lib.redshift.units.activations import FROM_VALUE, QUICK

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of outputs (seeds, points): each network's (seeds,)
    "squared": lambda out, target: (out - target).square().mean(1),
    "logistic": lambda out, target: functional.binary_cross_entropy_with_logits(out, target, reduction="none").mean(1),
}


def folded(x: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """The distinct columns of x (points, inputs), which of them each input is, and how many inputs each stands for; nothing if
    that would save less than a tenth, or if every network has points of its own."""
    if x.ndim != 2 or x.shape[1] < 10:
        return None
    distinct, which, counts = x.unique(dim=1, return_inverse=True, return_counts=True)
    return (distinct, which, counts.to(x)) if len(counts) <= 0.9 * x.shape[1] else None


class Fitting:
    """An ensemble with one output that learns `target` (seeds, points) at the points x, by Adam with this `rate`.

    What is learned is one vector, which `hand_over` writes into the tensors of `layers`. x is (points, inputs) or (seeds, points,
    inputs); `activation` is one of QUICK, `prefactor` as in `random_networks.forward`, `loss` as in `trained_networks.fit`.
    """

    def __init__(
        self,
        layers: list[Layer],
        x: Tensor,
        target: Tensor,
        activation: str,
        *,
        rate: float,
        loss: str,
        prefactor: float | Tensor,
    ):
        (self.forward, self.back), self.target, self.rate, self.loss = QUICK[activation], target, rate, loss
        self.tensors = tensors = [layer[name] for layer in layers for name in ("weight", "bias")]
        self.fold, times = folded(x), 1.0
        if self.fold:
            x, self.which, times = self.fold
            self.first, sums = tensors[0].clone(), tensors[0].new_zeros(*tensors[0].shape[:2], x.shape[1])
            self.mean = sums.index_add_(2, self.which, self.first).div_(times)  # of the weights from equal inputs
            tensors = [self.mean, *tensors[1:]]
        self.flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self.gradient, self.adam = torch.zeros_like(self.flat), Adam([self.flat], 1e-8)
        counts = [tensor.numel() for tensor in tensors]
        views, towards = (
            [part.view(tensor.shape) for part, tensor in zip(vector.split(counts), tensors, strict=True)]
            for vector in (self.flat, self.gradient)
        )
        self.views, self.weights, self.biases = views, views[::2], views[1::2]
        self.to_weights, self.to_biases = towards[::2], towards[1::2]
        seeds, points = target.shape
        self.x, self.sums = (each.expand(seeds, -1, -1) for each in (x, x * times))  # one input of each kind, and all together
        self.z, self.h, self.delta = (
            [Tall(self.flat.new_empty(seeds, points, weight.shape[1])) for weight in self.weights[:-1]] for _ in range(3)
        )
        if activation in FROM_VALUE:
            self.h = self.z
        # The prefactor of each hidden weight and bias, so that all are multiplied at once.
        hidden = sum(counts[:-2])
        self.plain = not isinstance(prefactor, Tensor) and prefactor == 1
        self.factor = torch.cat([(torch.ones_like(view) * prefactor).reshape(-1) for view in views[:-2]])
        self.inner, self.slope = self.flat[:hidden], self.gradient[:hidden]
        self.product = self.inner if self.plain else torch.empty_like(self.inner)
        scaled = [part.view(t.shape) for part, t in zip(self.product.split(counts[:-2]), tensors, strict=False)]
        self.scaled = list(zip(scaled[::2], scaled[1::2], strict=True))
        self.turned = [weight.mT.contiguous() for weight, _ in self.scaled]  # as quick products want them

    def hand_over(self) -> None:
        """Write what has been learned so far into the ensemble's tensors."""
        for tensor, view in zip(self.tensors, self.views, strict=True):
            if tensor.shape == view.shape:
                tensor.copy_(view)
            else:
                torch.add(self.first, (view - self.mean).index_select(2, self.which), out=tensor)

    def answers(self) -> Tensor:
        """Outputs at the points, (seeds, points)."""
        if not self.plain:
            torch.mul(self.inner, self.factor, out=self.product)
        for k, ((weight, bias), z, h) in enumerate(zip(self.scaled, self.z, self.h, strict=True)):
            if k and self.h[k - 1].blocks and z.blocks:
                self.h[k - 1].times(self.turned[k].copy_(weight.mT), z).add_(bias)
            else:
                torch.baddbmm(bias, self.h[k - 1].rows if k else self.sums, weight.mT, out=z.rows)
            self.forward(z.rows, h.rows)
        return torch.baddbmm(self.biases[-1], self.h[-1].rows, self.weights[-1].mT)[..., 0]

    def losses(self, answers: Tensor) -> Tensor:
        """Each network's loss: (seeds,)."""
        return LOSSES[self.loss](answers, self.target)

    def step(self, answers: Tensor) -> None:
        """One step of Adam, from the answers just given."""
        if self.loss == "squared":
            error = (answers - self.target).mul_(2 / self.target.shape[1])
        else:
            error = (answers.sigmoid() - self.target).div_(self.target.shape[1])
        torch.bmm(error[:, None], self.h[-1].rows, out=self.to_weights[-1])
        torch.sum(error[:, None], 2, keepdim=True, out=self.to_biases[-1])
        for k in reversed(range(len(self.h))):
            if k == len(self.h) - 1:
                delta = torch.mul(error[..., None], self.weights[-1], out=self.delta[k].rows)
            else:
                delta = self.delta[k + 1].times(self.scaled[k + 1][0], self.delta[k])
            self.back(delta, self.z[k].rows, self.h[k].rows)
            torch.sum(delta, 1, keepdim=True, out=self.to_biases[k])
            if k:
                self.delta[k].onto(self.h[k - 1], self.to_weights[k])
            elif self.x.shape[2] < delta.shape[2]:  # a product is quicker if its second matrix is the wider one
                self.to_weights[k].copy_(torch.bmm(self.x.mT, delta).mT)
            else:
                torch.bmm(delta.mT, self.x, out=self.to_weights[k])
        if not self.plain:
            self.slope.mul_(self.factor)
        self.adam.step([self.gradient], self.rate)

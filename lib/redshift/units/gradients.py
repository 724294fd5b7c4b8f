"""Gradients of ensembles of plain networks, written out by hand, and Adam on all their weights as one vector.

Automatic differentiation takes new memory for every result of every step. Here all results go into the same memory again,
with the quick twins of `activations`: one step takes a little more than half of the time. `trained_networks.fit` is the plain
version, which tests hold this against.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from lib.linear.adam import Adam
from lib.redshift.random_networks import Layer
from lib.redshift.units.activations import QUICK

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of outputs (seeds, points): each network's (seeds,)
    "squared": lambda out, target: (out - target).square().mean(1),
    "logistic": lambda out, target: functional.binary_cross_entropy_with_logits(out, target, reduction="none").mean(1),
}


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
        self.x = x.expand(seeds, -1, -1)
        shapes = [(seeds, points, weight.shape[1]) for weight in self.weights[:-1]]
        self.z, self.h, self.delta = ([self.flat.new_empty(shape) for shape in shapes] for _ in range(3))
        self.prefactor = prefactor
        self.plain = not isinstance(prefactor, Tensor) and prefactor == 1  # else every hidden layer's weights are scaled
        self.scaled = [(w, b) if self.plain else (w * prefactor, b * prefactor) for w, b in self._hidden()]

    def _hidden(self) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.weights[:-1], self.biases[:-1], strict=True))

    def hand_over(self) -> None:
        """Write what has been learned so far into the ensemble's tensors."""
        for tensor, view in zip(self.tensors, self.views, strict=True):
            tensor.copy_(view)

    def answers(self) -> Tensor:
        """Outputs at the points, (seeds, points)."""
        h = self.x
        for (weight, bias), (w, b), z, out in zip(self._hidden(), self.scaled, self.z, self.h, strict=True):
            if not self.plain:
                torch.mul(weight, self.prefactor, out=w)
                torch.mul(bias, self.prefactor, out=b)
            h = self.forward(torch.baddbmm(b, h, w.mT, out=z), out)
        return torch.baddbmm(self.biases[-1], h, self.weights[-1].mT)[..., 0]

    def losses(self, answers: Tensor) -> Tensor:
        """Each network's loss: (seeds,)."""
        return LOSSES[self.loss](answers, self.target)

    def step(self, answers: Tensor) -> None:
        """One step of Adam, from the answers just given."""
        if self.loss == "squared":
            error = (answers - self.target).mul_(2 / self.target.shape[1])
        else:
            error = (answers.sigmoid() - self.target).div_(self.target.shape[1])
        inputs = [self.x, *self.h]
        torch.bmm(error[:, None], inputs[-1], out=self.to_weights[-1])
        torch.sum(error[:, None], 2, keepdim=True, out=self.to_biases[-1])
        for k in reversed(range(len(self.h))):
            if k == len(self.h) - 1:
                delta = torch.mul(error[..., None], self.weights[-1], out=self.delta[k])
            else:
                delta = torch.bmm(delta, self.scaled[k + 1][0], out=self.delta[k])
            delta = self.back(delta, self.z[k], self.h[k])
            torch.bmm(delta.mT, inputs[k], out=self.to_weights[k])
            torch.sum(delta, 1, keepdim=True, out=self.to_biases[k])
            if not self.plain:
                self.to_weights[k].mul_(self.prefactor)
                self.to_biases[k].mul_(self.prefactor)
        self.adam.step([self.gradient], self.rate)

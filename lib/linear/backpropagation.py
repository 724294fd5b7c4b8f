"""Backpropagation through layers by hand, for whole ensembles: the one gradient of `lib.relu`.

Here, and only here, items are rows and units come last in memory: every product then runs over long contiguous rows, three
times faster at the sizes of the book, and is written where it was written in the step before (`products`). `relu.networks`
and `relu.minibatches` bring their data into this form and take it out again.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.linear.products import Products

Activation = str | Callable[[Tensor], Tensor]
_THRESHOLD = torch.ops.aten.threshold_backward.grad_input


class Program:
    """Loss and gradient of flat networks, weights (networks, out, in), on rows (networks, items, features).

    Built once per data set and called in every step, so it checks nothing, and what it returns holds until the next call.
    `rows` already has the first layer's constant; `gates` are None or (networks or 1, items or 1, units) for each hidden layer.
    The last `detached` units of the last hidden layer hear the error of the whole network, all others only the error that the
    network without those units makes.
    """

    def __init__(self, rows: Tensor, labels: Tensor, kinds: list[Activation], biases: list[float],
                 gates: list[Tensor | None], share: float, detached: int = 0):  # fmt: skip
        self.rows, self.labels, self.kinds, self.gates, self.share = rows, labels, kinds, gates, share
        self.detached = detached
        self.biases, self.products = [0.0, *biases[1:]], Products()
        self.renew()

    def renew(self) -> None:
        """To be called when other numbers were written into `rows`."""
        small = self.rows[0].numel() < 4096  # copying pays for small matrices only
        self.columns = self.rows.mT.contiguous() if small else self.rows.mT

    def forward(self, weights: list[Tensor]) -> tuple[list[Tensor], list[Tensor | None], Tensor]:
        """What each layer is given, what its units' slopes are (None: one), and the answer (networks, items, outputs)."""
        given, slopes = [self.rows], []
        for layer, (w, b) in enumerate(zip(weights, self.biases, strict=True)):
            z = self.products(("given", layer), given[-1], (w[..., :-1] if b else w).mT)  # (networks, items, units)
            if b:
                z.add_(w[..., -1].mul(b)[:, None])
            if layer == len(self.kinds):
                return given, slopes, z
            kind, gate = self.kinds[layer], self.gates[layer]
            if kind == "relu":
                given.append(z.relu_())
                slopes.append(None)  # its sign is in what it hands on
            elif callable(kind):
                with torch.enable_grad():
                    z = z.detach().requires_grad_()
                    h = kind(z)
                    slopes.append(torch.autograd.grad(h.sum(), z)[0])
                given.append(h.detach())
            else:
                given.append(z if gate is None else z.mul_(gate))
                slopes.append(gate)

    def loss(self, answer: Tensor) -> Tensor:
        """Half the squared error of an answer of `forward`, (networks,)."""
        return (answer - self.labels).square().sum((-2, -1)).mul_(0.5 * self.share)

    def slope(self, weights: list[Tensor]) -> list[Tensor]:
        """Backpropagation: the error is carried back through each matrix and switched off where the unit was off."""
        given, slopes, answer = self.forward(weights)
        back = answer.sub_(self.labels)  # (networks, items, outputs)
        if self.share != 1.0:
            back.mul_(self.share)
        last, result = len(weights) - 1, []
        for layer in range(last, -1, -1):
            w, b = weights[layer], self.biases[layer]
            if layer == last and self.detached:
                back, g = self._split(back, given[layer], w)
                result.append(g)
            elif layer == last:
                g = self.products(("slope", layer), back.mT, given[layer])  # in memory as the matrices: units last
                result.append(torch.cat([g, back.sum(1).mul(b)[..., None]], -1) if b else g)
            else:
                g = self.products(("slope", layer), given[layer].mT if layer else self.columns, back)
                result.append((torch.cat([g, back.sum(1, keepdim=True).mul(b)], 1) if b else g).mT)
            if layer:
                if layer != last or not self.detached:
                    back = self.products(("back", layer), back, w[..., :-1] if b else w)  # (networks, items, units)
                if self.kinds[layer - 1] == "relu":
                    _THRESHOLD(back, given[layer], 0, grad_input=back)  # keeps it where the unit is on
                elif slopes[layer - 1] is not None:
                    back.mul_(slopes[layer - 1])
        return result[::-1]

    def _split(self, error: Tensor, given: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """What comes back to the last hidden layer, and the readout's gradient, where some units are detached."""
        (early, late), (first, last) = (part.tensor_split((w.shape[-1] - self.detached,), -1) for part in (given, w))
        own = error - self.products("late", late, last.mT).mul_(self.share)  # the error without the detached units
        back = torch.cat([self.products("back to early", own, first), self.products("back to late", error, last)], -1)
        slopes = self.products("early slope", own.mT, early), self.products("late slope", error.mT, late)
        return back, torch.cat(slopes, -1)


def rows_of(data: Tensor, ensemble: torch.Size, spread: bool = True) -> Tensor:
    """(..., features, items) -> (networks, items, features), contiguous where that is cheap; or (1, ...) if not `spread`."""
    rows = data.mT
    if rows.dim() > 2 or spread:
        rows = rows.expand(*ensemble, *rows.shape[-2:])
    flat = rows.reshape(-1, *rows.shape[-2:])
    return flat.contiguous() if flat[0].numel() < 4096 else flat

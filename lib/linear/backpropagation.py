"""Backpropagation through layers by hand, for whole ensembles: the one gradient of `lib.relu`.

Here, and only here, items are rows and units come last in memory: every product then runs over long contiguous rows, three
times faster at the sizes of the book, and is written where it was written in the step before (`products`). `relu.networks`
and `relu.minibatches` bring their data into this form and take it out again.
"""

import operator
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lib.linear.products import Products

Activation = str | Callable[[Tensor], Tensor]
Both = tuple[Tensor, np.ndarray | Tensor]  # the same numbers for torch, and for what multiplies: NumPy on the processor
_THRESHOLD = torch.ops.aten.threshold_backward.grad_input


class Program:
    """Loss and gradient of flat networks, weights (networks, out, in), on rows (networks, items, features).

    Built once per data set and called in every step, so it checks nothing, and what it returns holds until the next call.
    `rows` already has the first layer's constant; `gates` are None or (networks or 1, items or 1, units) for each hidden layer.
    The last `detached` units of the last hidden layer hear the error of the whole network, all others only the error that the
    network without those units makes.

    Where the first hidden layer is linear and always on, and features are fewer than items, the first two matrices are
    multiplied with each other and not with the items: the same numbers in another order of sums, with less work (`through`).
    """

    def __init__(self, rows: Tensor, labels: Tensor, kinds: list[Activation], biases: list[float],
                 gates: list[Tensor | None], share: float, detached: int = 0):  # fmt: skip
        self.rows, self.labels, self.kinds, self.gates, self.share = rows, labels, kinds, gates, share
        self.detached = detached
        self.biases, self.products = [0.0, *biases[1:]], Products()
        self.maths = np if rows.device.type == "cpu" else torch
        plain = len(kinds) > 1 and kinds[0] in ("linear", "gated") and gates[0] is None and not biases[1]
        self.through = plain and rows.shape[-1] < rows.shape[-2]
        self.bound: list[Tensor] = []  # the weights of the last call, and below how they are multiplied
        self.matrices: list[np.ndarray | Tensor] = []
        self.kept: dict[tuple[str, int], Both] = {}  # products, each where that of the call before was
        self.first = self._both(rows)
        self.renew()

    def renew(self) -> None:
        """To be called when other numbers were written into `rows`."""
        small = self.rows[0].numel() < 4096  # copying pays for small matrices only
        self.columns = self._both(self.rows.mT.contiguous() if small else self.rows.mT)[1]

    def _both(self, tensor: Tensor) -> Both:
        return tensor, tensor.detach().numpy() if self.maths is np else tensor

    def _bind(self, weights: list[Tensor]) -> None:
        """Sees to it that `matrices` are those of `weights`. In training these are the same in every call, in the same memory:
        looking them up anew would take as long as the products of a small network."""
        if len(weights) == len(self.bound) and all(map(operator.is_, weights, self.bound)):
            return
        self.bound, self.kept = list(weights), {}
        self.matrices = [self._both(w[..., :-1] if b else w)[1] for w, b in zip(weights, self.biases, strict=True)]

    def _product(self, name: str, layer: int, a: np.ndarray | Tensor, b: np.ndarray | Tensor) -> Both:
        """a (networks, rows, inner) times b (networks, inner, columns), as `Products` of matrices that are bound."""
        kept = self.kept.get((name, layer))
        if kept is None:
            made = torch.as_tensor(self.maths.matmul(a, b))
            kept = self.kept[name, layer] = self._both(made)
        else:
            multiply = self.maths.multiply if a.shape[-1] == 1 else self.maths.matmul
            multiply(a, b, out=kept[1])
        return kept

    def answer(self, weights: list[Tensor]) -> Tensor:
        """What the networks answer, (networks, items, outputs)."""
        return self._forward(weights)[2][0]

    def _forward(self, weights: list[Tensor]) -> tuple[list[Both], list[Tensor | None], Both]:
        """What each layer is given, what its units' slopes are (None: one), and the answer (networks, items, outputs)."""
        self._bind(weights)
        given, slopes = [self.first], []
        for layer, (w, b) in enumerate(zip(weights, self.biases, strict=True)):
            matrix = self.matrices[layer].mT
            if self.through and layer == 0:
                slopes.append(None)
                continue
            if self.through and layer == 1:
                matrix = self._product("two", 0, self.matrices[0].mT, matrix)[1]  # (networks, features, units)
            z, array = self._product("given", layer, given[-1][1], matrix)  # (networks, items, units)
            if b:
                z.add_(w[..., -1].mul(b)[:, None])
            if layer == len(self.kinds):
                return given, slopes, (z, array)
            kind, gate = self.kinds[layer], self.gates[layer]
            if kind == "relu":
                given.append((z.relu_(), array))
                slopes.append(None)  # its sign is in what it hands on
            elif callable(kind):
                with torch.enable_grad():
                    z = z.detach().requires_grad_()
                    h = kind(z)
                    slopes.append(torch.autograd.grad(h.sum(), z)[0])
                given.append(self._both(h.detach()))
            else:
                given.append((z if gate is None else z.mul_(gate), array))
                slopes.append(gate)

    def loss(self, answer: Tensor) -> Tensor:
        """Half the squared error of such an answer, (networks,)."""
        return (answer - self.labels).square().sum((-2, -1)).mul_(0.5 * self.share)

    def slope(self, weights: list[Tensor]) -> list[Tensor]:
        """Backpropagation: the error is carried back through each matrix and switched off where the unit was off."""
        given, slopes, (back, array) = self._forward(weights)
        given = given[:1] * self.through + given  # what a linear first layer hands on nobody asks for
        back.sub_(self.labels)  # (networks, items, outputs)
        if self.share != 1.0:
            back.mul_(self.share)
        last, result = len(weights) - 1, []
        for layer in range(last, -1, -1):
            b = self.biases[layer]
            if self.through and layer == 1:
                both = self._product("two slopes", 0, self.columns, array)[1]  # (networks, features, units)
                result.append(self._product("slope", 1, self.matrices[0], both)[0].mT)
                result.append(self._product("slope", 0, both, self.matrices[1])[0].mT)
                break
            if layer == last and self.detached:
                back, g = self._split(back, given[layer][0], weights[layer])
                array = self._both(back)[1]
                result.append(g)
            elif layer == last:
                g, _ = self._product("slope", layer, array.mT, given[layer][1])  # in memory as the matrices: units last
                result.append(torch.cat([g, back.sum(1).mul(b)[..., None]], -1) if b else g)
            else:
                g, _ = self._product("slope", layer, given[layer][1].mT if layer else self.columns, array)
                result.append((torch.cat([g, back.sum(1, keepdim=True).mul(b)], 1) if b else g).mT)
            if layer:
                if layer != last or not self.detached:
                    back, array = self._product("back", layer, array, self.matrices[layer])  # (networks, items, units)
                if self.kinds[layer - 1] == "relu":
                    _THRESHOLD(back, given[layer][0], 0, grad_input=back)  # keeps it where the unit is on
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

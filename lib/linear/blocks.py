"""Products with tall matrices, thousands of points by a few dozen units, in blocks of points that stay in the nearest cache.

NumPy's library is at its best with matrices of a few hundred thousand multiplications. A tall product is many of them, one for
each block of 192 points, and takes a fifth less time than in one piece. The bits are the same: torch's library, too, adds up a
sum over points in blocks of 192.
"""

import numpy as np
import torch
from torch import Tensor

POINTS = 192  # in a block
FEWEST, WIDEST = 96, 72  # with fewer points or more units torch is as quick


class Tall:
    """Matrices (networks, points, units) in memory that is kept, and their `blocks` as NumPy sees them: whole ones, the rest.

    Each is (networks, blocks, points, units). Where there are few points or many units, and on other devices than the
    processor, there are no blocks, and torch multiplies. Nothing here can be differentiated.
    """

    def __init__(self, rows: Tensor):
        self.rows, self.blocks, self.sums = rows, None, {}
        if rows.device.type == "cpu" and rows.shape[1] >= FEWEST and rows.shape[2] <= WIDEST:
            array, whole = rows.numpy(), rows.shape[1] // POINTS * POINTS
            parts = array[:, :whole].reshape(len(array), -1, POINTS, array.shape[2]), array[:, None, whole:]
            self.blocks = [part for part in parts if part.size]

    def times(self, matrix: Tensor, out: "Tall") -> Tensor:
        """Each network's rows times its matrix (networks, units, others), written into `out`: (networks, points, others)."""
        if self.blocks is None or out.blocks is None:
            return torch.bmm(self.rows, matrix, out=out.rows)
        array = matrix.numpy()[:, None]
        for part, place in zip(self.blocks, out.blocks, strict=True):
            np.matmul(part, array, out=place)
        return out.rows

    def onto(self, other: "Tall", out: Tensor) -> Tensor:
        """The sums over points of products of the two, rows.mT @ other.rows, written into `out`: (networks, units, others)."""
        if self.blocks is None or other.blocks is None:
            return torch.bmm(self.rows.mT, other.rows, out=out)
        if other not in self.sums:
            self.sums[other] = self._shares(other)
        pairs, (first, *others) = self.sums[other]
        for a, b, share in pairs:
            np.matmul(a, b, out=share)
        if not others:
            return out.copy_(first)
        torch.add(first, others[0], out=out)
        for each in others[1:]:
            out.add_(each)
        return out

    def _shares(self, other: "Tall") -> tuple[list, list[Tensor]]:
        """Memory for each block's share of a sum: what goes in, and all shares in their order."""
        pairs, shares = [], []
        for a, b in zip(self.blocks, other.blocks, strict=True):
            share = other.rows.new_empty(*a.shape[:2], a.shape[3], b.shape[3])
            pairs.append((a.swapaxes(-1, -2), b, share.numpy()))
            shares += share.unbind(1)
        return pairs, shares

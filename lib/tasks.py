"""The synthetic tasks of the five papers. Every task returns x (features, items) and y (outputs, items), float64."""

import torch
from torch import Tensor


def tree(items: int, root: bool = True) -> Tensor:
    """A binary tree over `items` leaves: one row per node, one column per leaf, 1 where the leaf is below the node.

    With the root there are 2 · items - 1 rows: everything, halves, quarters, …, single leaves.
    """
    if items < 2 or items & (items - 1):
        raise ValueError(f"a binary tree needs 2, 4, 8, … items, got {items}")
    rows, size = [], items
    while size >= 1:
        rows.append(torch.kron(torch.eye(items // size), torch.ones(1, size)))
        size //= 2
    return torch.cat(rows if root else rows[1:]).double()


def hierarchy(items: int = 8, root: bool = True) -> tuple[Tensor, Tensor]:
    """One-hot items that must name all their ancestors in a binary tree: animals and plants, birds and fish, …

    Make Haste Slowly Fig. 7 and Appendix A · Early Linearization Section 4.
    """
    return torch.eye(items, dtype=torch.float64), tree(items, root)

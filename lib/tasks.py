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


def separability(margin: Tensor | float, amplitude: float = 1.0) -> tuple[Tensor, Tensor]:
    """Four points: an XOR of size `amplitude` in two dimensions, pulled apart along a third by `margin`.

    x is (..., 3, 4) for a margin of shape (...), y is (1, 4). At margin 0 no plane separates the classes.
    Make Haste Slowly Eqs 11-12 (and Early Linearization Fig. 5, up to its labels).
    """
    margin = torch.as_tensor(margin, dtype=torch.float64)
    corners = amplitude * torch.tensor([[-1.0, 1, -1, 1], [-1, -1, 1, 1]], dtype=torch.float64)
    y = torch.tensor([[-1.0, 1, 1, -1]], dtype=torch.float64)
    x = torch.cat([corners.expand(*margin.shape, 2, 4), margin[..., None, None] * y], -2)
    return x, y


def cross_cutting_tree(items: int = 8) -> Tensor:
    """A binary tree whose lowest pairs cut across the usual ones: items 0 and 2, 1 and 3, ... instead of 0 and 1."""
    rows = tree(items)
    pairs = slice(items // 2 - 1, items - 1)
    quad = torch.kron(torch.eye(items // 4), torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]]))
    return torch.cat([rows[: pairs.start], quad.double(), rows[pairs.stop :]])


def ring(items: int = 8) -> Tensor:
    """Items on a circle: a row that is always on, then bumps that fade to both sides of a place on the circle.

    It has as many rows as `tree` has, 2 · items - 1, so six of the bumps come twice for 8 items.
    """
    fade = torch.tensor([0.0, 0.33, 0.66, 1.0], dtype=torch.float64)
    if items != 8:
        raise ValueError("the ring of Make Haste Slowly is defined for 8 items")
    bump = torch.cat([fade, fade.flip(0)])
    return torch.stack([torch.ones(items, dtype=torch.float64)] + [bump.roll(k) for k in range(2 * items - 2)])


STRUCTURES = {"tree": tree, "ring": ring, "cross": cross_cutting_tree}


def contexts(structures: tuple[str, ...] = ("tree", "ring", "cross"), items: int = 8) -> tuple[Tensor, Tensor]:
    """Every item in every context: some properties hold always, others are asked for in one context only.

    One context per entry of `structures`, which says what its own block of properties looks like; the common block is
    a tree. With C contexts x is (items + C, items · C), one-hot item above one-hot context, and y stacks C + 1 blocks
    of 2 · items - 1 rows, the common block first. Make Haste Slowly Fig. 3 (the default) and Fig. 5 (all trees).
    """
    n = len(structures)
    x = torch.cat([torch.eye(items).repeat(1, n), torch.kron(torch.eye(n), torch.ones(1, items))]).double()
    own = torch.block_diag(*[STRUCTURES[name](items) for name in structures])
    return x, torch.cat([tree(items).repeat(1, n), own])

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


def xor() -> tuple[Tensor, Tensor]:
    """Four corners of a square, one class on each diagonal: x (2, 4) of ±1, y (2, 4) one row per class.

    Corners of ±1 and not of 0 and 1: at the origin a network without biases has nothing to say.
    Early Linearization Fig. 2c.
    """
    x, y = separability(0.0)
    return x[:2], one_row_per_class(y)


def linear_and_xor() -> tuple[Tensor, Tensor]:
    """Two questions about the same four corners: on which side they are, and on which diagonal.

    x is (2, 4); y is (4, 4), two one-hot labels, the linear question above the XOR. Early Linearization Fig. 6a.
    """
    x, diagonal = xor()
    return x, torch.cat([one_row_per_class(x[:1]), diagonal])


def one_row_per_class(y: Tensor) -> Tensor:
    """Labels of -1 and 1, (1, items), as one-hot labels: (2, items)."""
    return torch.cat([y < 0, y > 0]).double()


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


def modulo_sums(modulus: int, numbers: int = 16, dims: int = 2) -> tuple[Tensor, Tensor]:
    """All vectors of `dims` integers below `numbers`, labelled 1 if their sum modulo `modulus` is in the lower half.

    x (dims, numbers^dims) is scaled to [-1, 1]; y (1, items) is 0 or 1. The smaller the modulus, the finer the stripes.
    Neural Redshift Section 4.1, with the formula for the label put right: 1((sum mod M) < M/2).
    """
    integers = torch.cartesian_prod(*[torch.arange(numbers)] * dims).reshape(-1, dims).T
    y = (integers.sum(0, keepdim=True) % modulus < modulus / 2).double()
    return integers.double() * (2 / (numbers - 1)) - 1, y


def waves(m: int = 64, cycles: tuple[float, float] = (3.0, 6.0)) -> tuple[Tensor, Tensor]:
    """Two orthogonal sine waves added up, and where the sum has its local extrema: image (m, m) in [0, 1], mask (m, m).

    One wave has twice the frequency of the other, and only the extrema are used for training.
    Neural Redshift Appendix E and Fig. 12; the frequencies are ours.
    """
    x = torch.linspace(-1, 1, m, dtype=torch.float64)
    first, second = (torch.sin(torch.pi * c * x) for c in cycles)
    image = (first[:, None] + second + 2) / 4
    inside = torch.zeros(m, m, dtype=torch.bool)
    inside[1:-1, 1:-1] = True
    highest, lowest = (s * torch.nn.functional.max_pool2d((s * image)[None], 3, 1, 1)[0] for s in (1, -1))
    return image, inside & ((image == highest) | (image == lowest))


def coloured_digits(
    images: Tensor, labels: Tensor, informative: str = "both", noise: float = 0.0, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Images (items, height, width) of ten digits beside a column of pixels of one grey, the "colour"; y is digit / 9.

    `informative`: "both" gives training data, in which the colour equals the label except for a share `noise` of the
    items, which get a random colour; "digit" permutes the colours and "colour" the images, so that only the one named
    tells the label: the two test sets. x (height · (width + 1), items) in [-1, 1], y (1, items).
    Neural Redshift Section 4.2 and Appendix D.
    """
    generator = torch.Generator().manual_seed(seed)
    items, height, _ = images.shape
    y = labels.double() / 9
    colour = y.clone()
    if informative == "both":
        replaced = torch.rand(items, generator=generator) < noise
        colour = torch.where(replaced, torch.rand(items, generator=generator, dtype=torch.float64), colour)
    elif informative == "digit":
        colour = colour[torch.randperm(items, generator=generator)]
    elif informative == "colour":
        images = images[torch.randperm(items, generator=generator)]
    else:
        raise ValueError(f"informative is 'both', 'digit' or 'colour', not {informative!r}")
    column = colour[:, None, None].expand(items, height, 1)
    x = torch.cat([images.double(), column], 2).reshape(items, -1)
    return (2 * x - 1).T, y[None]


def routing_items(heights: tuple[float, float, float] = (6.0, 4.0, 3.0)) -> tuple[Tensor, Tensor]:
    """The four items of the routing task: one-hot inputs, and a tree whose three levels have their own heights.

    y is (7, 4): one property that all items have, two that halves of them share, four of their own.
    Neural Race, Fig. 4c (the heights are those of the authors' released code).
    """
    everything, half, own = heights
    level = torch.tensor([everything, half, half, own, own, own, own], dtype=torch.float64)
    return torch.eye(4, dtype=torch.float64), level[:, None] * tree(4)


def lorenz(steps: int, dt: float = 0.01, start: tuple[float, float, float] = (0.0, 1.0, 0.0), method: str = "euler") -> Tensor:
    """A trajectory of the Lorenz system, (steps, 3), from `start` on; sigma 10, rho 28, beta 8/3.

    Euler's method (the paper's) or the classical Runge-Kutta of order four. Bias learning, Fig. 2.
    """

    def flow(p: tuple[float, float, float]) -> tuple[float, float, float]:
        x, y, z = p
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    def moved(p, slope, by):
        return tuple(a + by * b for a, b in zip(p, slope, strict=True))

    def euler(p):
        return moved(p, flow(p), dt)

    def runge_kutta(p):
        k1 = flow(p)
        k2 = flow(moved(p, k1, dt / 2))
        k3 = flow(moved(p, k2, dt / 2))
        k4 = flow(moved(p, k3, dt))
        return moved(p, [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)], dt)

    step = {"euler": euler, "runge-kutta": runge_kutta}[method]
    points = [tuple(map(float, start))]
    for _ in range(steps - 1):
        points.append(step(points[-1]))
    return torch.tensor(points, dtype=torch.float64)

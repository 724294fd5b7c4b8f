"""The synthetic tasks of the five papers.

Those for which items are columns return x (features, items) and y (outputs, items), float64; `as_rows` turns them into
the float32 rows that wide networks and minibatches want. Three are something else: `tree`, `ring` and `cross_cutting_tree`
are blocks of properties, (properties, items), of which `contexts` is built; `waves` is an image with a mask; `lorenz`
is a trajectory, (steps, 3). Sizes are always arguments: nothing here knows how many items a paper had.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from lib.linear.shapes import WrongAxes, axes

Block = str | Tensor | np.ndarray  # the name of a structure, or properties of one's own, (properties, items)


def as_rows(*tensors: Tensor | np.ndarray) -> Tensor | tuple[Tensor, ...]:
    """Columns (..., features, items) as float32 rows (..., items, features); one tensor, or a tuple of all."""
    rows = tuple(torch.as_tensor(tensor).mT.to(torch.float32).contiguous() for tensor in tensors)
    return rows[0] if len(rows) == 1 else rows


def tree(items: int, branching: int = 2, *, root: bool = True) -> Tensor:
    """A tree over `items` leaves: one row per node, one column per leaf, 1 where the leaf is below the node.

    Each node has `branching` children. Rows go from the root to the single leaves; a binary tree with its root has
    2 · items - 1 of them: everything, halves, quarters, …, leaves.
    """
    levels = _levels(items, branching)
    sizes = [branching**level for level in range(levels, -1, -1)]  # leaves below a node, from the root down
    rows = [torch.kron(torch.eye(items // size), torch.ones(1, size)) for size in sizes]
    return torch.cat(rows if root else rows[1:]).double()


def hierarchy(items: int, branching: int = 2, *, root: bool = True) -> tuple[Tensor, Tensor]:
    """One-hot items that must name all their ancestors in a tree: animals and plants, birds and fish, …

    Make Haste Slowly Fig. 7 and Appendix A · Early Linearization Section 4, with 4 or 8 items.
    """
    return torch.eye(items, dtype=torch.float64), tree(items, branching, root=root)


def separability(margin: Tensor | np.ndarray | float, amplitude: float = 1.0) -> tuple[Tensor, Tensor]:
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


@axes(y="1 items")
def one_row_per_class(y: Tensor) -> Tensor:
    """Labels of -1 and 1, (..., 1, items), as one-hot labels: (..., 2, items)."""
    return torch.cat([y < 0, y > 0], -2).double()


def cross_cutting_tree(items: int) -> Tensor:
    """A binary tree whose lowest pairs cut across the usual ones: items 0 and 2, 1 and 3, ... instead of 0 and 1.

    The context "cross" of Make Haste Slowly Fig. 3; 2 · items - 1 rows for 4, 8, 16, … items.
    """
    rows = tree(items)
    if items < 4:
        raise ValueError(f"pairs that cut across need 4, 8, 16, … items, got {items}")
    pairs = slice(items // 2 - 1, items - 1)
    quad = torch.kron(torch.eye(items // 4), torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]]))
    return torch.cat([rows[: pairs.start], quad.double(), rows[pairs.stop :]])


def ring(items: int) -> Tensor:
    """Items on a circle: a row that is always on, then bumps that fade evenly to both sides of a place on the circle.

    Heights are cut to hundredths, as in Make Haste Slowly Fig. 3: 0, 0.33, 0.66, 1, 1, 0.66, 0.33, 0 for 8 items. It
    has as many rows as a binary `tree` has, 2 · items - 1, so that all bumps but two come twice. The authors' program goes
    round the circle the other way: the same task with its items in reverse order.
    """
    if items < 3:
        raise ValueError(f"a ring needs at least 3 items, got {items}")
    place = torch.arange(items)
    height = torch.minimum(place, items - 1 - place) * 100 // ((items - 1) // 2)
    bump = height.double() / 100
    return torch.stack([torch.ones(items, dtype=torch.float64)] + [bump.roll(k) for k in range(2 * items - 2)])


STRUCTURES: dict[str, Callable[[int], Tensor]] = {"tree": tree, "ring": ring, "cross": cross_cutting_tree}


def contexts(structures: Sequence[Block], items: int, *, common: Block = "tree") -> tuple[Tensor, Tensor]:
    """Every item in every context: some properties hold always, others are asked for in one context only.

    One context per entry of `structures`, which says what its own block of properties looks like: a name in STRUCTURES, or
    a block (properties, items) of one's own; `common` is the block that holds in all of them. With C contexts x is
    (items + C, items · C), one-hot item above one-hot context, and y stacks C + 1 blocks, the common one first.
    Make Haste Slowly Fig. 3 ("tree", "ring", "cross") and Fig. 5 (all trees), each with 8 items.
    """
    if isinstance(structures, str) or len(structures) == 0:
        raise ValueError(f"structures must be a list with one entry per context, got {structures!r}")
    n = len(structures)
    x = torch.cat([torch.eye(items).repeat(1, n), torch.kron(torch.eye(n), torch.ones(1, items))]).double()
    own = torch.block_diag(*[_block(structure, items) for structure in structures])
    return x, torch.cat([_block(common, items).repeat(1, n), own])


def modulo_sums(modulus: int, numbers: int, dims: int) -> tuple[Tensor, Tensor]:
    """All vectors of `dims` integers below `numbers`, labelled 1 if their sum modulo `modulus` is in the lower half.

    x (dims, numbers^dims) is scaled to [-1, 1]; y (1, items) is 0 or 1. The smaller the modulus, the finer the stripes.
    Neural Redshift Section 4.1 (pairs of integers below 16), with the formula for the label put right:
    1((sum mod M) < M/2).
    """
    if modulus < 1 or numbers < 2 or dims < 1:
        raise ValueError(f"modulus and dims must be at least 1 and numbers at least 2, got {modulus}, {dims} and {numbers}")
    integers = torch.cartesian_prod(*[torch.arange(numbers)] * dims).reshape(-1, dims).mT
    y = (integers.sum(0, keepdim=True) % modulus < modulus / 2).double()
    return integers.double() * (2 / (numbers - 1)) - 1, y


def waves(side: int, cycles: tuple[float, float] = (3.0, 6.0)) -> tuple[Tensor, Tensor]:
    """Two orthogonal sine waves added up, and where the sum has its local extrema.

    Returns an image (side, side) in [0, 1], in which a wave with `cycles` c has c periods from edge to edge, and a mask
    (side, side). One wave has twice the frequency of the other, and only the extrema are used for training.
    Neural Redshift Appendix E and Fig. 12; the frequencies are ours.
    """
    if side < 3:
        raise ValueError(f"an image with extrema inside needs a side of at least 3 pixels, got {side}")
    x = torch.linspace(-1, 1, side, dtype=torch.float64)
    first, second = (torch.sin(torch.pi * c * x) for c in cycles)
    image = (first[:, None] + second + 2) / 4
    inside = torch.zeros(side, side, dtype=torch.bool)
    inside[1:-1, 1:-1] = True
    highest, lowest = (s * torch.nn.functional.max_pool2d((s * image)[None], 3, 1, 1)[0] for s in (1, -1))
    return image, inside & ((image == highest) | (image == lowest))


@axes(images="items height width", labels="items")
def coloured_digits(
    images: Tensor, labels: Tensor, informative: str = "both", *, classes: int, noise: float = 0.0, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Images (items, height, width) in [0, 1] beside a column of pixels of one grey, the "colour", that tells the label too.

    `informative`: "both" gives training data, in which the colour equals the label except for a share `noise` of the
    items, which get a random colour; "digit" permutes the colours and "colour" the images, so that only the one named
    tells the label: the two test sets. x (height · (width + 1), items) in [-1, 1]; y (1, items) is the label from 0 to
    classes - 1, divided by classes - 1. Neural Redshift Section 4.2 and Appendix D, with ten digits.
    """
    if classes < 2 or (len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes):
        raise ValueError(f"labels must be whole numbers from 0 to classes - 1 for at least 2 classes, got {classes} classes")
    generator = torch.Generator().manual_seed(seed)
    items, height, _ = images.shape
    y = labels.double() / (classes - 1)
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
    return (2 * x - 1).mT, y[None]


def routing_items(heights: Sequence[float], branching: int = 2) -> tuple[Tensor, Tensor]:
    """One-hot items, and a tree of properties whose levels have their own heights, from the root to the leaves.

    With three heights and two branches y is (7, 4): one property that all items have, two that halves of them share, four
    of their own. Neural Race, Fig. 4c, with the heights 6, 4, 3 of the authors' released code.
    """
    if len(heights) < 2:
        raise ValueError(f"a tree needs a height for its root and one for each level below, got {len(heights)}")
    items = branching ** (len(heights) - 1)
    level = torch.cat([torch.full((branching**k,), float(height), dtype=torch.float64) for k, height in enumerate(heights)])
    return torch.eye(items, dtype=torch.float64), level[:, None] * tree(items, branching)


def lorenz(
    steps: int,
    *,
    sigma: float,
    rho: float,
    beta: float,
    dt: float,
    start: tuple[float, float, float] = (0.0, 1.0, 0.0),
    method: str = "euler",
) -> Tensor:
    """A trajectory of the Lorenz system, (steps, 3), from `start` on, one row every `dt`.

    x' = sigma (y - x), y' = x (rho - z) - y, z' = x y - beta z, by Euler's method (the paper's) or the classical
    Runge-Kutta of order four ("runge-kutta"). Bias learning, Fig. 2, with Lorenz's sigma 10, rho 28, beta 8/3 and dt 0.01.
    """

    def flow(p: Sequence[float]) -> tuple[float, float, float]:
        x, y, z = p
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    def moved(p: Sequence[float], slope: Sequence[float], by: float) -> list[float]:
        return [a + by * b for a, b in zip(p, slope, strict=True)]

    def euler(p: Sequence[float]) -> list[float]:
        return moved(p, flow(p), dt)

    def runge_kutta(p: Sequence[float]) -> list[float]:
        k1 = flow(p)
        k2 = flow(moved(p, k1, dt / 2))
        k3 = flow(moved(p, k2, dt / 2))
        k4 = flow(moved(p, k3, dt))
        return moved(p, [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)], dt)

    known = {"euler": euler, "runge-kutta": runge_kutta}
    if method not in known:
        raise ValueError(f"unknown method {method!r}; choose {' or '.join(known)}")
    points = [list(map(float, start))]
    for _ in range(steps - 1):
        points.append(known[method](points[-1]))
    return torch.tensor(points, dtype=torch.float64)


def _levels(items: int, branching: int) -> int:
    """How often `items` can be divided by `branching` until one is left."""
    if isinstance(branching, bool) or branching < 2:
        raise ValueError(f"a tree needs at least 2 branches at every node, got branching={branching!r}")
    levels, size = 0, 1
    while size < items:
        levels, size = levels + 1, size * branching
    if size != items or levels == 0:
        some = ", ".join(str(branching**k) for k in (1, 2, 3))
        raise ValueError(f"a tree with {branching} branches needs {some}, … items, got {items}")
    return levels


def _block(structure: Block, items: int) -> Tensor:
    """The properties (properties, items) that a name in STRUCTURES stands for, or those given."""
    if isinstance(structure, str):
        if structure not in STRUCTURES:
            raise ValueError(
                f"unknown structure {structure!r}; choose {', '.join(STRUCTURES)}, or give a block (properties, items)"
            )
        return STRUCTURES[structure](items)
    block = torch.as_tensor(structure, dtype=torch.float64)
    if block.ndim != 2 or block.shape[1] != items:
        raise WrongAxes(
            f"contexts: a block has shape {tuple(block.shape)}; its axes must be (properties, items) with {items} items"
        )
    return block

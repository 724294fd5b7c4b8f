"""The synthetic tasks, against numbers worked out by hand, counted, or taken from the papers' figures."""

import math

import numpy as np
import pytest
import torch

from lib.data import tasks
from lib.linear import WrongAxes

LORENZ = {"sigma": 10, "rho": 28, "beta": 8 / 3}


def test_as_rows():
    x, y = tasks.hierarchy(4)
    rows, labels = tasks.as_rows(x, y)
    assert rows.dtype == labels.dtype == torch.float32 and labels.is_contiguous()
    assert torch.equal(labels, y.T.float())
    assert tasks.as_rows(torch.zeros(5, 3, 2)).shape == (5, 2, 3)  # ensembles stay in front


def test_tree():
    assert tasks.tree(4).tolist() == [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    assert tasks.tree(8, root=False).shape == (14, 8)


@pytest.mark.parametrize(("branching", "levels"), [(2, 4), (3, 3)])
def test_trees_of_any_branching(branching, levels):
    """Every leaf is below one node of each level, and each level's nodes share the leaves evenly."""
    items = branching**levels
    rows = tasks.tree(items, branching)
    assert len(rows) == sum(branching**k for k in range(levels + 1))
    for k, level in enumerate(rows.split([branching**k for k in range(levels + 1)])):
        assert (level.sum(0) == 1).all() and (level.sum(1) == items / branching**k).all()
    # singular values: below a node of the level k hang b^(levels-k) leaves; a contrast of that level sees all deeper nodes
    squares = [sum(branching**j for j in range(levels - k + 1)) for k in range(levels + 1)]
    counts = [1] + [branching**k - branching ** (k - 1) for k in range(1, levels + 1)]
    expected = torch.tensor([s for s, n in zip(squares, counts, strict=True) for _ in range(n)], dtype=torch.float64).sqrt()
    assert torch.allclose(torch.linalg.svdvals(rows), expected, atol=1e-12)


@pytest.mark.parametrize(("items", "branching", "words"), [
    (6, 2, "2 branches needs 2, 4, 8, … items, got 6"),
    (8, 3, "3 branches needs 3, 9, 27, … items, got 8"),
    (1, 2, "got 1"),
    (4, 1, "at least 2 branches"),
    (4, True, "at least 2 branches"),  # a root flag in the place of the branching
])  # fmt: skip
def test_trees_that_do_not_come_out(items, branching, words):
    with pytest.raises(ValueError, match=words):
        tasks.tree(items, branching)
    with pytest.raises(ValueError, match=words):
        tasks.hierarchy(items, branching)


def test_hierarchy():
    x, y = tasks.hierarchy(9, 3, root=False)
    assert torch.equal(x, torch.eye(9).double()) and torch.equal(y, tasks.tree(9, 3)[1:])


def test_separability_and_xor():
    x, y = tasks.separability(torch.tensor([0.0, 0.7]), amplitude=2.0)
    assert x.shape == (2, 3, 4) and torch.allclose(x[1, 2], 0.7 * y[0])
    assert torch.equal(x[0, :2].abs(), torch.full((2, 4), 2.0).double())
    assert torch.equal(y[0], -(x[0, 0] * x[0, 1]).sign())  # the class is the diagonal
    assert (y @ x[0].mT == 0).all()  # at margin 0 no direction says anything
    corners, labels = tasks.xor()
    assert torch.equal(corners, x[0, :2] / 2) and torch.equal(labels[1] - labels[0], y[0])


def test_linear_and_xor():
    x, y = tasks.linear_and_xor()
    assert x.shape == (2, 4) and y.shape == (4, 4) and set(y.flatten().tolist()) == {0, 1}
    assert torch.equal(y[1] - y[0], x[0])  # the linear question: on which side
    assert torch.equal(y[3] - y[2], -x[0] * x[1])  # the XOR: on which diagonal
    assert torch.linalg.matrix_rank((y - y.mean(1, keepdim=True)) @ x.mT) == 1  # a linear map can answer only the first


def test_one_row_per_class():
    assert tasks.one_row_per_class([[-1, 1, 1]]).tolist() == [[1, 0, 0], [0, 1, 1]]
    assert tasks.one_row_per_class(torch.ones(5, 1, 3)).shape == (5, 2, 3)
    with pytest.raises(WrongAxes, match="y has an axis of 2 .*, there must be 1"):
        tasks.one_row_per_class(torch.ones(2, 3))


def test_cross_cutting_tree():
    usual, crossed = tasks.tree(8), tasks.cross_cutting_tree(8)
    assert torch.equal(usual[:3], crossed[:3]) and torch.equal(usual[7:], crossed[7:])
    pairs = [row.nonzero().flatten().tolist() for row in crossed[3:7]]
    assert pairs == [[0, 2], [1, 3], [4, 6], [5, 7]] and crossed.unique().tolist() == [0, 1]
    assert tasks.cross_cutting_tree(16).shape == (31, 16)
    with pytest.raises(ValueError, match="4, 8, 16, … items, got 2"):
        tasks.cross_cutting_tree(2)


def test_the_ring_of_eight_is_the_published_one():
    rows = tasks.ring(8)
    assert rows.shape == (15, 8) and (rows[0] == 1).all()
    assert rows[1].tolist() == [0, 0.33, 0.66, 1, 1, 0.66, 0.33, 0]
    assert torch.equal(rows[2], rows[1].roll(1)) and torch.equal(rows[9:], rows[1:7])


@pytest.mark.parametrize("items", [3, 7, 10])
def test_rings_of_any_number_of_items(items):
    rows = tasks.ring(items)
    assert rows.shape == (2 * items - 1, items)
    for k in range(items):
        bump = rows[1 + k].roll(-k)
        assert torch.equal(bump, bump.flip(0)) and float(bump.max()) == 1 and float(bump[0]) == 0
        climb = bump[: (items + 1) // 2]
        even = torch.linspace(0, 1, len(climb), dtype=torch.float64)
        assert (climb <= even + 1e-9).all() and (climb > even - 0.01).all()  # evenly, cut to hundredths
    with pytest.raises(ValueError, match="at least 3 items"):
        tasks.ring(2)


def test_contexts():
    """Each column knows its item and its context; its properties are the common ones and those of its context."""
    names = ("tree", "ring", "cross")
    x, y = tasks.contexts(names, 8)
    assert x.shape == (11, 24) and y.shape == (60, 24)
    for column in range(24):
        context, item = divmod(column, 8)
        assert x[:, column].nonzero().flatten().tolist() == [item, 8 + context]
        common, *own = y[:, column].split(15)
        assert torch.equal(common, tasks.tree(8)[:, item])
        for c in range(3):
            wanted = tasks.STRUCTURES[names[c]](8)[:, item] if c == context else torch.zeros(15)
            assert torch.equal(own[c], wanted.double())


def test_contexts_of_ones_own():
    mine = np.array([[1, 0, 2], [0, 1, 0]])
    x, y = tasks.contexts([mine, torch.eye(3), "ring"], 3, common=torch.ones(1, 3))
    assert x.shape == (6, 9) and y.shape == (1 + 2 + 3 + 5, 9)
    assert torch.equal(y[1:3, :3], torch.tensor(mine).double()) and (y[1:3, 3:] == 0).all()
    with pytest.raises(WrongAxes, match=r"a block has shape \(2, 3\); .* with 4 items"):
        tasks.contexts([mine], 4)
    with pytest.raises(ValueError, match="unknown structure 'torus'; choose tree, ring, cross, or give a block"):
        tasks.contexts(["torus"], 4)
    for nothing in ("tree", []):
        with pytest.raises(ValueError, match="one entry per context"):
            tasks.contexts(nothing, 8)


def test_modulo_sums():
    x, y = tasks.modulo_sums(7, 16, 2)
    assert x.shape == (2, 256) and float(x.min()) == -1 and float(x.max()) == 1
    integers = ((x + 1) * 7.5).round().long()
    assert len({tuple(column) for column in integers.T.tolist()}) == 256
    assert all(int(y[0, i]) == int((int(integers[:, i].sum()) % 7) < 3.5) for i in range(256))
    assert tasks.modulo_sums(4, numbers=5, dims=3)[0].shape == (3, 125)
    for wrong in ((0, 16, 2), (3, 1, 2), (3, 16, 0)):
        with pytest.raises(ValueError, match="at least 1 and numbers at least 2"):
            tasks.modulo_sums(*wrong)


def test_waves_and_their_extrema():
    image, mask = tasks.waves(64)
    assert int(mask.sum()) == 36  # 6 x 12 turning points, half of them saddles
    values = image[mask]
    assert ((values > 0.98) | (values < 0.02)).all()
    assert float(image.min()) >= 0 and float(image.max()) <= 1
    with pytest.raises(ValueError, match="at least 3 pixels"):
        tasks.waves(2)


def test_extrema_beside_the_edge_count():
    _, mask = tasks.waves(5, (1.0, 1.0))  # sines at 0, -1, 0, 1, 0: the lowest and the highest pixel, one step from a corner
    assert mask.nonzero().tolist() == [[1, 1], [3, 3]]


@pytest.mark.parametrize("cycles", [(3.0, 6.0), (2.0, 5.0)])
def test_waves_have_their_frequencies(cycles):
    """Whole periods from edge to edge: zero at the edges, and each wave is one line of the discrete spectrum."""
    image, _ = tasks.waves(65, cycles)
    parts = image.mean(1) * 4 - 2, image.mean(0) * 4 - 2  # whole periods of the other wave average out, but for one edge
    for part, c in zip(parts, cycles, strict=True):
        assert abs(float(part[0])) < 1e-12 and abs(float(part[-1])) < 1e-12
        spectrum = torch.fft.rfft(part[:-1]).abs()
        assert spectrum.argmax() == c
        assert float(spectrum.square().sum() - spectrum.max().square()) < 1e-20 * float(spectrum.max().square())


def test_coloured_digits():
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.rand(1000, 28, 28, generator=generator), torch.randint(10, (1000,), generator=generator)
    x, y = tasks.coloured_digits(images, labels, classes=10, noise=0.03, seed=1)
    assert x.shape == (28 * 29, 1000) and torch.allclose(y, labels[None].double() / 9)
    pixels = x.reshape(28, 29, 1000)
    assert torch.allclose(pixels[:, :28].permute(2, 0, 1), 2 * images.double() - 1)
    colour = pixels[:, -1]
    assert (colour == colour[0]).all()
    wrong = float(((colour[0] + 1) / 2 - y[0]).abs().gt(1e-9).double().mean())
    assert 0.015 < wrong < 0.05
    by_digit, by_colour = (
        tasks.coloured_digits(images, labels, only, classes=10, seed=1)[0].reshape(28, 29, 1000) for only in ("digit", "colour")
    )
    assert torch.equal(by_digit[:, :28], pixels[:, :28])
    assert abs(float(torch.corrcoef(torch.stack([by_digit[0, -1], y[0]]))[0, 1])) < 0.15
    assert torch.allclose((by_colour[0, -1] + 1) / 2, y[0])
    assert not torch.equal(by_colour[:, :28], by_digit[:, :28])


def test_coloured_digits_refuse():
    images, labels = torch.zeros(4, 2, 2), torch.arange(4)
    assert tasks.coloured_digits(images, labels, classes=4)[1].tolist() == [[0, 1 / 3, 2 / 3, 1]]
    with pytest.raises(ValueError, match="informative is 'both', 'digit' or 'colour', not 'shape'"):
        tasks.coloured_digits(images, labels, "shape", classes=4)
    with pytest.raises(ValueError, match="got 3 classes"):
        tasks.coloured_digits(images, labels, classes=3)
    with pytest.raises(WrongAxes, match="labels has 3 items .*, images has 4"):
        tasks.coloured_digits(images, labels[:3], classes=4)


def test_routing_items():
    x, y = tasks.routing_items((6.0, 4.0, 3.0))
    assert torch.equal(x, torch.eye(4).double())
    assert y[:, 1].tolist() == [6, 4, 0, 0, 3, 0, 0]
    # one mode for all, one for the halves, two for the rest: s² = 4·36 + 2·16 + 9, 2·16 + 9, 9, 9
    assert torch.linalg.svdvals(y).square().tolist() == pytest.approx([185, 41, 9, 9])
    assert tasks.routing_items((2.0, 1.0), branching=3)[1].tolist() == [[2, 2, 2], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="a height for its root"):
        tasks.routing_items((1.0,))


def test_lorenz_steps_and_limits():
    path = tasks.lorenz(3, dt=0.01, **LORENZ)
    first = torch.tensor([0.0, 1.0, 0.0]) + 0.01 * torch.tensor([10.0, -1.0, 0.0])
    assert torch.allclose(path[1], first.double()) and torch.equal(path[0], torch.tensor([0.0, 1.0, 0.0]).double())
    exact = tasks.lorenz(1001, dt=0.0001, method="runge-kutta", **LORENZ)[-1]
    coarse = tasks.lorenz(11, dt=0.01, method="runge-kutta", **LORENZ)[-1]
    euler = [(tasks.lorenz(int(0.1 / dt) + 1, dt=dt, **LORENZ)[-1] - exact).abs().max() for dt in (0.01, 0.001)]
    assert (coarse - exact).abs().max() < 1e-4 < euler[1] < 0.2 * euler[0]  # order four, and order one


@pytest.mark.parametrize(("sigma", "rho", "beta"), [(10, 28, 8 / 3), (4, 15, 1.5)])
def test_fixed_points_of_lorenz_stay(sigma, rho, beta):
    side = math.sqrt(beta * (rho - 1))
    path = tasks.lorenz(50, sigma=sigma, rho=rho, beta=beta, dt=0.01, start=(side, side, rho - 1))
    assert torch.allclose(path[-1], torch.tensor([side, side, rho - 1], dtype=torch.float64), atol=1e-6)
    moving = tasks.lorenz(2, sigma=1.01 * sigma, rho=rho, beta=beta, dt=0.01, start=(1.0, 2.0, 3.0))[1]
    by_hand = (1 + 0.01 * 1.01 * sigma, 2 + 0.01 * (rho - 3 - 2), 3 + 0.01 * (2 - 3 * beta))
    assert moving.tolist() == pytest.approx(by_hand)


def test_lorenz_refuses():
    with pytest.raises(ValueError, match="unknown method 'leapfrog'; choose euler or runge-kutta"):
        tasks.lorenz(3, dt=0.01, method="leapfrog", **LORENZ)

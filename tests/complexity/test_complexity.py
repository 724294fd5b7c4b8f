"""The measures of complexity: closed-form anchors, fast against plain versions, properties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import complexity
from lib.complexity import polynomials, sequences
from lib.linear import WrongAxes


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plane(a, b, offset=0.0, m=64):
    x = torch.linspace(-1, 1, m, dtype=torch.float64)
    return a * x[:, None] + b * x + offset


def plain_fourier(y, region, constant):
    """The definition, one coefficient at a time."""
    m = len(y)
    spectrum = np.abs(np.fft.fft2(y.numpy()))
    total = weighted = 0.0
    side = range(m // 2 + 1) if region == "quadrant" else range(-(m // 2) + (m % 2 == 0), m // 2 + 1)
    for k1 in side:
        for k2 in side:
            if (k1, k2) == (0, 0) and not constant:
                continue
            # Over the whole plane k and -k each come once; a Nyquist frequency is its own mirror image in a component.
            total += spectrum[k1 % m, k2 % m]
            weighted += spectrum[k1 % m, k2 % m] * math.hypot(k1, k2)
    return weighted / total


def plain_phrases(sequence):
    """LZ78 as a textbook writes it: a set of all phrases so far."""
    seen, phrase = set(), ()
    for symbol in sequence:
        phrase += (symbol,)
        if phrase not in seen:
            seen.add(phrase)
            phrase = ()
    return len(seen)


@pytest.mark.parametrize("region", complexity.REGIONS)
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("m", [9, 16])
def test_fourier_is_the_definition(region, constant, m):
    y = noise(3, m, m) + 2
    expected = [plain_fourier(image, region, constant) for image in y]
    assert complexity.fourier(y, region, constant).tolist() == pytest.approx(expected, rel=1e-10)  # rounding


@pytest.mark.parametrize("region", complexity.REGIONS)
@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-10, 10), st.sampled_from([16, 33, 64]))
@settings(max_examples=30, deadline=None)
def test_every_plane_has_the_same_fourier_complexity(region, a, b, offset, m):
    if max(abs(a), abs(b)) < 0.1:
        return
    expected = complexity.fourier_plane(m, region)
    # A tilt by less than 1e-6 of the other direction's still gives an axis pure rounding noise of relative size 1e-9.
    assert float(complexity.fourier(plane(a, b, offset, m), region)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("m", "value"), [(64, 24.6262), (32, 12.4031), (48, 18.5115), (128, 49.1015)])
def test_flat_spectrum_anchor(m, value):
    assert complexity.fourier_flat(m, "quadrant") == pytest.approx(value, abs=5e-5)


def test_a_diagonal_wave_is_invisible_to_the_quadrant():
    i = torch.arange(64, dtype=torch.float64)
    wave = torch.cos(2 * math.pi * (5 * i[:, None] - 3 * i) / 64)
    assert float(complexity.fourier(wave)) == pytest.approx(math.hypot(5, 3), rel=1e-9)
    assert float(complexity.fourier(wave, "quadrant")) > 15  # rounding noise in place of the frequency 5.83


def test_the_printed_fourier_measure_by_hand():
    """1 + cos of wave vector (3, 4) on 16 x 16 points: of the quadrant's coefficients the constant has size 256, the wave 128, so
    the mean frequency is 5 without the constant and 5/3 with it. The half plane, too, holds the wave once."""
    i = torch.arange(16, dtype=torch.float64)
    y = 1 + torch.cos(2 * math.pi * (3 * i[:, None] + 4 * i) / 16)
    for region, constant, expected in (("quadrant", False, 5), ("quadrant", True, 5 / 3), ("half plane", False, 5)):
        assert float(complexity.fourier(y, region, constant)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("wave", [(0, 0.5), (3, 4), (1, 7.5)])
def test_cosine_finds_the_frequency_of_a_cosine(wave):
    i = (torch.arange(64, dtype=torch.float64) + 0.5) / 64
    y = torch.cos(2 * math.pi * wave[0] * i)[:, None] * torch.cos(2 * math.pi * wave[1] * i) + 3
    assert float(complexity.cosine(y)) == pytest.approx(math.hypot(*wave), rel=1e-9)


def test_measures_work_in_one_and_three_dimensions():
    line = torch.linspace(-1, 1, 64, dtype=torch.float64)
    assert float(complexity.fourier(line, dims=1)) == pytest.approx(complexity.fourier_plane(64), rel=1e-9)
    cube = plane(1, 2, m=16)[..., None] + line[:16] * 3
    assert float(complexity.fourier(cube, dims=3)) == pytest.approx(complexity.fourier_plane(16), rel=1e-9)
    assert complexity.cosine(cube.expand(5, 16, 16, 16), dims=3).shape == (5,)


@pytest.mark.parametrize("basis", ["chebyshev", "legendre"])
@pytest.mark.parametrize(("n1", "n2"), [(0, 1), (3, 0), (5, 12), (20, 20)])
def test_polynomials_are_recovered_exactly(basis, n1, n2):
    values = polynomials._basis(basis, np.linspace(-1, 1, 64), 20)
    y = torch.from_numpy(np.outer(values[:, n1], values[:, n2]))
    assert float(complexity.polynomial(y, basis, constant=True)) == pytest.approx(math.hypot(n1, n2), rel=1e-9)


@pytest.mark.parametrize("basis", ["chebyshev", "legendre"])
def test_coefficients_are_the_integrals_of_the_textbook(basis):
    """For a smooth function, the fit on 64 samples agrees with the orthogonal projection computed by Gauss
    quadrature."""
    x, order = np.linspace(-1, 1, 64), 20
    fitted = polynomials._fit_matrix(64, basis, order).numpy() @ np.exp(np.sin(3 * x))
    if basis == "chebyshev":
        nodes, weights = np.polynomial.chebyshev.chebgauss(200)
        norm = np.pi / 2 * np.where(np.arange(order + 1) == 0, 2, 1)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(200)
        norm = 1 / (np.arange(order + 1) + 0.5)
    exact = polynomials._basis(basis, nodes, order).T @ (weights * np.exp(np.sin(3 * nodes))) / norm
    assert np.abs(fitted - exact).max() < 1e-4  # what the function has above order 20


def test_the_default_order_does_not_alias_and_the_printed_one_does():
    for basis in ("chebyshev", "legendre"):
        assert complexity.condition(64, basis, complexity.default_order(64)) < 3
        assert complexity.condition(64, basis, 40) > 1000
        flat, rough = torch.ones(64, 64, dtype=torch.float64), noise(20, 64, 64)
        assert complexity.polynomial(flat, basis) < complexity.polynomial(rough, basis).min()
        assert complexity.polynomial_as_printed(flat, basis) > complexity.polynomial_as_printed(rough, basis).max()


@pytest.mark.parametrize(
    "measure", [complexity.fourier, complexity.cosine, complexity.chebyshev, complexity.legendre], ids=lambda f: f.__name__
)
def test_measures_ignore_offset_and_scale_and_agree_one_by_one(measure):
    y = noise(4, 32, 32).cumsum(-1)
    together = measure(y)
    assert torch.allclose(measure(-3 * y + 7), together, rtol=1e-9)
    assert torch.allclose(torch.stack([measure(image) for image in y]), together, rtol=1e-12)
    assert measure(torch.full((32, 32), 0.1, dtype=torch.float64)) == 0  # a constant, although 0.1 is rounded


@given(st.lists(st.lists(st.integers(0, 4), min_size=30, max_size=30), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_phrases_equal_the_plain_version(sequences):
    expected = [plain_phrases(sequence) for sequence in sequences]
    assert complexity.phrases(torch.tensor(sequences), 5).tolist() == expected
    assert complexity.phrases(torch.tensor(sequences), 50257).tolist() == expected


@given(st.integers(1, 3000))
@settings(max_examples=40, deadline=None)
def test_phrases_of_a_constant(n):
    assert int(complexity.phrases(torch.zeros(n, dtype=torch.int64))) == complexity.phrases_of_constant(n)


def test_quantise_uses_all_levels_and_the_nearest_one():
    y = torch.linspace(-2, 7, 10, dtype=torch.float64).reshape(1, 2, 5) + 0.4
    assert complexity.quantise(y).flatten().tolist() == list(range(10))
    assert complexity.quantise(torch.full((2, 8, 8), 0.3, dtype=torch.float64)).abs().sum() == 0


@pytest.mark.parametrize("order", complexity.TRAVERSALS)
@pytest.mark.parametrize(("rows", "columns"), [(7, 7), (4, 9), (9, 4)])
def test_traversals_visit_every_point_once(order, rows, columns):
    """Also where the grid is not square: once only the first columns² points were read."""
    path = complexity.traverse(torch.arange(rows * columns).reshape(rows, columns), order)
    assert sorted(path.tolist()) == list(range(rows * columns))
    steps = np.abs(np.diff([[p // columns, p % columns] for p in path.tolist()], axis=0)).max(1)
    if order in ("snake", "zigzag", "spiral"):
        assert steps.max() == 1  # no jumps


def test_lempel_ziv_of_a_function_of_one_variable():
    y = torch.sin(torch.linspace(0, 20, 300, dtype=torch.float64))
    symbols = complexity.quantise(y, dims=1)
    assert int(complexity.lempel_ziv(y, dims=1)) == plain_phrases(symbols.tolist())
    assert complexity.lempel_ziv(y.expand(3, -1), dims=1).shape == (3,)
    with pytest.raises(ValueError, match="one or two dimensions, not 3"):
        complexity.lempel_ziv(noise(4, 4, 4), dims=3)


@pytest.mark.parametrize(
    ("order", "path"),
    [
        ("rows", [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("columns", [0, 3, 6, 1, 4, 7, 2, 5, 8]),
        ("snake", [0, 1, 2, 5, 4, 3, 6, 7, 8]),
        ("zigzag", [0, 1, 3, 6, 4, 2, 5, 7, 8]),
        ("spiral", [0, 1, 2, 5, 8, 7, 6, 3, 4]),
    ],
)
def test_paths_through_nine_points_by_hand(order, path):
    assert sequences._traversal(3, 3, order).tolist() == path


@pytest.mark.parametrize("sides", [(8, 8), (5, 12)])
def test_the_cosine_transform_is_orthonormal(sides):
    """It keeps every length, and a constant c on m points is c √m in the first coefficient and nothing elsewhere."""
    y = noise(3, *sides)
    assert torch.allclose(complexity.cosine_transform(y).square().sum((-2, -1)), y.square().sum((-2, -1)), rtol=1e-12)
    flat = complexity.cosine_transform(torch.full(sides, 2.0, dtype=torch.float64))
    assert float(flat[0, 0]) == pytest.approx(2 * math.sqrt(sides[0] * sides[1]), rel=1e-12)
    assert float(flat.flatten()[1:].abs().max()) < 1e-12


@pytest.mark.parametrize("level", [1e-3, 1.0, 1e3])
def test_what_differs_by_rounding_alone_is_constant_at_every_level(level):
    """Neighbouring doubles around a level are the same number; a thousand of them are not."""
    tick = level * 2.0**-52
    y = torch.full((8, 8), level, dtype=torch.float64)
    y[3, 4] += 2 * tick
    assert float(complexity.cosine(y)) == 0 and float(complexity.fourier(y)) == 0
    y[3, 4] += 1000 * tick
    assert float(complexity.cosine(y)) > 1


def test_the_printed_coefficients_are_legendres():
    """(2n+1)/2 times the integral of P_n P_n is 1. So P_0 + P_3 has two coefficients 1, of orders 0 and 3: mean 3/2."""
    x = np.linspace(-1, 1, 4001)
    y = torch.from_numpy(1 + (5 * x**3 - 3 * x) / 2)
    printed = float(complexity.polynomial_as_printed(y, "legendre", order=5, border=0, dims=1))
    assert printed == pytest.approx(1.5, abs=1e-4)
    # Chebyshev with that prefactor, by hand: T_0 + T_2 = 2 x^2 has c_0 = 2/3, c_2 = 5/2 * 4/15 = 2/3, odd ones 0: mean 1.
    y = torch.from_numpy(2 * x**2)
    assert float(complexity.polynomial_as_printed(y, order=2, border=0, dims=1)) == pytest.approx(1, abs=1e-4)


def test_what_is_no_function_on_a_grid_is_refused():
    with pytest.raises(WrongAxes, match=r"with dims=2 its last 2 axes must be the grid"):
        complexity.cosine(torch.rand(8))
    with pytest.raises(WrongAxes, match=r"axis -2 of y, a side of the grid, has 1 points"):
        complexity.fourier(torch.rand(3, 1, 8))
    with pytest.raises(WrongAxes, match="complex"):
        complexity.legendre(torch.fft.fft2(noise(8, 8)))
    with pytest.raises(ValueError, match="fewer than two inside a border of 3"):
        complexity.polynomial_as_printed(noise(9, 7))
    with pytest.raises(ValueError, match="half plane, quadrant"):
        complexity.fourier(noise(8, 8), "plane")
    with pytest.raises(ValueError, match="chebyshev, legendre, hermite"):
        complexity.polynomial(noise(8, 8), "fourier")
    with pytest.raises(ValueError, match="columns, rows, snake, zigzag, spiral"):
        complexity.lempel_ziv(noise(8, 8), traversal="random")
    with pytest.raises(ValueError, match="whole numbers"):
        complexity.phrases(noise(8))
    with pytest.raises(ValueError, match="between 0 and 2"):
        complexity.phrases(torch.tensor([0, 1, 3]), 3)

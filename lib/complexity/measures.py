"""Any function by any measure: `of` takes a callable or values on a grid, and the name of a measure."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lib.complexity import polynomials, sequences, spectra
from lib.complexity._values import values_on_grid
from lib.linear.shapes import WrongAxes

MEASURES = {
    "cosine": spectra.cosine,
    "fourier": spectra.fourier,
    "chebyshev": polynomials.chebyshev,
    "legendre": polynomials.legendre,
    "lempel_ziv": sequences.lempel_ziv,
}


def of(
    function: Callable[[Tensor], Tensor] | Tensor | np.ndarray,
    measure: str | None = "cosine",
    m: int = 64,
    dims: int = 2,
    **options: object,
) -> Tensor | dict[str, Tensor]:
    """The complexity of a function of `dims` variables on [-1, 1]: one number per function, shape (...).

    `function` is either values on a regular grid, (..., m1, ..., m_dims), or a callable that is evaluated at the rows of
    `grid(m, dims)`, a `torch.nn.Module` in its own precision and on its device. It may return (points,), (points,
    outputs), where each output is a function of its own, or (..., points, 1) and (..., points) for an ensemble.

    `measure` is one of MEASURES, with `options` for it; None returns a dict of all of them. The cosine measure has
    neither a floor nor a blind spot, so it is the default.
    """
    if measure is not None and measure not in MEASURES:
        raise ValueError(f"measure is one of {', '.join(MEASURES)}, or None for all of them, not {measure!r}")
    values = _evaluate(function, m, dims) if callable(function) else values_on_grid("of", function, dims)
    if not torch.isfinite(values).all():
        raise ValueError("the function is not finite everywhere on the grid")
    if measure is not None:
        return MEASURES[measure](values, dims=dims, **options)
    if options:
        raise ValueError(f"options ({', '.join(options)}) belong to one measure; name it")
    known = MEASURES if dims < 3 else {name: f for name, f in MEASURES.items() if name != "lempel_ziv"}
    return {name: f(values, dims=dims) for name, f in known.items()}


def grid(m: int = 64, dims: int = 2, dtype: torch.dtype = torch.float64, device: str | torch.device = "cpu") -> Tensor:
    """The m^dims points of a regular grid on [-1, 1]^dims as rows, first coordinate slowest; (m^dims, dims)."""
    axis = torch.linspace(-1, 1, m, dtype=dtype, device=device)
    return torch.cartesian_prod(*[axis] * dims).reshape(-1, dims)


def _evaluate(function: Callable, m: int, dims: int) -> Tensor:
    """Values of a callable on the grid: (..., m, ..., m)."""
    points = grid(m, dims)
    own = next(function.parameters(), None) if isinstance(function, torch.nn.Module) else None
    with torch.no_grad():
        y = torch.as_tensor(function(points if own is None else points.to(own)))
    if y.ndim >= 2 and y.shape[-2] == len(points):  # (..., points, outputs)
        y = y[..., 0] if y.shape[-1] == 1 else y.mT
    if y.ndim == 0 or y.shape[-1] != len(points):
        raise WrongAxes(
            f"of: the function returned shape {tuple(y.shape)} for {len(points)} points, which are rows (points, {dims}); "
            "one of its last two axes must be the points"
        )
    return values_on_grid("of", y.reshape(*y.shape[:-1], *[m] * dims), dims)

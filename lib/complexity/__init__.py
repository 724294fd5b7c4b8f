"""How complex is a function? One number per function, many functions at once (Neural Redshift, Section 2).

`measures`: `of(function or values)`, every measure by its name. `spectra`: mean frequency in the Fourier and the cosine
transform. `polynomials`: mean order in Chebyshev and Legendre polynomials. `sequences`: Lempel-Ziv phrases. `rank`: the
effective rank of a representation. Tensors, NumPy arrays and (in `of`) callables are welcome; points of the grid are rows.

    import torch
    from lib import complexity
    print(complexity.of(lambda points: torch.sin(20 * points[:, 0])))
    plane = torch.linspace(-1, 1, 64) + torch.linspace(-1, 1, 64)[:, None]
    print(complexity.of(plane, measure=None))
"""

from lib.complexity import measures, polynomials, rank, sequences, spectra
from lib.complexity.measures import MEASURES, grid, of
from lib.complexity.polynomials import BASES, chebyshev, condition, default_order, legendre, polynomial, polynomial_as_printed
from lib.complexity.rank import effective_rank, effective_rank_of_gram
from lib.complexity.sequences import TRAVERSALS, lempel_ziv, phrases, phrases_of_constant, quantise, traverse
from lib.complexity.spectra import (
    REGIONS,
    cosine,
    cosine_of_magnitudes,
    cosine_transform,
    energy_above,
    fourier,
    fourier_flat,
    fourier_of_magnitudes,
    fourier_plane,
)

__all__ = ["measures", "MEASURES", "grid", "of"]
__all__ += ["spectra", "REGIONS", "fourier", "cosine", "energy_above", "cosine_transform"]
__all__ += ["fourier_of_magnitudes", "cosine_of_magnitudes", "fourier_flat", "fourier_plane"]
__all__ += ["polynomials", "BASES", "polynomial", "chebyshev", "legendre", "polynomial_as_printed", "default_order", "condition"]
__all__ += ["sequences", "TRAVERSALS", "lempel_ziv", "quantise", "traverse", "phrases", "phrases_of_constant"]
__all__ += ["rank", "effective_rank", "effective_rank_of_gram"]

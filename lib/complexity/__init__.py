"""How complex is a function? One number per function, many functions at once.

`measures`: `of(function or values)`, every measure by its name. `spectra`: mean frequency in the Fourier and the cosine
transform. `polynomials`: mean order in Chebyshev and Legendre polynomials. `sequences`: Lempel-Ziv phrases. `rank`: the
effective rank of a representation. Tensors, NumPy arrays and (in `of`) callables are welcome; points of the grid are rows.

    import torch
    from lib import complexity
    print(complexity.of(lambda points: torch.sin(20 * points[:, 0])))
    plane = torch.linspace(-1, 1, 64) + torch.linspace(-1, 1, 64)[:, None]
    print(complexity.of(plane, measure=None))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "measures": ("MEASURES", "of", "grid"),
        "spectra": (
            "REGIONS",
            "fourier",
            "cosine",
            "energy_above",
            "cosine_transform",
            "fourier_of_magnitudes",
            "cosine_of_magnitudes",
            "fourier_flat",
            "fourier_plane",
        ),
        "polynomials": ("BASES", "polynomial", "chebyshev", "legendre", "polynomial_as_printed", "default_order", "condition"),
        "sequences": ("TRAVERSALS", "lempel_ziv", "quantise", "traverse", "phrases", "phrases_of_constant"),
        "rank": ("effective_rank", "effective_rank_as_printed", "effective_rank_of_gram"),
    },
)

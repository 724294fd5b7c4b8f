"""How complex is a function? One number per function, many functions at once.

`spectra`: mean frequency in the Fourier and the cosine transform. `polynomials`: mean order in Chebyshev and Legendre
polynomials. `sequences`: Lempel-Ziv phrases. `rank`: the effective rank of a representation.

    import torch
    from lib import complexity
    t = torch.linspace(-1, 1, 64, dtype=torch.float64)
    plane, wave = t + t[:, None], torch.sin(20 * t) + 0 * t[:, None]
    print(complexity.cosine(torch.stack([plane, wave])))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "spectra": ("fourier", "cosine", "energy_above", "fourier_flat", "fourier_plane"),
        "polynomials": ("polynomial", "chebyshev", "legendre", "polynomial_as_printed", "default_order", "condition"),
        "sequences": ("lempel_ziv", "quantise", "traverse", "phrases", "phrases_of_constant"),
        "rank": ("effective_rank", "effective_rank_as_printed", "effective_rank_of_gram"),
    },
)

"""Random numbers that a browser draws as well: the twin of `E.generator` in book/_static/explorers/numbers.js.

A counter that grows by an odd constant, hashed to 32 bits. It need not be good for more than pictures; it must be the same here
and there, so that a test can give `lib` the very network that a reader sees.
"""

import numpy as np

STRIDE = np.uint32(0x6D2B79F5)


def uniforms(seed: int, count: int, skip: int = 0) -> np.ndarray:
    """The first `count` numbers in [0, 1) of a generator, after `skip` others; (count,), float64."""
    with np.errstate(over="ignore"):
        counter = np.uint32(seed) + STRIDE * np.arange(1 + skip, 1 + skip + count, dtype=np.uint32)
        h = (counter ^ (counter >> 15)) * (counter | np.uint32(1))
        h ^= h + (h ^ (h >> 7)) * (h | np.uint32(61))
        h ^= h >> 14
    return h / 2.0**32


def normals(seed: int, count: int) -> np.ndarray:
    """The first `count` standard normal numbers of a generator, two from each pair of uniform ones; (count,), float64."""
    pairs = uniforms(seed, 2 * ((count + 1) // 2)).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - pairs[:, 0])), 2 * np.pi * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:count]

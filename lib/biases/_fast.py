"""The one compiled loop of bias learning: the activity of hidden units on cached pre-activations.

It reads each cached number once and writes each activity once; torch would go through memory four times, to gather, convert,
add and rectify, which takes three to ten times as long. `plain` is the same in one line, and the version for other devices.
"""

import numba
import numpy as np
import torch
from torch import Tensor

from lib.data import files


def activity(values: Tensor, scale: Tensor, bias: Tensor, chosen: Tensor) -> Tensor:
    """relu(values · scale + bias), (seeds, chosen, units), on the `chosen` items, in the precision of `bias`.

    values (seeds, items, units) of any kind, scale (seeds, items, 1), bias (seeds, units), chosen (items of a batch,).
    """
    if values.device.type != "cpu":
        return plain(values, scale, bias, chosen)
    h = torch.empty(len(bias), len(chosen), bias.shape[1], dtype=bias.dtype)
    _activity(values.numpy(), scale.numpy(), bias.numpy(), chosen.numpy(), h.numpy())
    return h


def plain(values: Tensor, scale: Tensor, bias: Tensor, chosen: Tensor) -> Tensor:
    """The same in torch."""
    return (values[:, chosen].to(bias.dtype) * scale[:, chosen].to(bias.dtype) + bias[:, None]).relu()


@numba.njit(nogil=True, cache=files.keeps_compiled_code())
def _activity(values: np.ndarray, scale: np.ndarray, bias: np.ndarray, chosen: np.ndarray, h: np.ndarray) -> None:
    real = bias.dtype.type
    for k in range(len(h)):
        for i in range(len(chosen)):
            z, size, b, out = values[k, chosen[i]], real(scale[k, chosen[i], 0]), bias[k], h[k, i]
            for u in range(len(b)):
                out[u] = max(real(z[u]) * size + b[u], real(0))

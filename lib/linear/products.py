"""Products of many small matrices, step after step, into memory that is kept.

Training small networks is a loop over the same few products of batches of thin matrices. torch leaves them to a library that
is at its best with large ones; on the processor NumPy's works on the same memory and is about twice as fast.
"""

import numpy as np
import torch
from torch import Tensor

from lib.linear.descent import one_thread as one_thread


class Products:
    """a @ b for matrices with any ensemble axes in front, each product written where the one of the same name was before.

    What is returned is overwritten by the next product of that name and shape, and may be changed in place until then. On
    other devices than the processor torch multiplies. Nothing here can be differentiated.
    """

    def __init__(self):
        self.kept: dict[tuple, tuple[Tensor, np.ndarray | None]] = {}  # the memory, as torch and as NumPy see it

    def __call__(self, name: str | int | tuple, a: Tensor, b: Tensor) -> Tensor:
        """a (..., rows, inner) times b (..., inner, columns): (..., rows, columns)."""
        key = name, a.shape, b.shape
        if key not in self.kept:
            ensemble = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            new = a.new_empty(*ensemble, a.shape[-2], b.shape[-1])
            self.kept[key] = new, new.numpy() if new.device.type == "cpu" else None
        out, array = self.kept[key]
        if a.shape[-1] == 1:  # NumPy has no fast product for a single column and a single row
            return torch.mul(a, b, out=out)
        if array is None:
            plain = a.dim() == b.dim() == 3 and len(a) == len(b)  # torch's matmul first finds this out, in many operations
            return (torch.bmm if plain else torch.matmul)(a, b, out=out)
        np.matmul(a.numpy(), b.numpy(), out=array)
        return out

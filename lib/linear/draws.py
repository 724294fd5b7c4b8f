"""Random matrices: the laws from which networks start."""

import math

import torch


def random_matrix(batch, rows, columns, scale, law, generator):
    """Matrices (batch, rows, columns) of one of the laws of `initial_weights`, drawn in float64."""
    draw = torch.randn(batch, rows, columns, generator=generator, dtype=torch.float64)
    if law == "gaussian":
        return scale * draw
    if law == "xavier":
        return scale * math.sqrt(2 / (rows + columns)) * draw
    if law == "orthogonal":
        q, r = torch.linalg.qr(draw if rows >= columns else draw.mT)
        q = q * torch.sign(torch.diagonal(r, dim1=-2, dim2=-1)).unsqueeze(-2)  # makes the law uniform
        return scale * (q if rows >= columns else q.mT)
    raise ValueError(f"unknown law {law!r}; choose gaussian, orthogonal or xavier")

"""Gradients of the routing network (Neural Race Eqs 3 and 4), for masks that train many of its routes or few."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lib.linear.shapes import matmul

Gradient = Callable[[Sequence[Tensor]], list[Tensor]]


def all_routes(yx: Tensor, variance: Tensor, mask: Tensor, like: Tensor) -> Gradient:
    """dL/dW as a function of the weights, for the mean of Eq. 1 over trained routes (Neural Race Eqs. 3 and 4).

    The gradient of a deep linear network whose error is erased where `mask` is; `yx` and `variance` are those of a `Task`,
    and weights have the dtype, device and number of seeds of `like`.
    """
    domains, outputs, features = yx.shape
    mask = mask.to(like)
    seen = mask / mask.sum((-2, -1), keepdim=True)  # probability of each route
    seen = seen.repeat_interleave(outputs, -2).repeat_interleave(features, -1)  # (..., M outputs, M features)
    target = seen * yx.to(like).transpose(0, 1).reshape(outputs, -1).repeat(domains, 1)
    variance = seen * variance.to(like).reshape(-1)

    def gradient(weights: Sequence[Tensor]) -> list[Tensor]:
        encoders, middle, decoders = weights
        inner = matmul(middle, encoders)  # (seeds, hidden, M features)
        error = variance * matmul(decoders, inner) - target  # (seeds, M outputs, M features)
        back = matmul(decoders.mT, error)
        return [matmul(middle.mT, back), matmul(back, encoders.mT), matmul(error, inner.mT)]

    return gradient


def few_routes(yx: Tensor, variance: Tensor, mask: Tensor, like: Tensor) -> Gradient:
    """The same for masks that train few routes of each input domain: the maps of the others are never computed.

    Each input domain's K trained decoders are gathered, (seeds, M, K outputs, hidden), and their gradients added up where they
    came from; domains with fewer than K get others with weight zero. With K = 25 of M = 100 a step takes half the time.
    """
    domains, outputs, features = yx.shape
    seeds, mask = len(like), mask.to(like).expand(len(like), -1, -1)
    share, order = (mask / mask.sum((-2, -1), keepdim=True)).mT.sort(dim=-1, descending=True, stable=True)  # (seeds, in, out)
    most = int((share > 0).sum(-1).max())
    share, order = share[..., :most].repeat_interleave(outputs, -1)[..., None, :], order[..., :most]
    rows = (order + domains * torch.arange(seeds, device=mask.device)[:, None, None]) * outputs
    rows = (rows[..., None] + torch.arange(outputs, device=mask.device)).flatten()  # of seeds · M · outputs
    target = share * yx.to(like).mT.repeat(1, 1, most)  # (seeds, M, features, K outputs)
    variance = share * variance.to(like)[..., None]

    def gradient(weights: Sequence[Tensor]) -> list[Tensor]:
        encoders, middle, decoders = weights
        hidden = middle.shape[-1]
        inner = matmul(encoders.mT, middle.mT).unflatten(-2, (domains, features))  # (seeds, M, features, hidden)
        chosen = decoders.reshape(-1, hidden)[rows].reshape(seeds, domains, -1, hidden)
        error = variance * matmul(inner, chosen.mT) - target  # (seeds, M, features, K outputs)
        back = matmul(error, chosen).flatten(1, 2)  # (seeds, M features, hidden)
        read = torch.zeros_like(decoders).reshape(-1, hidden)
        read.index_add_(0, rows, matmul(error.mT, inner).reshape(-1, hidden))
        return [matmul(middle.mT, back.mT), matmul(back.mT, encoders.mT), read.reshape(decoders.shape)]

    return gradient

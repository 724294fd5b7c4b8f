"""The gradient of a routing network, (weights) -> dL/dW, with everything that does not change in training computed once.

Both programs take a `routing.Task`'s `yx` (domains, outputs, features) and `variance` (domains, features), a mask (M, M) or
(seeds, M, M), and weights `like` which they compute: its dtype, device and number of seeds. What they return is overwritten by
the next call (`linear.products`).
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lib.linear.products import Products

Gradient = Callable[[Sequence[Tensor]], list[Tensor]]


def all_routes(yx: Tensor, variance: Tensor, mask: Tensor, like: Tensor) -> Gradient:
    """The gradient for all routes of all networks at once, those that are not trained with weight zero."""
    domains, outputs, features = yx.shape
    mask = mask.to(like)
    seen = mask / mask.sum((-2, -1), keepdim=True)  # probability of each route
    seen = seen.repeat_interleave(outputs, -2).repeat_interleave(features, -1)  # (..., M outputs, M features)
    minus_target = -seen * yx.to(like).transpose(0, 1).reshape(outputs, -1).repeat(domains, 1)
    seen_variance = seen * variance.to(like).reshape(-1)

    product = Products()

    def of(weights: Sequence[Tensor]) -> list[Tensor]:
        encoders, middle, decoders = weights
        inner = product("inner", middle, encoders)  # (seeds, hidden, M features)
        maps = product("maps", decoders, inner)  # (seeds, M outputs, M features)
        error = torch.addcmul(minus_target, seen_variance, maps, out=maps)
        back = product("back", decoders.mT, error)
        return [
            product("encoders", middle.mT, back),
            product("middle", back, encoders.mT),
            product("decoders", error, inner.mT),
        ]

    return of


def few_routes(yx: Tensor, variance: Tensor, mask: Tensor, like: Tensor) -> Gradient:
    """The same for masks that train few routes of each input domain: the maps of the others are never computed.

    Each input domain's K trained decoders are gathered, (seeds · M, K outputs, hidden), and their gradients added up where they
    came from; domains with fewer than K get others with weight zero. Fastest with encoders whose units come last in memory.
    """
    domains, outputs, features = yx.shape
    seeds, mask = len(like), mask.to(like).expand(len(like), -1, -1)
    seen = (mask / mask.sum((-2, -1), keepdim=True)).mT  # (seeds, in, out)
    share, order = seen.sort(dim=-1, descending=True, stable=True)
    most = int((share > 0).sum(-1).max())
    share, order = share[..., :most], order[..., :most]
    rows = (order + domains * torch.arange(seeds, device=mask.device)[:, None, None]) * outputs
    rows = (rows[..., None] + torch.arange(outputs, device=mask.device)).flatten()  # of seeds · M · outputs
    share = share.repeat_interleave(outputs, -1)[..., None, :]  # (seeds, in, 1, K outputs)
    minus_target = (-share * yx.to(like).mT.repeat(1, 1, most)).flatten(0, 1)  # (seeds · in, features, K outputs)
    seen_variance = (share * variance.to(like)[..., None]).flatten(0, 1)

    product, hidden = Products(), like.shape[-2]
    chosen, read = like.new_empty(len(rows), hidden), like.new_empty(seeds * domains * outputs, hidden)

    def of(weights: Sequence[Tensor]) -> list[Tensor]:
        encoders, middle, decoders = weights
        inner = product("inner", encoders.mT, middle.mT).view(seeds * domains, features, hidden)
        torch.index_select(decoders.reshape(read.shape), 0, rows, out=chosen)
        readers = chosen.view(seeds * domains, most * outputs, hidden)
        maps = product("maps", inner, readers.mT)  # (seeds · in, features, K outputs)
        error = torch.addcmul(minus_target, seen_variance, maps, out=maps)
        back = product("back", error, readers).view(seeds, domains * features, hidden)
        read.zero_().index_add_(0, rows, product("read", error.mT, inner).flatten(0, 1))
        first = product("encoders", back, middle).mT
        return [first, product("middle", back.mT, encoders.mT), read.view(decoders.shape)]

    return of

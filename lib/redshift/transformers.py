"""Untrained transformers of the GPT-2 kind, many at once, and the sequences they write.

Weights have a leading dimension, the draws; whole grids of variants (layer-normalisation scales, activations) reuse one
draw of weights. Greedy decoding with a cache of keys and values: each new token costs one pass through the network for
that token alone.

Neural Redshift Section 5 and Appendix D.
"""

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from lib.redshift.random_networks import ACTIVATIONS


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer. GPT-2's own: Shape(width=768, heads=12, blocks=12, vocabulary=50257)."""

    width: int = 64
    heads: int = 4
    blocks: int = 12
    vocabulary: int = 1000
    context: int = 128

    @property
    def weight_std(self):
        """GPT-2 draws weights with standard deviation 0.02 at width 768; a narrower model keeps the gain of each
        layer."""
        return 0.02 * math.sqrt(768 / self.width)


def draw(shape, draws, seed=0, dtype=torch.float32, device="cpu"):
    """GPT-2's initial distribution, `draws` times: a dict of tensors with the draws leading.

    Weights N(0, 0.02^2) (rescaled for narrow models), the two projections back into the residual stream divided by
    sqrt(2 blocks), embeddings N(0, 0.02^2), biases 0. Token embeddings serve as readout too.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(std, *size):
        return (std * torch.randn(draws, *size, generator=generator)).to(device=device, dtype=dtype)

    d, std = shape.width, shape.weight_std
    residual = std / math.sqrt(2 * shape.blocks)
    return {
        "tokens": normal(0.02, shape.vocabulary, d),
        "positions": normal(0.02, shape.context, d),
        "blocks": [
            {
                "attend": normal(std, d, 3 * d),
                "attended": normal(residual, d, d),
                "expand": normal(std, d, 4 * d),
                "contract": normal(residual, 4 * d, d),
            }
            for _ in range(shape.blocks)
        ],
    }


def next_token(weights, shape, tokens, activation, scale, cache=None, blocks=None, centred=False):
    """Logits of the token after `tokens`, and the cache to go on with.

    tokens (draws, sequences, new): the tokens that are not in `cache` yet. `scale` multiplies the output of the layer
    normalisations in the blocks: a number, or (draws, sequences) to vary it between sequences. `blocks` uses only the
    first so many. `centred` subtracts from the MLP's hidden units their mean, so that no activation has an output on
    one side of zero only. Returns (draws, sequences, vocabulary).
    """
    draws, sequences, new = tokens.shape
    past = cache[0][0].shape[-2] if cache else 0
    d, heads = shape.width, shape.heads
    flat = tokens.reshape(draws, -1, 1).expand(-1, -1, d)
    x = weights["tokens"].gather(1, flat).reshape(draws, sequences, new, d)
    x = x + weights["positions"][:, None, past : past + new]
    scale = scale[..., None, None] if isinstance(scale, torch.Tensor) else scale
    fresh = []
    for index, block in enumerate(weights["blocks"][:blocks]):
        qkv = _multiply(scale * functional.layer_norm(x, (d,)), block["attend"])  # (draws, sequences, new, 3d)
        q, k, v = (t.unflatten(-1, (heads, d // heads)).transpose(2, 3) for t in qkv.chunk(3, -1))
        if cache:
            k, v = (torch.cat([old, t], -2) for old, t in zip(cache[index], (k, v), strict=True))
        fresh.append((k, v))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=past == 0 and new > 1)
        x = x + _multiply(seen.transpose(2, 3).flatten(-2), block["attended"])
        hidden = ACTIVATIONS[activation](_multiply(scale * functional.layer_norm(x, (d,)), block["expand"]))
        if centred:
            hidden = hidden - hidden.mean(-1, keepdim=True)
        x = x + _multiply(hidden, block["contract"])
    final = functional.layer_norm(x[:, :, -1], (d,))
    return final @ weights["tokens"].transpose(1, 2), fresh


def write(weights, shape, prompts, activation, scale=1.0, length=100, blocks=None, centred=False):
    """Continue prompts (draws, sequences) of one token each by `length` tokens, always the most likely: (draws,
    sequences, length)."""
    token, cache, written = prompts[..., None], None, []
    with torch.no_grad():
        for _ in range(length):
            logits, cache = next_token(weights, shape, token, activation, scale, cache, blocks, centred)
            token = logits.argmax(-1, keepdim=True)
            written.append(token)
    return torch.cat(written, -1)


def write_grid(weights, shape, activation, scales, sequences, length=100, blocks=None, centred=False, seed=0):
    """Sequences for several layer-normalisation scales at once, with the same weights and prompts: (scales, draws,
    sequences, length)."""
    draws = len(weights["tokens"])
    generator = torch.Generator().manual_seed(seed)
    device = weights["tokens"].device
    prompts = torch.randint(shape.vocabulary, (draws, sequences), generator=generator).to(device).repeat(1, len(scales))
    scale = torch.tensor(scales, dtype=weights["tokens"].dtype, device=device).repeat_interleave(sequences).expand(draws, -1)
    written = write(weights, shape, prompts, activation, scale, length, blocks, centred)
    return written.reshape(draws, len(scales), sequences, length).transpose(0, 1)


def _multiply(x, weight):
    """x (draws, sequences, new, in) times weight (draws, in, out): one batched product."""
    draws, sequences, new, _ = x.shape
    return torch.bmm(x.reshape(draws, sequences * new, -1), weight).reshape(draws, sequences, new, -1)

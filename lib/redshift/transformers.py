"""Untrained transformers of the GPT-2 kind, many at once, and the sequences they write.

Weights are (seeds, out, in); whole grids of variants (layer-normalisation scales, activations) reuse one draw of them.
Greedy decoding with a cache of keys and values: each new token costs one pass through the network for that token alone.
Neural Redshift Section 5 and Appendix D.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lib.linear import Streams, WrongAxes
from lib.redshift.activations import Activation, phi

PARTS = ("attention", "MLP", "residual", "layer norm")  # what can be taken out of every block
Weights = dict[str, Any]  # "tokens", "positions", and "blocks": one dict of matrices per block


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer. GPT-2's own: Shape(width=768, heads=12, blocks=12, vocabulary=50257)."""

    width: int = 64
    heads: int = 4
    blocks: int = 12
    vocabulary: int = 1000
    context: int = 128

    @property
    def weight_std(self) -> float:
        """GPT-2 has 0.02 at width 768; a narrower model keeps the gain of each layer."""
        return 0.02 * math.sqrt(768 / self.width)


class Cache:
    """Keys and values of the tokens so far in each block, (seeds, sequences, heads, tokens, width / heads) each."""

    def __init__(self) -> None:
        self.tokens, self.blocks = 0, {}

    def extend(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values of a block, with the new ones behind those of the tokens before."""
        if block in self.blocks:
            keys, values = (torch.cat(pair, -2) for pair in zip(self.blocks[block], (keys, values), strict=True))
        self.blocks[block] = keys, values
        return keys, values


def draw(
    shape: Shape, seeds: int, *, seed: int = 0, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu"
) -> Weights:
    """GPT-2's initial distribution, `seeds` times: a dict of tensors (seeds, out, in), embeddings (seeds, tokens, width).

    Weights N(0, 0.02^2) (rescaled for narrow models), the two projections back into the residual stream divided by
    sqrt(2 blocks), embeddings N(0, 0.02^2), biases 0. Token embeddings serve as readout too.
    """
    streams = [Streams(1, seed, first=k) for k in range(seeds)]  # one network at a time: an embedding may be 300 MB

    def normal(std: float, *size: int) -> Tensor:
        return torch.cat([(std * each.normal(*size)).to(device=device, dtype=dtype) for each in streams])

    d, std = shape.width, shape.weight_std
    residual = std / math.sqrt(2 * shape.blocks)
    return {
        "tokens": normal(0.02, shape.vocabulary, d),
        "positions": normal(0.02, shape.context, d),
        "blocks": [
            {
                "attend": normal(std, 3 * d, d),
                "attended": normal(residual, d, d),
                "expand": normal(std, 4 * d, d),
                "contract": normal(residual, d, 4 * d),
            }
            for _ in range(shape.blocks)
        ],
    }


def draw_prompts(shape: Shape, seeds: int, sequences: int, *, seed: int = 0) -> Tensor:
    """Prompts of one random token each, the same for every model with this vocabulary: (seeds, sequences), int64.

    With the `seed` of `draw` they come from the same random bits as the first few of its token embeddings, which changes no
    average; another seed makes them independent.
    """
    return Streams(seeds, seed).integers(shape.vocabulary, sequences)


def next_logits(
    weights: Weights,
    shape: Shape,
    tokens: Tensor,
    activation: Activation,
    scale: float | Tensor = 1.0,
    *,
    cache: Cache | None = None,
    **options,
) -> tuple[Tensor, Cache]:
    """Logits of the token after `tokens`, and the cache to go on with (the one that was given, if any, with more in it).

    tokens (seeds, sequences, new): the tokens that are not in `cache` yet; logits (seeds, sequences, vocabulary). The rest
    as in `final_states`.
    """
    cache = Cache() if cache is None else cache
    final = final_states(weights, shape, tokens, activation, scale, cache=cache, **options)[:, :, -1]
    return final @ weights["tokens"].transpose(1, 2), cache


def final_states(
    weights: Weights,
    shape: Shape,
    tokens: Tensor,
    activation: Activation,
    scale: float | Tensor = 1.0,
    *,
    cache: Cache | None = None,
    blocks: int | None = None,
    centred: bool = False,
    without: str = "",
) -> Tensor:
    """The normalised residual stream that the readout sees, at each of `tokens`: (seeds, sequences, new, width).

    tokens (seeds, sequences, new) come after those in `cache`, which is extended in place. `scale` multiplies the output of
    the layer normalisations in the blocks: a number, or (seeds, sequences). `blocks` uses only the first so many. `centred`
    subtracts from the MLP's hidden units their mean. `without` is one of `PARTS`: that part is taken out of every block.
    """
    if without not in ("", *PARTS):
        raise ValueError(f"without is one of {', '.join(PARTS)}, not {without!r}")
    seeds, sequences, new = tokens.shape
    cache = Cache() if cache is None else cache
    past = cache.tokens
    if past + new > shape.context:
        raise WrongAxes(
            f"final_states: {past} tokens in the cache and {new} new ones are more than the context of {shape.context}"
        )
    d, heads = shape.width, shape.heads
    flat = tokens.reshape(seeds, -1, 1).expand(-1, -1, d)
    x = weights["tokens"].gather(1, flat).reshape(seeds, sequences, new, d)
    x = x + weights["positions"][:, None, past : past + new]
    scale = scale[..., None, None] if isinstance(scale, Tensor) else scale
    # Each new token sees the cache, the new tokens before it, and itself.
    mask = torch.ones(new, past + new, dtype=torch.bool, device=x.device).tril(past)

    def normalised(x: Tensor) -> Tensor:
        return scale * (x if without == "layer norm" else functional.layer_norm(x, (d,)))

    kept = 0.0 if without == "residual" else 1.0  # of the residual stream
    for index, block in enumerate(weights["blocks"][:blocks]):
        if without != "attention":
            qkv = _multiply(normalised(x), block["attend"])  # (seeds, sequences, new, 3d)
            q, k, v = (t.unflatten(-1, (heads, d // heads)).transpose(2, 3) for t in qkv.chunk(3, -1))
            seen = functional.scaled_dot_product_attention(q, *cache.extend(index, k, v), mask)
            x = kept * x + _multiply(seen.transpose(2, 3).flatten(-2), block["attended"])
        if without != "MLP":
            hidden = phi(activation)(_multiply(normalised(x), block["expand"]))
            if centred:
                hidden = hidden - hidden.mean(-1, keepdim=True)
            x = kept * x + _multiply(hidden, block["contract"])
    cache.tokens += new
    return functional.layer_norm(x, (d,))


def common_fraction(
    weights: Weights, shape: Shape, texts: Tensor, activation: Activation, scale: float = 1.0, **options
) -> Tensor:
    """The fraction of the final state that is common to all texts and places: the squared length of the mean state
    relative to the mean squared length, (seeds,), from 0 to 1.

    texts (seeds, sequences, tokens) are fed to the network as they are, random ones for instance; `options` as in
    `final_states`.
    """
    with torch.no_grad():
        states = final_states(weights, shape, texts, activation, scale, **options).flatten(1, 2)
    return states.mean(1).square().sum(-1) / states.square().sum(-1).mean(1)


def write(
    weights: Weights,
    shape: Shape,
    prompts: Tensor,
    activation: Activation,
    scale: float | Tensor = 1.0,
    *,
    length: int = 100,
    **options,
) -> Tensor:
    """Continue prompts (seeds, sequences) of one token each by `length` tokens, always the most likely: (seeds,
    sequences, length). `options` as in `final_states`."""
    seeds = len(weights["tokens"])
    if prompts.ndim != 2 or len(prompts) != seeds:
        raise WrongAxes(f"write: prompts has shape {tuple(prompts.shape)}; here it must be ({seeds} seeds, sequences)")
    token, cache, written = prompts[..., None], Cache(), []
    with torch.no_grad():
        for _ in range(length):
            logits, cache = next_logits(weights, shape, token, activation, scale, cache=cache, **options)
            token = logits.argmax(-1, keepdim=True)
            written.append(token)
    return torch.cat(written, -1)


def write_grid(
    weights: Weights,
    shape: Shape,
    prompts: Tensor,
    activation: Activation | Sequence[Activation],
    scales: Sequence[float],
    *,
    length: int = 100,
    **options,
) -> Tensor:
    """`write` for several layer-normalisation scales at once, with the same weights and prompts (seeds, sequences):
    (scales, seeds, sequences, length), or for several activations (activations, scales, seeds, sequences, length)."""
    several = [activation] if isinstance(activation, str) or callable(activation) else activation
    sequences, variants = prompts.shape[-1], len(several) * len(scales)
    scale = torch.tensor(scales).to(weights["tokens"]).repeat_interleave(sequences).repeat(len(several))

    def side_by_side(x: Tensor) -> Tensor:
        parts = zip(several, x.chunk(len(several), 1), strict=True)  # x (seeds, sequences, ...): a part for each activation
        return torch.cat([phi(each)(part) for each, part in parts], 1)

    written = write(
        weights, shape, prompts.to(scale.device).repeat(1, variants), side_by_side, scale.expand(len(prompts), -1),
        length=length, **options,
    )  # fmt: skip
    grid = written.unflatten(1, (len(several), len(scales), sequences)).movedim(0, 2)
    return grid if several is activation else grid[0]


def hidden_moments(activation: Activation, shape: Shape, scale: float = 1.0) -> tuple[float, float]:
    """Mean and standard deviation of a hidden unit of an MLP over random weights, by a trapezoid sum.

    A normalised input has squared length `width`, so what enters a unit is exactly Gaussian with standard deviation
    `scale` * weight_std * sqrt(width), whatever was written before.
    """
    z = torch.linspace(-9, 9, 7201, dtype=torch.float64)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    values = phi(activation)(scale * shape.weight_std * math.sqrt(shape.width) * z)
    mean = torch.trapezoid(density * values, z)
    return float(mean), float(torch.trapezoid(density * (values - mean).square(), z).sqrt())


def mean_share(activation: Activation, shape: Shape, scale: float = 1.0) -> float:
    """How much of a hidden unit's output is its mean: mean / root mean square, from -1 to 1; 0 for odd activations."""
    mean, std = hidden_moments(activation, shape, scale)
    return mean / math.hypot(mean, std)


def with_share(activation: Activation, share: float, shape: Shape, scale: float = 1.0, size: float | None = None) -> Activation:
    """The activation with a constant added to its output, such that its `mean_share` is `share` (between -1 and 1,
    exclusive). With a `size` the output is also rescaled to this standard deviation first."""
    if not -1 < share < 1:
        raise ValueError(f"a share lies between -1 and 1, exclusive, not {share}")
    mean, std = hidden_moments(activation, shape, scale)
    size = std if size is None else size
    shift = size * share / math.sqrt(1 - share * share)
    return lambda x: (size / std) * (phi(activation)(x) - mean) + shift


def _multiply(x: Tensor, weight: Tensor) -> Tensor:
    """x (seeds, sequences, new, in) times weight (seeds, out, in): one batched product."""
    return (x.flatten(1, 2) @ weight.mT).unflatten(1, x.shape[1:3])

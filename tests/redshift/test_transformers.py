"""Untrained transformers: against torch's own layers, the cache against recomputing, batches against single
sequences."""

import math

import pytest
import torch
from torch import nn

from lib.linear import WrongAxes
from lib.redshift import transformers
from lib.redshift.transformers import Shape

SMALL = Shape(width=16, heads=2, blocks=3, vocabulary=50, context=20)


def torch_logits(weights, shape, draw, tokens, activation, scale):
    """The same model from torch.nn parts, for one draw of weights and one sequence (length,)."""
    d = shape.width
    x = (weights["tokens"][draw][tokens] + weights["positions"][draw][: len(tokens)])[None]
    mask = nn.Transformer.generate_square_subsequent_mask(len(tokens), dtype=x.dtype)
    for block in weights["blocks"]:
        layer = nn.TransformerEncoderLayer(
            d, shape.heads, 4 * d, 0.0, activation, batch_first=True, norm_first=True, dtype=x.dtype
        )
        with torch.no_grad():
            layer.self_attn.in_proj_weight.copy_(block["attend"][draw])
            layer.self_attn.out_proj.weight.copy_(block["attended"][draw])
            layer.linear1.weight.copy_(block["expand"][draw])
            layer.linear2.weight.copy_(block["contract"][draw])
            for part in (layer.self_attn.in_proj_bias, layer.self_attn.out_proj.bias, layer.linear1.bias, layer.linear2.bias):
                part.zero_()
            layer.norm1.weight.fill_(scale)
            layer.norm2.weight.fill_(scale)
        x = layer(x, src_mask=mask)
    return nn.functional.layer_norm(x[0, -1], (d,)) @ weights["tokens"][draw].T


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_logits_are_those_of_torch_layers(activation):
    weights = transformers.draw(SMALL, 2, dtype=torch.float64)
    tokens = torch.randint(50, (2, 3, 7), generator=torch.Generator().manual_seed(0))
    ours, _ = transformers.next_logits(weights, SMALL, tokens, activation, 1.7)
    for draw in range(2):
        for sequence in range(3):
            theirs = torch_logits(weights, SMALL, draw, tokens[draw, sequence], activation, 1.7)
            assert torch.allclose(ours[draw, sequence], theirs, atol=1e-10)


@pytest.mark.parametrize("parts", [(3, 4), (1, 6), (2, 2, 3), (6, 1)])
def test_the_cache_takes_several_tokens_at_a_time(parts):
    """Each new token sees those before it and none after it, however the sequence is cut."""
    weights = transformers.draw(SMALL, 2, dtype=torch.float64)
    tokens = torch.randint(50, (2, 3, 7), generator=torch.Generator().manual_seed(0))
    whole, _ = transformers.next_logits(weights, SMALL, tokens, "gelu", 1.7)
    cache = None
    for piece in tokens.split(parts, -1):
        logits, cache = transformers.next_logits(weights, SMALL, piece, "gelu", 1.7, cache=cache)
    assert torch.allclose(logits, whole, atol=1e-12)
    assert cache.tokens == 7


def test_the_first_of_many_are_the_same():
    two, five = transformers.draw(SMALL, 2, seed=3), transformers.draw(SMALL, 5, seed=3)
    assert torch.equal(two["tokens"], five["tokens"][:2])
    assert torch.equal(two["blocks"][2]["expand"], five["blocks"][2]["expand"][:2])
    double = transformers.draw(SMALL, 2, seed=3, dtype=torch.float64)
    assert torch.equal(double["positions"].float(), two["positions"])
    assert torch.equal(transformers.draw_prompts(SMALL, 2, 3), transformers.draw_prompts(SMALL, 4, 3)[:2])


def test_what_does_not_fit_is_refused():
    weights = transformers.draw(SMALL, 2)
    with pytest.raises(WrongAxes, match="20 tokens in the cache and 1 new ones are more than the context of 20"):
        transformers.write(weights, SMALL, torch.zeros(2, 1, dtype=torch.int64), "relu", length=21)
    with pytest.raises(WrongAxes, match=r"must be \(2 seeds, sequences\)"):
        transformers.write_grid(weights, SMALL, torch.zeros(3, 1, dtype=torch.int64), "relu", [1.0])


def test_a_grid_of_scales_is_its_single_runs():
    weights = transformers.draw(SMALL, 3, dtype=torch.float64)
    prompts = transformers.draw_prompts(SMALL, 3, 2, seed=1)
    grid = transformers.write_grid(weights, SMALL, prompts, "sine", [0.5, 4.0], length=10)
    assert grid.shape == (2, 3, 2, 10)
    for index, scale in enumerate((0.5, 4.0)):
        assert torch.equal(grid[index], transformers.write(weights, SMALL, prompts, "sine", scale, length=10))


def test_initial_weights_have_the_scale_of_gpt2():
    gpt2 = Shape(width=768, heads=12, blocks=12, vocabulary=50257)
    assert gpt2.weight_std == pytest.approx(0.02)
    weights = transformers.draw(Shape(width=48, heads=4, blocks=12, vocabulary=100), 4)
    std = 0.02 * math.sqrt(768 / 48)  # a narrow model keeps the gain: std * sqrt(width) is GPT-2's
    assert float(weights["blocks"][0]["attend"].std()) == pytest.approx(std, rel=0.03)
    assert float(weights["blocks"][3]["contract"].std()) == pytest.approx(std / math.sqrt(24), rel=0.03)
    assert float(weights["tokens"].std()) == pytest.approx(0.02, rel=0.03)


def test_centring_takes_the_mean_of_hidden_units_away():
    """Adding a constant to an activation changes what a transformer writes, but not what a centred one writes."""
    weights = transformers.draw(SMALL, 4, dtype=torch.float64)
    prompts = torch.arange(4)[:, None]
    functions = {"tanh": "tanh", "shifted": lambda x: torch.tanh(x) + 1}
    texts = {
        (name, centred): transformers.write(weights, SMALL, prompts, function, 2.0, length=10, centred=centred)
        for name, function in functions.items()
        for centred in (False, True)
    }
    assert torch.equal(texts["tanh", True], texts["shifted", True])
    assert not torch.equal(texts["tanh", False], texts["shifted", False])


def test_moments_have_closed_forms_for_relu_and_gaussian():
    shape = Shape(width=768)
    s = 2 * 0.02 * math.sqrt(768)
    mean, std = transformers.hidden_moments("relu", shape, 2.0)
    assert mean == pytest.approx(s / math.sqrt(2 * math.pi), rel=1e-6)
    assert math.hypot(mean, std) == pytest.approx(s / math.sqrt(2), rel=1e-6)
    assert transformers.hidden_moments("gaussian", shape, 2.0)[0] == pytest.approx(1 / math.sqrt(1 + s * s), rel=1e-9)
    assert transformers.mean_share("relu", shape) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-6)
    assert transformers.mean_share("tanh", shape) == pytest.approx(0, abs=1e-12)


def test_a_share_of_the_mean_is_a_constant_added_to_the_activation():
    shape, x = Shape(width=16), torch.linspace(-3, 3, 50, dtype=torch.float64)
    own = transformers.mean_share("relu", shape, 2.0)
    same = transformers.with_share("relu", own, shape, 2.0)
    assert torch.allclose(same(x), torch.relu(x), atol=1e-12)
    shifted = transformers.with_share("relu", 0.3, shape, 2.0)
    assert torch.allclose((shifted(x) - torch.relu(x)).diff(), torch.zeros(49, dtype=torch.float64), atol=1e-12)
    assert transformers.mean_share(shifted, shape, 2.0) == pytest.approx(0.3, rel=1e-9)
    sized = transformers.with_share("gelu", 0.0, shape, size=0.45)
    assert transformers.hidden_moments(sized, shape) == pytest.approx((0, 0.45), abs=1e-9)
    with pytest.raises(ValueError, match="between -1 and 1"):
        transformers.with_share("relu", 1.0, shape)


@pytest.mark.parametrize("part, matrix", [("attention", "attended"), ("MLP", "contract")])
def test_a_part_taken_out_is_one_that_writes_zeros(part, matrix):
    weights = transformers.draw(SMALL, 2, dtype=torch.float64)
    tokens = torch.randint(50, (2, 3, 7), generator=torch.Generator().manual_seed(0))
    out, _ = transformers.next_logits(weights, SMALL, tokens, "gelu", without=part)
    silent = weights | {"blocks": [block | {matrix: torch.zeros_like(block[matrix])} for block in weights["blocks"]]}
    zeros, _ = transformers.next_logits(silent, SMALL, tokens, "gelu")
    assert torch.allclose(out, zeros, atol=1e-12)


def test_without_residual_or_layer_norm_a_linear_block_is_a_product_of_matrices():
    """With one token attention passes the values on; with a linear activation the rest is matrices."""
    shape = Shape(width=16, heads=2, blocks=1, vocabulary=50)
    weights = transformers.draw(shape, 1, dtype=torch.float64)
    block = {name: matrix[0] for name, matrix in weights["blocks"][0].items()}
    x = weights["tokens"][0, 7] + weights["positions"][0, 0]
    normal = nn.functional.layer_norm

    def attended(z):
        return block["attended"] @ block["attend"][32:] @ z

    def mlp(z):
        return block["contract"] @ block["expand"] @ z

    bare = x + attended(x)
    expected = {"layer norm": bare + mlp(bare), "residual": mlp(normal(attended(normal(x, (16,))), (16,)))}
    for part, state in expected.items():
        final = transformers.final_states(weights, shape, torch.tensor([[[7]]]), lambda z: z, without=part)
        assert torch.allclose(final[0, 0, 0], normal(state, (16,)), atol=1e-10)
    with pytest.raises(ValueError, match="without is one of"):
        transformers.final_states(weights, shape, torch.tensor([[[7]]]), "relu", without="heads")


def test_the_common_fraction_is_one_for_equal_texts_and_small_for_unrelated_states():
    weights = transformers.draw(SMALL, 2, dtype=torch.float64)
    one = torch.full((2, 5, 1), 7)
    assert torch.allclose(transformers.common_fraction(weights, SMALL, one, "gelu"), torch.ones(2, dtype=torch.float64))
    wide = Shape(width=64, heads=4, blocks=1, vocabulary=500)
    texts = torch.randint(500, (2, 40, 1), generator=torch.Generator().manual_seed(0))
    weights = transformers.draw(wide, 2)
    weights["positions"].zero_()
    assert float(transformers.common_fraction(weights, wide, texts, "tanh", without="attention").max()) < 0.1


def test_activations_side_by_side_write_what_each_writes_alone():
    weights = transformers.draw(SMALL, 2, dtype=torch.float64)
    prompts, several = torch.tensor([[3, 4], [5, 6]]), ("relu", torch.tanh, "sine")
    options = dict(length=10, blocks=2, centred=True)
    together = transformers.write_grid(weights, SMALL, prompts, several, [0.5, 4.0], **options)
    alone = [transformers.write_grid(weights, SMALL, prompts, each, [0.5, 4.0], **options) for each in several]
    assert together.shape == (3, 2, 2, 2, 10) and torch.equal(together, torch.stack(alone))
    assert not torch.equal(together[0], together[1])

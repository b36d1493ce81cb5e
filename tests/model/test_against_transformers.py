"""The numpy model against transformers' own, with the same random weights (extra ``measure``)."""

import inspect

import numpy as np
import pytest

from kvtier.model.arithmetic import BLAS, ORDERED
from kvtier.model.cache import KVCache
from kvtier.model.config import ModelConfig
from kvtier.model.fp8 import decode_e4m3, encode_e4m3, round_to_e4m3
from kvtier.model.transformer import forward, forward_in_pieces
from kvtier.model.weights import random_weights

WHY = "the cross-check needs torch and transformers: pip install 'kvtier[measure]'"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

# In float64 too they keep float32 in norms, rotation and softmax, so their float64 is right to float32's rounding alone.
TOLERANCE = 2e-5
TOKENS = np.random.default_rng(8).integers(256, size=70).tolist()

SHAPES = {
    "Qwen2": ModelConfig(),
    "Qwen2, tied": ModelConfig(tied=True),
    "Qwen2, head size not hidden over heads": ModelConfig(hidden=48, query_heads=6, kv_heads=3, head_dim=12, rope_base=1e6),
    "Qwen2, one KV head": ModelConfig(query_heads=4, kv_heads=1, norm_eps=1e-5),
    "Llama, no bias": ModelConfig(qkv_bias=False, rope_base=500_000.0, norm_eps=1e-5),
    "Llama, as many KV heads as query heads": ModelConfig(qkv_bias=False, query_heads=4, kv_heads=4),
}


def theirs(weights):
    """Their model with our weights: Qwen2 where queries, keys and values have a bias, Llama where not."""
    config = weights.config
    config_class, model_class = (
        (transformers.Qwen2Config, transformers.Qwen2ForCausalLM)
        if config.qkv_bias
        else (transformers.LlamaConfig, transformers.LlamaForCausalLM)
    )
    model = model_class(
        config_class(
            num_hidden_layers=config.layers,
            hidden_size=config.hidden,
            num_attention_heads=config.query_heads,
            num_key_value_heads=config.kv_heads,
            head_dim=config.head_dim,
            intermediate_size=config.ffn,
            vocab_size=config.vocab,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_base},
            rms_norm_eps=config.norm_eps,
            tie_word_embeddings=config.tied,
            max_position_embeddings=1024,
            attn_implementation="eager",
        )
    )
    state = {"model.embed_tokens.weight": weights.embedding, "model.norm.weight": weights.final_norm}
    state["lm_head.weight"] = weights.unembedding.T
    for index, layer in enumerate(weights.layers):
        parts = {
            "input_layernorm.weight": layer.attention_norm,
            "self_attn.q_proj.weight": layer.query.T,
            "self_attn.k_proj.weight": layer.key.T,
            "self_attn.v_proj.weight": layer.value.T,
            "self_attn.o_proj.weight": layer.output.T,
            "post_attention_layernorm.weight": layer.ffn_norm,
            "mlp.gate_proj.weight": layer.gate.T,
            "mlp.up_proj.weight": layer.up.T,
            "mlp.down_proj.weight": layer.down.T,
        }
        if config.qkv_bias:
            parts |= {
                "self_attn.q_proj.bias": layer.query_bias,
                "self_attn.k_proj.bias": layer.key_bias,
                "self_attn.v_proj.bias": layer.value_bias,
            }
        state |= {f"model.layers.{index}.{name}": value for name, value in parts.items()}
    model = model.to(torch.from_numpy(weights.embedding[:1]).dtype)
    model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in state.items()}, strict=True)
    return model.eval()


def run_theirs(model, tokens, cache):
    """Logits of tokens that follow a cache, which grows: shape (tokens, vocab)."""
    # Version 5.24 calls `cache` what was `past_key_values` before.
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=True, **{name: cache}).logits[0]


def largest(ours, tensor):
    """Largest difference between an array and a tensor."""
    return float(np.abs(ours - tensor.detach().numpy()).max())


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def shape(request):
    return SHAPES[request.param]


@pytest.mark.parametrize("arithmetic", [BLAS, ORDERED], ids=lambda arithmetic: arithmetic.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_and_cache_equal_theirs(shape, dtype, arithmetic):
    weights = random_weights(shape, seed=5, dtype=dtype)
    cache, their_cache = KVCache(shape, dtype), transformers.DynamicCache()
    ours, logits = forward(weights, TOKENS, cache, arithmetic), run_theirs(theirs(weights), TOKENS, their_cache)
    differences = {"logits": largest(ours, logits)}
    for layer in range(shape.layers):
        keys, values = cache.read(layer)
        differences[f"keys {layer}"] = largest(keys, their_cache.layers[layer].keys[0])
        differences[f"values {layer}"] = largest(values, their_cache.layers[layer].values[0])
    print(differences)
    assert max(differences.values()) < TOLERANCE
    assert (ours.argmax(axis=1) == logits.argmax(dim=1).numpy()).all()


def test_decode_equals_theirs(shape):
    weights = random_weights(shape, seed=6)
    cache, model, their_cache = KVCache(shape, np.float32), theirs(weights), transformers.DynamicCache()
    forward(weights, TOKENS[:50], cache)
    run_theirs(model, TOKENS[:50], their_cache)
    for token, logits in zip(TOKENS[50:], forward_in_pieces(weights, TOKENS[50:], cache, 1), strict=True):
        assert largest(logits, run_theirs(model, [token], their_cache)[0]) < TOLERANCE


def test_another_rope_base_is_seen():
    """The opposite: a model that differs in one constant is not equal to theirs."""
    weights = random_weights(SHAPES["Qwen2"], seed=5)
    other = theirs(random_weights(ModelConfig(rope_base=20_000.0), seed=5))
    ours = forward(weights, TOKENS, KVCache(weights.config, np.float32))
    assert largest(ours, run_theirs(other, TOKENS, transformers.DynamicCache())) > 100 * TOLERANCE


def test_e4m3_is_torchs():
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(decode_e4m3(codes), torch.from_numpy(codes).view(torch.float8_e4m3fn).to(torch.float64).numpy())
    rng = np.random.default_rng(1)
    values = (rng.choice([-1, 1], 100_000) * 2.0 ** rng.uniform(-12, np.log2(448), 100_000)).astype(np.float32)
    converted = torch.from_numpy(values).to(torch.float8_e4m3fn)
    np.testing.assert_array_equal(round_to_e4m3(values), converted.to(torch.float32).numpy())
    np.testing.assert_array_equal(encode_e4m3(values), converted.view(torch.uint8).numpy())

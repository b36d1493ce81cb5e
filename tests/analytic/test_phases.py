import pytest

from kvtier.analytic import phases
from kvtier.analytic.geometry import ModelGeometry
from kvtier.errors import InputError
from kvtier.units import K_TOKENS

TINY = ModelGeometry(
    "tiny", layers=1, kv_heads=1, head_dim=2, query_heads=2, hidden_size=4, ffn_size=8, parameters=100, weight_bytes=200
)  # fmt: skip


def test_parameters_by_hand():
    """Queries 4 x 4, keys 4 x 2, values 4 x 2, output 4 x 4; three matrices of 4 x 8."""
    assert phases.attention_parameters(TINY) == 16 + 8 + 8 + 16
    assert phases.ffn_parameters(TINY) == 3 * 32


def test_layers_hold_nearly_all_parameters(llama):
    """What is missing are the embeddings, twice a vocabulary of about 128,000 by the hidden size: 2.1 of 70.6 billion."""
    layers = llama.layers * (phases.attention_parameters(llama) + phases.ffn_parameters(llama))
    assert layers == 68_451_041_280
    assert 0.97 < layers / 70.55e9 < 0.971


def test_attention_by_hand():
    """Two query heads of two elements: a score is two multiplications and two additions, as is its part of the weighted sum."""
    assert phases.attention_flop(TINY, 1) == 2 * (4 + 4)


def test_prefill_is_the_sum_of_its_decode_steps():
    """A prompt costs what its tokens would cost one after the other, each with itself among the cached."""
    assert phases.prefill_flop(TINY, 5) == sum(phases.decode_flop(TINY, cached) for cached in range(1, 6))


def test_a_cached_byte_serves_as_many_operations_as_queries_share_a_head(llama):
    assert phases.attention_flop(llama, 1) / llama.kv_bytes_per_token == llama.queries_per_kv_head == 8


def test_both_phases_move_the_same_bytes_for_other_compute(llama):
    tokens = 8 * K_TOKENS
    assert phases.pass_bytes(llama, tokens) == 140_000_000_000 + tokens * 327_680
    assert phases.prefill_flop(llama, tokens) / phases.decode_flop(llama, tokens) > 7_000


def test_what_is_not_stated_is_refused(models):
    with pytest.raises(InputError, match="hidden_size"):
        phases.ffn_parameters(models["qwen2_5_7b"])

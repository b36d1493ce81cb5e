import pytest

from kvtier.analytic import capacity
from kvtier.errors import InputError
from kvtier.units import GB, GIB, K_TOKENS


@pytest.mark.parametrize(("tokens", "gib"), [(8 * K_TOKENS, 2.50), (32 * K_TOKENS, 10.0), (128 * K_TOKENS, 40.0)])
def test_published_capacity_gib(llama, tokens, gib):
    assert llama.kv_bytes(tokens) == gib * GIB


@pytest.mark.parametrize(("tokens", "gb", "digits"), [(4 * K_TOKENS, 1.3, 1), (128 * K_TOKENS, 43, 0), (1024 * K_TOKENS, 344, 0)])
def test_published_capacity_gb(llama, tokens, gb, digits):
    assert round(llama.kv_bytes(tokens) / GB, digits) == gb


def test_weights_and_crossover(llama, models):
    assert round(llama.weight_bytes / GIB, 1) == 130.4
    assert round(models["qwen2_5_7b"].weight_bytes / GIB, 2) == 14.16
    assert round(capacity.crossover_tokens(llama), -3) == 427_000


def test_crossover_needs_weights(models):
    with pytest.raises(InputError, match="weight_bytes: found no value"):
        capacity.crossover_tokens(models["llama1_65b"])


def test_kv_only_concurrency_of_the_size_of_the_weights(llama):
    assert capacity.whole_contexts(llama.weight_bytes, llama.kv_bytes(8 * K_TOKENS)) == 52
    assert capacity.whole_contexts(llama.weight_bytes, llama.kv_bytes(128 * K_TOKENS)) == 3


def test_node_holds_67_short_contexts_and_not_the_published_68(llama):
    left = capacity.node_kv_bytes(4, 80 * GIB, llama.weight_bytes, 20 * GIB)
    assert round(left / GIB, 1) == 169.6
    assert capacity.whole_contexts(left, llama.kv_bytes(128 * K_TOKENS)) == 4
    assert round(capacity.contexts(left, llama.kv_bytes(8 * K_TOKENS))) == 68
    assert capacity.whole_contexts(left, llama.kv_bytes(8 * K_TOKENS)) == 67
    assert 68 * llama.kv_bytes(8 * K_TOKENS) > left


def test_28_contexts_in_hbm_and_cxl_and_not_the_published_27(llama):
    assert capacity.whole_contexts(1_216 * GB, llama.kv_bytes(128 * K_TOKENS)) == 28
    assert capacity.whole_contexts(576 * GB, llama.kv_bytes(128 * K_TOKENS)) == 13


@pytest.mark.parametrize(("users", "gb"), [(1, 188), (2, 231), (4, 317), (8, 489)])
def test_published_users(llama, users, gb):
    total = capacity.footprint_bytes(llama.weight_bytes, 5 * GB, llama.kv_bytes(128 * K_TOKENS), users)
    assert round(total / GB) == gb


def test_partition_fills_the_device():
    assert capacity.hbm_parts_gb(140, 5, 10, 37, 192) == {"weights": 140, "activations": 5, "pinned": 10, "evictable": 37}
    with pytest.raises(InputError, match="found 193 GB, expected the capacity of 192 GB"):
        capacity.hbm_parts_gb(140, 5, 10, 38, 192)


def test_expansion():
    assert round(capacity.expansion(192, 1024), 1) == 6.3


@pytest.mark.parametrize(
    "call",
    [
        lambda: capacity.contexts(1, 0),
        lambda: capacity.whole_contexts(-1, 1),
        lambda: capacity.footprint_bytes(1, 1, 1, -1),
        lambda: capacity.node_kv_bytes(1, 10, 9, 2),
        lambda: capacity.expansion(0, 1),
    ],
)
def test_impossible_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"need|must|exceed"):
        call()

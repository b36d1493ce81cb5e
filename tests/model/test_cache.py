"""Blocks of KV: their bytes by the geometry, their way to a tier and back, and what a cache refuses."""

import numpy as np
import pytest

from kvtier.errors import InputError
from kvtier.model.cache import BLOCK_TOKENS, KVCache, NotResident
from kvtier.model.config import ModelConfig
from kvtier.model.fp8 import encode_e4m3, round_to_e4m3
from kvtier.model.transformer import forward
from kvtier.units import KIB, MIB


def filled(config, tokens, dtype=np.float32, first_position=0):
    """A cache with another number in every element."""
    cache = KVCache(config, dtype, first_position)
    cache.extend(tokens)
    shape = (config.kv_heads, tokens, config.head_dim)
    for layer in range(config.layers):
        start = 2 * layer * np.prod(shape)
        keys, values = (np.arange(start + part * np.prod(shape), start + (part + 1) * np.prod(shape)).reshape(shape) for part in (0, 1))
        cache.write(layer, keys, values)
    return cache


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bytes_are_those_of_the_geometry(tiny, dtype):
    cache, geometry = filled(tiny, 40, dtype), tiny.geometry(dtype)
    assert cache.block_bytes == geometry.kv_bytes(BLOCK_TOKENS) == 16 * geometry.kv_bytes_per_token
    assert len(cache.export_block(0)) == cache.block_bytes
    assert cache.resident_bytes == 3 * cache.block_bytes
    keys, values = cache.read(0)
    assert tiny.layers * (keys.nbytes + values.nbytes) == geometry.kv_bytes(40)
    cache.drop_block(1)
    assert cache.resident_bytes == 2 * cache.block_bytes


def test_a_published_block_is_five_mib():
    """Llama-3 70B in 16 bits (SPEC §2): the cache of this model would be as large as the arithmetic says."""
    llama = ModelConfig(layers=80, hidden=8192, query_heads=64, kv_heads=8, head_dim=128, ffn=28_672, vocab=128_256)
    assert KVCache(llama, np.float16).block_bytes == 5 * MIB
    assert KVCache(llama, np.float16, block_tokens=1).block_bytes == 320 * KIB


def test_an_fp8_block_is_a_quarter_of_a_float32_one(tiny):
    cache = filled(tiny, 16)
    codes = encode_e4m3(cache.payload(0))
    assert codes.nbytes == tiny.geometry(np.uint8).kv_bytes(BLOCK_TOKENS) == cache.block_bytes // 4


def test_read_returns_what_was_written_in_pieces(tiny):
    whole, pieces = filled(tiny, 35), KVCache(tiny, np.float32)
    first = 0
    for tokens in (1, 15, 17, 2):
        assert pieces.extend(tokens).tolist() == list(range(first, first + tokens))
        for layer in range(tiny.layers):
            keys, values = whole.read(layer)
            pieces.write(layer, keys[:, first : first + tokens], values[:, first : first + tokens])
        first += tokens
    for layer in range(tiny.layers):
        np.testing.assert_array_equal(pieces.read(layer), whole.read(layer))


def test_blocks_come_back_in_other_slots(tiny):
    cache = filled(tiny, 48)
    before, payloads = cache.read(1), [cache.export_block(block) for block in range(3)]
    for block in range(3):
        cache.drop_block(block)
    for block in (1, 0, 2):
        cache.put_block(block, payloads[block])
    assert cache.slots == (1, 0, 2)
    np.testing.assert_array_equal(cache.read(1), before)


def test_a_payload_in_the_place_of_another_is_seen(tiny):
    """The opposite: the table of slots matters."""
    cache = filled(tiny, 48)
    before, other = cache.read(1), cache.export_block(2)
    cache.put_block(0, other)
    assert not np.array_equal(cache.read(1), before)


def test_a_missing_block_is_a_miss_before_anything_changed(tiny, tiny_weights):
    cache = KVCache(tiny, np.float64)
    forward(tiny_weights, range(20), cache)
    content = cache.export_block(0)
    cache.drop_block(0)
    for use in (cache.read, cache.export_block, cache.drop_block):
        with pytest.raises(NotResident, match="block 0 is not resident"):
            use(0)
    with pytest.raises(NotResident):
        forward(tiny_weights, [1], cache)
    with pytest.raises(NotResident):
        cache.copy()
    assert cache.tokens == 20
    cache.put_block(0, content)
    assert cache.copy().export_block(0) == content


@pytest.mark.parametrize("length", [0, 1, -1], ids=["empty", "a byte long", "a byte short"])
def test_a_payload_of_another_size_is_refused(tiny, length):
    cache = filled(tiny, 16)
    content = cache.export_block(0)
    wrong = b"" if length == 0 else content + b"\0" if length > 0 else content[:-1]
    with pytest.raises(ValueError, match=f"block 0: got {len(wrong)} B, expected {cache.block_bytes} B"):
        cache.put_block(0, wrong)
    assert cache.export_block(0) == content


def test_a_copy_has_its_own_payloads(tiny):
    cache = filled(tiny, 40)
    cache.forget(1, 0, range(3))
    cache.forget(0, 1, range(38, 39))
    whole, first_two = cache.copy(), cache.copy(2)
    assert (whole.tokens, first_two.tokens) == (40, 32)
    assert [block.kept(0).sum() for block in (whole, first_two)] == [79, 64]
    assert first_two.kept(1).sum() == 61
    whole.alter(lambda payload: -payload)
    assert not np.array_equal(whole.read(0), cache.read(0))
    with pytest.raises(ValueError, match="got 3 blocks, expected 0 to 2"):
        cache.copy(3)


def test_forgotten_entries_stay_in_the_payload(tiny):
    """Leaving an entry out moves no byte: nothing in the payload tells that attention differs."""
    cache = filled(tiny, 16)
    content = cache.export_block(0)
    cache.forget(0, 1, range(4, 6))
    assert cache.export_block(0) == content
    assert np.flatnonzero(~cache.kept(0)[1]).tolist() == [4, 5]
    assert cache.kept(0)[0].all()
    assert cache.kept(1).all()


def test_alter_rounds_every_block(tiny):
    cache = filled(tiny, 20)
    cache.alter(round_to_e4m3)
    for block in range(2):
        np.testing.assert_array_equal(cache.payload(block), round_to_e4m3(cache.payload(block)))


@pytest.mark.parametrize(
    ("field", "value"),
    [("layers", 0), ("hidden", 1.0), ("head_dim", 5), ("query_heads", 7), ("rope_base", 1.0), ("rope_base", np.inf), ("norm_eps", -1.0)],
)
def test_a_shape_that_is_none_is_refused(field, value):
    with pytest.raises(InputError, match=f"model configuration: {field}: found {value}"):
        ModelConfig(**{field: value})

"""A batch of one prompt and a prefix-cache hit are planted and refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.audit.sequences import PrefixCacheHit, SharedSequences, distinct_sequences, no_prefix_hits
from kvtier.errors import InputError

BLOCK_TOKENS = 16


def test_refuses_identical_sequences():
    """The recorded bug: one prompt for a batch of 16."""
    prompt = np.random.default_rng(1).integers(0, 32_000, size=64)
    message = (
        r"^vLLM: sequence 1: found the first 16 tokens of sequence 0, "
        r"expected tokens of its own: sequences that begin alike share cached KV$"
    )
    with pytest.raises(SharedSequences, match=message):
        distinct_sequences(np.tile(prompt, (16, 1)), BLOCK_TOKENS, "vLLM")


def test_refuses_a_shared_system_prompt():
    """Sequences that differ, but not in their first block."""
    rng = np.random.default_rng(1)
    batch = rng.integers(0, 32_000, size=(4, 64))
    batch[3, :BLOCK_TOKENS] = batch[1, :BLOCK_TOKENS]
    with pytest.raises(SharedSequences, match="sequence 3: found the first 16 tokens of sequence 1"):
        distinct_sequences(batch, BLOCK_TOKENS)


def test_one_token_of_the_first_block_is_enough():
    """Caches share whole blocks alone."""
    batch = np.zeros((2, 64), dtype=np.int64)
    batch[1, BLOCK_TOKENS - 1] = 1
    checked = distinct_sequences(batch, BLOCK_TOKENS, "batch 2")
    assert (checked.subject, checked.value, checked.bound) == ("distinct sequences of batch 2", 2, 2)
    with pytest.raises(SharedSequences):
        distinct_sequences(batch, BLOCK_TOKENS - 1)


def test_elements_are_compared_by_value():
    """Lists and arrays of another type may hold the same prompt."""
    with pytest.raises(SharedSequences):
        distinct_sequences([[7, 8, 9], np.array([7, 8, 9], dtype=np.uint16)], 3)


SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=6)


@given(SEQUENCES, st.integers(1, 4))
def test_passes_exactly_where_no_two_begin_alike(token_ids, block_tokens):
    alike = any(one[:block_tokens] == other[:block_tokens] for index, one in enumerate(token_ids) for other in token_ids[:index])
    if alike:
        with pytest.raises(SharedSequences):
            distinct_sequences(token_ids, block_tokens)
    else:
        assert distinct_sequences(token_ids, block_tokens).value == len(token_ids)


@pytest.mark.parametrize(
    ("token_ids", "block_tokens", "message"),
    [
        ([], 16, "sequences: found none"),
        ([[1], []], 16, "sequence 1: found no tokens"),
        ([[1]], 0, "block_tokens: found 0"),
        ([[1]], float("nan"), "block_tokens: found nan"),
    ],
)
def test_refuses_what_is_no_batch(token_ids, block_tokens, message):
    with pytest.raises(InputError, match=message):
        distinct_sequences(token_ids, block_tokens)


def test_refuses_a_prefix_cache_hit():
    with pytest.raises(PrefixCacheHit, match=r"^vLLM: prefix cache: found 1 hits in 65,536 queries, expected none: prompts are random$"):
        no_prefix_hits(1, 65_536, "vLLM")


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_only_no_hit_passes(hits, queries):
    if hits == 0:
        assert no_prefix_hits(hits, queries).value == 0
    else:
        with pytest.raises(PrefixCacheHit if hits <= queries else InputError):
            no_prefix_hits(hits, queries)


@pytest.mark.parametrize(
    ("hits", "queries", "message"),
    [
        (-1, 10, "hits: found -1"),
        (0, -1, "queries: found -1"),
        (float("nan"), 10, "hits: found nan"),
        (0, None, "queries: found None"),
        (11, 10, "hits: found 11, expected no more than the 10 queries"),
    ],
)
def test_refuses_what_are_no_counters(hits, queries, message):
    with pytest.raises(InputError, match=message):
        no_prefix_hits(hits, queries)

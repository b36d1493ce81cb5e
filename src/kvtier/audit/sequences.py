"""Sequences of a batch keep KV of their own: identical ones share a prefix-cached copy, and the batch then reads less than is counted.

So once 16 sequences of one prompt seemed to move KV at 342.9 GB/s over a bus of 273 (SPEC §7).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvtier.audit.physical_bound import Checked
from kvtier.audit.quantities import count
from kvtier.errors import InputError


class SharedSequences(InputError):
    """Two sequences of a batch begin alike, so that a prefix cache keeps one copy for both."""


class PrefixCacheHit(InputError):
    """A prefix cache served KV in a run whose prompts are meant to be random."""


def distinct_sequences(token_ids: Sequence[Sequence[int]], block_tokens: int, source: str | Path = "batch") -> Checked:
    """Refuse a batch in which two sequences share their first block.

    Parameters
    ----------
    token_ids : sequence of sequences of int
        Prompt of each sequence; an array of shape (batch, tokens) does.
    block_tokens : int
        Tokens of a block of the cache [tokens]. Caches share whole blocks from the start of the prompt on: sequences with different first
        blocks share none. One that is shorter than a block is compared as a whole.
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Distinct first blocks, and sequences.

    Raises
    ------
    SharedSequences
        If two begin alike; the message says which.
    InputError
        If there is no sequence, or an empty one.
    """
    block_tokens = count(block_tokens, source, "block_tokens", 1)
    if not len(token_ids):
        raise InputError(source, "sequences", "none", "at least one")
    first_with: dict[tuple[int, ...], int] = {}
    for sequence, ids in enumerate(token_ids):
        if not len(ids):
            raise InputError(source, f"sequence {sequence}", "no tokens", "a prompt")
        # int() and not the element: elements of arrays of other libraries are not equal by value as keys.
        block = tuple(int(token) for token in ids[:block_tokens])
        if (first := first_with.setdefault(block, sequence)) != sequence:
            same = f"the first {len(block)} tokens of sequence {first}"
            raise SharedSequences(source, f"sequence {sequence}", same, "tokens of its own: sequences that begin alike share cached KV")
    return Checked(f"distinct sequences of {source}", len(first_with), len(token_ids), "sequences")


def no_prefix_hits(hits: int, queries: int, source: str | Path = "prefix cache") -> Checked:
    """Refuse a run in which a prefix cache hit.

    Parameters
    ----------
    hits, queries : int
        Counters of the cache over the run: tokens or blocks, the same of both. Both are 0 where the cache is off.
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Hits, of which none is accepted.

    Raises
    ------
    PrefixCacheHit
        If there is a hit.
    InputError
        If a counter is not a count, or there are more hits than queries.
    """
    hits, queries = count(hits, source, "hits"), count(queries, source, "queries")
    if hits > queries:
        raise InputError(source, "hits", f"{hits:,}", f"no more than the {queries:,} queries")
    if hits:
        raise PrefixCacheHit(source, "prefix cache", f"{hits:,} hits in {queries:,} queries", "none: prompts are random")
    return Checked(f"prefix-cache hits of {source}", hits, 0, "hits")

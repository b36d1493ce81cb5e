"""What a change to the cached KV does to the logits: six experiments on the small transformer, each with its opposite.

Each row states beforehand what is expected. The experiments run in either arithmetic, and only one may be published value by value:

* In :data:`~kvtier.model.arithmetic.ORDERED` every value of every table is the same on any machine with IEEE 754, to the last bit. An
  element of a product does not depend on how many rows are computed with it there, so prefill in one go, in blocks and token by token
  agree bit by bit, and so does a block computed again.
* In :data:`~kvtier.model.arithmetic.BLAS` the order of a sum depends on processor, library and shape. Of its rows, `expected`,
  `tolerance` and `holds` are fit to print, and `lossless` where bit-identical is expected; sizes of differences are not.

The sizes are of a tiny model with random weights (Illustrative): which change is lossless carries over to any model, how much is lost not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from kvtier.frames import Table
from kvtier.model.arithmetic import ORDERED, Arithmetic
from kvtier.model.attention import Attention, chunk_bounds, dense, finish, partial, streamed
from kvtier.model.cache import BLOCK_TOKENS, KVCache
from kvtier.model.config import ModelConfig
from kvtier.model.fp8 import round_to_e4m3
from kvtier.model.transformer import forward, forward_in_pieces
from kvtier.model.weights import Weights, random_weights

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
"""Greatest difference of logits of order 1 that counts as rounding: some 84 and 4,500 units in the last place of 1.

A sum of n products that is ordered otherwise moves by about √n units; each layer passes that on with its gain."""


class Expected(StrEnum):
    """What is said of a pair of logits before they are compared."""

    IDENTICAL = "bit-identical"
    ROUNDING = "equal to rounding"
    DIFFERENT = "different"


EXPERIMENTS = Table(
    "experiments on a small transformer",
    {
        "experiment": pl.String(),
        "done": pl.String(),
        "arithmetic": pl.String(),
        "dtype": pl.String(),
        "expected": pl.String(),
        "max_abs_difference": pl.Float64(),
        "relative_difference": pl.Float64(),
        "positions": pl.Int64(),
        "greedy_changed": pl.Int64(),
        "lossless": pl.Boolean(),
        "tolerance": pl.Float64(),
        "holds": pl.Boolean(),
    },
)
"""One row a pair of logits.

`relative_difference` is over the largest logit of the reference; `greedy_changed` counts the positions, of `positions`, at which another
token is the likeliest; `lossless` is equality of all bits; `holds` is whether the difference is as expected: none, within
`tolerance`, or beyond it."""

LAYER_ERRORS = Table(
    "errors of KV by layer",
    {
        "done": pl.String(),
        "entries": pl.String(),
        "arithmetic": pl.String(),
        "dtype": pl.String(),
        "layer": pl.Int64(),
        "part": pl.String(),
        "max_abs_error": pl.Float64(),
        "relative_rms_error": pl.Float64(),
    },
)
"""One row a layer and part (keys or values) of the entries named; `relative_rms_error` is the root of Σ error² / Σ value²."""


Row = dict[str, object]
"""A row on its way into a table."""


@dataclass(frozen=True)
class Setting:
    """A model, a context that is cached, and given tokens that are decoded after it.

    Parameters
    ----------
    weights : Weights
    context, continuation : tuple of int
        Token ids. The continuation is given, not chosen by the model, so that two runs read the same tokens.
    arithmetic : Arithmetic
    """

    weights: Weights
    context: tuple[int, ...]
    continuation: tuple[int, ...]
    arithmetic: Arithmetic

    def empty_cache(self, first_position: int = 0) -> KVCache:
        """A cache for this model."""
        return KVCache(self.weights.config, self.weights.dtype, first_position)

    def prefilled(self, piece_tokens: int) -> KVCache:
        """The context's cache, computed in pieces."""
        cache = self.empty_cache()
        forward_in_pieces(self.weights, self.context, cache, piece_tokens, self.arithmetic)
        return cache

    @cached_property
    def cache(self) -> KVCache:
        """The context's cache, computed in one go; changed by nobody."""
        return self.prefilled(len(self.context))

    def decode(self, cache: KVCache, attention: Attention = dense) -> NDArray:
        """Logits of the continuation, token by token, after a copy of a cache: shape (continuation, vocab)."""
        return self.decode_into(cache.copy(), attention)

    def decode_into(self, cache: KVCache, attention: Attention = dense) -> NDArray:
        """The same, into the cache itself."""
        return forward_in_pieces(self.weights, self.continuation, cache, 1, self.arithmetic, attention)

    @cached_property
    def reference(self) -> NDArray:
        """Logits of the continuation after the untouched cache."""
        return self.decode(self.cache)

    def recomputed(self, block: int, before: KVCache) -> bytes:
        """Payload of a full block of the context, computed again on top of the cache of what comes before it.

        Parameters
        ----------
        block : int
        before : KVCache
            Its next position is the block's first; it grows by the block.
        """
        forward(self.weights, self.context[block * BLOCK_TOKENS : (block + 1) * BLOCK_TOKENS], before, self.arithmetic)
        return before.export_block(before.blocks - 1)

    def row(self, experiment: str, done: str, expected: Expected, logits: NDArray, reference: NDArray | None = None) -> Row:
        """One row of ``EXPERIMENTS``; the reference is that of the untouched cache unless another is given."""
        reference = self.reference if reference is None else reference
        difference = float(np.abs(logits.astype(np.float64) - reference.astype(np.float64)).max())
        tolerance = TOLERANCE[self.weights.dtype.name]
        lossless = logits.tobytes() == reference.tobytes()
        holds = {
            Expected.IDENTICAL: lossless,
            Expected.ROUNDING: difference <= tolerance,
            Expected.DIFFERENT: difference > tolerance,
        }
        return {
            "experiment": experiment,
            "done": done,
            "arithmetic": self.arithmetic.name,
            "dtype": self.weights.dtype.name,
            "expected": expected.value,
            "max_abs_difference": difference,
            "relative_difference": difference / float(np.abs(reference).max()),
            "positions": len(logits),
            "greedy_changed": int((logits.argmax(axis=-1) != reference.argmax(axis=-1)).sum()),
            "lossless": lossless,
            "tolerance": tolerance,
            "holds": holds[expected],
        }

    def same_sums(self) -> Expected:
        """What to expect where the same sums are taken in matrices of other shapes."""
        return Expected.IDENTICAL if self.arithmetic is ORDERED else Expected.ROUNDING


def setting(
    config: ModelConfig | None = None, seed: int = 1, dtype: DTypeLike = np.float32, arithmetic: Arithmetic = ORDERED, context: int = 53
) -> Setting:
    """Random weights and random tokens: a context of so many tokens (three full blocks and a part by default), eight to decode."""
    config = config or ModelConfig()
    tokens = np.random.default_rng([seed, 1]).integers(config.vocab, size=context + 8).tolist()
    return Setting(random_weights(config, seed, dtype), tuple(tokens[:context]), tuple(tokens[context:]), arithmetic)


def through_tier(cache: KVCache, order: Sequence[int], damage: Callable[[bytes], bytes] = bytes) -> KVCache:
    """A copy of which every block was exported and dropped, and came back in the order given; `damage` befalls block 0 on the way."""
    travelled = cache.copy()
    tier = [travelled.export_block(block) for block in range(travelled.blocks)]
    for block in range(travelled.blocks):
        travelled.drop_block(block)
    for block in order:
        travelled.put_block(block, damage(tier[block]) if block == 0 else tier[block])
    return travelled


def read_backwards(queries: NDArray, keys: NDArray, values: NDArray, visible: NDArray, arithmetic: Arithmetic) -> NDArray:
    """Attention that reads the blocks last to first: the same sum in another order."""
    blocks = chunk_bounds(keys.shape[1], [BLOCK_TOKENS])
    order = np.concatenate([np.arange(first, stop) for first, stop in reversed(blocks)])
    return dense(queries, keys[:, order], values[:, order], visible[:, :, order], arithmetic)


def averaged_apart(queries: NDArray, keys: NDArray, values: NDArray, visible: NDArray, arithmetic: Arithmetic) -> NDArray:
    """Attention over chunks done wrong: a softmax each, and the mean of the outputs instead of their weighted sum."""
    outputs = [
        finish(partial(queries, keys[:, first:stop], values[:, first:stop], visible[:, :, first:stop], arithmetic))
        for first, stop in chunk_bounds(keys.shape[1], [BLOCK_TOKENS])
    ]
    return sum(outputs[1:], outputs[0]) / queries.dtype.type(len(outputs))


def _sign_flipped(content: bytes) -> bytes:
    """The last element's sign bit turned: little-endian, so the top bit of the last byte."""
    return content[:-1] + bytes([content[-1] ^ 0x80])


def tier_round_trip(s: Setting) -> Iterator[Row]:
    """1: KV that leaves and comes back."""
    name, blocks = "tier round trip", range(s.cache.blocks)
    there_and_back = through_tier(s.cache, blocks)
    backwards = through_tier(s.cache, blocks[::-1])
    yield s.row(name, "every block exported, dropped, put back", Expected.IDENTICAL, s.decode_into(there_and_back))
    yield s.row(name, "the same, put back last block first: other slots", Expected.IDENTICAL, s.decode_into(backwards))
    yield s.row(name, "attention reads the blocks last to first", Expected.ROUNDING, s.decode(s.cache, read_backwards))
    yield s.row(name, "one bit flipped on the way", Expected.DIFFERENT, s.decode(through_tier(s.cache, blocks, _sign_flipped)))


def streamed_attention(s: Setting) -> Iterator[Row]:
    """2: attention that sees the context chunk by chunk."""
    name = "streamed attention"
    for chunks in ([BLOCK_TOKENS], [1, 2, 4, 8, 16]):
        sizes = ", ".join(map(str, chunks))
        yield s.row(name, f"online softmax over chunks of {sizes} tokens", Expected.ROUNDING, s.decode(s.cache, streamed(chunks)))
    yield s.row(name, "a softmax each chunk, outputs averaged", Expected.DIFFERENT, s.decode(s.cache, averaged_apart))


def dropped_entries(s: Setting) -> Iterator[Row]:
    """3: what is left out is lost; what is missed is fetched."""
    name, layer = "dropped entries", 1
    without_head, without_entry, missed = s.cache.copy(), s.cache.copy(), s.cache.copy()
    without_head.forget(layer, 0, range(s.cache.tokens))
    without_entry.forget(layer, 0, range(20, 21))
    content = missed.export_block(1)
    missed.drop_block(1)
    missed.put_block(1, content)
    yield s.row(name, "one KV head of one layer left out", Expected.DIFFERENT, s.decode(without_head))
    yield s.row(name, "one token of one KV head of one layer left out", Expected.DIFFERENT, s.decode(without_entry))
    yield s.row(name, "one block missed and fetched", Expected.IDENTICAL, s.decode(missed))


def _with_block(s: Setting, cache: KVCache, block: int, before: KVCache) -> KVCache:
    changed = cache.copy()
    changed.put_block(block, s.recomputed(block, before))
    return changed


def recomputed_block(s: Setting) -> Iterator[Row]:
    """4: a block computed again, positions kept, with more or less of what comes before it."""
    name, block = "recomputed block", 2
    neighbour = s.empty_cache(first_position=(block - 1) * BLOCK_TOKENS)
    neighbour.extend(BLOCK_TOKENS)
    neighbour.put_block(0, s.cache.export_block(block - 1))
    in_blocks = s.prefilled(BLOCK_TOKENS)

    def after(block: int, before: KVCache) -> NDArray:
        return s.decode(_with_block(s, s.cache, block, before))

    yield s.row(name, "third block with all that comes before it", s.same_sums(), after(block, s.cache.copy(block)))
    yield s.row(
        name,
        "the same, prefill having been in blocks too",
        Expected.IDENTICAL,
        s.decode(_with_block(s, in_blocks, block, in_blocks.copy(block))),
        s.decode(in_blocks),
    )
    yield s.row(name, "first block, which nothing comes before", s.same_sums(), after(0, s.empty_cache()))
    yield s.row(name, "third block with the second alone", Expected.DIFFERENT, after(block, neighbour))
    yield s.row(name, "third block with nothing before it", Expected.DIFFERENT, after(block, s.empty_cache(block * BLOCK_TOKENS)))


def fp8_rounding(s: Setting) -> Iterator[Row]:
    """5: KV kept in eight bits."""
    name = "fp8 rounding"
    once = s.cache.copy()
    once.alter(round_to_e4m3)
    twice = once.copy()
    twice.alter(round_to_e4m3)
    yield s.row(name, "KV of the context rounded to e4m3", Expected.DIFFERENT, s.decode(once))
    yield s.row(name, "KV that e4m3 holds exactly, rounded again", Expected.IDENTICAL, s.decode(twice), s.decode(once))


def prefill_schedules(s: Setting) -> Iterator[Row]:
    """6: the same tokens in pieces of another size; logits of all positions."""
    name, tokens = "prefill schedule", s.context + s.continuation

    def run(piece_tokens: int) -> NDArray:
        return forward_in_pieces(s.weights, tokens, s.empty_cache(), piece_tokens, s.arithmetic)

    at_once = run(len(tokens))
    yield s.row(name, "in one go, a second time", Expected.IDENTICAL, run(len(tokens)), at_once)
    yield s.row(name, "in blocks of 16", s.same_sums(), run(BLOCK_TOKENS), at_once)
    yield s.row(name, "token by token", s.same_sums(), run(1), at_once)
    yield s.row(name, "in blocks of 16 that see no earlier block", Expected.DIFFERENT, _blocks_apart(s, tokens), at_once)


def _blocks_apart(s: Setting, tokens: Sequence[int]) -> NDArray:
    firsts = range(0, len(tokens), BLOCK_TOKENS)
    return np.concatenate(
        [forward(s.weights, tokens[first : first + BLOCK_TOKENS], s.empty_cache(first), s.arithmetic) for first in firsts]
    )


ALL = (tier_round_trip, streamed_attention, dropped_entries, recomputed_block, fp8_rounding, prefill_schedules)
"""The six, in the order of the table."""


def experiments(
    config: ModelConfig | None = None, seed: int = 1, dtype: DTypeLike = np.float32, arithmetic: Arithmetic = ORDERED
) -> pl.DataFrame:
    """``EXPERIMENTS``: all six on one model.

    Parameters
    ----------
    config : ModelConfig, optional
        Of two layers or more: in one alone, no key or value depends on what comes before it.
    seed : int
        Of weights and tokens.
    dtype : data type
        float32 or float64.
    arithmetic : Arithmetic
        Every value is fit to print in :data:`~kvtier.model.arithmetic.ORDERED`; see the module for
        :data:`~kvtier.model.arithmetic.BLAS`.
    """
    s = setting(config, seed, dtype, arithmetic)
    return EXPERIMENTS.check(pl.DataFrame([row for experiment in ALL for row in experiment(s)]))


def errors_by_layer(
    config: ModelConfig | None = None, seed: int = 1, dtype: DTypeLike = np.float32, arithmetic: Arithmetic = ORDERED
) -> pl.DataFrame:
    """``LAYER_ERRORS``: where an error in the KV starts and how it goes on, for the two changes that make one everywhere.

    Parameters
    ----------
    config, seed, dtype, arithmetic
        As :func:`experiments`.

    Returns
    -------
    polars.DataFrame
        A block computed without its context is right in layer 0, whose keys and values see one token alone, and wrong above. Rounding
        is wrong everywhere alike; the tokens decoded after it are right in layer 0 and wrong above.
    """
    s = setting(config, seed, dtype, arithmetic)
    block = 2
    apart = np.frombuffer(s.recomputed(block, s.empty_cache(block * BLOCK_TOKENS)), s.cache.dtype).reshape(s.cache.payload_shape)

    exact, rounded = s.cache.copy(), s.cache.copy()
    rounded.alter(round_to_e4m3)
    contexts = _entries(exact), _entries(rounded)
    for cache in (exact, rounded):
        s.decode_into(cache)
    decoded = tuple(_entries(cache)[..., len(s.context) :, :] for cache in (exact, rounded))

    rows = [
        *_layer_rows(s, "recomputed without its context", "the block", s.cache.payload(block), apart),
        *_layer_rows(s, "context rounded to e4m3", "the context", *contexts),
        *_layer_rows(s, "context rounded to e4m3", "tokens decoded after it", *decoded),
    ]
    return LAYER_ERRORS.check(pl.DataFrame(rows))


def _entries(cache: KVCache) -> NDArray:
    """All that is cached: shape (layers, 2, kv_heads, tokens, head_dim)."""
    return np.stack([np.stack(cache.read(layer)) for layer in range(cache.config.layers)])


def _layer_rows(s: Setting, done: str, entries: str, exact: NDArray, changed: NDArray) -> Iterable[Row]:
    for layer in range(s.weights.config.layers):
        for index, part in enumerate(("keys", "values")):
            value = exact[layer, index].astype(np.float64)
            error = changed[layer, index].astype(np.float64) - value
            # fsum rounds once, so the order of the squares does not matter.
            squares = math.fsum((error * error).flat), math.fsum((value * value).flat)
            yield {
                "done": done,
                "entries": entries,
                "arithmetic": s.arithmetic.name,
                "dtype": s.weights.dtype.name,
                "layer": layer,
                "part": part,
                "max_abs_error": float(np.abs(error).max()),
                "relative_rms_error": math.sqrt(squares[0] / squares[1]),
            }

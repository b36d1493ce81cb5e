"""Policies on public traces: against capacity and half-life, with state kept or dropped, from either end of an edge.

Everything is Revision 3 on paths (:mod:`kvtier.simulate.paths`): a request's own path is never evicted, and unless an experiment asks
otherwise an edge loses its deepest blocks first and only where nothing resident stands below it. Then each hit is one of the contiguous
prefix; what demotes without pressure is the exception. Capacities are in tokens, the same for all traces, and in the blocks of the trace
that this makes.

A rate is counted over all requests from a cold start, or over the second half, which the first half has warmed. Blocks: resident blocks of
the path over blocks of the path. Tokens: the tokens in them over all tokens of the input, those without a block among them.

The Mooncake traces are one stream, as the file has it. Coding-agent sessions are composed: so many users at one time, with a seed
(:func:`kvtier.workload.arrivals.compose`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from kvtier.frames import Table
from kvtier.simulate import eviction, path_engine, paths, replays, resampling
from kvtier.simulate.eviction import Named
from kvtier.simulate.path_engine import Replayer
from kvtier.simulate.paths import Replayed
from kvtier.simulate.resampling import Parts
from kvtier.workload.arrivals import compose
from kvtier.workload.paths import Trace

CAPACITIES_TOKENS = tuple(2**exponent for exponent in range(18, 27))
"""256 Ki to 64 Mi tokens: of Llama-3 70B's KV 80 GiB to 20 TiB."""

USERS = 24
"""Sessions that run at one time, where a trace has them."""

SEEDS = (1, 2)
"""Of the composition, where a trace has sessions."""

ALPHAS = (0.5, 0.3, 0.15, 0.05, 0.015, 0.005, 0.0015, 0.0005, 0.00015)
"""Half-lives of 1 to 4,621 requests."""

WINDOW_US = 30 * 10**6
"""Windows of the bootstrap, where a trace has no sessions."""

WHOLE, LAST_HALF = "whole", "last_half"
OPTIMUM = "min"
"""In place of a policy's slug, as in the other tables of Revision 3."""

_AT = {
    "trace": pl.String,
    "users": pl.Int64,
    "seed": pl.Int64,
    "counted": pl.String,
    "capacity_tokens": pl.Int64,
    "capacity_blocks": pl.Int64,
}
_COUNTS = {
    "hits": pl.Int64,
    "prefix_hits": pl.Int64,
    "hit_tokens": pl.Int64,
    "hit_percent": pl.Float64,
    "prefix_hit_percent": pl.Float64,
    "hit_token_percent": pl.Float64,
    "streamed": pl.Int64,
    "evictions": pl.Int64,
}
_STREAM = frozenset({"users", "seed"})

STREAMS = Table(
    "traces as replayed",
    {
        **{name: _AT[name] for name in ("trace", "users", "seed", "counted")},
        "block_tokens": pl.Int64,
        "counted_from": pl.Int64,
        "requests": pl.Int64,
        "span_s": pl.Float64,
        "blocks": pl.Int64,
        "tokens": pl.Int64,
        "unique_blocks": pl.Int64,
        "ceiling_hits": pl.Int64,
        "ceiling_tokens": pl.Int64,
        "parts": pl.String,
    },
    _STREAM,
)
"""One row a trace, seed and count: what rates are over, what a cache without limit hits, and what the bootstrap draws."""

POLICIES = Table(
    "policies on traces",
    {
        **_AT,
        "policy": pl.String,
        "title": pl.String,
        **_COUNTS,
        "margin_points": pl.Float64,
        "margin_low": pl.Float64,
        "margin_high": pl.Float64,
        "closed": pl.Float64,
        "closed_low": pl.Float64,
        "closed_high": pl.Float64,
    },
    _STREAM | {"closed", "closed_low", "closed_high"},
)
"""One row a policy and capacity. `margin_points`: block hit rate minus that of LRU, with its 95 % interval. `closed`: share of the way from
LRU to the optimum, (hits - LRU) / (optimum - LRU), null where LRU is the optimum; its interval is null where some resample has LRU there.
"""

ALPHA_RUNS = Table(
    "half-lives on traces",
    {**_AT, "alpha": pl.Float64, "half_life_requests": pl.Float64, "persistent": pl.Boolean, **_COUNTS},
    _STREAM,
)
"""One row an alpha, state and capacity."""

ORDERS = Table(
    "ends of an edge on traces",
    {**_AT, "policy": pl.String, "title": pl.String, "suffix_first": pl.Boolean, **_COUNTS},
    _STREAM,
)
"""One row a policy, capacity and end. Suffix first: from leaves alone, deepest first; else from any edge, its first block first."""


@dataclass(frozen=True)
class Stream:
    """Requests as they are replayed.

    Parameters
    ----------
    name : str
    trace : Trace
        In one stream.
    users, seed : int, optional
        How it was composed; none where the file is one stream.
    """

    name: str
    trace: Trace
    users: int | None = None
    seed: int | None = None

    @cached_property
    def replayer(self) -> Replayer:
        """The compiled replay."""
        return Replayer(self.trace)

    @cached_property
    def starts(self) -> dict[str, int]:
        """First counted request, by what is counted."""
        return {WHOLE: 0, LAST_HALF: -(-self.trace.requests // 2)}

    @cached_property
    def parts(self) -> dict[str, Parts]:
        """What the bootstrap draws, by what is counted: whole sessions, else windows of time."""
        trace = self.trace
        if self.users is not None:
            return {counted: resampling.by_session(trace.session[start:]) for counted, start in self.starts.items()}
        return {counted: resampling.by_time(trace.time_us[start:], WINDOW_US) for counted, start in self.starts.items()}

    def capacity_blocks(self, tokens: int) -> int:
        """Whole blocks in so many tokens."""
        return tokens // self.trace.block_tokens

    def at(self, counted: str, tokens: int | None = None) -> dict[str, Any]:
        """Columns that name a row."""
        named = {"trace": self.name, "users": self.users, "seed": self.seed, "counted": counted}
        return named if tokens is None else named | {"capacity_tokens": tokens, "capacity_blocks": self.capacity_blocks(tokens)}

    def counts(self, ran: Replayed, counted: str) -> dict[str, int | float]:
        """What a replay hit in the counted requests, with rates; evictions of the counted requests."""
        start, trace = self.starts[counted], self.trace
        blocks, tokens = int(trace.path_blocks[start:].sum()), int(trace.input_tokens[start:].sum())
        hits, prefix_hits, hit_tokens, streamed, evictions = (
            int(values[start:].sum()) for values in (ran.hits, ran.prefix_hits, ran.hit_tokens, ran.streamed, ran.evictions)
        )
        return {
            "hits": hits,
            "prefix_hits": prefix_hits,
            "hit_tokens": hit_tokens,
            "hit_percent": percent(hits, blocks),
            "prefix_hit_percent": percent(prefix_hits, blocks),
            "hit_token_percent": percent(hit_tokens, tokens),
            "streamed": streamed,
            "evictions": evictions,
        }

    def replay(self, named: Named, capacity_blocks: int, *, suffix_first: bool = True) -> Replayed:
        """Replay a policy, compiled where that is possible."""
        options = {"suffix_first": suffix_first, "leaves_only": suffix_first}
        if path_engine.replays(named):
            return self.replayer.replay(named, capacity_blocks, **options)
        return paths.replay(self.trace, paths.build(named, self.trace, capacity_blocks), capacity_blocks, **options)

    @property
    def policies(self) -> list[Named]:
        """The family; of long streams those that the compiled replay has."""
        return [named for named in eviction.NAMES.values() if path_engine.replays(named) or self.users is None]


def percent(part: int, whole: int) -> float:
    """Percentage, with the decimals that a table keeps."""
    return round(replays.percent(part, whole), 6)


def streams(name: str, trace: Trace, users: int = USERS, seeds: Sequence[int] = SEEDS) -> list[Stream]:
    """A trace as it is replayed: once, or composed with each seed where it has sessions in their own times."""
    if not trace.by_session:
        return [Stream(name, trace)]
    return [Stream(name, compose(trace, users, seed), users, seed) for seed in seeds]


def describe(stream: Stream) -> pl.DataFrame:
    """What rates are over; columns of ``STREAMS``."""
    trace, rows = stream.trace, []
    found = trace.path_blocks - trace.new_blocks
    found_tokens = trace.tokens_of(np.arange(trace.requests), 0, found)
    for counted, start in stream.starts.items():
        rows.append(
            stream.at(counted)
            | {
                "block_tokens": trace.block_tokens,
                "counted_from": start,
                "requests": trace.requests - start,
                "span_s": round(int(trace.time_us[-1] - trace.time_us[start]) / 1e6, 3),
                "blocks": int(trace.path_blocks[start:].sum()),
                "tokens": int(trace.input_tokens[start:].sum()),
                "unique_blocks": trace.unique_blocks,
                "ceiling_hits": int(found[start:].sum()),
                "ceiling_tokens": int(found_tokens[start:].sum()),
                "parts": stream.parts[counted].kind,
            }
        )
    return STREAMS.check(pl.DataFrame(rows, infer_schema_length=None))


def compare_policies(stream: Stream, capacities_tokens: Sequence[int] = CAPACITIES_TOKENS) -> pl.DataFrame:
    """Every policy at every capacity, under the optimum of what is counted; columns of ``POLICIES``."""
    rows = []
    for tokens in capacities_tokens:
        capacity = stream.capacity_blocks(tokens)
        ran = {named.slug: (named.title, stream.replay(named, capacity)) for named in stream.policies}
        for counted, start in stream.starts.items():
            optimum = stream.replayer.optimum(capacity, start)
            rows += _compared(stream, counted, tokens, ran | {OPTIMUM: ("Optimum", optimum)})
    return POLICIES.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=POLICIES.columns))


def _compared(stream: Stream, counted: str, tokens: int, ran: dict[str, tuple[str, Replayed]]) -> Iterator[dict[str, Any]]:
    start, parts = stream.starts[counted], stream.parts[counted]
    blocks = stream.trace.path_blocks[start:]
    whole, read = int(blocks.sum()), parts.sums(blocks)
    lru, optimum = (ran[slug][1].hits[start:] for slug in ("lru", OPTIMUM))
    most = int((optimum - lru).sum())
    drawn_most = parts.sums(optimum - lru)
    for slug, (title, one) in ran.items():
        gained = one.hits[start:] - lru
        drawn, total = parts.sums(gained), int(gained.sum())
        low, high = resampling.interval(100 * drawn / read)
        closed = round(total / most, 6) if most else None
        closed_ends = resampling.interval(drawn / drawn_most) if np.all(drawn_most > 0) else (None, None)
        yield (
            stream.at(counted, tokens)
            | {"policy": slug, "title": title}
            | stream.counts(one, counted)
            | {
                "margin_points": percent(total, whole),
                "margin_low": round(low, 6),
                "margin_high": round(high, 6),
                "closed": closed,
                "closed_low": None if closed_ends[0] is None else round(closed_ends[0], 6),
                "closed_high": None if closed_ends[1] is None else round(closed_ends[1], 6),
            }
        )


def compare_alphas(stream: Stream, capacities_tokens: Sequence[int] = CAPACITIES_TOKENS, alphas: Sequence[float] = ALPHAS) -> pl.DataFrame:
    """EMA with every alpha, state dropped and kept, at every capacity; columns of ``ALPHA_RUNS``."""
    rows = []
    for tokens in capacities_tokens:
        for alpha in alphas:
            for persistent in (False, True):
                ran = stream.replay(eviction.ema(alpha, persistent=persistent), stream.capacity_blocks(tokens))
                named = {"alpha": alpha, "half_life_requests": round(eviction.half_life_turns(alpha), 6), "persistent": persistent}
                rows += [stream.at(counted, tokens) | named | stream.counts(ran, counted) for counted in stream.starts]
    return ALPHA_RUNS.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=ALPHA_RUNS.columns))


ORDERED = ("lru", "ema005", "lfu", "farthest")
"""Policies that are tried from either end of an edge."""


def compare_orders(stream: Stream, capacities_tokens: Sequence[int] = CAPACITIES_TOKENS) -> pl.DataFrame:
    """A few policies from either end of an edge; columns of ``ORDERS``."""
    rows = []
    for tokens in capacities_tokens:
        for named in (eviction.NAMES[slug] for slug in ORDERED):
            for suffix_first in (True, False):
                ran = stream.replay(named, stream.capacity_blocks(tokens), suffix_first=suffix_first)
                about = {"policy": named.slug, "title": named.title, "suffix_first": suffix_first}
                rows += [stream.at(counted, tokens) | about | stream.counts(ran, counted) for counted in stream.starts]
    return ORDERS.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=ORDERS.columns))

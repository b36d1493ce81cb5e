"""Further experiments on public traces: weights of the priority, a tier below in time, coarser blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from kvtier.analytic.breakeven import ASSUMED_FLOP_PER_S
from kvtier.frames import Table
from kvtier.simulate import eviction, path_engine, paths, replays, resampling, serving
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.priority_grid import PUBLISHED, Point, simplex, weights
from kvtier.simulate.queueing import BANDWIDTHS_GBPS, Link
from kvtier.simulate.trace_experiments import LAST_HALF, OPTIMUM, WHOLE, Stream, percent
from kvtier.workload.arrivals import spread
from kvtier.workload.paths import NONE, Trace

# Weights.

STEPS = 5
"""Steps of the simplex from 0 to 1: of 0.2. The published weights are tried besides."""

WEIGHT_ALPHAS = (0.05, 0.005, 0.0005)
WEIGHT_CAPACITIES_TOKENS = (2**20, 2**22, 2**24)

_AT = {"trace": pl.String, "seed": pl.Int64, "capacity_tokens": pl.Int64}
_WEIGHTS = {"alpha": pl.Float64, "recency": pl.Float64, "ema": pl.Float64, "anchor": pl.Float64}
_GAIN = {"gain_low": pl.Float64, "gain_high": pl.Float64}

WEIGHT_RUNS = Table(
    "weights on traces",
    {
        **_AT,
        **_WEIGHTS,
        "published": pl.Boolean,
        "fit_hits": pl.Int64,
        "fit_blocks": pl.Int64,
        "test_hits": pl.Int64,
        "test_blocks": pl.Int64,
        **_GAIN,
    },
    frozenset({"seed"}),
)
"""One row a point of the simplex and an alpha: hits of the first half of the requests, and of the second; in the second, the interval of
the hit rate minus that of the published setting, paired.
"""

WEIGHTS = Table(
    "chosen weights on traces",
    {
        **_AT,
        "choice": pl.String,
        **_WEIGHTS,
        "tied": pl.Int64,
        "test_hits": pl.Int64,
        "test_blocks": pl.Int64,
        "test_percent": pl.Float64,
        **_GAIN,
    },
    frozenset({"seed"}),
)
"""One row a trace, capacity and choice, tested on the second half. Choices: ``own``, most hits in the trace's first half; ``others``,
best mean rate over the second halves of the other traces at the capacity; ``published``, weights and alpha; ``recency``, all weight on
R; ``best``, most hits in the second half itself, which no one can know. `tied`: how many points do as well. Of equals the first
of the grid.
""" ""

PUBLISHED_ALPHA = 0.05


def points() -> list[tuple[Point, bool]]:
    """Points of the grid, and whether it is the published one."""
    return [*((point, False) for point in simplex(STEPS)), (PUBLISHED, True)]


def try_weights(stream: Stream) -> pl.DataFrame:
    """Every point at every capacity and alpha; columns of ``WEIGHT_RUNS``."""
    trace, start, rows = stream.trace, stream.starts[LAST_HALF], []
    fit, test = trace.path_blocks[:start], trace.path_blocks[start:]
    drawn = stream.parts[LAST_HALF]
    read = drawn.sums(test)
    for tokens in WEIGHT_CAPACITIES_TOKENS:
        capacity = stream.capacity_blocks(tokens)
        reference = stream.replay(path_engine.weighted(PUBLISHED_ALPHA, weights(PUBLISHED)), capacity).hits[start:]
        for alpha in WEIGHT_ALPHAS:
            for point, published in points():
                parts = weights(point)
                hits = stream.replay(path_engine.weighted(alpha, parts), capacity).hits
                low, high = resampling.interval(100 * drawn.sums(hits[start:] - reference) / read)
                rows.append(
                    {"trace": stream.name, "seed": stream.seed, "capacity_tokens": tokens, "alpha": alpha, "published": published}
                    | dict(zip(("recency", "ema", "anchor"), parts, strict=True))
                    | {"fit_hits": int(hits[:start].sum()), "fit_blocks": int(fit.sum())}
                    | {"test_hits": int(hits[start:].sum()), "test_blocks": int(test.sum())}
                    | {"gain_low": round(low, 6), "gain_high": round(high, 6)}
                )
    return WEIGHT_RUNS.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=WEIGHT_RUNS.columns))


def choose_weights(runs: pl.DataFrame) -> pl.DataFrame:
    """Weights by what they were chosen on; from ``WEIGHT_RUNS`` of several traces to ``WEIGHTS``."""
    setting = list(_WEIGHTS)
    runs = runs.with_row_index("row")
    rows = []
    for (trace, tokens), own in runs.group_by("trace", "capacity_tokens", maintain_order=True):
        elsewhere = (
            runs.filter((pl.col("capacity_tokens") == tokens) & (pl.col("trace") != trace))
            .group_by(*setting, "published", maintain_order=True)
            .agg(score=(pl.col("test_hits") / pl.col("test_blocks")).sum().round(12))
        )
        judged = own.join(elsewhere, on=[*setting, "published"], how="left", maintain_order="left")
        among = {
            "own": (pl.lit(True), "fit_hits"),
            "others": (pl.lit(True), "score"),
            "published": (pl.col("published") & (pl.col("alpha") == PUBLISHED_ALPHA), "fit_hits"),
            "recency": (pl.col("recency") == 1, "fit_hits"),
            "best": (pl.lit(True), "test_hits"),
        }
        for choice, (wanted, by) in among.items():
            tried = judged.filter(wanted)
            if tried[by].null_count():
                continue
            tied = tried.filter(pl.col(by) == pl.col(by).max())
            row = tied.row(0, named=True)
            rows.append(
                {name: row[name] for name in (*_AT, *setting, "test_hits", "test_blocks", *_GAIN)}
                | {"choice": choice, "tied": len(tied), "test_percent": percent(row["test_hits"], row["test_blocks"])}
            )
    return WEIGHTS.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=WEIGHTS.columns))


# A tier below, in time.

TICK_US = 3 * 10**6
"""Clock of the conversation trace: arrivals are spread inside its ticks."""

TIMED = ("conversation",)
"""Traces whose clock and lengths the serving model is run on."""

SPREAD_SEEDS = (1, 2, 3)
HBM_TOKENS, TIER_TOKENS = 2**20, 2**22
BLOCK_BYTES_A_TOKEN = 327_680
"""KV of a token of Llama-3 70B in fp16 (SPEC §2) [B]."""

SERVERS = 32

TIERED = ("lru", "ema005", "lfu", "s3fifo", "gdsf")

TIMES = Table(
    "a tier below on a trace, in time",
    {
        "trace": pl.String,
        "spread_seed": pl.Int64,
        "policy": pl.String,
        "title": pl.String,
        "hbm_tokens": pl.Int64,
        "tier_tokens": pl.Int64,
        "bandwidth_gbps": pl.Float64,
        "servers": pl.Int64,
        "requests": pl.Int64,
        "blocks": pl.Int64,
        "hits": pl.Int64,
        "fetched": pl.Int64,
        "computed": pl.Int64,
        "written": pl.Int64,
        "load": pl.Float64,
        "ttft_ms_mean": pl.Float64,
        "ttft_ms_p50": pl.Float64,
        "ttft_ms_p95": pl.Float64,
        "ttft_ms_p99": pl.Float64,
        "stall_ms_mean": pl.Float64,
    },
    frozenset({"bandwidth_gbps", "ttft_ms_mean", "ttft_ms_p50", "ttft_ms_p95", "ttft_ms_p99"}),
)
"""One row a policy, bandwidth (none: no tier) and seed of the spread; all requests, from a cold start. Times are null where the load is 1
or more: the queue then grows with the trace.
""" ""


class Llama70B:
    """Prefill of Llama-3 70B: two operations a parameter and token, and attention over all tokens before (80 layers, hidden 8,192)."""

    def seconds(self, prompt_tokens: np.ndarray, computed_tokens: np.ndarray) -> np.ndarray:
        """Time to compute the last `computed_tokens` of prompts on one server [s], shape (requests,)."""

        def flop(tokens: np.ndarray) -> np.ndarray:
            n = tokens.astype(np.float64)
            return 2 * 70e9 * n + 4 * 80 * 8192 * (n * (n + 1) / 2)

        return (flop(prompt_tokens) - flop(prompt_tokens - computed_tokens)) / ASSUMED_FLOP_PER_S


def time_tiers(stream: Stream, slugs: Sequence[str] = TIERED, seeds: Sequence[int] = SPREAD_SEEDS) -> pl.DataFrame:
    """HBM alone and with a tier below, under load; columns of ``TIMES``.

    Hits depend on the order of the requests alone, which the spread keeps: each policy is replayed once.
    """
    trace, rows = stream.trace, []
    hbm, below = stream.capacity_blocks(HBM_TOKENS), stream.capacity_blocks(TIER_TOKENS)
    block_bytes = BLOCK_BYTES_A_TOKEN * trace.block_tokens
    arrivals = {seed: spread(trace, TICK_US, seed).time_us / 1e6 for seed in seeds}
    for named in (eviction.NAMES[slug] for slug in slugs):
        for tiers, bandwidths in (((), (None,)), ((Tier("CXL", below),), BANDWIDTHS_GBPS)):
            ran, served = serving.replay_with_tiers(trace, paths.build(named, trace, hbm), hbm, tiers)
            replays.require_all_blocks(trace, ran.hits, served.fetched, served.computed)
            computed_tokens = trace.input_tokens - ran.hit_tokens - served.fetched_tokens
            counts = {
                "hits": int(ran.hits.sum()),
                "fetched": int(served.fetched.sum()),
                "computed": int(served.computed.sum()),
                "written": int(served.written.sum()),
            }
            compute_s = Llama70B().seconds(trace.input_tokens, computed_tokens)
            for bandwidth in bandwidths:
                links = [Link(bandwidth)] if tiers else []
                transfers_s = serving.fetch_s(served.fetched, links, block_bytes)
                for seed in seeds:
                    about = {"trace": stream.name, "spread_seed": seed, "policy": named.slug, "title": named.title}
                    sizes = {"hbm_tokens": HBM_TOKENS, "tier_tokens": TIER_TOKENS if tiers else 0, "bandwidth_gbps": bandwidth}
                    whole = {"servers": SERVERS, "requests": trace.requests, "blocks": trace.block_accesses}
                    rows.append(about | sizes | whole | counts | _times(arrivals[seed], transfers_s, compute_s))
    return TIMES.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=TIMES.columns))


def _times(arrivals_s: np.ndarray, transfers_s: np.ndarray, compute_s: np.ndarray) -> dict[str, Any]:
    alone_s = serving.stall_s(transfers_s, compute_s)
    load = serving.offered_load(arrivals_s, alone_s, SERVERS)
    found: dict[str, Any] = {"load": round(load, 6)}
    names = ("mean", "p50", "p95", "p99")
    if load >= 1:
        return found | {f"ttft_ms_{name}": None for name in names} | {"stall_ms_mean": round(1e3 * float(alone_s.mean()), 3)}
    served = serving.serve(arrivals_s, transfers_s, compute_s, SERVERS)
    waits = replays.spread("ttft_ms", 1e3 * (served.ready - arrivals_s))
    return found | {name: round(value, 3) for name, value in waits.items()} | {"stall_ms_mean": round(1e3 * float(served.stall.mean()), 3)}


# Coarser blocks.

BLOCK_CAPACITIES_TOKENS = (2**19, 2**20, 2**21, 2**22, 2**24)
GROUPS = {64: (1, 4, 8), 512: (1, 2, 4)}
"""By the trace's own block size, how many blocks become one."""

BLOCK_SIZES = Table(
    "block sizes on traces",
    {
        **_AT,
        "block_tokens": pl.Int64,
        "policy": pl.String,
        "title": pl.String,
        "counted": pl.String,
        "hit_tokens": pl.Int64,
        "tokens": pl.Int64,
        "hit_token_percent": pl.Float64,
        "ceiling_tokens": pl.Int64,
        "tokens_without_block": pl.Int64,
    },
    frozenset({"seed"}),
)
"""One row a block size, capacity and policy. Whole blocks alone count, at all sizes: `tokens_without_block` is what is left at the ends."""


def coarser(trace: Trace, group: int) -> Trace:
    """The same requests in blocks of `group` of the trace's own; what does not fill such a block has none.

    A block of the trace stands for all tokens up to its end, so a coarse block is known by the last one in it. A partly filled last block
    is no whole block: leave it out first (:func:`whole_blocks`).

    Parameters
    ----------
    trace : Trace
    group : int
        1 leaves whole blocks as they are.
    """
    stop = trace.first_block + trace.blocks
    blocks = stop // group - trace.first_block // group
    # An edge in which no coarse block ends is left out of the tree: what hangs on it hangs on the next above that has one.
    number, kept, parent = [], [], []
    for edge, (above, count) in enumerate(zip(trace.parent.tolist(), blocks.tolist(), strict=True)):
        upper = number[above] if above >= 0 else NONE
        if count:
            number.append(len(kept))
            kept.append(edge)
            parent.append(upper)
        else:
            number.append(upper)
    number_of = np.append(np.array(number, dtype=np.int64), NONE)
    zeros = np.zeros(len(kept), dtype=np.int64)
    return replace(
        trace,
        block_tokens=trace.block_tokens * group,
        last_edge=number_of[trace.last_edge],
        parent=np.array(parent, dtype=np.int64),
        blocks=blocks[kept],
        label_offset=np.arange(len(kept) + 1),
        label_first=zeros,
        label_length=blocks[kept],
    )


def whole_blocks(trace: Trace) -> Trace:
    """The same requests without their partly filled last blocks."""
    partly = trace.path_blocks * trace.block_tokens > trace.input_tokens
    if not np.any(partly):
        return trace
    # A partly filled block ends its path: it is an edge's last block, and nothing that continues the tokens has it on its path.
    cut = np.zeros(trace.edges, dtype=bool)
    cut[trace.last_edge[partly]] = True
    inner = np.zeros(trace.edges, dtype=bool)
    inner[trace.parent[trace.parent >= 0]] = True
    whole_end = np.zeros(trace.edges, dtype=bool)
    whole_end[trace.last_edge[~partly & (trace.last_edge >= 0)]] = True
    if np.any(cut & (inner | whole_end)):
        raise ValueError(f"{trace.source}: a partly filled block that another request continues: expected none")
    blocks = trace.blocks - cut
    keep = blocks > 0
    number = np.append(np.where(keep, np.cumsum(keep) - 1, 0), NONE)
    above = np.append(np.where(keep, np.arange(trace.edges), trace.parent), NONE)
    kept = np.flatnonzero(keep)
    return replace(
        trace,
        last_edge=number[above[trace.last_edge]],
        parent=number[trace.parent[kept]],
        blocks=blocks[kept],
        label_offset=np.arange(len(kept) + 1),
        label_first=np.zeros(len(kept), dtype=np.int64),
        label_length=blocks[kept],
    )


BLOCK_POLICIES = ("lru", "ema005", "s3fifo")


def compare_block_sizes(stream: Stream) -> pl.DataFrame:
    """A few policies and the optimum in coarser and coarser blocks; columns of ``BLOCK_SIZES``."""
    own, rows = whole_blocks(stream.trace), []
    for group in GROUPS.get(own.block_tokens, (1,)):
        made = Stream(stream.name, coarser(own, group), stream.users, stream.seed)
        trace = made.trace
        found = trace.tokens_of(np.arange(trace.requests), 0, trace.path_blocks - trace.new_blocks)
        without = trace.input_tokens - trace.path_tokens
        for tokens in BLOCK_CAPACITIES_TOKENS:
            capacity = made.capacity_blocks(tokens)
            ran = {slug: (eviction.NAMES[slug].title, made.replay(eviction.NAMES[slug], capacity)) for slug in BLOCK_POLICIES}
            for counted in (WHOLE, LAST_HALF):
                start = made.starts[counted]
                whole = int(trace.input_tokens[start:].sum())
                best = {OPTIMUM: ("Optimum", made.replayer.optimum(capacity, start))}
                for slug, (title, one) in (ran | best).items():
                    hit = int(one.hit_tokens[start:].sum())
                    rows.append(
                        {"trace": stream.name, "seed": stream.seed, "capacity_tokens": tokens, "block_tokens": trace.block_tokens}
                        | {"policy": slug, "title": title, "counted": counted, "hit_tokens": hit, "tokens": whole}
                        | {"hit_token_percent": percent(hit, whole), "ceiling_tokens": int(found[start:].sum())}
                        | {"tokens_without_block": int(without[start:].sum())}
                    )
    return BLOCK_SIZES.check(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=BLOCK_SIZES.columns))

"""A trace under several policies at several capacities: the rows that ``kvtier simulate`` prints.

Every rate has its numerator and its denominator beside it, and counts requests from `counted_from` on; those before warm the cache. The
optimum of :func:`kvtier.simulate.paths.optimum` stands beside each policy: it bounds hits of blocks in HBM. Nothing bounds tokens (a partly
filled block is worth less than it takes), nor tiers or times, and where no block is counted there is no rate to bound.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from kvtier.simulate import path_engine, paths, serving
from kvtier.simulate.eviction import Named
from kvtier.simulate.path_engine import Replayer
from kvtier.simulate.queueing import PERCENTILES
from kvtier.simulate.serving import LinkedTier, Prefill
from kvtier.workload.paths import Builder, Trace
from kvtier.workload.turns import BLOCK_TOKENS, Turns

OPTIMUM = "optimum"
"""In place of a policy's slug."""

EDGES_PER_S, COMPILED_EDGES_PER_S = 6e4, 1.5e6
"""Roughly what one core replays, with tiers or in plain Python, and compiled."""

COMPILED_FROM_S, PROCESSES_FROM_S = 3.0, 10.0
"""Expected time from which on it pays to load what is compiled, and to start processes [s]."""

RATES = (
    ("hit_percent", "hits", "blocks"),
    ("prefix_hit_percent", "prefix_hits", "blocks"),
    ("token_hit_percent", "hit_tokens", "tokens"),
    ("token_prefix_hit_percent", "prefix_hit_tokens", "tokens"),
)
"""Rate, numerator, denominator."""

SPREAD = ("mean", *(f"p{percent}" for percent in PERCENTILES))
"""Of each time."""


@dataclass(frozen=True)
class Setting:
    """What all replays have in common.

    Parameters
    ----------
    block_bytes : int
        KV of one block of the trace.
    counted_from : int
        First request that counts.
    tiers : tuple of LinkedTier
        Below HBM, from the top down.
    suffix_first : bool
        Whether an edge loses its deepest block first, else its first.
    prefill : Prefill, optional
        Without it there are no times.
    arrivals_s : ndarray of float64, shape (requests,), optional
        Without them nothing queues, and there is no TTFT.
    servers : int
        Requests that are in prefill at one time.
    """

    block_bytes: int
    counted_from: int
    tiers: tuple[LinkedTier, ...] = ()
    suffix_first: bool = True
    prefill: Prefill | None = None
    arrivals_s: np.ndarray | None = None
    servers: int = 1


def of_turns(turns: Turns, source: str) -> Trace:
    """A synthetic workload as requests of one trace.

    Generated blocks are read, and missed, for the first time in the session's next turn: a request computes what no request has read.
    Revision 3 has them in HBM from the turn that generates them. All times are 0.

    Parameters
    ----------
    turns : Turns
    source : str
        For messages.
    """
    builder = Builder(source, BLOCK_TOKENS)
    first = turns.first_block.tolist()
    for turn, (session, blocks, generated) in enumerate(
        zip(turns.session.tolist(), turns.read_blocks.tolist(), turns.decode_tokens.tolist(), strict=True)
    ):
        own = blocks - turns.prefix_blocks
        runs = [run for run in ((0, turns.prefix_blocks), (first[session], own)) if run[1]]
        builder.add(f"turn {turn}", 0, blocks * BLOCK_TOKENS, generated, runs, session)
    return builder.trace()


def ceiling(trace: Trace, counted_from: int) -> tuple[int, int]:
    """Blocks of counted requests that some earlier request has read, and all that they read: what a cache without limit hits."""
    read = int(trace.path_blocks[counted_from:].sum())
    return read - int(trace.new_blocks[counted_from:].sum()), read


def percent(part: int, whole: int) -> float | None:
    """100 · part / whole; None of nothing."""
    return 100 * part / whole if whole else None


def optimum(trace: Trace, capacity_blocks: int, setting: Setting, engine: Replayer | None = None) -> dict[str, Any]:
    """Row of the most hits that any policy could have at a capacity."""
    counted = setting.counted_from
    best = engine.optimum(capacity_blocks, counted) if engine else paths.optimum(trace, capacity_blocks, counted)
    hits, read = int(best.hits[counted:].sum()), int(trace.path_blocks[counted:].sum())
    return {
        "policy": OPTIMUM,
        "capacity_blocks": capacity_blocks,
        "capacity_bytes": capacity_blocks * setting.block_bytes,
        "hits": hits,
        "blocks": read,
        "hit_percent": percent(hits, read),
    }


def policy(trace: Trace, capacity_blocks: int, setting: Setting, named: Named, engine: Replayer | None = None) -> dict[str, Any]:
    """Row of one policy at a capacity, without what comes from the optimum.

    Parameters
    ----------
    trace : Trace
    capacity_blocks : int
    setting : Setting
    named : Named
    engine : Replayer, optional
        Of the same trace; used where it has the policy, and no tier asks what left.

    Raises
    ------
    ValueError
        If the blocks that a request reads are not its hits, its fetches and what is computed.
    """
    if setting.tiers:
        tiers = [one.tier for one in setting.tiers]
        eviction = paths.build(named, trace, capacity_blocks)
        replayed, below = serving.replay_with_tiers(trace, eviction, capacity_blocks, tiers, suffix_first=setting.suffix_first)
        fetched, written, computed, fetched_tokens = below.fetched, below.written, below.computed, below.fetched_tokens
    else:
        if engine and path_engine.replays(named):
            replayed = engine.replay(named, capacity_blocks, suffix_first=setting.suffix_first)
        else:
            eviction = paths.build(named, trace, capacity_blocks)
            replayed = paths.replay(trace, eviction, capacity_blocks, suffix_first=setting.suffix_first)
        fetched = written = np.zeros((0, trace.requests), dtype=np.int64)
        computed, fetched_tokens = trace.path_blocks - replayed.hits, np.zeros(trace.requests, dtype=np.int64)
    require_all_blocks(trace, replayed.hits, fetched, computed)
    counted = slice(setting.counted_from, None)

    def total(values: np.ndarray) -> int:
        return int(values[..., counted].sum())

    blocks, tokens, size = total(trace.path_blocks), total(trace.input_tokens), setting.block_bytes
    row: dict[str, Any] = {
        "policy": named.slug,
        "capacity_blocks": capacity_blocks,
        "capacity_bytes": capacity_blocks * size,
        "counted_from": setting.counted_from,
        "requests": trace.requests - setting.counted_from,
        "blocks": blocks,
        "hits": total(replayed.hits),
        "prefix_hits": total(replayed.prefix_hits),
        "tokens": tokens,
        "hit_tokens": total(replayed.hit_tokens),
        "prefix_hit_tokens": total(replayed.prefix_hit_tokens),
        "evicted_blocks": total(replayed.evictions),
        "streamed_blocks": total(replayed.streamed),
        "computed_blocks": total(computed),
        "new_blocks": total(trace.new_blocks),
        "recomputed_blocks": total(computed - trace.new_blocks),
        "tiers": [
            {
                "name": one.tier.name,
                "hits": total(up),
                "hit_percent": percent(total(up), blocks),
                "up_bytes": total(up) * size,
                "down_bytes": total(down) * size,
            }
            for one, up, down in zip(setting.tiers, fetched, written, strict=True)
        ],
    }
    for name, part, whole in RATES:
        row[name] = percent(row[part], row[whole])
    return row | _times(trace, fetched, trace.input_tokens - replayed.hit_tokens - fetched_tokens, setting)


def require_all_blocks(trace: Trace, hits: np.ndarray, fetched: np.ndarray, computed: np.ndarray) -> None:
    """Pass if hits by tier and computed blocks add up to what each request reads, and nothing new is found anywhere.

    Raises
    ------
    ValueError
        Naming the first request of which that is not so.
    """
    found = hits + fetched.sum(axis=0) + computed
    broken = np.flatnonzero((found != trace.path_blocks) | (computed < trace.new_blocks))
    if len(broken):
        request = int(broken[0])
        raise ValueError(
            f"request {request}: found {found[request]} blocks, {computed[request]} of them computed; expected all "
            f"{trace.path_blocks[request]} that it reads, and the {trace.new_blocks[request]} new ones computed"
        )


def _times(trace: Trace, fetched: np.ndarray, computed_tokens: np.ndarray, setting: Setting) -> dict[str, Any]:
    if setting.prefill is None:
        return {}
    counted = slice(setting.counted_from, None)
    transfers_s = serving.fetch_s(fetched, [one.link for one in setting.tiers], setting.block_bytes)
    compute_s = setting.prefill.seconds(trace.input_tokens, computed_tokens)
    alone_s = serving.stall_s(transfers_s, compute_s)
    row: dict[str, Any] = {"compute_ms_mean": 1e3 * float(np.mean(compute_s[counted])), "load": None, "stable": None}
    if setting.arrivals_s is None:
        return row | spread("stall_ms", 1e3 * alone_s[counted])
    load = serving.offered_load(setting.arrivals_s, alone_s, setting.servers)
    row |= {"load": None if math.isinf(load) else load, "stable": load < 1}
    if load >= 1:
        # A wait that grows with the length of the trace is no property of the policy.
        return row | spread("stall_ms", 1e3 * alone_s[counted]) | {f"ttft_ms_{name}": None for name in SPREAD}
    served = serving.serve(setting.arrivals_s, transfers_s, compute_s, setting.servers)
    waits = spread("ttft_ms", 1e3 * (served.ready - setting.arrivals_s)[counted])
    return row | spread("stall_ms", 1e3 * served.stall[counted]) | waits


def spread(name: str, values: np.ndarray) -> dict[str, float]:
    """Mean and percentiles by nearest rank, as :func:`kvtier.simulate.queueing.percentile` has them."""
    ranked = np.sort(values)
    found = {"mean": math.fsum(values.tolist()) / len(values)}
    found |= {f"p{percent}": float(ranked[-(-percent * len(ranked) // 100) - 1]) for percent in PERCENTILES}
    return {f"{name}_{kind}": value for kind, value in found.items()}


def with_regret(row: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    """A policy's row with the optimum beside it, and how many points it is short of it; None where nothing is counted.

    Raises
    ------
    ValueError
        If it is above the optimum.
    """
    if row["hits"] > best["hits"]:
        raise ValueError(f"{row['policy']} at {row['capacity_blocks']} blocks: {row['hits']} hits, above the optimum of {best['hits']}")
    regret = None if best["hit_percent"] is None else 100 * (best["hits"] - row["hits"]) / row["blocks"]
    return row | {"optimum_hits": best["hits"], "optimum_percent": best["hit_percent"], "regret_points": regret}


_SHARED: dict[str, Any] = {}
"""The trace and the setting of a worker."""


def _ready(trace: Trace, setting: Setting) -> None:
    # Whoever interrupts means the whole run: the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _SHARED.update(trace=trace, setting=setting, engine=Replayer(trace))


def _cell(capacity_blocks: int, named: Named | None) -> dict[str, Any]:
    return _row(_SHARED["trace"], _SHARED["setting"], _SHARED["engine"], capacity_blocks, named)


def _row(trace: Trace, setting: Setting, engine: Replayer | None, capacity_blocks: int, named: Named | None) -> dict[str, Any]:
    if named is None:
        return optimum(trace, capacity_blocks, setting, engine)
    return policy(trace, capacity_blocks, setting, named, engine)


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compiled(trace: Trace, cells: int, setting: Setting) -> bool:
    """Whether the compiled engine can be of use and is worth its loading."""
    return not setting.tiers and int(trace.path_offset[-1]) * cells / EDGES_PER_S >= COMPILED_FROM_S


def expected_s(trace: Trace, cells: int, setting: Setting) -> float:
    """Roughly how long so many replays take on one core [s]."""
    rate = COMPILED_EDGES_PER_S if _compiled(trace, cells, setting) else EDGES_PER_S
    return int(trace.path_offset[-1]) * cells / rate


def sweep(
    trace: Trace,
    policies: Sequence[Named],
    capacities_blocks: Sequence[int],
    setting: Setting,
    jobs: int = 1,
    done: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Replay every policy at every capacity, and the optimum of each capacity.

    Parameters
    ----------
    trace : Trace
        With blocks, in one stream.
    policies : sequence of Named
    capacities_blocks : sequence of int
    setting : Setting
    jobs : int
        Processes; a small sweep is done in this one.
    done : callable, optional
        Told how many replays are done, and of how many.

    Returns
    -------
    list of dict
        Capacity by capacity, policies in order: rows of :func:`policy` with :func:`with_regret`.
    """
    cells = [(blocks, named) for blocks in capacities_blocks for named in (None, *policies)]
    found: dict[int, dict[str, Any]] = {}
    seconds = expected_s(trace, len(cells), setting)
    jobs = min(jobs, len(cells)) if seconds >= PROCESSES_FROM_S else 1
    for index, row in _apart(trace, setting, cells, jobs) if jobs > 1 else _here(trace, setting, cells):
        found[index] = row
        if done:
            done(len(found), len(cells))
    rows, best = [], {}
    for index, (_, named) in enumerate(cells):
        if named is None:
            best = found[index]
        else:
            rows.append(with_regret(found[index], best))
    return rows


Cells = list[tuple[int, Named | None]]


def _here(trace: Trace, setting: Setting, cells: Cells) -> Iterator[tuple[int, dict[str, Any]]]:
    engine = Replayer(trace) if _compiled(trace, len(cells), setting) else None
    for index, cell in enumerate(cells):
        yield index, _row(trace, setting, engine, *cell)


def _apart(trace: Trace, setting: Setting, cells: Cells, jobs: int) -> Iterator[tuple[int, dict[str, Any]]]:
    # New processes and not copies of this one, which may have threads.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _ready, (trace, setting))
    try:
        asked: dict[Future, int] = {pool.submit(_cell, *cell): index for index, cell in enumerate(cells)}
        for future in as_completed(asked):
            yield asked[future], future.result()
    except BaseException:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        raise
    pool.shutdown()

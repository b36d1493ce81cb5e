"""Audits of traces: whether what is read is what it is taken for, and what the most is that any cache could hit.

A hit rate of a trace says little without its ceiling, its unit and its warm-up: :class:`Rate` carries all of them. Findings are as those of
the other audits; where ``must_hold`` is false, what is counted is a property of the trace that its reader must know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kvtier.audit.findings import Finding
from kvtier.frames import Table
from kvtier.simulate import paths
from kvtier.simulate.eviction import Lru
from kvtier.simulate.paths import Replayed
from kvtier.workload.arrivals import spread
from kvtier.workload.paths import Trace


@dataclass(frozen=True)
class Rate:
    """A quotient with its papers.

    Parameters
    ----------
    subject : str
        Of what.
    numerator, denominator : int
    unit : {'blocks', 'tokens'}
        What both count.
    counted_from : int
        First request that counts; those before warm the cache.
    requests : int
        Requests that count.

    Raises
    ------
    ValueError
        If the numerator is negative or exceeds the denominator, or nothing is counted.
    """

    subject: str
    numerator: int
    denominator: int
    unit: str
    counted_from: int
    requests: int

    def __post_init__(self) -> None:
        if not 0 <= self.numerator <= self.denominator or self.denominator == 0:
            raise ValueError(f"rate {self.subject}: {self.numerator} of {self.denominator} {self.unit}: expected a part of something")

    @property
    def percent(self) -> float:
        """100 · numerator / denominator."""
        return 100 * self.numerator / self.denominator

    def __str__(self) -> str:
        warm_up = f"after {self.counted_from:,} warm-up requests" if self.counted_from else "from a cold start"
        return (
            f"{self.subject}: {self.percent:.2f} % = {self.numerator:,} of {self.denominator:,} {self.unit} "
            f"in {self.requests:,} requests {warm_up}"
        )


RATES = Table(
    "rates of traces",
    {
        "subject": pl.String,
        "numerator": pl.Int64,
        "denominator": pl.Int64,
        "unit": pl.String,
        "counted_from": pl.Int64,
        "requests": pl.Int64,
        "percent": pl.Float64,
    },
)
"""One :class:`Rate` a row."""


def rate(trace: Trace, subject: str, by_request: np.ndarray, unit: str = "blocks", counted_from: int = 0) -> Rate:
    """Hits over accesses, or hit tokens over input tokens.

    Parameters
    ----------
    trace : Trace
    subject : str
    by_request : ndarray of int64, shape (requests,)
        Numerator of each request.
    unit : {'blocks', 'tokens'}
        The denominator is the blocks of the paths, or all input tokens, those without a block among them.
    counted_from : int
        First request that counts.
    """
    whole = {"blocks": trace.path_blocks, "tokens": trace.input_tokens}[unit]
    counted = slice(counted_from, None)
    return Rate(
        subject, int(by_request[counted].sum()), int(whole[counted].sum()), unit, counted_from, max(trace.requests - counted_from, 0)
    )


def ceiling(trace: Trace, unit: str = "blocks", counted_from: int = 0) -> Rate:
    """What a cache without limit hits: all that an earlier request has read, counted or not.

    Parameters
    ----------
    trace : Trace
    unit : {'blocks', 'tokens'}
    counted_from : int
    """
    found = trace.path_blocks - trace.new_blocks
    if unit == "tokens":
        # What no request has read before is the end of a path.
        found = trace.tokens_of(np.arange(trace.requests), 0, found)
    return rate(trace, f"ceiling of {trace.source}", found, unit, counted_from)


def commonest_block(trace: Trace, counted_from: int = 0) -> tuple[int, Rate]:
    """The block with most hits in a cache without limit, by its number, and its hits over all accesses.

    Parameters
    ----------
    trace : Trace
    counted_from : int

    Returns
    -------
    int
        :attr:`kvtier.workload.paths.Trace.block_number` of the first such block.
    Rate
        In blocks: its percentage is in points of the hit rate.
    """
    request = np.repeat(np.arange(trace.requests), np.diff(trace.path_offset))
    _, first = np.unique(trace.path_edge, return_index=True)
    again = np.ones(len(request), dtype=bool)
    again[first] = False
    again &= request >= counted_from
    hits = np.bincount(trace.path_edge[again], minlength=trace.edges)
    edge = int(np.argmax(hits))
    by_request = np.bincount(request[again & (trace.path_edge == edge)], minlength=trace.requests)
    return int(trace.block_number[edge]), rate(trace, f"commonest block of {trace.source}", by_request, "blocks", counted_from)


def parents(trace: Trace) -> Finding:
    """Identities of blocks that follow different ones in different requests: for chained identities none.

    Such an identity stands for tokens that do not determine it, and a cache that keyed on it would return KV of another context.

    Parameters
    ----------
    trace : Trace
    """
    first, length, offset = trace.label_first, trace.label_length, trace.label_offset
    last = first + length - 1
    # Before a run stands the end of the run before it, and before an edge's first run the end of the edge above.
    before = np.concatenate([[-1], last])[:-1] if len(last) else last
    end = last[offset[1:] - 1] if trace.edges else last
    before[offset[:-1]] = np.where(trace.parent >= 0, end[trace.parent], -1)
    pairs = np.unique(np.stack([first, before], axis=1), axis=0)
    # Within a run each identity follows the one below it.
    inside = pairs[_covered(pairs[:, 0], first + 1, last + 1)][:, 0]
    pairs = np.unique(np.concatenate([pairs, np.stack([inside, inside - 1], axis=1)]), axis=0)
    several, count = np.unique(pairs[:, 0], return_counts=True)
    wrong = several[count > 1]
    note = ""
    if len(wrong):
        followed = ", ".join(str(value) for value in pairs[pairs[:, 0] == wrong[0], 1].tolist())
        note = f"block {wrong[0]} follows {followed} (-1: nothing)"
    return Finding("one parent", trace.source, _distinct(first, last + 1), len(wrong), note=note)


def _covered(values: np.ndarray, first: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Whether each value lies in one of the intervals [first, stop)."""
    return np.searchsorted(np.sort(first), values, side="right") > np.searchsorted(np.sort(stop), values, side="right")


def _distinct(first: np.ndarray, stop: np.ndarray) -> int:
    """Integers in the union of the intervals [first, stop)."""
    order = np.argsort(first)
    first, reach = first[order], np.maximum.accumulate(stop[order])
    from_ = np.maximum(first, np.concatenate([first[:1], reach[:-1]]))
    return int(np.maximum(reach - from_, 0).sum())


def duplicate_sessions(trace: Trace) -> Finding:
    """Sessions whose requests equal those of an earlier one, in times, lengths and blocks: a trace that counts one user twice.

    Parameters
    ----------
    trace : Trace
        With sessions.

    Raises
    ------
    ValueError
        If it names no sessions.
    """
    if np.any(trace.session < 0):
        raise ValueError(f"{trace.source}: expected a session for each request")
    seen: dict[bytes, int] = {}
    same = []
    order = np.argsort(trace.session, kind="stable")
    for requests in np.split(order, np.flatnonzero(np.diff(trace.session[order])) + 1):
        edges, times = trace.last_edge[requests], trace.time_us[requests]
        if trace.by_session:
            # Identities mean something within a session only: the same blocks have the same place among its own edges.
            own = [trace.path(request) for request in requests]
            edges = np.where(edges >= 0, edges - min((path[0] for path in own if len(path)), default=0), -1)
        content = (times - times[0], trace.input_tokens[requests], trace.output_tokens[requests], edges, trace.path_blocks[requests])
        session = int(trace.session[requests[0]])
        earlier = seen.setdefault(np.stack(content).tobytes(), session)
        if earlier != session:
            same.append((session, earlier))
    note = f"session {same[0][0]} is session {same[0][1]} again" if same else ""
    return Finding("no session twice", trace.source, len(np.unique(trace.session)), len(same), note=note)


def time_quantum(trace: Trace) -> Finding:
    """Requests that share their time with another one: where they are most, the trace's clock is coarse and order inside a tick unknown.

    Parameters
    ----------
    trace : Trace
    """
    times, count = np.unique(trace.time_us, return_counts=True)
    shared = int(count[count > 1].sum())
    step_s = float(np.median(np.diff(times))) / 1e6 if len(times) > 1 else 0.0
    note = f"{len(times)} different times for {trace.requests} requests, {step_s:g} s apart (median)" if shared else ""
    return Finding("own arrival times", trace.source, trace.requests, shared, must_hold=False, note=note)


def orders_in_ticks(trace: Trace, tick_us: int, capacity_blocks: int, seeds: Sequence[int]) -> list[Rate]:
    """Block hits of LRU when requests of one tick come in random order: what the coarse clock leaves open.

    Parameters
    ----------
    trace : Trace
    tick_us : int
        Length of a tick [µs].
    capacity_blocks : int
    seeds : sequence of int
        One rate each. (Spread in the order of the file, no policy that counts requests changes at all.)
    """
    rates = []
    for seed in seeds:
        moved = spread(trace, tick_us, seed, keep_order=False)
        hits = paths.replay(moved, Lru(capacity_blocks), capacity_blocks).hits
        rates.append(rate(moved, f"LRU, {capacity_blocks} blocks, order in ticks by seed {seed}", hits))
    return rates


def run(trace: Trace, replayed: Replayed, subject: str, most: int | None = None, counted_from: int = 0) -> list[Finding]:
    """Whether the counts of a replay can be true.

    Parameters
    ----------
    trace : Trace
    replayed : Replayed
    subject : str
    most : int, optional
        Hits of the optimum in the counted requests.
    counted_from : int
        First counted request.

    Returns
    -------
    list of Finding
        *conservation*: of each request prefix hits are a part of the hits, and those of its path, in blocks and in tokens; *ceiling*: no
        request hits what none before it has read; *optimum*, where it is given.
    """
    within = (
        (replayed.prefix_hits >= 0)
        & (replayed.prefix_hits <= replayed.hits)
        & (replayed.hits <= trace.path_blocks)
        & (replayed.prefix_hit_tokens <= replayed.hit_tokens)
        & (replayed.hit_tokens <= trace.path_tokens)
    )
    findings = [
        _by_request("conservation", subject, within, replayed.hits),
        _by_request("ceiling", subject, replayed.hits <= trace.path_blocks - trace.new_blocks, replayed.hits),
    ]
    if most is not None:
        hits = int(replayed.hits[counted_from:].sum())
        note = f"{hits} hits, at most {most} are possible" if hits > most else ""
        findings.append(Finding("optimum", subject, 1, int(hits > most), note=note))
    return findings


def _by_request(audit: str, subject: str, holds: np.ndarray, hits: np.ndarray) -> Finding:
    broken = np.flatnonzero(~holds)
    note = f"request {broken[0]} has {hits[broken[0]]} hits" if len(broken) else ""
    return Finding(audit, subject, len(holds), len(broken), note=note)

"""What a replayed cache means for a request: where its blocks come from, and when its prefill ends.

The serving model. It is that of :mod:`kvtier.simulate.queueing` with prefill alone, and a link for each tier.

- **Servers** take requests in order of arrival, each one at a time. All share one cache and the tiers below it, which decided in that
  order, as if requests were served one after the other.
- **Fetch**: what a tier has joins the tier's own queue, first come first served, n · setup + bytes / bandwidth. Tiers are read side by
  side.
- **Computing** starts when the last block has landed. It makes the tokens that no tier has: blocks that were never read before, blocks that
  were dropped, and the tokens of a request that have no block.
- **Decoding** happens elsewhere and costs nothing here. The time to first token ends with prefill: it lacks one decode step.
- What moves down holds no request up, and has the other direction of the link to itself.

With one tier it gives what :func:`kvtier.simulate.queueing.replay` gives for turns that generate nothing.

Evidence: simulated; bandwidths, setup and compute rates are assumptions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kvtier.analytic.breakeven import prefill_flop
from kvtier.analytic.layouts import Kind, Layout
from kvtier.simulate import paths
from kvtier.simulate.eviction import Eviction
from kvtier.simulate.lower_tiers import Contents, Tier
from kvtier.simulate.paths import Events, Interval
from kvtier.simulate.queueing import Link
from kvtier.workload.paths import Trace


@dataclass(frozen=True)
class LinkedTier:
    """A tier below HBM, and the link to it.

    Parameters
    ----------
    tier : Tier
    link : Link
    """

    tier: Tier
    link: Link


class Below:
    """Tiers below a cache as it replays, one request at a time: the semantics of :mod:`kvtier.simulate.lower_tiers` for paths.

    Parameters
    ----------
    trace : Trace
    tiers : sequence of Tier
        From the top down.

    Attributes
    ----------
    fetched, written : ndarray of int64, shape (tiers, requests)
        Blocks read from each tier, and those passed down to it that it did not have: the only ones that move bytes.
    computed : ndarray of int64, shape (requests,)
        Blocks that no tier had. With the hits above and all that is fetched they are the blocks of the path.
    last_fetched : ndarray of bool, shape (requests,)
        Whether the last block of the path came from a tier.
    """

    def __init__(self, trace: Trace, tiers: Sequence[Tier]) -> None:
        self._trace = trace
        self._contents = [Contents(tier) for tier in tiers]
        self._blocks = trace.blocks.tolist()
        count = len(tiers)
        self.fetched, self.written = np.zeros((2, count, trace.requests), dtype=np.int64)
        self.computed = np.zeros(trace.requests, dtype=np.int64)
        # Whether the last block of the path, which may be partly filled, came from a tier.
        self.last_fetched = np.zeros(trace.requests, dtype=bool)

    def serve(self, request: int, path: Sequence[int], events: Events) -> None:
        """Take the latest request's events, and leave none behind: a trace of any length needs no more memory for them."""
        wanted, evicted, streamed = events.missing.pop(), events.evicted.pop(), events.streamed.pop()
        # The end of the path, if it was missing.
        end = (path[-1], self._blocks[path[-1]]) if path else None
        missed_end = bool(wanted) and wanted[-1][::2] == end
        for index, contents in enumerate(self._contents):
            wanted, found = _look_up(contents, wanted)
            self.fetched[index, request] = found
        self.computed[request] = sum(stop - first for _, first, stop in wanted)
        self.last_fetched[request] = missed_end and not (wanted and wanted[-1][::2] == end)
        for leaving in (*evicted, *streamed):
            passed = [leaving]
            for index, contents in enumerate(self._contents):
                new, passed = contents.put(passed)
                self.written[index, request] += new

    @property
    def fetched_tokens(self) -> np.ndarray:
        """Real tokens in what is fetched, shape (requests,): the last block of a path may be partly filled."""
        trace = self._trace
        partly_empty = trace.path_blocks * trace.block_tokens - trace.path_tokens
        return self.fetched.sum(axis=0) * trace.block_tokens - partly_empty * self.last_fetched


def replay_with_tiers(
    trace: Trace, eviction: Eviction, capacity_blocks: int, tiers: Sequence[Tier], *, suffix_first: bool = True, leaves_only: bool = True
) -> tuple[paths.Replayed, Below]:
    """Replay a trace over tiers, which change nothing of what the cache hits.

    Parameters
    ----------
    trace, eviction, capacity_blocks, suffix_first, leaves_only
        As in :func:`kvtier.simulate.paths.replay`.
    tiers : sequence of Tier
        From the top down; there may be none.

    Returns
    -------
    Replayed
        Of the cache.
    Below

    Raises
    ------
    ValueError
        If the capacity is negative.
    """
    events, below = Events(), Below(trace, tiers)
    cache = paths.Cache(trace, eviction, capacity_blocks, suffix_first=suffix_first, leaves_only=leaves_only, events=events)
    counts = np.empty((trace.requests, 5), dtype=np.int64)
    for request, path in enumerate(paths.paths_of(trace)):
        counts[request] = cache.serve(request, path)
        below.serve(request, path, events)
    return paths.replayed(trace, counts), below


def _look_up(contents: Contents, wanted: Sequence[Interval]) -> tuple[list[Interval], int]:
    """What a tier lacks of some intervals, and how many blocks it has; an exclusive one gives them up."""
    lacks, has = [], 0
    for edge, start, stop in wanted:
        first = start
        for _, low, high in sorted(contents.overlaps(edge, start, stop), key=lambda part: part[1]):
            if first < low:
                lacks.append((edge, first, low))
            has, first = has + high - low, high
        if first < stop:
            lacks.append((edge, first, stop))
        if contents.tier.exclusive:
            contents.take(edge, start, stop)
    return lacks, has


class Prefill(Protocol):
    """How long computing takes."""

    def seconds(self, prompt_tokens: np.ndarray, computed_tokens: np.ndarray) -> np.ndarray:
        """Time to compute the last `computed_tokens` of prompts, the others being there [s]; all of shape (requests,)."""


@dataclass(frozen=True)
class AtRate:
    """Prefill at a measured rate, whatever the position.

    Parameters
    ----------
    tokens_per_s : float
    """

    tokens_per_s: float

    def seconds(self, prompt_tokens: np.ndarray, computed_tokens: np.ndarray) -> np.ndarray:
        """See :class:`Prefill`."""
        return computed_tokens / self.tokens_per_s


class ByCompute:
    """Prefill at an effective compute rate, :func:`kvtier.analytic.breakeven.prefill_flop` of the prompt less that of what is there.

    What is computed is taken to be the end of the prompt, where attention costs most.

    Parameters
    ----------
    layout : Layout
    flop_per_s : float
        Peak times MFU.

    Raises
    ------
    InputError
        If the layout lacks a number that the FLOP need.
    """

    def __init__(self, layout: Layout, flop_per_s: float) -> None:
        # Says what is missing.
        prefill_flop(layout, 1)
        self.flop_per_s = flop_per_s
        self._linear = 2.0 * (layout.active_parameters or layout.parameters or 0)
        self._groups = [
            (
                2.0 * group.layers * (layout.query_heads or 0) * ((group.head_dim or 0) + (group.value_dim or group.head_dim or 0)),
                group.window_tokens,
                group.kind is Kind.CHUNKED,
            )
            for group in layout.cached
        ]

    def flop(self, tokens: np.ndarray) -> np.ndarray:
        """Forward compute of prompts [FLOP], shape (requests,); float, so rounded to 15 digits or so."""
        n = tokens.astype(np.float64)
        total = self._linear * n
        for per_pair, window, chunked in self._groups:
            if chunked:
                chunks, rest = np.divmod(n, window)
                pairs = chunks * (window * (window + 1) / 2) + rest * (rest + 1) / 2
            else:
                held = n if window is None else np.minimum(n, window)
                pairs = held * (held + 1) / 2 + (n - held) * held
            total += per_pair * pairs
        return total

    def seconds(self, prompt_tokens: np.ndarray, computed_tokens: np.ndarray) -> np.ndarray:
        """See :class:`Prefill`."""
        return (self.flop(prompt_tokens) - self.flop(prompt_tokens - computed_tokens)) / self.flop_per_s


def fetch_s(fetched: np.ndarray, links: Sequence[Link], block_bytes: int) -> np.ndarray:
    """Time of each transfer on an idle link [s].

    Parameters
    ----------
    fetched : ndarray of int64, shape (tiers, requests)
    links : sequence of Link
        One a tier.
    block_bytes : int

    Returns
    -------
    ndarray of float64, shape (tiers, requests)
    """
    per_block = [link.transfer_s(1, block_bytes) for link in links]
    return fetched * np.array(per_block, dtype=np.float64).reshape(-1, 1)


def stall_s(transfers_s: np.ndarray, compute_s: np.ndarray) -> np.ndarray:
    """Prefill of each request with idle links: its longest transfer, then its computing [s], shape (requests,)."""
    return (transfers_s.max(axis=0) if len(transfers_s) else 0.0) + compute_s


@dataclass(frozen=True)
class Served:
    """One queue of requests; arrays of shape (requests,), times in s.

    Parameters
    ----------
    start, ready : ndarray of float64
        When a server took the request up, and when its prefill was done.
    stall : ndarray of float64
        From start to ready.
    """

    start: np.ndarray
    ready: np.ndarray
    stall: np.ndarray


def serve(arrivals_s: np.ndarray, transfers_s: np.ndarray, compute_s: np.ndarray, servers: int) -> Served:
    """Serve requests: the model is in the module's docstring.

    Parameters
    ----------
    arrivals_s : ndarray of float64, shape (requests,)
        Ascending [s].
    transfers_s : ndarray of float64, shape (tiers, requests)
        Of :func:`fetch_s`.
    compute_s : ndarray of float64, shape (requests,)
    servers : int

    Returns
    -------
    Served

    Raises
    ------
    ValueError
        If there is no server, or arrivals are not ascending.
    """
    if servers < 1:
        raise ValueError(f"servers {servers}: expected 1 or more")
    if len(arrivals_s) != len(compute_s) or not np.all(np.isfinite(arrivals_s)) or np.any(np.diff(arrivals_s) < 0):
        raise ValueError(f"arrivals_s: expected {len(compute_s)} ascending times")
    start, ready, stall = np.empty((3, len(compute_s)))
    server_free = [-math.inf] * servers
    link_free = [-math.inf] * len(transfers_s)
    columns = zip(arrivals_s.tolist(), compute_s.tolist(), transfers_s.T.tolist(), strict=True)
    for request, (arrival, compute, transfers) in enumerate(columns):
        now = landed = max(arrival, server_free[0])
        for tier, transfer in enumerate(transfers):
            if transfer:
                link_free[tier] = max(link_free[tier], now) + transfer
                landed = max(landed, link_free[tier])
        start[request], stall[request] = now, landed - now + compute
        ready[request] = now + stall[request]
        heapq.heapreplace(server_free, float(ready[request]))
    return Served(start, ready, stall)


def offered_load(arrivals_s: np.ndarray, work_s: np.ndarray, servers: int) -> float:
    """Work over what servers could do from the first to the last arrival; of 1 or more, the queue grows as long as requests come.

    Infinite where all requests arrive at one time.
    """
    horizon_s = float(arrivals_s[-1] - arrivals_s[0])
    return math.fsum(work_s.tolist()) / (servers * horizon_s) if horizon_s else math.inf

"""Lossless residency for requests that are paths of any prefix tree: Revision 3's semantics on real traces.

Semantics. A request is looked up first: the blocks of its path that are resident are the hits. Then the whole path is pinned and admitted,
and while it does not fit, a policy of :mod:`kvtier.simulate.eviction` names an edge off the path, which loses blocks until there is room
or it has none left. If the path is larger than the cache, all else leaves, its first blocks stay and the deeper ones are *streamed*:
computed and not kept. Edges are the policy's objects; the clock is the number of the request.

Two options say what an edge may lose. `suffix_first`: its deepest block goes first, else its first. `leaves_only`: an edge with resident
blocks on an edge below it is passed over as if it were pinned, as RadixAttention evicts leaves alone (Zheng et al., SGLang, NeurIPS 2024).
With both, whatever the policy, no block is resident without all before it: there are no *orphans*, so every hit is a hit of the contiguous
prefix. A policy that keeps nothing longer than what it needs (LRU, LFU, EMA, LRU-K, farthest next read) names leaves of its own accord:
an edge is read whenever one below it is, so it never ranks lower, and ties go to the deepest. FIFO, for one, does not.

Residents of an edge are one interval, so a request costs its edges and not its blocks. :mod:`kvtier.simulate.path_blocks` says the same
block by block.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from kvtier.simulate.eviction import Eviction, Gdsf, Lru, Named, Ranked, reads_of
from kvtier.simulate.metrics import require_capacities
from kvtier.workload.paths import Trace
from kvtier.workload.turns import next_occurrence

CHUNK_REQUESTS = 4096
"""Requests whose paths are Python objects at one time."""

Interval = tuple[int, int, int]
"""(edge, first, stop): blocks ``first`` to ``stop - 1`` of an edge, as positions in it."""


@dataclass
class Events:
    """What a replay found missing and what left, for the tiers below; kept only where it is asked for.

    Parameters
    ----------
    missing : list of lists of Interval, one a request
        Blocks of the path that were not resident, root first.
    evicted : list of lists of Interval, one a request
        What left, in order.
    streamed : list of lists of Interval, one a request
        Blocks of the path that did not fit, the deepest edge first.
    """

    missing: list[list[Interval]] = field(default_factory=list)
    evicted: list[list[Interval]] = field(default_factory=list)
    streamed: list[list[Interval]] = field(default_factory=list)


@dataclass(frozen=True)
class Replayed:
    """What a cache did with each request; arrays of int64, shape (requests,), in blocks unless the name has tokens.

    Parameters
    ----------
    hits, hit_tokens : ndarray
        Resident as the request came: *block hits*, and the real tokens in them (a partly filled block counts for what it holds).
    prefix_hits, prefix_hit_tokens : ndarray
        Those with nothing missing before them: *contiguous-prefix hits*, all that a cache with no tier below can use.
    streamed : ndarray
        Did not fit; where there are any, no policy matters.
    evictions : ndarray
        Left to make room.
    """

    hits: np.ndarray
    hit_tokens: np.ndarray
    prefix_hits: np.ndarray
    prefix_hit_tokens: np.ndarray
    streamed: np.ndarray
    evictions: np.ndarray


class Cache:
    """Blocks of a prefix tree under one policy; :meth:`serve` takes one request.

    Parameters
    ----------
    trace : Trace
        Whose tree it is.
    eviction : Eviction
        A new one.
    capacity_blocks : int
    suffix_first : bool
        An edge loses its deepest block first, else its first.
    leaves_only : bool
        Whether edges with resident blocks below them are passed over.
    events : Events, optional
        Told what is missing and what leaves.

    Raises
    ------
    ValueError
        If the capacity is negative.
    """

    def __init__(
        self,
        trace: Trace,
        eviction: Eviction,
        capacity_blocks: int,
        *,
        suffix_first: bool = True,
        leaves_only: bool = True,
        events: Events | None = None,
    ) -> None:
        require_capacities(capacity_blocks=capacity_blocks)
        self.capacity_blocks, self.used = capacity_blocks, 0
        self.suffix_first, self.leaves_only, self.events = suffix_first, leaves_only, events
        self._eviction = eviction
        # Most policies have nothing to do there; a call for nothing is a third of a request's time.
        self._asks = type(eviction).asked is not Eviction.asked
        self._demotes = type(eviction).demotes is not Eviction.demotes
        self._blocks, self._parent = trace.blocks.tolist(), trace.parent.tolist()
        # Of each edge blocks low to high - 1 are resident; low is 0 where the deepest go first.
        self.low, self.high = [0] * trace.edges, [0] * trace.edges
        self._below = [0] * (trace.edges + 1)
        # Edges with a resident one below.
        self._inner: set[int] = set()

    def serve(self, request: int, path: Sequence[int]) -> tuple[int, int, bool, int, int]:
        """Look a path up, then admit it.

        Parameters
        ----------
        request : int
            Its number, the policy's clock.
        path : sequence of int
            Its edges, root first.

        Returns
        -------
        tuple
            Block hits; contiguous-prefix hits; whether the last block was one of the hits; blocks streamed; blocks evicted.
        """
        low, high, blocks, eviction = self.low, self.high, self._blocks, self._eviction
        found = prefix = whole = 0
        for edge in path:
            resident = high[edge] - low[edge]
            if self._asks:
                eviction.asked(edge, request, resident)
            if prefix == whole and not low[edge]:
                prefix += resident
            found += resident
            whole += blocks[edge]
        last = bool(path) and high[path[-1]] == blocks[path[-1]] > low[path[-1]]
        if self.events is not None:
            self._note(path)
        kept = min(whole, self.capacity_blocks)
        evicted = self._make_room(path, self.used - found + kept - self.capacity_blocks)
        self.used += kept - found
        left = kept
        for edge in path:
            keeps = blocks[edge] if blocks[edge] < left else left
            left -= keeps
            if low[edge] or high[edge] != keeps:
                self._set(edge, 0, keeps)
            eviction.read(edge, request, keeps)
        if self._demotes:
            for edge in eviction.demotes(request):
                if edge not in path:
                    evicted += self._evict(edge, high[edge] - low[edge])
        return found, prefix, last, whole - kept, evicted

    def _make_room(self, path: Sequence[int], over: int) -> int:
        """Evict so many blocks, if any, off the path."""
        if over <= 0:
            return 0
        evicted, deepest = 0, None
        if not self.leaves_only:
            pinned = set(path)
        elif self.suffix_first:
            # What is resident of the path is a first part of it: all but its deepest edge have a resident one below.
            pinned = self._inner
            deepest = next((edge for edge in reversed(path) if self.high[edge]), None)
        else:
            pinned = _Either(self._inner, set(path))
        if deepest is not None:
            self._count_below(deepest, 1)
        while evicted < over:
            evicted += self._evict(self._eviction.victim(pinned), over - evicted)
        if deepest is not None:
            self._count_below(deepest, -1)
        return evicted

    def _evict(self, edge: int, most: int) -> int:
        low, high = self.low[edge], self.high[edge]
        count = min(most, high - low)
        gone = (high - count, high) if self.suffix_first else (low, low + count)
        if self.suffix_first:
            self._set(edge, low, high - count)
        else:
            self._set(edge, low + count, high)
        self.used -= count
        if self.events is not None:
            self.events.evicted[-1].append((edge, *gone))
        self._eviction.lost(edge, high - low - count)
        return count

    def _set(self, edge: int, low: int, high: int) -> None:
        """Change what is resident of an edge, and whether the edge above has something below it."""
        had = self.high[edge] > self.low[edge]
        self.low[edge], self.high[edge] = low, high
        if self.leaves_only and had != (high > low):
            self._count_below(self._parent[edge], 1 if high > low else -1)

    def _count_below(self, edge: int, more: int) -> None:
        """One edge with residents more, or less, stands below another."""
        self._below[edge] += more
        if self._below[edge] == 0:
            self._inner.discard(edge)
        elif self._below[edge] == more == 1:
            self._inner.add(edge)

    def _note(self, path: Sequence[int]) -> None:
        missing, streamed, left = [], [], self.capacity_blocks
        for edge in path:
            first, stop, count = self.low[edge], self.high[edge], self._blocks[edge]
            if first == stop:
                first = stop = 0
            missing += [(edge, *part) for part in ((0, first), (stop, count)) if part[0] < part[1]]
            if left < count:
                streamed.append((edge, max(left, 0), count))
            left -= count
        self.events.missing.append(missing)
        self.events.streamed.append(streamed[::-1])
        self.events.evicted.append([])


class _Either:
    """Edges of one set or of another."""

    def __init__(self, *sets: set[int]) -> None:
        self._sets = sets

    def __contains__(self, edge: object) -> bool:
        return any(edge in some for some in self._sets)


def paths_of(trace: Trace) -> Iterator[list[int]]:
    """Edges of each request, root first, in order; few of them are objects at one time."""
    for start in range(0, trace.requests, CHUNK_REQUESTS):
        offset = trace.path_offset[start : start + CHUNK_REQUESTS + 1].tolist()
        edges = trace.path_edge[offset[0] : offset[-1]].tolist()
        for first, stop in pairwise(offset):
            yield edges[first - offset[0] : stop - offset[0]]


def replay(
    trace: Trace,
    eviction: Eviction,
    capacity_blocks: int,
    *,
    suffix_first: bool = True,
    leaves_only: bool = True,
    events: Events | None = None,
) -> Replayed:
    """Replay a trace.

    Parameters
    ----------
    trace : Trace
        With blocks, in one stream (not ``by_session``).
    eviction, capacity_blocks, suffix_first, leaves_only, events
        As in :class:`Cache`.

    Returns
    -------
    Replayed

    Raises
    ------
    ValueError
        If the capacity is negative.
    """
    if type(eviction) is Lru and suffix_first and events is None:
        counts = replay_recency(trace, capacity_blocks)
    else:
        cache = Cache(trace, eviction, capacity_blocks, suffix_first=suffix_first, leaves_only=leaves_only, events=events)
        counts = np.empty((trace.requests, 5), dtype=np.int64)
        for request, path in enumerate(paths_of(trace)):
            counts[request] = cache.serve(request, path)
    return replayed(trace, counts)


def replayed(trace: Trace, counts: np.ndarray) -> Replayed:
    """What was counted, in blocks and tokens.

    Parameters
    ----------
    trace : Trace
    counts : ndarray of int64, shape (requests, 5)
        As :meth:`Cache.serve` returns it.
    """
    hits, prefix_hits, last, streamed, evictions = np.ascontiguousarray(counts.T)
    partly_empty = trace.path_blocks * trace.block_tokens - trace.path_tokens
    return Replayed(
        hits,
        hits * trace.block_tokens - partly_empty * last,
        prefix_hits,
        prefix_hits * trace.block_tokens - partly_empty * (prefix_hits == trace.path_blocks),
        streamed,
        evictions,
    )


def replay_recency(trace: Trace, capacity_blocks: int, evicted: list[tuple[int, int, int, int]] | None = None) -> np.ndarray:
    """LRU from leaves, deepest blocks first: what :class:`Cache` counts, several times sooner.

    Edges stand in one order, and those of a path join it deepest first. The oldest is then always a leaf, and what is resident of a path
    is a first part of it.

    Parameters
    ----------
    trace : Trace
    capacity_blocks : int
    evicted : list, optional
        Gets (request, edge, first, stop) of what leaves.

    Returns
    -------
    ndarray of int64, shape (requests, 5)
        As :meth:`Cache.serve` returns it.

    Raises
    ------
    ValueError
        If the capacity is negative.
    """
    require_capacities(capacity_blocks=capacity_blocks)
    blocks, high = trace.blocks.tolist(), [0] * trace.edges
    order: OrderedDict[int, None] = OrderedDict()
    counts, used = [], 0
    for request, (path, whole) in enumerate(zip(paths_of(trace), trace.path_blocks.tolist(), strict=True)):
        found = 0
        for edge in path:
            found += high[edge]
            if high[edge] < blocks[edge]:
                break
        kept = whole if whole < capacity_blocks else capacity_blocks
        beyond = whole - kept
        for edge in reversed(path):
            keeps = blocks[edge]
            if beyond:
                keeps -= min(beyond, keeps)
                beyond -= blocks[edge] - keeps
                if not keeps:
                    continue
            if high[edge]:
                order.move_to_end(edge)
            else:
                order[edge] = None
            high[edge] = keeps
        used += kept - found
        over = max(used - capacity_blocks, 0)
        used -= over
        counts.append((found, found, found == whole > 0, whole - kept, over))
        while over:
            edge = next(iter(order))
            stop = high[edge]
            high[edge] = first = stop - over if stop > over else 0
            over -= stop - first
            if not first:
                del order[edge]
            if evicted is not None:
                evicted.append((request, edge, first, stop))
    return np.array(counts, dtype=np.int64)


def recompute_s(block_tokens: int, position_block: float) -> float:
    """Time to compute one block of Llama-3 70B anew [s], as :func:`kvtier.simulate.eviction.recompute_s`, for any block size.

    Parameters
    ----------
    block_tokens : int
    position_block : float
        Blocks before it.
    """
    return (2 * 70e9 * block_tokens + 4 * 80 * 8192 * block_tokens * block_tokens * position_block) / 125e12


def build(named: Named, trace: Trace, capacity_blocks: int) -> Eviction:
    """An empty cache's policy, with what it needs to know of a trace.

    Parameters
    ----------
    named : Named
    trace : Trace
    capacity_blocks : int

    Notes
    -----
    The anchor zone are the edges that start at the root. GDSF weighs the cost of the trace's own blocks.
    """
    known: dict[str, Any] = {}
    if "reads" in named.kind.needs:
        known["reads"] = reads_of(list(paths_of(trace)), trace.edges)
    if "first_block" in named.kind.needs:
        known["first_block"] = trace.first_block.tolist()
    if "anchors" in named.kind.needs:
        known["anchors"] = np.flatnonzero(trace.parent < 0).tolist()
    if named.kind is Gdsf:
        return Gdsf(capacity_blocks, known["first_block"], lambda position: recompute_s(trace.block_tokens, position), **named.parameters)
    return named.build(capacity_blocks, **known)


class NextCounted(Ranked):
    """The edge whose next counted read is farthest loses blocks: with a path pinned, the optimum.

    Why no policy that pins and admits every path has more block hits in the counted requests. Blocks of an edge are interchangeable.
    After a request the cache holds the request's path, or its first blocks that fit, whatever the policy; only the rest of the cache is a
    choice, among blocks off the path that were there before. So a hit of a block at its read u is an interval, from its read before, t,
    to u, over which the block stays through every request between; those are all off its path, and each leaves the room that its own
    path does not take. Where t streamed the block there is no interval, and where the read u is not counted it is worth nothing: that
    read makes the block available again. The tree adds no constraint to this: it only says which intervals start and end together. So
    the argument of :mod:`kvtier.simulate.optimal` holds with a room that differs from request to request: where too many
    intervals are left, drop the one that ends last.

    Nor does asking for no orphans cost anything. An edge is read whenever one below it is, so its next read is no later; ties go to what
    was read longest ago, then to the deepest. If its next read is not counted, the edge below may stay without it until then, and that
    read restores it: at counted requests every hit is one of the contiguous prefix. So the bound is that of prefix hits too.

    It is an optimum of *blocks*. By real tokens a partly filled block is worth less and takes as much room, and the optimum may differ by
    those few.

    Parameters
    ----------
    capacity_blocks : int
    next_read : ndarray of int64, shape (edges of all paths,)
        For each edge of each path in order, the next request that reads it and is counted; the number of requests if none does.
    """

    def __init__(self, capacity_blocks: int, next_read: np.ndarray) -> None:
        super().__init__(capacity_blocks)
        self._next_read, self._reads_done = next_read, 0

    def rank(self, edge: int, turn: int) -> float:
        """Minus the next counted read."""
        upcoming = -int(self._next_read[self._reads_done])
        self._reads_done += 1
        return upcoming


def optimum(trace: Trace, capacity_blocks: int, counted_from: int = 0, events: Events | None = None) -> Replayed:
    """The most block hits, and contiguous-prefix hits, of any policy under these semantics: see :class:`NextCounted`.

    Parameters
    ----------
    trace : Trace
    capacity_blocks : int
    counted_from : int
        First request whose hits count.
    events : Events, optional

    Returns
    -------
    Replayed
        The sum of `hits` over counted requests is the bound.
    """
    place = next_occurrence(trace.path_edge)
    request = np.append(np.repeat(np.arange(trace.requests), np.diff(trace.path_offset)), trace.requests)[place]
    request[request < counted_from] = trace.requests
    # Edges below one whose next read is not counted may outlast it.
    return replay(trace, NextCounted(capacity_blocks, request), capacity_blocks, leaves_only=False, events=events)

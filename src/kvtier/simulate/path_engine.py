"""The replay of :mod:`kvtier.simulate.paths`, compiled: the same decisions, for sweeps of many policies over long traces.

What it replays are the policies of :mod:`kvtier.simulate.eviction` but those that look ahead by a window, and those that demote without
pressure: the rules are stated there, and tests hold hits, evictions and streamed blocks of both equal, request by request. Three things
differ in form only. An edge may lose blocks unless it is on the path or, from leaves alone, has a resident edge below; of ranked policies
only such edges stand in the heap, so that no pinned edge is passed over. All state of an edge is in arrays, and every queue is a ring in
one of two (residents, names). And keys are numbers: rank, then the time of the last read, the deepest first within one request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvtier.simulate import eviction, paths
from kvtier.simulate.compiled import compiled, compiled_inner
from kvtier.simulate.eviction import Named
from kvtier.simulate.metrics import require_capacities
from kvtier.simulate.paths import Replayed
from kvtier.workload.paths import Trace
from kvtier.workload.turns import next_occurrence

LFU, EMA, LRU2, GDSF, NEXT, PRIORITY, LRU = range(7)
"""Ranked policies; LRU is the one of equal ranks."""

FIFO, SIEVE, S3FIFO, TWO_QUEUES, ARC, MULTI_QUEUE = range(7, 13)
"""Queued policies."""

QUEUES = 8
"""Rings of residents."""

_RANKED = {
    eviction.Lru: LRU,
    eviction.Lfu: LFU,
    eviction.Ema: EMA,
    eviction.LruK: LRU2,
    eviction.Gdsf: GDSF,
    eviction.Farthest: NEXT,
    eviction.Priority: PRIORITY,
}
_QUEUED = {
    eviction.Fifo: FIFO,
    eviction.Sieve: SIEVE,
    eviction.S3Fifo: S3FIFO,
    eviction.TwoQueues: TWO_QUEUES,
    eviction.Arc: ARC,
    eviction.MultiQueue: MULTI_QUEUE,
}
_ALWAYS_REMEMBER = {"persistent"}


def replays(named: Named) -> bool:
    """Whether this engine has the policy, with its parameters."""
    parameters = set(named.parameters) - _ALWAYS_REMEMBER
    if named.kind is eviction.Priority:
        return not named.parameters.get("demote_below") and parameters <= {"alpha", "weights", "demote_below"}
    return named.kind in _QUEUED or (named.kind in _RANKED and parameters <= ({"alpha"} if named.kind is eviction.Ema else set()))


@dataclass(frozen=True)
class Replayer:
    """A trace, with what all replays of it have in common.

    Parameters
    ----------
    trace : Trace
        With blocks, in one stream.
    """

    trace: Trace

    def __post_init__(self) -> None:
        trace = self.trace
        place = next_occurrence(trace.path_edge)
        request = np.append(np.repeat(np.arange(trace.requests), np.diff(trace.path_offset)), trace.requests)
        object.__setattr__(self, "_next", request[place])

    def replay(self, named: Named, capacity_blocks: int, *, suffix_first: bool = True, leaves_only: bool = True) -> Replayed:
        """Replay a policy; parameters as in :func:`kvtier.simulate.paths.replay`, and what it returns.

        Raises
        ------
        ValueError
            If the capacity is negative, or the engine does not have the policy.
        """
        if not replays(named):
            raise ValueError(f"policy {named.slug}: expected one that needs no window of turns to come and does not demote")
        code = _RANKED[named.kind] if named.kind in _RANKED else _QUEUED[named.kind]
        # LRU-K remembers unless it is told not to; the others forget.
        persistent = named.parameters.get("persistent", named.kind is eviction.LruK)
        parameters = named.parameters
        return self._run(
            code,
            capacity_blocks,
            suffix_first,
            leaves_only,
            alpha=parameters.get("alpha", 0.0),
            weights=parameters.get("weights", (0.25, 0.55, 0.20)),
            persistent=persistent,
        )

    def optimum(self, capacity_blocks: int, counted_from: int = 0) -> Replayed:
        """As :func:`kvtier.simulate.paths.optimum`."""
        upcoming = self._next.copy()
        upcoming[upcoming < counted_from] = self.trace.requests
        return self._run(NEXT, capacity_blocks, True, False, upcoming=upcoming)

    def _run(
        self,
        code: int,
        capacity_blocks: int,
        suffix_first: bool,
        leaves_only: bool,
        *,
        alpha: float = 0.0,
        weights: tuple[float, float, float] = (0.0, 0.0, 0.0),
        persistent: bool = False,
        upcoming: np.ndarray | None = None,
    ) -> Replayed:
        require_capacities(capacity_blocks=capacity_blocks)
        trace = self.trace
        left = np.array([(1 - alpha) ** elapsed for elapsed in range(trace.requests + 1)]) if alpha else np.ones(1)
        rate = -math.log(1 - alpha) if alpha else 0.0
        cost = _cost_by_half_block(trace) if code == GDSF else np.zeros(0)
        counts = _replay(
            trace.path_offset,
            trace.path_edge,
            trace.parent,
            trace.blocks,
            trace.first_block,
            capacity_blocks,
            suffix_first,
            leaves_only,
            code,
            alpha,
            left,
            rate,
            np.array(weights, dtype=np.float64),
            persistent,
            self._next if upcoming is None else upcoming,
            cost,
        )
        return paths.replayed(trace, counts)


def _cost_by_half_block(trace: Trace) -> np.ndarray:
    """Seconds to compute a block with n half blocks before it."""
    most = 2 * int((trace.first_block + trace.blocks).max(initial=0)) + 2
    return np.array([paths.recompute_s(trace.block_tokens, half / 2) for half in range(most)])


def weighted(alpha: float, weights: tuple[float, float, float], persistent: bool = False) -> Named:
    """The priority with any weights of recency, score and anchor zone."""
    parameters: dict[str, Any] = {"alpha": alpha, "weights": weights, "persistent": persistent}
    return Named(eviction.Priority, f"Priority a={alpha:g} w={weights}", "priority", parameters)


# Indexed heaps: one of each anchor class in the rows of `heap`; `place` is where an edge stands in its heap, -1 nowhere.


@compiled_inner
def _before(rank, tie, one, other):
    return rank[one] < rank[other] or (rank[one] == rank[other] and tie[one] < tie[other])


@compiled_inner
def _rise(heap, place, rank, tie, at):
    edge = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not _before(rank, tie, edge, heap[above]):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = edge
    place[edge] = at


@compiled_inner
def _sink(heap, place, rank, tie, at, size):
    edge = heap[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _before(rank, tie, heap[below + 1], heap[below]):
            below += 1
        if not _before(rank, tie, heap[below], edge):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = edge
    place[edge] = at


@compiled_inner
def _push(heap, size, row, place, rank, tie, edge):
    heap[row, size[row]] = edge
    size[row] += 1
    _rise(heap[row], place, rank, tie, size[row] - 1)


@compiled_inner
def _drop(heap, size, row, place, rank, tie, edge):
    at = place[edge]
    size[row] -= 1
    place[edge] = -1
    if at < size[row]:
        moved = heap[row, size[row]]
        heap[row, at] = moved
        place[moved] = at
        _rise(heap[row], place, rank, tie, at)
        _sink(heap[row], place, rank, tie, place[moved], size[row])


# Rings: those of residents and those of names have arrays of their own; ring r goes through position edges + r.


@compiled_inner
def _append(newer, older, total, weight, ring, edge, blocks, base):
    end = base + ring
    last = older[end]
    newer[last] = edge
    older[edge] = last
    newer[edge] = end
    older[end] = edge
    weight[edge] = blocks
    total[ring] += blocks


@compiled_inner
def _remove(newer, older, total, weight, ring, edge):
    newer[older[edge]] = newer[edge]
    older[newer[edge]] = older[edge]
    total[ring] -= weight[edge]
    return weight[edge]


@compiled_inner
def _remember(newer_name, older_name, total_name, weight_name, at_name, name, edge, blocks, edges):
    """Enter the name of an edge that has left, in the ghost queue `name`."""
    _append(newer_name, older_name, total_name, weight_name, name, edge, blocks, edges)
    at_name[edge] = name


@compiled_inner
def _forget(newer_name, older_name, total_name, weight_name, at_name, most, clears, count, edges):
    """Drop the oldest names while the first ghost queue holds more than `most` blocks; where it `clears`, with their counts."""
    while total_name[0] > most and newer_name[edges] < edges:
        forgotten = newer_name[edges]
        _remove(newer_name, older_name, total_name, weight_name, 0, forgotten)
        at_name[forgotten] = -1
        if clears:
            count[forgotten] = 0


@compiled_inner
def _out(newer, older, total, weight, at, joined, ring_of_edge, edge):
    """Leave the ring of residents."""
    if joined[ring_of_edge] == edge:
        joined[ring_of_edge] = newer[edge]
    _remove(newer, older, total, weight, ring_of_edge, edge)
    at[edge] = -1


@compiled_inner
def _place(newer, older, total, weight, at, joined, joined_turn, ring, edge, blocks, turn, base):
    """Join a ring of residents at its newest end, wherever the edge has been; in a turn, before what has joined in it already."""
    if at[edge] >= 0:
        _out(newer, older, total, weight, at, joined, at[edge], edge)
    before = base + ring
    if turn >= 0:
        if joined_turn[ring] == turn:
            before = joined[ring]
        joined_turn[ring] = turn
        joined[ring] = edge
    last = older[before]
    newer[last] = edge
    older[before] = edge
    older[edge] = last
    newer[edge] = before
    weight[edge] = blocks
    total[ring] += blocks
    at[edge] = ring


@compiled_inner
def _oldest(newer, ring, base, stamp, request, below, leaves_only):
    """Oldest edge that may lose blocks, else the ring's end."""
    edge = newer[base + ring]
    while edge < base and (stamp[edge] == request or (leaves_only and below[edge] > 0)):
        edge = newer[edge]
    return edge


@compiled
def _replay(
    path_offset,
    path_edge,
    parent,
    blocks,
    first_block,
    capacity,
    suffix_first,
    leaves_only,
    code,
    alpha,
    left,
    rate,
    weights,
    persistent,
    upcoming,
    cost,
):
    edges, requests = len(parent), len(path_offset) - 1
    counts = np.zeros((requests, 5), np.int64)
    low, high, below = np.zeros(edges, np.int64), np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    stamp = np.full(edges, -1, np.int64)
    used = 0
    ranked = code <= LRU
    # Ranked policies.
    heap, size = np.empty((2, edges), np.int64), np.zeros(2, np.int64)
    place, row = np.full(edges, -1, np.int64), np.zeros(edges, np.int64)
    rank, tie = np.zeros(edges), np.zeros(edges, np.int64)
    count, score, read = np.zeros(edges, np.int64), np.zeros(edges), np.full(edges, -1, np.int64)
    depth = 1
    for request in range(requests):
        depth = max(depth, path_offset[request + 1] - path_offset[request] + 1)
    floor = 0.0
    if code == PRIORITY:
        for edge in range(edges):
            row[edge] = parent[edge] < 0
    # Queued policies: rings of residents and of names.
    newer, older = np.empty(edges + QUEUES, np.int64), np.empty(edges + QUEUES, np.int64)
    newer_name, older_name = np.empty(edges + 2, np.int64), np.empty(edges + 2, np.int64)
    for ring in range(QUEUES):
        newer[edges + ring] = older[edges + ring] = edges + ring
    for ring in range(2):
        newer_name[edges + ring] = older_name[edges + ring] = edges + ring
    total, total_name = np.zeros(QUEUES, np.int64), np.zeros(2, np.int64)
    weight, weight_name = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    at, at_name = np.full(edges, -1, np.int64), np.full(edges, -1, np.int64)
    joined, joined_turn = np.full(QUEUES, -1, np.int64), np.full(QUEUES, -1, np.int64)
    name_blocks, expires = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    known, bit = np.zeros(edges, np.bool_), np.zeros(edges, np.bool_)
    hand, has_evicted, share, again_known_in = edges, False, 0.0, -1
    small_blocks, in_blocks, life = max(capacity // 10, 1), int(capacity * 0.25), 16
    most_names = 9 * capacity // 10 if code == S3FIFO else int(capacity * 0.5) if code == TWO_QUEUES else 4 * capacity
    for request in range(requests):
        start, stop = path_offset[request], path_offset[request + 1]
        found, prefix, whole = 0, 0, 0
        floor_asked = floor
        for position in range(start, stop):
            edge = path_edge[position]
            stamp[edge] = request
            resident = high[edge] - low[edge]
            if prefix == whole and low[edge] == 0:
                prefix += resident
            found += resident
            whole += blocks[edge]
            if ranked:
                if place[edge] >= 0:
                    _drop(heap, size, row[edge], place, rank, tie, edge)
            elif code == ARC:
                if at[edge] >= 0:
                    _place(newer, older, total, weight, at, joined, joined_turn, 1, edge, resident, request, edges)
                elif at_name[edge] == 0:
                    factor = max(1.0, total_name[1] / total_name[0])
                    share = min(share + factor * _remove(newer_name, older_name, total_name, weight_name, 0, edge), capacity)
                    at_name[edge], known[edge] = -1, True
                elif at_name[edge] == 1:
                    factor = max(1.0, total_name[0] / total_name[1])
                    share = max(share - factor * _remove(newer_name, older_name, total_name, weight_name, 1, edge), 0.0)
                    at_name[edge], known[edge] = -1, True
                    again_known_in = request
            elif at_name[edge] >= 0:
                _remove(newer_name, older_name, total_name, weight_name, 0, edge)
                at_name[edge] = -1
                known[edge] = code != MULTI_QUEUE
        last = stop > start and high[path_edge[stop - 1]] == blocks[path_edge[stop - 1]] > low[path_edge[stop - 1]]
        kept = min(whole, capacity)
        over = used - found + kept - capacity
        evicted = 0
        while evicted < over:
            # The victim.
            if ranked:
                one = 0
                if size[0] == 0:
                    one = 1
                elif size[1] > 0:
                    # Two classes of anchors: the priority at the present time decides between their heads.
                    heads = heap[0, 0], heap[1, 0]
                    since0, since1 = left[request - read[heads[0]]], left[request - read[heads[1]]]
                    p0 = weights[0] * since0 + weights[1] * (score[heads[0]] * since0)
                    p1 = weights[0] * since1 + weights[1] * (score[heads[1]] * since1) + weights[2]
                    one = int(p1 < p0 or (p1 == p0 and tie[heads[1]] < tie[heads[0]]))
                victim = heap[one, 0]
                floor = rank[victim]
            elif code == FIFO:
                victim = _oldest(newer, 0, edges, stamp, request, below, leaves_only)
            elif code == SIEVE:
                while True:
                    if hand < edges and stamp[hand] != request and not (leaves_only and below[hand] > 0):
                        if not bit[hand]:
                            break
                        bit[hand] = False
                    hand = newer[hand]
                victim = hand
            elif code == S3FIFO:
                has_evicted = True
                main_first = total[1] > capacity - small_blocks
                victim = edges
                for source in range(3):
                    if victim < edges:
                        break
                    of_main = source != 1 if main_first else source == 1
                    if source == 2 and not main_first:
                        break
                    if of_main:
                        victim = _oldest(newer, 1, edges, stamp, request, below, leaves_only)
                        while victim < edges and count[victim] > 0:
                            count[victim] -= 1
                            _place(newer, older, total, weight, at, joined, joined_turn, 1, victim, high[victim] - low[victim], -1, edges)
                            victim = _oldest(newer, 1, edges, stamp, request, below, leaves_only)
                    else:
                        victim = _oldest(newer, 0, edges, stamp, request, below, leaves_only)
                        while victim < edges and count[victim] >= 2:
                            count[victim] = 0
                            _place(newer, older, total, weight, at, joined, joined_turn, 1, victim, high[victim] - low[victim], -1, edges)
                            victim = _oldest(newer, 0, edges, stamp, request, below, leaves_only)
            elif code == TWO_QUEUES:
                one = 0 if total[0] > in_blocks else 1
                victim = _oldest(newer, one, edges, stamp, request, below, leaves_only)
                if victim >= edges:
                    victim = _oldest(newer, 1 - one, edges, stamp, request, below, leaves_only)
            elif code == ARC:
                one = 0 if total[0] > share or (total[0] == share and again_known_in == request) else 1
                victim = _oldest(newer, one, edges, stamp, request, below, leaves_only)
                if victim >= edges:
                    victim = _oldest(newer, 1 - one, edges, stamp, request, below, leaves_only)
            else:
                victim = edges
                for ring in range(QUEUES):
                    if victim >= edges:
                        victim = _oldest(newer, ring, edges, stamp, request, below, leaves_only)
            # It loses blocks.
            gone = min(over - evicted, high[victim] - low[victim])
            evicted += gone
            if suffix_first:
                high[victim] -= gone
            else:
                low[victim] += gone
            remaining = high[victim] - low[victim]
            if not ranked:
                total[at[victim]] += remaining - weight[victim]
                weight[victim] = remaining
            if remaining:
                continue
            above = parent[victim]
            if ranked:
                _drop(heap, size, row[victim], place, rank, tie, victim)
                if not persistent:
                    count[victim], score[victim], read[victim] = 0, 0.0, -1
            else:
                if code == SIEVE and hand == victim:
                    hand = newer[victim]
                ring = at[victim]
                _out(newer, older, total, weight, at, joined, ring, victim)
                if code in (S3FIFO, TWO_QUEUES, ARC, MULTI_QUEUE):
                    if code in (ARC, MULTI_QUEUE) or ring == 0:
                        name = ring if code == ARC else 0
                        _remember(newer_name, older_name, total_name, weight_name, at_name, name, victim, name_blocks[victim], edges)
                        if code != ARC:
                            _forget(newer_name, older_name, total_name, weight_name, at_name, most_names, code == MULTI_QUEUE, count, edges)
                    if code == S3FIFO:
                        count[victim] = 0
            if above >= 0:
                below[above] -= 1
                # An edge above the victim is on the path, or a leaf now; the deepest resident edge of the path stays pinned by its stamp.
                if ranked and leaves_only and below[above] == 0 and high[above] > low[above] and stamp[above] != request:
                    _push(heap, size, row[above], place, rank, tie, above)
        used += kept - found
        used -= evicted
        counts[request, 0], counts[request, 1], counts[request, 2] = found, prefix, last
        counts[request, 3], counts[request, 4] = whole - kept, evicted
        # The path is admitted and read, root first.
        rest = kept
        for position in range(start, stop):
            edge = path_edge[position]
            again = high[edge] > low[edge]
            keeps = min(blocks[edge], rest)
            rest -= keeps
            low[edge], high[edge] = 0, keeps
            if parent[edge] >= 0:
                below[parent[edge]] += int(keeps > 0) - int(again)
            if ranked:
                if code == LFU:
                    count[edge] += 1
                    rank[edge] = count[edge]
                elif code in (EMA, PRIORITY):
                    before = score[edge]
                    since = left[request - read[edge]] if read[edge] >= 0 else 1.0
                    score[edge] = alpha + (1 - alpha) * (before * since)
                    if code == EMA:
                        rank[edge] = math.log(score[edge]) + request * rate
                    else:
                        value = weights[0] + weights[1] * score[edge]
                        rank[edge] = math.log(value) + request * rate if value > 0 else 0.0
                elif code == LRU2:
                    rank[edge] = -np.inf if read[edge] < 0 else read[edge]
                elif code == GDSF:
                    count[edge] += 1
                    rank[edge] = floor_asked + count[edge] * cost[2 * first_block[edge] + max(keeps - 1, 0)]
                elif code == NEXT:
                    rank[edge] = -upcoming[position]
                read[edge] = request
                tie[edge] = request * depth - (position - start)
                if not keeps and not persistent:
                    count[edge], score[edge], read[edge] = 0, 0.0, -1
            else:
                name_blocks[edge] = max(keeps, 1)
                if at[edge] >= 0:
                    total[at[edge]] += keeps - weight[edge]
                    weight[edge] = keeps
                if code == FIFO:
                    if not again:
                        _place(newer, older, total, weight, at, joined, joined_turn, 0, edge, keeps, request, edges)
                elif code == SIEVE:
                    if not again:
                        _place(newer, older, total, weight, at, joined, joined_turn, 0, edge, keeps, request, edges)
                    bit[edge] = again
                elif code == S3FIFO:
                    if again:
                        count[edge] = min(count[edge] + 1, 3)
                    else:
                        to_main = known[edge] or (not has_evicted and total[0] >= small_blocks)
                        known[edge] = False
                        count[edge] = 0
                        _place(newer, older, total, weight, at, joined, joined_turn, int(to_main), edge, keeps, request, edges)
                elif code == TWO_QUEUES:
                    if not again:
                        _place(newer, older, total, weight, at, joined, joined_turn, int(known[edge]), edge, keeps, request, edges)
                        known[edge] = False
                    elif at[edge] == 1:
                        _place(newer, older, total, weight, at, joined, joined_turn, 1, edge, keeps, request, edges)
                elif code == ARC:
                    if not again:
                        _place(newer, older, total, weight, at, joined, joined_turn, int(known[edge]), edge, keeps, request, edges)
                        known[edge] = False
                        for name in range(2):
                            most = capacity - total[0] if name == 0 else 2 * capacity - total[0] - total_name[0] - total[1]
                            while total_name[name] > most and newer_name[edges + name] < edges:
                                forgotten = newer_name[edges + name]
                                _remove(newer_name, older_name, total_name, weight_name, name, forgotten)
                                at_name[forgotten] = -1
                else:
                    count[edge] += 1
                    ring, reads = 0, count[edge]
                    while reads > 1 and ring < QUEUES - 1:
                        reads >>= 1
                        ring += 1
                    _place(newer, older, total, weight, at, joined, joined_turn, ring, edge, keeps, request, edges)
                    expires[edge] = request + life
                    for lower in range(QUEUES - 1):
                        head = newer[edges + lower + 1]
                        if head < edges and expires[head] < request + 1:
                            _place(newer, older, total, weight, at, joined, joined_turn, lower, head, high[head] - low[head], -1, edges)
                            expires[head] = request + 1 + life
                if not keeps:
                    if code == SIEVE and hand == edge:
                        hand = newer[edge]
                    ring = at[edge]
                    total[ring] -= weight[edge]
                    weight[edge] = 0
                    _out(newer, older, total, weight, at, joined, ring, edge)
                    if code in (ARC, MULTI_QUEUE) or (code in (S3FIFO, TWO_QUEUES) and ring == 0):
                        name = ring if code == ARC else 0
                        _remember(newer_name, older_name, total_name, weight_name, at_name, name, edge, name_blocks[edge], edges)
                        if code != ARC:
                            _forget(newer_name, older_name, total_name, weight_name, at_name, most_names, code == MULTI_QUEUE, count, edges)
        if ranked:
            for position in range(start, stop):
                edge = path_edge[position]
                if high[edge] > low[edge] and not (leaves_only and below[edge] > 0):
                    _push(heap, size, row[edge], place, rank, tie, edge)
    return counts

"""Revision 3 of the tiering simulator: what a turn reads stays in HBM while the turn is served (SPEC §8).

A request is a path in a prefix tree, and here the tree has two levels: the shared prefix, and one edge a session below it. A turn reads
its path whole, looks it up first, and then makes all of it resident; victims are blocks of other edges alone. Two forms:

- :func:`replay` keeps the state of Revision 2's policies (LRU, LFU, EMA) for each block, as Revision 2 does, and ties to the deepest
  block. It is what the experiments e1 to e6 run.
- :func:`replay_edges` takes any policy of :mod:`kvtier.simulate.eviction`; its state belongs to the edge, whose blocks are always read
  together. It has the options: which end of an edge goes first, several sequences in flight, and chunked reading.

Where a path does not fit, its first blocks fill HBM and the rest is *streamed*: read through and not admitted, a miss each time. Below
that size no policy matters; the share of such turns is reported with every rate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvtier.simulate import lossless, lower_tiers, pinned_optimum
from kvtier.simulate.eviction import Eviction, reads_of
from kvtier.simulate.lower_tiers import Tier, TierCounts
from kvtier.simulate.metrics import TurnCounts
from kvtier.simulate.policies import Policy
from kvtier.workload.turns import Turns

Interval = tuple[int, int]
"""(first, stop): blocks of one session, as positions in it."""


@dataclass(frozen=True)
class Residency:
    """What HBM did in each turn; arrays of int64, shape (turns,), unless said otherwise.

    Parameters
    ----------
    hits : ndarray
        Blocks read that were resident as the turn began: *block hits*.
    prefix_hits : ndarray
        Those of them with nothing missing before them on the path: *contiguous-prefix hits*, all that a cache with no tier below can use.
    streamed : ndarray
        Blocks read or generated that did not fit; where there are any, the turn is *over budget*.
    missing : list of list of (first, stop), one a turn
        Blocks of the turn's session that it read and HBM did not have.
    evicted : list of (turn, session, first, stop)
        What left, in order.
    kept : ndarray
        Blocks of the turn's session, the first ones, that are resident after it.
    after_reading : bool
        Whether a turn's own blocks may leave, once it has been served.
    """

    hits: np.ndarray
    prefix_hits: np.ndarray
    streamed: np.ndarray
    missing: list[list[Interval]]
    evicted: list[tuple[int, int, int, int]]
    kept: np.ndarray
    after_reading: bool = False

    def evictions(self, turns: Turns, in_flight: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Blocks that left in each turn, and those of them that belong to what is read; two arrays of int64, shape (turns,).

        What is read are the sessions of the last `in_flight` turns. Of chunked reading the second is zero by definition: a turn's own
        blocks leave once it has been served.
        """
        every, own = np.zeros((2, len(turns.session)), dtype=np.int64)
        sessions = turns.session.tolist()
        for turn, session, first, stop in self.evicted:
            every[turn] += stop - first
            if session in sessions[max(turn - in_flight + 1, 0) : turn + 1] and not self.after_reading:
                own[turn] += stop - first
        return every, own

    def leaving(self, turns: Turns) -> Iterator[tuple[int, int, int, int]]:
        """(turn, session, first, stop) of what the tier below gets: in each turn what was evicted, then what was streamed."""
        whole = turns.read_blocks - turns.prefix_blocks + turns.growth_blocks
        evicted, at = self.evicted, 0
        for turn, (session, kept, stop) in enumerate(zip(turns.session.tolist(), self.kept.tolist(), whole.tolist(), strict=True)):
            while at < len(evicted) and evicted[at][0] == turn:
                yield evicted[at]
                at += 1
            if kept < stop:
                yield turn, session, kept, stop


def with_tiers(turns: Turns, residency: Residency, tiers: Sequence[Tier]) -> tuple[TurnCounts, TierCounts]:
    """Replay the tiers below HBM; the counts that Revision 2 reports (whatever a tier serves is fetched), and those of each tier."""
    below = lower_tiers.replay(turns, residency.missing, residency.leaving(turns), tiers)
    return TurnCounts(residency.hits, below.fetched.sum(axis=0), below.recomputed, *residency.evictions(turns)), below


def replay(turns: Turns, policy: Policy, hbm_blocks: int, counted_from: int = 0) -> Residency:
    """Replay a workload with a policy of Revision 2, state for each block, or with the optimum.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        ``lru``, ``lfu``, ``ema``; or ``min``, the optimum of :mod:`kvtier.simulate.pinned_optimum`.
    hbm_blocks : int
        Capacity of HBM.
    counted_from : int
        First turn whose hits the optimum is to maximise; nothing to the others.

    Returns
    -------
    Residency
    """
    evicted: list[tuple[int, int, int, int]] = []

    def on_evict(*interval: int) -> None:
        evicted.append(interval)

    if policy.name == "min":
        hits = pinned_optimum.turn_hits(turns, hbm_blocks, counted_from, on_evict=on_evict)
    else:
        hits = lossless.simulate(turns, policy, hbm_blocks, on_evict).hits
    context = turns.read_blocks - turns.prefix_blocks
    own, whole = hits - _shared_hits(turns, hbm_blocks), context + turns.growth_blocks
    missing = [[(first, stop)] if first < stop else [] for first, stop in zip(own.tolist(), context.tolist(), strict=True)]
    kept = np.minimum(whole, max(hbm_blocks - turns.prefix_blocks, 0))
    # What is resident of a session are its first blocks, so all hits are contiguous.
    return Residency(hits, hits, over_budget_blocks(turns, hbm_blocks), missing, evicted, kept)


def over_budget_blocks(turns: Turns, hbm_blocks: int) -> np.ndarray:
    """Blocks that each turn reads or generates beyond what HBM holds, shape (turns,); the same under every policy."""
    return np.maximum(turns.read_blocks + turns.growth_blocks - hbm_blocks, 0)


def _shared_hits(turns: Turns, hbm_blocks: int) -> np.ndarray:
    """Blocks of the prefix that each turn finds: all that fit, after the first turn."""
    found = np.full(len(turns.session), min(turns.prefix_blocks, hbm_blocks), dtype=np.int64)
    found[:1] = 0
    return found


def replay_edges(
    turns: Turns,
    eviction: Eviction,
    hbm_blocks: int,
    *,
    suffix_first: bool = True,
    in_flight: int = 1,
    floor_blocks: int | None = None,
) -> Residency:
    """Replay a workload with a policy whose state belongs to the edge.

    Parameters
    ----------
    turns : Turns
    eviction : Eviction
        A new one; edges are the sessions, and the prefix is edge ``sessions``.
    hbm_blocks : int
        Capacity of HBM.
    suffix_first : bool
        An edge loses its deepest block first, as in vLLM and LMCache; else its first, as ties in Revision 2 go.
    in_flight : int
        Sequences in service: the sessions of the last so many turns are pinned (continuous batching); each is read once, in its turn, and
        what does not fit beside the others is streamed, whatever of it was there.
    floor_blocks : int, optional
        Chunked reading: only so many blocks of a path need be resident at once, in a buffer of that size, and once a turn is served its
        blocks compete for the rest of HBM like all others, the prefix apart. Without it the whole path is pinned.

    Returns
    -------
    Residency

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if hbm_blocks < 0 or in_flight < 1 or not 0 <= (floor_blocks or 0) <= hbm_blocks:
        raise ValueError(f"hbm_blocks {hbm_blocks}, in_flight {in_flight}, floor_blocks {floor_blocks}: expected sizes that fit")
    prefix, pins_path = len(turns.context_blocks), floor_blocks is None
    room = max(hbm_blocks - (floor_blocks or 0) - turns.prefix_blocks, 0)
    # Of each session blocks low to high - 1 are resident.
    low, high = [0] * prefix, [0] * prefix
    flight: deque[int] = deque(maxlen=in_flight)
    used, evicted, missing, kept_blocks, hits, prefix_hits = 0, [], [], [], [], []

    def evict(turn: int, edge: int, most: int) -> int:
        blocks = min(most, high[edge] - low[edge])
        if suffix_first:
            high[edge] -= blocks
            evicted.append((turn, edge, high[edge], high[edge] + blocks))
        else:
            low[edge] += blocks
            evicted.append((turn, edge, low[edge] - blocks, low[edge]))
        eviction.lost(edge, high[edge] - low[edge])
        return blocks

    shared = min(turns.prefix_blocks, max(hbm_blocks - (floor_blocks or 0), 0))
    reads = (turns.read_blocks - turns.prefix_blocks).tolist()
    for turn, (session, context, grown) in enumerate(zip(turns.session.tolist(), reads, turns.growth_blocks.tolist(), strict=True)):
        first, stop = low[session], min(high[session], context)
        found, of_prefix = stop - first, shared if turn else 0
        hits.append(of_prefix + found)
        prefix_hits.append(of_prefix + (found if first == 0 and of_prefix == turns.prefix_blocks else 0))
        missing.append([part for part in ((0, first), (stop, context)) if part[0] < part[1]])
        eviction.asked(prefix, turn, of_prefix)
        eviction.asked(session, turn, found)
        flight.append(session)
        pinned = {prefix, *flight} if pins_path else {prefix}
        whole = context + grown
        if pins_path:
            others = sum(high[edge] - low[edge] for edge in set(flight) - {session})
            kept = min(whole, room - others)
            while used - found + kept > room:
                used -= evict(turn, eviction.victim(pinned), used - found + kept - room)
        else:
            kept = whole
        used += kept - found
        low[session], high[session] = 0, kept
        eviction.read(prefix, turn, shared)
        eviction.read(session, turn, kept)
        while used > room:
            used -= evict(turn, eviction.victim(pinned), used - room)
        for edge in eviction.demotes(turn):
            if edge not in pinned:
                used -= evict(turn, edge, high[edge] - low[edge])
        kept_blocks.append(kept)
    whole = turns.read_blocks + turns.growth_blocks
    return Residency(
        np.array(hits, dtype=np.int64),
        np.array(prefix_hits, dtype=np.int64),
        np.maximum(whole - turns.prefix_blocks - np.array(kept_blocks, dtype=np.int64), 0) + turns.prefix_blocks - shared,
        missing,
        evicted,
        np.array(kept_blocks, dtype=np.int64),
        not pins_path,
    )


def trace_knowledge(turns: Turns) -> dict[str, Any]:
    """What policies may need to know of a workload: for :meth:`kvtier.simulate.eviction.Named.build`.

    Parameters
    ----------
    turns : Turns

    Returns
    -------
    dict
        ``reads`` (turns that read each edge), ``first_block`` (where each edge starts on its path [blocks]), ``anchors`` (the prefix).
        The prefix is the last edge.
    """
    prefix = len(turns.context_blocks)
    return {
        "reads": reads_of([(prefix, session) for session in turns.session.tolist()], prefix + 1),
        "first_block": [*[turns.prefix_blocks] * prefix, 0],
        "anchors": {prefix},
    }

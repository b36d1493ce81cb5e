"""Residency that is lossless except in turns larger than HBM, in plain Python, at the cost of one integer a session.

Semantics. Turn t of session s reads Read(t): the prefix, all blocks of s, and the blocks that it generates. The context is looked up first:
its resident blocks are the hits. Then hits are touched, misses and generated blocks are admitted. All of Read(t) is pinned, so victims are
blocks of other sessions: the smallest key first, ties to the session touched longest ago, and in a session to the deepest block. The prefix
is in every Read(t) and never leaves. If Read(t) is larger than HBM, every other session leaves, the first blocks of (prefix, session,
generated) that fill HBM stay, and the deeper ones are *streamed*: read or made, not admitted, generated blocks among them. A streamed block
of the context is a miss. Contexts only grow, so it is streamed for good, and whether it has a state makes no difference.

Why it is exact, block by block, at a few steps an evicted interval (EMA adds one for each touch that an uncovered segment has missed):

- A turn touches all blocks of its session at once, so blocks that were first touched, or last admitted where eviction forgets, at the
  same turn have the same history from there on. They are neighbours: a *segment* has one state. A session is a stack of segments.
- State never increases with depth. A deeper segment starts later; it starts at the smallest score there is after a touch (count 1, or
  α), and a touch is monotone in the score it renews, in binary64 too, where each rounded operation is monotone. Blocks of a session
  share the turn of the last touch, so their keys are ordered as their scores are (the logarithm is taken to be monotone). With ties to
  the deepest, a session loses its deepest block first: what is resident of it is a prefix of its blocks, and only the deepest resident
  segment needs a key.
- Between two turns of a session nothing changes its keys. So one entry of the queue a session is valid: it is made when the session
  is touched, and anew when an eviction uncovers another segment; entries from before the last touch are passed over. How many segments
  leave before another session's turn comes is found by bisection. A covered segment is brought up to date when it is looked at, by the
  touches that it has missed, with the expressions of :mod:`kvtier.simulate.revision2` in the same order. Equal histories give equal
  bits, and ties are ties.

It is what the third revision builds on; SPEC §8 has the constraint.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kvtier.simulate.metrics import require_capacities
from kvtier.simulate.policies import Policy, decay
from kvtier.workload.turns import Turns

OnEvict = Callable[[int, int, int, int], None]
"""Told (turn, session, first, stop): blocks ``first`` to ``stop - 1`` of the session leave HBM, the deepest first."""


@dataclass(frozen=True)
class LosslessCounts:
    """What happened in each turn; arrays of int64, shape (turns,).

    Parameters
    ----------
    hits, misses : ndarray of int64
        Blocks of prefix and context that were in HBM as the turn began, and that were not. They add up to ``Turns.read_blocks``.
    evictions : ndarray of int64
        Blocks of other sessions that left.
    streamed : ndarray of int64
        Blocks of Read(t), generated ones included, beyond the capacity of HBM.
    """

    hits: np.ndarray
    misses: np.ndarray
    evictions: np.ndarray
    streamed: np.ndarray

    @property
    def over_budget_turns(self) -> int:
        """Turns whose Read(t) is larger than HBM: no policy serves them losslessly."""
        return int(np.count_nonzero(self.streamed))


class _Segment:
    """Blocks of a session with one history, from `first` to the next segment; `score` holds its first `touches` touches of the session."""

    __slots__ = ("first", "score", "touches")

    def __init__(self, first: int, touches: int, score: float) -> None:
        self.first, self.touches, self.score = first, touches, score


class _Session:
    """How many blocks are resident, the turns that touched it, and its segments, of which `top` is the deepest resident one.

    `known` is how many blocks have a state: the resident ones, or where state is persistent all that were ever admitted.
    """

    __slots__ = ("known", "resident", "segments", "top", "touched")

    def __init__(self) -> None:
        self.resident, self.known, self.top = 0, 0, -1
        self.touched: list[int] = []
        self.segments: list[_Segment] = []


class _Frequency:
    """Key of LFU: touches since the segment's first."""

    def start(self, session: _Session) -> None:
        session.segments.append(_Segment(session.known, len(session.touched), 1))

    def key(self, session: _Session, index: int) -> float:
        segment = session.segments[index]
        return segment.score + (len(session.touched) - segment.touches)


class _DecayedFrequency:
    """Key of EMA: K = ln s + t·(−ln(1 − α)), as in Revision 2."""

    def __init__(self, alpha: float, turns: int) -> None:
        self.alpha, left, self.rate = decay(alpha, turns)
        self.decay = left.tolist()

    def start(self, session: _Session) -> None:
        # What a touch makes of no score: α + (1 − α)·0, exactly.
        session.segments.append(_Segment(session.known, len(session.touched), self.alpha))

    def key(self, session: _Session, index: int) -> float:
        segment, alpha, decay = session.segments[index], self.alpha, self.decay
        score = segment.score
        for before, now in pairwise(session.touched[segment.touches - 1 :]):
            score = alpha + (1 - alpha) * (score * decay[now - before])
        segment.score, segment.touches = score, len(session.touched)
        return math.log(score) + session.touched[-1] * self.rate


def _scoring(policy: Policy, turns: int) -> _Frequency | _DecayedFrequency:
    if policy.name == "lfu":
        return _Frequency()
    if policy.name == "ema":
        return _DecayedFrequency(policy.alpha, turns)
    raise ValueError(f"policy {policy.name!r}: expected one of lru, lfu, ema")


def simulate(turns: Turns, policy: Policy, hbm_blocks: int, on_evict: OnEvict | None = None) -> LosslessCounts:
    """Replay a workload.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        ``lru``, ``lfu`` or ``ema``; the last two forget a block's state at its eviction unless persistent.
    hbm_blocks : int
        Capacity of HBM.
    on_evict : callable, optional
        Called with (turn, session, first, stop) for each evicted interval, in order: blocks ``first`` to ``stop - 1`` of the session
        leave, the deepest first. Positions count from the session's own first block, without the prefix.

    Returns
    -------
    LosslessCounts

    Raises
    ------
    ValueError
        If the policy is another one, or the capacity is negative.
    """
    require_capacities(hbm_blocks=hbm_blocks)
    context = turns.read_blocks - turns.prefix_blocks + turns.growth_blocks
    kept = np.minimum(context, max(hbm_blocks - turns.prefix_blocks, 0))
    if policy.name == "lru":
        own_hits, evictions = _replay_recency(turns, hbm_blocks, kept.tolist(), on_evict)
    else:
        own_hits, evictions = _replay_scores(turns, policy, hbm_blocks, kept.tolist(), on_evict)
    hits = np.array(own_hits, dtype=np.int64)
    hits[1:] += min(turns.prefix_blocks, hbm_blocks)
    return LosslessCounts(
        hits,
        turns.read_blocks - hits,
        np.array(evictions, dtype=np.int64),
        np.maximum(turns.prefix_blocks + context - hbm_blocks, 0),
    )


Replayed = tuple[list[int], list[int]]
"""Hits of each turn in its own session, and evictions of each turn."""


def _replay_recency(turns: Turns, hbm_blocks: int, kept: list[int], on_evict: OnEvict | None) -> Replayed:
    """LRU: all blocks of a session share the turn of their last touch, so sessions leave in the order of their last turns."""
    resident: OrderedDict[int, int] = OrderedDict()
    over, hits, evictions = -max(hbm_blocks - turns.prefix_blocks, 0), [], []
    for turn, (session, keeps) in enumerate(zip(turns.session.tolist(), kept, strict=True)):
        before = resident.pop(session, 0)
        over += keeps - before
        hits.append(before)
        evictions.append(over if over > 0 else 0)
        while over > 0:
            other, stop = resident.popitem(last=False)
            first = stop - over if stop > over else 0
            over -= stop - first
            if first:
                resident[other] = first
                resident.move_to_end(other, last=False)
            if on_evict:
                on_evict(turn, other, first, stop)
        if keeps:
            resident[session] = keeps
    return hits, evictions


def _replay_scores(turns: Turns, policy: Policy, hbm_blocks: int, kept: list[int], on_evict: OnEvict | None) -> Replayed:
    """LFU and EMA: a session leaves segment by segment, the smallest key of all deepest segments first."""
    scoring = _scoring(policy, len(turns.session))
    sessions = [_Session() for _ in turns.context_blocks]
    # Key of the deepest resident segment, turn of the session's last touch, session.
    queue: list[tuple[float, int, int]] = []
    over, hits, evictions = -max(hbm_blocks - turns.prefix_blocks, 0), [], []

    for turn, (number, keeps) in enumerate(zip(turns.session.tolist(), kept, strict=True)):
        session = sessions[number]
        over += keeps - session.resident
        hits.append(session.resident)
        evictions.append(over if over > 0 else 0)
        session.touched.append(turn)

        while over > 0:
            entry = heapq.heappop(queue)
            _, touched, other = entry
            victim = sessions[other]
            # The session has been touched since: this turn's own is pinned that way, any other has a newer entry.
            if touched != victim.touched[-1]:
                continue
            segments, top, stop = victim.segments, victim.top, victim.resident
            # The deepest `over` blocks reach up to segment `bottom`; the session loses them unless another's key comes first.
            first, bottom = max(stop - over, 0), top
            while segments[bottom].first > first:
                bottom -= 1
            # A stale head would bound the run by a key that nobody has, and cut in two what leaves in one.
            while queue and queue[0][1] != sessions[queue[0][2]].touched[-1]:
                heapq.heappop(queue)
            if bottom < top and queue:
                upwards = range(top, bottom - 1, -1)
                leaving = bisect_right(upwards, queue[0], lo=1, key=lambda index: (scoring.key(victim, index), touched, other))
                bottom = upwards[leaving - 1]
                first = max(first, segments[bottom].first)
            over -= stop - first
            victim.top = bottom - (first == segments[bottom].first)
            if first and victim.top < top:
                entry = scoring.key(victim, victim.top), touched, other
            victim.resident = first
            if first:
                heapq.heappush(queue, entry)
            if not policy.persistent:
                victim.known = first
                del victim.segments[victim.top + 1 :]
            if on_evict:
                on_evict(turn, other, first, stop)

        if keeps > session.known:
            scoring.start(session)
            session.known = keeps
        session.resident, session.top = keeps, len(session.segments) - 1
        if keeps:
            heapq.heappush(queue, (scoring.key(session, session.top), turn, number))
    return hits, evictions

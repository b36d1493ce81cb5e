"""The optimum under lossless residency: what a turn reads is resident while it is served, and the rest of HBM is used with foresight.

Semantics of :mod:`kvtier.simulate.lossless`, but the victim is the deepest block of the session whose next counted turn is farthest
(Belady, 1966). A session's blocks are all read in that turn, and under a chain of prefixes a block is never needed later than the
blocks after it, so to take the deepest first leaves no block without those before it.

Why no eviction policy that pins has more counted hits. After a turn, HBM has what the turn read (or the first blocks that fit), whatever
the policy. The rest of HBM holds blocks of other sessions that were there before; a hit at turn u is a block of u's session that has
stayed since that session's last turn. So each such block is an interval from one turn of its session to the next; between them each
turn leaves the room that its own path does not take, and a block goes at a turn or stays through it. The argument of
:mod:`kvtier.simulate.optimal` holds with a capacity that differs from turn to turn: where too many intervals are left, drop the one
that ends last. A test compares it with exhaustive search.

With `window` only the turns that come next are known, as to a scheduler that sees its queue: sessions that return in it are kept in the
order of their return, and all others go before them, the one whose last turn is oldest first.
"""

from __future__ import annotations

import heapq

import numpy as np

from kvtier.simulate.lossless import OnEvict
from kvtier.workload.turns import Turns


def turn_hits(
    turns: Turns, hbm_blocks: int, counted_from: int = 0, *, window: int | None = None, on_evict: OnEvict | None = None
) -> np.ndarray:
    """Hits of each turn.

    Parameters
    ----------
    turns : Turns
    hbm_blocks : int
        Capacity of HBM.
    counted_from : int
        First counted turn; to the optimum a return before it is worth nothing.
    window : int, optional
        Turns after the present one that are known; all of them without it.
    on_evict : callable, optional
        Called with (turn, session, first, stop) for each evicted interval, in order.

    Returns
    -------
    ndarray of int64, shape (turns,)
        The sum over counted turns is the optimum, without `window`.

    Raises
    ------
    ValueError
        If a capacity or the window is negative.
    """
    if hbm_blocks < 0 or (window is not None and window < 0):
        raise ValueError(f"hbm_blocks {hbm_blocks}, window {window}: expected 0 or more")
    room = max(hbm_blocks - turns.prefix_blocks, 0)
    context = turns.read_blocks - turns.prefix_blocks + turns.growth_blocks
    never = len(turns.session)
    worth = turns.next_turn if window is not None else np.where(turns.next_turn < counted_from, never, turns.next_turn)
    due = worth.tolist()
    resident: dict[int, int] = {}
    last_turn: dict[int, int] = {}
    # (−due, last turn, session), in order of eviction: farthest first, then the one that has waited longest.
    queue: list[tuple[int, int, int]] = []
    # What is not known to return stands before all that is, in `unknown`; it is told in time.
    unknown: list[tuple[int, int]] = []
    hits, used = [], 0
    for turn, (session, keeps) in enumerate(zip(turns.session.tolist(), np.minimum(context, room).tolist(), strict=True)):
        before = resident.pop(session, 0)
        used += keeps - before
        hits.append(before)
        view = never if window is None else min(turn + window, never - 1)
        if window is not None and view == turn + window:
            # One turn more comes into view: the session that it reads is now known to return.
            seen = int(turns.session[view])
            if seen in resident and due[last_turn[seen]] == view:
                heapq.heappush(queue, (-view, last_turn[seen], seen))
        while used > room:
            # Entries are passed over whose session was read since, is gone, or has come into view.
            while unknown and (last_turn[unknown[0][1]] != unknown[0][0] or unknown[0][1] not in resident or due[unknown[0][0]] <= view):
                heapq.heappop(unknown)
            if unknown:
                other = unknown[0][1]
            else:
                while last_turn[queue[0][2]] != queue[0][1] or queue[0][2] not in resident:
                    heapq.heappop(queue)
                other = queue[0][2]
            stop = resident[other]
            first = max(stop - (used - room), 0)
            used -= stop - first
            resident[other] = first
            if not first:
                del resident[other]
            if on_evict:
                on_evict(turn, other, first, stop)
        last_turn[session] = turn
        if keeps:
            resident[session] = keeps
            if due[turn] <= view:
                heapq.heappush(queue, (-due[turn], turn, session))
            else:
                heapq.heappush(unknown, (turn, session))
    found = np.array(hits, dtype=np.int64)
    found[1:] += min(turns.prefix_blocks, hbm_blocks)
    return found

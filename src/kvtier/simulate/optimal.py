"""The optimal bound: no demand-fetching policy has more hits, and every simulator here is such a policy.

Two optima are easily confused. Policy ``min`` of :mod:`kvtier.simulate.requests` is asked request by request and must admit what it misses:
it bounds caches that work so. Revision 2 looks the whole turn up before it admits anything, and may evict the block that it has just
admitted; on some workloads either is enough to have more hits than that optimum. The bound here allows both.

Model. A hit of turn u is a block of Read(u) resident as u begins. Resident as u + 1 begins are at most C blocks, any of those that
were resident as u began, or that u read or generated. So block x, last read or generated at t, is hit at its next read u if it is
resident at each of the boundaries t + 1 to u, and once gone it cannot return in between. Each such pair (t, u) is an interval of unit
worth, if u is counted; a set of intervals is what some policy hits if at most C of them share each boundary.

Why the greedy choice is optimal (Belady 1966; for intervals Faigle & Nawijn 1995, Carlisle & Lloyd 1995). Go through the boundaries in
order, and where more than C intervals are left that cover one, drop the one that ends last. Take the first such boundary. Every
solution drops an interval J of those that cover it. If it keeps L, which ends last, let it drop L and keep J instead: earlier
boundaries have room for all that is left, this one covers as many as before, and later ones no more, as J ends no later than L. So
some optimum drops L. A block that is never read again has no interval, nor has one whose next read is not counted: keeping it wins
nothing, and that read makes it available again.

All blocks of a session have one next read, and the prefix has the next turn; equal intervals are interchangeable. So the residents of
a session are one integer.

What it bounds:

- Revisions 1 and 2: hits are found before the turn admits anything; what stays is a part of what was there, was read or was generated.
- The lossless semantics: the same, with a pinned read set.
- Caches asked request by request: a turn asks for each block once, so one that is hit has been there since the turn
  began; what stays is a part of what was there or was asked for.

It does not bound a policy that prefetches.
"""

from __future__ import annotations

import heapq

import numpy as np

from kvtier.simulate.metrics import require_capacities
from kvtier.workload.turns import Turns


def turn_hits(turns: Turns, hbm_blocks: int, counted_from: int = 0) -> np.ndarray:
    """Hits of each turn under a policy whose counted hits no demand-fetching policy exceeds.

    Parameters
    ----------
    turns : Turns
    hbm_blocks : int
        Capacity of HBM.
    counted_from : int
        First counted turn. The policy keeps nothing for earlier ones: their hits are reported as 0.

    Returns
    -------
    ndarray of int64, shape (turns,)
        Their sum is the bound; a single turn may have more hits under another policy.

    Raises
    ------
    ValueError
        If the capacity is negative, or the next turns contradict the trace.
    """
    require_capacities(hbm_blocks=hbm_blocks)
    last_turn = len(turns.session)
    context = turns.context_blocks.tolist()
    # Blocks kept of each session that has any, by the turn that reads them next; `farthest` has those turns, negated.
    kept: dict[int, int] = {}
    farthest: list[int] = []
    resident = prefix_kept = 0
    due: dict[int, int] = {}
    seen: set[int] = set()
    found = np.zeros(last_turn, dtype=np.int64)

    steps = zip(turns.session.tolist(), turns.growth_blocks.tolist(), turns.next_turn.tolist(), strict=True)
    for turn, (session, growth, upcoming) in enumerate(steps):
        # The table is derived from the turns: what is guarded is the derivation.
        foreseen, expected = due.pop(turn, None), session if session in seen else None
        if foreseen != expected:
            raise ValueError(f"turn {turn} reads session {session}; its table of next turns has session {foreseen} there")
        seen.add(session)
        if upcoming < last_turn:
            due[upcoming] = session

        # Entries of turns that are over lie behind all that are ahead, and are never reached by an eviction.
        of_session = kept.pop(turn, 0)
        resident -= of_session
        found[turn] = prefix_kept + of_session
        context[session] += growth
        # The prefix is read next turn, before anything else.
        prefix_kept = min(turns.prefix_blocks, hbm_blocks) if turn + 1 >= counted_from else 0
        if counted_from <= upcoming < last_turn:
            kept[upcoming] = context[session]
            resident += context[session]
            heapq.heappush(farthest, -upcoming)
        while (excess := resident + prefix_kept - hbm_blocks) > 0:
            last = -farthest[0]
            leaving = min(excess, kept[last])
            kept[last] -= leaving
            resident -= leaving
            if not kept[last]:
                heapq.heappop(farthest)
    if due:
        turn, session = min(due.items())
        raise ValueError(f"turn {turn}: the table of next turns has session {session} there, and the trace is over")
    return found

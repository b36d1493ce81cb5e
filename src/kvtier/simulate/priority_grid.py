"""The published priority under many weights: which of them differ, and a compiled replay of those that do.

P = wR · R + wE · E + wN · N as in :class:`kvtier.simulate.eviction.Priority`: since its last read R of an edge is (1 − α)^age and E is
s · R, with s the score at that read, in [α, 1]. N is 1 in the shared prefix alone. Hits are those of
:func:`kvtier.simulate.revision3.replay_edges`, and tests hold the two equal.

Which weights differ. The prefix is pinned, so victims are sessions, and there N = 0 and P = (wR + wE · s) · (1 − α)^age.

- *Order.* Multiply both weights by c > 0: every P of a session is multiplied by c, and no order changes. wN is in none of them. So an order
  of eviction depends on the ratio wR : wE alone, and where wR + wE > 0 two points of the simplex with one ratio have the same victims.
  Where wR = wE = 0, all sessions tie, and the one that was read longest ago leaves: the order of R alone, which is LRU. The 231 points of
  step 1/20 have 129 ratios, as the fractions from 0 to 1 with denominators up to 20.
- *Cut.* Demotion asks whether P is below a cut, so the scale of wR and wE decides, and wN does, as what they leave of 1. But R and s are at
  most 1, so P ≤ wR + wE; where that is below the cut a session leaves as soon as it is not pinned, and all such points are one. At a
  cut of 0.3 they are 21 of 231.

The algebra is of real numbers. Keys are rounded, so among equal ratios a tie may fall otherwise; tests find equal hits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from kvtier.simulate.compiled import compiled
from kvtier.simulate.policies import decay
from kvtier.workload.turns import Turns

STEPS = 20
"""Steps of the simplex from 0 to 1: of 0.05."""

PUBLISHED = (5, 11, 4)
"""0.25, 0.55, 0.20 in steps (SPEC §2)."""

Point = tuple[int, int, int]
"""wR, wE and wN in steps."""


def simplex(steps: int = STEPS) -> list[Point]:
    """All weights that sum to 1, those with more recency later: 231 of them at step 0.05."""
    return [(recency, ema, steps - recency - ema) for recency in range(steps + 1) for ema in range(steps + 1 - recency)]


def weights(point: Point) -> tuple[float, float, float]:
    """As numbers."""
    recency, ema, anchor = (part / sum(point) for part in point)
    return recency, ema, anchor


def share_of_recency(point: Point) -> Fraction:
    """Ratio wR / (wR + wE), which alone orders the sessions; 1 where both are 0, as ties then go by recency."""
    recency, ema, _ = point
    return Fraction(recency, recency + ema) if recency + ema else Fraction(1)


def distinct(points: Iterable[Point], cut: float = 0.0) -> dict[Point, list[Point]]:
    """Points that may differ in their hits, each with all that are the same.

    Parameters
    ----------
    points : iterable of Point
    cut : float
        Lower cut for demotion; 0 for none.

    Returns
    -------
    dict of Point to list of Point
        The first is the one with the least wN, in the order of `points` where that ties.
    """
    same: dict[object, list[Point]] = {}
    for point in points:
        scale = (point[0] + point[1]) / sum(point)
        same.setdefault(("all leave" if scale < cut else point) if cut else share_of_recency(point), []).append(point)
    return {min(group, key=lambda point: point[2]): group for group in same.values()}


class Replay:
    """A workload and a capacity, ready to be replayed under many weights.

    Parameters
    ----------
    turns : Turns
    hbm_blocks : int
        Capacity of HBM.

    Raises
    ------
    ValueError
        If HBM does not hold the prefix.
    """

    def __init__(self, turns: Turns, hbm_blocks: int) -> None:
        if hbm_blocks < turns.prefix_blocks:
            raise ValueError(f"hbm_blocks {hbm_blocks}: expected at least the prefix, {turns.prefix_blocks}")
        self._turns, self._room = turns, hbm_blocks - turns.prefix_blocks
        context = turns.read_blocks - turns.prefix_blocks
        self._kept = np.minimum(context + turns.growth_blocks, self._room)
        self._prefix_hits = np.full(len(context), turns.prefix_blocks, dtype=np.int64)
        self._prefix_hits[:1] = 0

    def hits(self, alpha: float, recency: float, ema: float, *, cut: float = 0.0, persistent: bool = False) -> np.ndarray:
        """Block hits of each turn, shape (turns,), int64. What is lost is the end of a context, so all are contiguous-prefix hits.

        Parameters
        ----------
        alpha : float
            Of the score, in (0, 1).
        recency, ema : float
            wR and wE; wN is of no effect on the sessions.
        cut : float
            Sessions of lower P leave after each turn; 0 for none.
        persistent : bool
            Whether the score survives the session's last block.
        """
        _, left, rate = decay(alpha, len(self._kept))
        sessions = len(self._turns.context_blocks)
        return self._prefix_hits + _replay(
            self._turns.session, self._kept, sessions, self._room, alpha, left, rate, recency, ema, cut, persistent
        )


@compiled
def _replay(session, kept, sessions, room, alpha, left, rate, recency, ema, cut, persistent):
    hits = np.empty(len(session), np.int64)
    resident, read = np.zeros(sessions, np.int64), np.zeros(sessions, np.int64)
    score, key = np.zeros(sessions), np.zeros(sessions)
    used = 0
    for turn in range(len(session)):
        own = session[turn]
        hits[turn] = resident[own]
        used += kept[turn] - resident[own]
        while used > room:
            victim = -1
            for other in range(sessions):
                if not resident[other] or other == own:
                    continue
                # Ties go to the session that was read longest ago.
                if victim < 0 or key[other] < key[victim] or (key[other] == key[victim] and read[other] < read[victim]):
                    victim = other
            blocks = min(used - room, resident[victim])
            resident[victim] -= blocks
            used -= blocks
            if not resident[victim] and not persistent:
                score[victim] = 0.0
        # The expressions of Ema and Priority, in their order: equal keys are ties there and here.
        score[own] = alpha + (1 - alpha) * (score[own] * left[turn - read[own]])
        read[own], resident[own] = turn, kept[turn]
        value = recency + ema * score[own]
        key[own] = math.log(value) + turn * rate if value > 0 else -np.inf
        if not kept[turn] and not persistent:
            score[own] = 0.0
        if cut > 0:
            for other in range(sessions):
                if resident[other] and other != own:
                    since = left[turn - read[other]]
                    if recency * since + ema * (score[other] * since) < cut:
                        used -= resident[other]
                        resident[other] = 0
                        if not persistent:
                            score[other] = 0.0
    return hits

"""Tiers below HBM, replayed after HBM: what is read from where, and what moves.

HBM decides first, and nothing below changes what it hits. So the tiers are replayed from its decisions: which blocks of a session each
turn found resident, and which intervals left, in order (:data:`kvtier.simulate.lossless.OnEvict`).

Semantics (SPEC §4, extended to any number of tiers). A turn first looks its missing blocks up, tier by tier downwards; what no tier has
is recomputed. Then what HBM evicts is demoted to the first tier below, in the order of its eviction, and after it what the turn streamed:
those blocks were made and fit nowhere above. What is demoted together is taken in whole, as the newest there; then a tier that is over
its capacity passes its oldest on to the next, and the last one drops them. An *inclusive* tier keeps its copy of a block that is
fetched, and a fetch is no touch; an *exclusive* one gives it up. KV blocks are written once (SPEC §8), so a copy never goes stale:
demoting a block that the tier still has moves no bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kvtier.workload.turns import Turns

Interval = tuple[int, int, int]
"""(session, first, stop): blocks ``first`` to ``stop - 1`` of a session; the deepest counts as the oldest, whichever end left HBM first."""


@dataclass(frozen=True)
class Tier:
    """A tier below HBM.

    Parameters
    ----------
    name : str
    capacity_blocks : int
    exclusive : bool
        Whether a fetched block leaves it.
    """

    name: str
    capacity_blocks: int
    exclusive: bool = False

    def __post_init__(self) -> None:
        if self.capacity_blocks < 0:
            raise ValueError(f"tier {self.name}: capacity_blocks {self.capacity_blocks}: expected 0 or more")


@dataclass(frozen=True)
class TierCounts:
    """Blocks of each turn; arrays of int64.

    Parameters
    ----------
    fetched : ndarray of int64, shape (tiers, turns)
        Read from each tier.
    recomputed : ndarray of int64, shape (turns,)
        Read, and in no tier.
    demoted, written : ndarray of int64, shape (tiers, turns)
        Passed down to each tier, and those of them that it did not have: the only ones that move bytes.
    """

    fetched: np.ndarray
    recomputed: np.ndarray
    demoted: np.ndarray
    written: np.ndarray


class Contents:
    """Blocks of one tier as intervals, oldest first."""

    def __init__(self, tier: Tier) -> None:
        self.tier, self.blocks = tier, 0
        self._intervals: OrderedDict[int, Interval] = OrderedDict()
        self._of_session: dict[int, set[int]] = {}
        self._next = 0

    def _add(self, session: int, first: int, stop: int) -> None:
        number = self._next = self._next + 1
        self._intervals[number] = (session, first, stop)
        self._of_session.setdefault(session, set()).add(number)
        self.blocks += stop - first

    def overlaps(self, session: int, first: int, stop: int) -> list[tuple[int, int, int]]:
        """(number, first, stop) of what the tier has of an interval."""
        return [
            (number, max(first, low), min(stop, high))
            for number in self._of_session.get(session, ())
            for _, low, high in (self._intervals[number],)
            if low < stop and first < high
        ]

    def take(self, session: int, first: int, stop: int) -> int:
        """Remove what the tier has of an interval; return how many blocks that was."""
        taken = 0
        for number, low, high in self.overlaps(session, first, stop):
            _, whole_first, whole_stop = self._intervals[number]
            taken += high - low
            # What is left of the interval keeps its place in the order.
            rest = [part for part in ((whole_first, low), (high, whole_stop)) if part[0] < part[1]]
            self._replace(number, session, rest)
        return taken

    def _replace(self, number: int, session: int, parts: list[tuple[int, int]]) -> None:
        _, first, stop = self._intervals[number]
        self.blocks -= stop - first
        if len(parts) == 1:
            self._intervals[number] = (session, *parts[0])
            self.blocks += parts[0][1] - parts[0][0]
            return
        if not parts:
            del self._intervals[number]
            self._of_session[session].discard(number)
            return
        # Two parts around a hole: the deeper one is older, and stands just before the other.
        order = list(self._intervals)
        place = order.index(number)
        self._intervals[number] = (session, *parts[0])
        self._add(session, *parts[1])
        self.blocks += parts[0][1] - parts[0][0]
        for later in order[place:]:
            self._intervals.move_to_end(later)

    def put(self, intervals: list[Interval]) -> tuple[int, list[Interval]]:
        """Make intervals the newest, in order; return how many of their blocks are new here, and what then leaves at the old end."""
        new = 0
        for session, first, stop in intervals:
            new += stop - first - self.take(session, first, stop)
            self._add(session, first, stop)
        leaving = []
        while self.blocks > self.tier.capacity_blocks:
            number, (owner, low, high) = next(iter(self._intervals.items()))
            cut = max(low, high - (self.blocks - self.tier.capacity_blocks))
            leaving.append((owner, cut, high))
            self._replace(number, owner, [(low, cut)] if low < cut else [])
        return new, leaving


def replay(
    turns: Turns,
    missing: Sequence[Sequence[tuple[int, int]]],
    leaving: Iterable[tuple[int, int, int, int]],
    tiers: Sequence[Tier],
) -> TierCounts:
    """Replay the tiers below HBM.

    Parameters
    ----------
    turns : Turns
    missing : sequence of sequences of (first, stop), one a turn
        Blocks of the turn's session, as positions in it, that it reads and HBM did not have.
    leaving : iterable of (turn, session, first, stop)
        What leaves HBM or is streamed past it, in order of time: turn by turn, and in a turn as it happened.
    tiers : sequence of Tier
        From the top down.

    Returns
    -------
    TierCounts
        The prefix is recomputed by the first turn, and is resident from then on.
    """
    contents = [Contents(tier) for tier in tiers]
    count = len(turns.session)
    fetched = np.zeros((len(tiers), count), dtype=np.int64)
    demoted, written = fetched.copy(), fetched.copy()
    recomputed = np.zeros(count, dtype=np.int64)
    events = iter(leaving)
    event = next(events, None)
    for turn, (session, intervals) in enumerate(zip(turns.session.tolist(), missing, strict=True)):
        wanted = list(intervals)
        for index, tier in enumerate(contents):
            rest = []
            for low, high in wanted:
                found = sorted((a, b) for _, a, b in tier.overlaps(session, low, high))
                fetched[index, turn] += sum(b - a for a, b in found)
                borders = [low, *(border for part in found for border in part), high]
                rest += zip(borders[::2], borders[1::2], strict=True)
                if tier.tier.exclusive:
                    tier.take(session, low, high)
            wanted = [(a, b) for a, b in rest if a < b]
        recomputed[turn] = sum(b - a for a, b in wanted)
        while event is not None and event[0] == turn:
            passed = [event[1:]]
            for index, tier in enumerate(contents):
                demoted[index, turn] += sum(high - low for _, low, high in passed)
                new, passed = tier.put(passed)
                written[index, turn] += new
            event = next(events, None)
    recomputed[:1] += turns.prefix_blocks
    return TierCounts(fetched, recomputed, demoted, written)

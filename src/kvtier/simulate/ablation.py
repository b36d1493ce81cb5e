"""Six mechanisms switched on and off under Revision 3, with HBM and the tier below in one replay.

The other replays let HBM decide alone and the tiers follow. Prefetching asks what the tier has, so here they run together. With neither
anchors nor prefetch it is :func:`kvtier.simulate.revision3.replay_edges` with :func:`kvtier.simulate.revision3.with_tiers`, count by count.

The factors, each off in the baseline:

- ``persistence``: a session's score survives its last evictable block. Without ``ema`` there is no score: such a cell is its neighbour
  without persistence, by definition and not for want of a run (:func:`alias`).
- ``ema``: the session of the smallest decayed frequency loses blocks; off, the one read longest ago (LRU).
- ``anchors``: the first blocks of each session, those over its first 100 tokens, stay in HBM from its first turn on. The published anchor
  zone counts from the start of the path, which is the shared prefix; that is in every path and never leaves, so the published zone has
  nothing to decide here. These blocks take room: 7 a session. They keep no score alive, so that this factor is not persistence by
  another name.
- ``suffix_first``: a session loses its deepest block first; off, its first, as ties in Revision 2 go.
- ``prefetch``: while a turn decodes, what the tier has of the next turn's session comes into HBM, ascending, as much as the link moves in
  that time and as fits beside the two sessions; the policy says what leaves for it. What is then resident as the next turn begins is a
  hit. The next turn is known, so this bounds what a prefetch rule can do. It touches no state of the policy.
- ``exclusive``: a block that comes up leaves the tier; off, the tier keeps its copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from kvtier.frames import Table
from kvtier.simulate.eviction import Ema, Eviction, Lru
from kvtier.simulate.factorial import On, cells
from kvtier.simulate.lower_tiers import Contents, Tier
from kvtier.simulate.metrics import DECODE_S, FETCH_S, TurnCounts, summarise
from kvtier.simulate.prefetch import ANCHOR_TOKENS
from kvtier.workload.turns import BLOCK_TOKENS, Turns

FACTORS = ("persistence", "ema", "anchors", "suffix_first", "prefetch", "exclusive")

ANCHOR_BLOCKS = -(-ANCHOR_TOKENS // BLOCK_TOKENS)
"""Blocks over the first 100 tokens: 7."""

Interval = tuple[int, int]
"""(first, stop): blocks of one session, as positions in it."""

CELLS = Table(
    "cells of the ablation",
    {
        "alpha": pl.Float64,
        "seed": pl.Int64,
        **dict.fromkeys(FACTORS, pl.Boolean),
        "aliased": pl.Boolean,
        "counted_from": pl.Int64,
        "turns": pl.Int64,
        "hits": pl.Int64,
        "prefix_hits": pl.Int64,
        "prefetched": pl.Int64,
        "fetched": pl.Int64,
        "recomputed": pl.Int64,
        "hit_rate": pl.Float64,
        "prefix_hit_rate": pl.Float64,
        "stall_ms": pl.Float64,
    },
)
"""One row an alpha, seed and cell, of the counted turns. Rates are percent of blocks read; `prefetched` hits came ahead of their turn."""


@dataclass(frozen=True)
class Counts:
    """What happened in each turn; arrays of int64, shape (turns,).

    Parameters
    ----------
    hits, prefix_hits : ndarray
        Block hits, and those of them with nothing missing before them on the path.
    prefetched : ndarray
        Blocks of the turn that came into HBM ahead of it; all are hits.
    fetched, recomputed : ndarray
        Blocks read that were in the tier alone, and in neither.
    resident : ndarray
        Blocks in HBM once the turn has been served and the next one's have come, the prefix apart.
    """

    hits: np.ndarray
    prefix_hits: np.ndarray
    prefetched: np.ndarray
    fetched: np.ndarray
    recomputed: np.ndarray
    resident: np.ndarray


def alias(on: On) -> On:
    """The cell that is the same by definition: without a score none can persist."""
    return on if "ema" in on else on - {"persistence"}


def replay(turns: Turns, on: On, hbm_blocks: int, tier_blocks: int, alpha: float) -> Counts:
    """Replay a workload with some of the mechanisms.

    Parameters
    ----------
    turns : Turns
    on : frozenset of str
        Among ``FACTORS``.
    hbm_blocks, tier_blocks : int
        Capacities of HBM and of the tier below.
    alpha : float
        Weight of the newest turn in the decayed frequency.

    Returns
    -------
    Counts

    Raises
    ------
    ValueError
        If a factor is unknown, or HBM does not hold the prefix and all anchors.
    """
    if unknown := on - set(FACTORS):
        raise ValueError(f"factors {sorted(unknown)}: expected some of {', '.join(FACTORS)}")
    sessions = len(turns.context_blocks)
    room = hbm_blocks - turns.prefix_blocks
    anchor_blocks = ANCHOR_BLOCKS if "anchors" in on else 0
    if room < anchor_blocks * sessions:
        raise ValueError(
            f"hbm_blocks {hbm_blocks}: expected {turns.prefix_blocks + anchor_blocks * sessions} for the prefix and all anchors"
        )
    policy: Eviction = Ema(hbm_blocks, alpha, "persistence" in on) if "ema" in on else Lru(hbm_blocks)
    hbm = _Hbm(policy, sessions, suffix_first="suffix_first" in on)
    tier = Contents(Tier("CXL", tier_blocks, "exclusive" in on))
    columns = np.zeros((6, len(turns.session)), dtype=np.int64)
    hits, prefix_hits, prefetched, fetched, recomputed, resident = columns

    reads = (turns.read_blocks - turns.prefix_blocks).tolist()
    session_of, tokens = turns.session.tolist(), turns.decode_tokens.tolist()
    ahead: list[Interval] = []
    for turn, (session, context, grown) in enumerate(zip(session_of, reads, turns.growth_blocks.tolist(), strict=True)):
        present = _union([*hbm.parts(session), *ahead])
        missing = _gaps(present, context)
        found, of_prefix = _blocks(present), turns.prefix_blocks if turn else 0
        hits[turn], prefetched[turn] = of_prefix + found, _blocks(ahead)
        prefix_hits[turn] = of_prefix + (present[0][1] if present and not present[0][0] else 0)
        from_tier = _in_tier(tier, session, missing)
        fetched[turn] = _blocks(from_tier)
        recomputed[turn] = _blocks(missing) - fetched[turn] + turns.prefix_blocks - of_prefix
        if tier.tier.exclusive:
            for part in from_tier:
                tier.take(session, *part)

        policy.asked(session, turn, found)
        whole = context + grown
        kept = min(whole, room - (sum(hbm.anchored) - hbm.anchored[session]))
        leaving = hbm.make_room(hbm.used - found + kept - room, {session})
        hbm.serve(session, turn, found, kept, min(anchor_blocks, kept))
        for interval in [*leaving, *([(session, kept, whole)] if kept < whole else [])]:
            tier.put([interval])

        ahead = []
        if "prefetch" in on and turn + 1 < len(session_of):
            coming = session_of[turn + 1]
            wanted = _in_tier(tier, coming, _gaps(_union(hbm.parts(coming)), reads[turn + 1]))
            beside = room - sum(hbm.anchored) - sum(hbm.high[one] - hbm.low[one] for one in {session, coming})
            ahead = _first(wanted, min(beside, int(tokens[turn] * DECODE_S / FETCH_S)))
            if tier.tier.exclusive:
                for part in ahead:
                    tier.take(coming, *part)
            blocks = _blocks(ahead)
            for interval in hbm.make_room(hbm.used + blocks - room, {session, coming}):
                tier.put([interval])
            hbm.used += blocks
        resident[turn] = hbm.used
    return Counts(*columns)


class _Hbm:
    """Of each session, blocks 0 to ``anchored - 1`` and ``low`` to ``high - 1`` are resident; the policy sees the latter."""

    def __init__(self, policy: Eviction, sessions: int, *, suffix_first: bool) -> None:
        self.policy, self.suffix_first = policy, suffix_first
        self.anchored, self.low, self.high = [0] * sessions, [0] * sessions, [0] * sessions
        self.used = 0

    def parts(self, session: int) -> list[Interval]:
        return [(0, self.anchored[session]), (self.low[session], self.high[session])]

    def make_room(self, blocks: int, pinned: set[int]) -> list[tuple[int, int, int]]:
        """Evict so many blocks; (session, first, stop) in order."""
        left = []
        while blocks > 0:
            session = self.policy.victim(pinned)
            low, high = self.low[session], self.high[session]
            most = min(blocks, high - low)
            first, stop = (high - most, high) if self.suffix_first else (low, low + most)
            self.low[session], self.high[session] = (low, first) if self.suffix_first else (stop, high)
            self.policy.lost(session, high - low - most)
            left.append((session, first, stop))
            blocks -= most
            self.used -= most
        return left

    def serve(self, session: int, turn: int, found: int, kept: int, anchored: int) -> None:
        self.used += kept - found
        self.anchored[session], self.low[session], self.high[session] = anchored, anchored, kept
        self.policy.read(session, turn, kept - anchored)


def _blocks(parts: list[Interval]) -> int:
    return sum(stop - first for first, stop in parts)


def _union(parts: list[Interval]) -> list[Interval]:
    """Ascending, neighbours in one; the parts share no block."""
    whole: list[Interval] = []
    for first, stop in sorted(part for part in parts if part[0] < part[1]):
        if whole and whole[-1][1] == first:
            first = whole.pop()[0]
        whole.append((first, stop))
    return whole


def _gaps(present: list[Interval], context: int) -> list[Interval]:
    borders = [0, *(border for part in present for border in part), context]
    return [(first, stop) for first, stop in zip(borders[::2], borders[1::2], strict=True) if first < stop]


def _in_tier(tier: Contents, session: int, wanted: list[Interval]) -> list[Interval]:
    """What the tier has of some intervals, ascending."""
    return sorted((low, high) for first, stop in wanted for _, low, high in tier.overlaps(session, first, stop))


def _first(parts: list[Interval], most: int) -> list[Interval]:
    """The first so many blocks."""
    taken = []
    for first, stop in parts:
        stop = min(stop, first + most)
        if first < stop:
            taken.append((first, stop))
            most -= stop - first
    return taken


def ablate(turns: Turns, seed: int, hbm_blocks: int, tier_blocks: int, alphas: Sequence[float], counted_from: int) -> pl.DataFrame:
    """All 64 cells on one workload, for each alpha; cells without ``ema`` have none, and are replayed once.

    Parameters
    ----------
    turns : Turns
    seed : int
        Of the workload; a column of the result.
    hbm_blocks, tier_blocks : int
        Capacities.
    alphas : sequence of float
        Weights of the newest turn in the decayed frequency.
    counted_from : int
        First counted turn.

    Returns
    -------
    polars.DataFrame
        Columns of ``CELLS``; an aliased cell has the values of its neighbour.
    """
    counted, read = slice(counted_from, None), int(turns.read_blocks[counted_from:].sum())

    @cache
    def measured(on: On, alpha: float) -> dict[str, int | float]:
        counts = replay(turns, on, hbm_blocks, tier_blocks, alpha)
        none = np.zeros_like(counts.hits)
        summary = summarise(TurnCounts(counts.hits, counts.fetched, counts.recomputed, none, none), turns, counted_from)
        prefix_hits = int(counts.prefix_hits[counted].sum())
        return {
            **{name: summary[name] for name in ("turns", "hits", "fetched", "recomputed", "hit_rate", "stall_ms")},
            "prefix_hits": prefix_hits,
            "prefix_hit_rate": 100 * prefix_hits / read,
            "prefetched": int(counts.prefetched[counted].sum()),
        }

    rows = [
        {"alpha": alpha, "seed": seed, **{factor: factor in on for factor in FACTORS}}
        | {"aliased": alias(on) != on, "counted_from": counted_from}
        | measured(alias(on), alpha if "ema" in on else alphas[0])
        for alpha in alphas
        for on in cells(FACTORS)
    ]
    return CELLS.check(pl.DataFrame(rows))

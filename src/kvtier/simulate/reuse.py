"""LRU at every capacity from one pass over the turns: the reuse distances of whole contexts.

Neither LRU here is Revision 2's, which is no stack algorithm (below). Asked request by request, or with what a turn reads pinned, LRU is
one: what a cache of C blocks holds is the first C of one list, by last touch, that does not depend on C. So a read hits exactly from the
capacity on that reaches its place in the list, its reuse distance, and one pass gives the hits of all capacities (Mattson et al., IBM
Systems Journal 9, 1970). A Fenwick tree over turns counts what lies above (Bennett & Kruskal, IBM J. Res. Dev. 19, 1975; Olken, LBL-12370,
1981): it holds each session's blocks at its last turn, and a turn costs O(log turns), however many blocks it reads.

A turn touches its blocks in ascending order, the appended ones last, and every turn of a session touches all that the session has. So
the session's n blocks return together, past `between` blocks of the sessions read since, and the P prefix blocks return after one turn,
past the m blocks of its session. Two readings of LRU, both exact at every capacity C, smaller than a turn or not:

- ``requests``, as :func:`kvtier.simulate.requests.replay` does it. A block meets all others of its own run on its way, those behind it
  from the last turn and those before it from this one, and for the session's blocks the prefix too: all n hit if C ≥ P + n + between, or
  none does; all P hit if C ≥ P + m, or none does.
- ``lossless``: the cache is the first C blocks of prefix, this session's blocks, those of the session read before it, and so on, each
  run from its first block; what a turn reads and cannot keep is streamed. Hits: min(C, P), none at the first turn of all, and of the
  session's n blocks those that C reaches behind P + between.

Appended blocks are no reads and hit under neither; they belong to their session afterwards.

Which policies could be treated so? Those whose order of blocks does not depend on the capacity: then a smaller cache holds a part of what
a larger one holds (inclusion), no read is lost by growing, and one list serves all capacities. LRU is one, its order being the last
touch; MIN with its order of next requests, ties never requested again going to the lowest block; and LFU and EMA whose counts and scores
survive eviction, ties going to the oldest touch. All order by what was asked, never by what was resident, which is enough in a cache that
evicts one block for one block, the new block exempt at every capacity alike. FIFO is none: when a block entered depends on when it was
last evicted, so on C (Belady's anomaly, CACM 12, 1969). SIEVE's hand and S3-FIFO's queues are the same case. LFU and EMA that forget are
none either: what is forgotten depends on C.

Under Revision 2, which looks a turn up whole, LFU and EMA whose state persists include. A turn touches each block that it reads or
appends once, at the same turn whatever HBM holds, so counts, scores and keys do not depend on the capacity, and a touch never lowers a
key. A turn touches its hits, then admits all else and evicts the smallest (key, identity) as it goes; what stays is the highest of all
blocks seen so far, as many as fit, in whatever order they came. CXL changes that order alone. In floating point a touch raises the EMA
key by at least ln(1 + α − α²), as a score never exceeds 1 / (2 − α); from :data:`kvtier.audit.monotonicity.LEAST_ALPHA` up that is
millions of times the rounding. Its LRU does not include: hits are touched before misses are admitted, so the order inside a turn depends
on what was resident, and a turn that outgrows HBM may keep less of the prefix in the larger one. Nor does Revision 1: it forgets, and has
its defect.

``tests/simulate/test_inclusion.py`` shows that those said to include do, and that others lose hits by growing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kvtier.simulate.metrics import require_capacities
from kvtier.workload.turns import Turns

SEMANTICS = ("requests", "lossless")


@dataclass(frozen=True)
class Distances:
    """What each turn's reads have to reach past; integer arrays of shape (turns,), -1 where blocks are read for the first time.

    Parameters
    ----------
    prefix : int
        Blocks of the prefix.
    own : ndarray of int64
        Blocks that the session has when the turn reads it, without the prefix.
    between : ndarray of int64
        Blocks of the distinct other sessions read since the session's last turn, as large as those sessions then were.
    previous : ndarray of int64
        Blocks of the session of the turn before, what it appended included.
    """

    prefix: int
    own: np.ndarray
    between: np.ndarray
    previous: np.ndarray


def distances(turns: Turns) -> Distances:
    """Reuse distances of the reads of each turn, in O(turns · log turns).

    Parameters
    ----------
    turns : Turns

    Returns
    -------
    Distances
    """
    own = turns.read_blocks - turns.prefix_blocks
    after = own + turns.growth_blocks
    between = np.full(len(own), -1, dtype=np.int64)
    # Node i of the Fenwick tree sums the (i & -i) turns up to i, numbered from 1; a session weighs at its last turn only.
    tree, whole, last = [0] * (len(own) + 1), 0, {}

    def add(node: int, blocks: int) -> None:
        while node < len(tree):
            tree[node] += blocks
            node += node & -node

    for turn, (session, blocks, left) in enumerate(zip(turns.session.tolist(), own.tolist(), after.tolist(), strict=True)):
        if session in last:
            node = seen = last[session] + 1
            until = 0
            while node:
                until += tree[node]
                node &= node - 1
            between[turn] = whole - until
            add(seen, -blocks)
            whole -= blocks
        add(turn + 1, left)
        whole += left
        last[session] = turn
    previous = np.concatenate([[-1], after[:-1]]) if len(own) else own
    return Distances(turns.prefix_blocks, own, between, previous)


def _ramps(turns: Turns, semantics: str, counted_from: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits of each counted turn's reads: `slope` for each block of capacity from `start` to `start + length`; shape (2, turns) each."""
    if semantics not in SEMANTICS:
        raise ValueError(f"semantics {semantics!r}: expected one of {', '.join(SEMANTICS)}")
    found = distances(turns)
    own, between, previous = (part[counted_from:] for part in (found.own, found.between, found.previous))
    prefix = np.full(len(own), found.prefix)
    returns = np.array([previous >= 0, between >= 0])
    blocks = np.where(returns, [prefix, own], 0)
    if semantics == "lossless":
        return np.array([prefix * 0, prefix + between]), blocks, np.ones_like(blocks)
    # All at once, on reaching the last block of the run.
    return np.array([prefix + previous, prefix + own + between]) - 1, np.ones_like(blocks), blocks


@dataclass(frozen=True)
class HitCurve:
    """Hits at every capacity: linear between the points, level after the last.

    Parameters
    ----------
    capacity_blocks : ndarray of int64, shape (points,)
        Ascending, from 0.
    hits : ndarray of int64, shape (points,)
        Blocks read that hit, over all counted turns. Between two points every block of capacity adds the same whole number.
    """

    capacity_blocks: np.ndarray
    hits: np.ndarray

    def at(self, capacities: Iterable[int]) -> np.ndarray:
        """Hits at whole capacities, shape (capacities,), int64.

        Raises
        ------
        ValueError
            If a capacity is negative.
        """
        asked = np.array(list(capacities), dtype=np.int64)
        if (asked < 0).any():
            raise ValueError(f"capacity {asked.min()} blocks: expected none or more")
        left = np.searchsorted(self.capacity_blocks, asked, side="right") - 1
        slope = np.append(np.diff(self.hits) // np.diff(self.capacity_blocks), 0)
        return self.hits[left] + slope[left] * (asked - self.capacity_blocks[left])


def hit_curve(turns: Turns, semantics: str = "requests", counted_from: int = 0) -> HitCurve:
    """Hits of LRU at every capacity at once.

    Parameters
    ----------
    turns : Turns
    semantics : {'requests', 'lossless'}
        Which LRU; see the module.
    counted_from : int
        First counted turn; earlier ones are warm-up.

    Returns
    -------
    HitCurve
        Exact; of steps under ``requests``, of ramps of one block a block under ``lossless``.

    Raises
    ------
    ValueError
        If there are no such semantics.
    """
    start, length, slope = _ramps(turns, semantics, counted_from)
    some = slope * length > 0
    start, length, slope = start[some], length[some], slope[some]
    changes = np.concatenate([[0], start, start + length])
    capacity_blocks, point = np.unique(changes, return_inverse=True)
    bends = np.zeros(len(capacity_blocks), dtype=np.int64)
    np.add.at(bends, point, np.concatenate([[0], slope, -slope]))
    gained = np.cumsum(bends)[:-1] * np.diff(capacity_blocks)
    return HitCurve(capacity_blocks, np.concatenate([[0], np.cumsum(gained)]))


def hits(turns: Turns, capacities: Iterable[int], semantics: str = "requests", counted_from: int = 0) -> np.ndarray:
    """Hits of LRU over the counted turns at each capacity [blocks], shape (capacities,), int64; see :func:`hit_curve`."""
    return hit_curve(turns, semantics, counted_from).at(capacities)


def turn_hits(turns: Turns, capacity_blocks: int, semantics: str = "requests") -> np.ndarray:
    """Hits of each turn at one capacity, shape (turns,), int64: what a replay would count.

    Raises
    ------
    ValueError
        If there are no such semantics, or the capacity is negative.
    """
    require_capacities(capacity_blocks=capacity_blocks)
    start, length, slope = _ramps(turns, semantics, 0)
    return (slope * np.clip(capacity_blocks - start, 0, length)).sum(axis=0)

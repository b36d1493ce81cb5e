"""Traffic of a tier: the metrics of the formal core (SPEC §8), from counts.

A promotion moves a block up, to HBM; a demotion moves it down. KV blocks are written once, so a copy below never goes stale: the
second demotion of a block whose copy is still there moves nothing, it is a free discard.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kvtier.workload.turns import BLOCK_BYTES, Turns


@dataclass(frozen=True)
class Traffic:
    """Blocks of one size that moved, were needed and were read in a run.

    Parameters
    ----------
    promotions : int
        Σ n_b: blocks moved up, prefetches included.
    demotions : int
        Σ δ_b: blocks moved down; free discards are none.
    unique : int
        Distinct blocks that the computation reads: U / M.
    resident_reads : int
        Reads of blocks that were resident when the turn came to read them.
    tokens : int
        Tokens generated.
    block_bytes : int
        M [B].
    """

    promotions: int
    demotions: int
    unique: int
    resident_reads: int
    tokens: int
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise ValueError(f"{name} {value}: expected 0 or more")

    @property
    def a_read(self) -> float | None:
        """A_read = Σ n_b·M_b / U: promotions a needed byte. None if nothing is needed."""
        return self.promotions / self.unique if self.unique else None

    @property
    def a_traffic(self) -> float | None:
        """A_traffic = Σ (n_b + δ_b)·M_b / U. None if nothing is needed.

        If every needed block goes down and comes back, it is at least 2, and 2 only if each does so once. A block that never leaves
        adds nothing, so a run may have less.
        """
        return (self.promotions + self.demotions) / self.unique if self.unique else None

    @property
    def reuse_ratio(self) -> float | None:
        """Σ (reads while resident)·M_b / Σ (n_b + δ_b)·M_b: what is read in HBM for a byte moved. None if nothing moved."""
        moved = self.promotions + self.demotions
        return self.resident_reads / moved if moved else None

    @property
    def tier_bytes_per_token(self) -> float | None:
        """Bytes over the link, both directions, a generated token [B]. None if no token was generated."""
        return (self.promotions + self.demotions) * self.block_bytes / self.tokens if self.tokens else None


class Ledger:
    """Promotions and demotions of each block under write-once, one event after the other: the definitions, to check counts with.

    A block is *resident* once it was made or promoted, until it is demoted.
    """

    def __init__(self) -> None:
        self.promoted: dict[int, int] = {}
        self.demoted: dict[int, int] = {}
        self.read_blocks: set[int] = set()
        self.resident_reads = 0
        self._resident: set[int] = set()
        self._below: set[int] = set()

    def make(self, block: int) -> None:
        """The block is computed, or generated: it is in HBM."""
        self._resident.add(block)

    def read(self, block: int) -> None:
        """A turn reads the block.

        Raises
        ------
        ValueError
            If it is not resident: a read under lossless residency is preceded by a promotion.
        """
        if block not in self._resident:
            raise ValueError(f"block {block} is read and not resident")
        self.read_blocks.add(block)
        self.resident_reads += 1

    def promote(self, block: int) -> None:
        """The block is copied up; the copy below stays.

        Raises
        ------
        ValueError
            If the tier does not have it.
        """
        if block not in self._below:
            raise ValueError(f"block {block} is promoted and the tier does not have it")
        self.promoted[block] = self.promoted.get(block, 0) + 1
        self._resident.add(block)

    def demote(self, block: int) -> bool:
        """The block leaves HBM; whether bytes moved.

        Raises
        ------
        ValueError
            If it is not resident.
        """
        if block not in self._resident:
            raise ValueError(f"block {block} is demoted and not resident")
        self._resident.remove(block)
        if block in self._below:
            return False
        self._below.add(block)
        self.demoted[block] = self.demoted.get(block, 0) + 1
        return True

    def drop(self, block: int) -> None:
        """The tier loses its copy: the next demotion moves bytes again."""
        self._below.discard(block)

    def traffic(self, tokens: int = 0) -> Traffic:
        """Totals so far."""
        return Traffic(sum(self.promoted.values()), sum(self.demoted.values()), len(self.read_blocks), self.resident_reads, tokens)


def from_counts(turns: Turns, resident: np.ndarray, promoted: np.ndarray, demoted: np.ndarray, counted_from: int = 0) -> Traffic:
    """Traffic of the counted turns of a run.

    Parameters
    ----------
    turns : Turns
        The workload.
    resident, promoted, demoted : ndarray of int, shape (turns,)
        Blocks that each turn read in HBM (hits), that moved up, and that moved down (first demotions alone under write-once).
    counted_from : int
        First counted turn.

    Returns
    -------
    Traffic

    Raises
    ------
    ValueError
        If an array has another length.
    """
    for name, blocks in (("resident", resident), ("promoted", promoted), ("demoted", demoted)):
        if len(blocks) != len(turns.session):
            raise ValueError(f"{name}: expected {len(turns.session)} turns, found {len(blocks)}")
    totals = (int(np.asarray(blocks)[counted_from:].sum()) for blocks in (promoted, demoted))
    reads, tokens = int(np.asarray(resident)[counted_from:].sum()), int(turns.decode_tokens[counted_from:].sum())
    return Traffic(*totals, needed_blocks(turns, counted_from), reads, tokens)


def needed_blocks(turns: Turns, counted_from: int = 0) -> int:
    """Distinct blocks that the counted turns read: the prefix, and of each session what its last turn reads."""
    last = dict(zip(turns.session[counted_from:].tolist(), turns.read_blocks[counted_from:].tolist(), strict=True))
    return (turns.prefix_blocks if last else 0) + sum(blocks - turns.prefix_blocks for blocks in last.values())


def first_demotions(leaving: Iterable[tuple[int, int, int, int]], turns: int) -> np.ndarray:
    """Blocks that each turn sends down for the first time: all that moves if the tier never drops a block.

    Parameters
    ----------
    leaving : iterable of (turn, session, first, stop)
        Intervals that leave HBM, in order of time, as :data:`kvtier.simulate.lossless.OnEvict` tells them.
    turns : int
        Number of turns.

    Returns
    -------
    ndarray of int64, shape (turns,)
    """
    below: dict[int, set[int]] = {}
    first_time = np.zeros(turns, dtype=np.int64)
    for turn, session, first, stop in leaving:
        copies = below.setdefault(session, set())
        before = len(copies)
        copies.update(range(first, stop))
        first_time[turn] += len(copies) - before
    return first_time


def hbm_byte_seconds(resident_blocks: Sequence[int], times_s: Sequence[float], block_bytes: int = BLOCK_BYTES) -> float:
    """HBM byte-time Σ M·x·Δt [B·s].

    Parameters
    ----------
    resident_blocks : sequence of int, shape (intervals,)
        Blocks in HBM during each interval.
    times_s : sequence of float, shape (intervals + 1,)
        Ends of the intervals, ascending [s].
    block_bytes : int
        M [B].

    Raises
    ------
    ValueError
        If the lengths do not fit, a number of blocks is negative, or time runs backwards.
    """
    if len(times_s) != len(resident_blocks) + 1:
        raise ValueError(f"{len(resident_blocks)} intervals have {len(resident_blocks) + 1} ends, found {len(times_s)}")
    lengths = [after - before for before, after in pairwise(times_s)]
    if any(not length >= 0 for length in lengths) or any(blocks < 0 for blocks in resident_blocks):
        raise ValueError("expected ascending times and 0 or more blocks")
    return block_bytes * math.fsum(int(blocks) * length for blocks, length in zip(resident_blocks, lengths, strict=True))


def prefetch_accuracy(used: int, prefetched: int) -> float | None:
    """Prefetched blocks that were read, over prefetched blocks. None if nothing was prefetched.

    Raises
    ------
    ValueError
        If not 0 <= used <= prefetched.
    """
    if not 0 <= used <= prefetched:
        raise ValueError(f"used {used} of {prefetched}: expected 0 <= used <= prefetched")
    return used / prefetched if prefetched else None

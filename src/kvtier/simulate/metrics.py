"""From per-turn counts to rates and stall: the same arithmetic for the reference and the compiled engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvtier.workload.turns import BLOCK_BYTES, BLOCK_TOKENS, Turns

FETCH_S = BLOCK_BYTES / 64e9 + 300e-9
"""Time to fetch one block from CXL: 64 GB/s and 300 ns, both assumed [s] (SPEC §4)."""

RECOMPUTE_S = 2 * 70e9 * BLOCK_TOKENS / 125e12
"""Time to regenerate one block: the linear term at 125 TFLOP/s effective, assumed [s] (SPEC §4)."""

DECODE_S = (140e9 / 4) / 3.35e12
"""Time of one decode step that hides a fetch: a quarter of the weights at 3.35 TB/s, assumed [s] (SPEC §4)."""


def capacity_blocks(gib: float) -> int:
    """Whole blocks that fit in `gib` GiB."""
    return int(gib * 2**30 // BLOCK_BYTES)


def require_capacities(**blocks: int) -> None:
    """Refuse capacities, by name, that are negative.

    Raises
    ------
    ValueError
        Naming the first of them.
    """
    for name, capacity in blocks.items():
        if capacity < 0:
            raise ValueError(f"{name} {capacity}: expected 0 or more")


@dataclass(frozen=True)
class TurnCounts:
    """What happened in each turn; integer arrays of shape (turns,).

    Parameters
    ----------
    hits, fetched, recomputed : ndarray of int64
        Blocks read that were in HBM, only in CXL, in neither.
    evictions : ndarray of int64
        Blocks evicted from HBM while the turn was served.
    evictions_from_read_set : ndarray of int64
        Those of them that belong to what the turn reads or generates.
    """

    hits: np.ndarray
    fetched: np.ndarray
    recomputed: np.ndarray
    evictions: np.ndarray
    evictions_from_read_set: np.ndarray


def summarise(counts: TurnCounts, turns: Turns, counted_from: int, *, overlap: bool = False) -> dict[str, int | float]:
    """Rates and mean stall over the counted turns, evictions over all turns.

    Parameters
    ----------
    counts : TurnCounts
    turns : Turns
        The workload that was replayed; gives the decode time that hides fetches.
    counted_from : int
        First counted turn; earlier ones are warm-up.
    overlap : bool
        Whether a turn's fetches hide behind its decode steps.

    Returns
    -------
    dict
        ``turns`` counted; ``hits``, ``fetched``, ``recomputed`` [blocks]; ``hit_rate``, ``cxl_rate``, ``cold_rate`` [% of blocks
        read]; ``stall_ms``, ``fetch_ms``, ``recompute_ms`` [ms per counted turn]; ``evictions``, ``evictions_from_read_set``.
    """
    counted = range(counted_from, len(turns.session))
    fetch_s = recompute_s = 0.0
    for turn in counted:
        turn_fetch_s = float(counts.fetched[turn]) * FETCH_S
        if overlap:
            turn_fetch_s = max(0.0, turn_fetch_s - float(turns.decode_tokens[turn]) * DECODE_S)
        fetch_s += turn_fetch_s
        recompute_s += float(counts.recomputed[turn]) * RECOMPUTE_S
    hits, fetched, recomputed = (int(part[counted_from:].sum()) for part in (counts.hits, counts.fetched, counts.recomputed))
    read = hits + fetched + recomputed
    fetch_ms, recompute_ms = 1e3 * fetch_s / len(counted), 1e3 * recompute_s / len(counted)
    return {
        "turns": len(counted),
        "hits": hits,
        "fetched": fetched,
        "recomputed": recomputed,
        "hit_rate": 100 * hits / read,
        "cxl_rate": 100 * fetched / read,
        "cold_rate": 100 * recomputed / read,
        "stall_ms": fetch_ms + recompute_ms,
        "fetch_ms": fetch_ms,
        "recompute_ms": recompute_ms,
        "evictions": int(counts.evictions.sum()),
        "evictions_from_read_set": int(counts.evictions_from_read_set.sum()),
    }

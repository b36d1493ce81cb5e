"""Computing a block again: its cost by position, what must be there first, and when a tier is worth asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from kvtier.workload.turns import BLOCK_TOKENS


class Where(IntEnum):
    """Where the only usable copy of a block is."""

    RESIDENT = 0
    TIER = 1
    ABSENT = 2


@dataclass(frozen=True)
class Compute:
    """Forward compute of blocks, the attention to what stands before them included.

    A block of 16 tokens whose first token has position p costs 2 · parameters · 16 + 4 · layers · hidden · 16 · p FLOP: a multiply and
    an add a parameter and token; scores and weighted sum over p positions in each layer (Kaplan et al. 2020, table 1, whose causal mean is
    written out by position here). Attention inside the block, at most 16 positions, is left out.

    Parameters
    ----------
    parameters, layers, hidden : int
        Llama-3 70B by default (SPEC §2).
    tflops : float
        Effective rate [TFLOP/s]; 125 is assumed (SPEC §4).
    """

    parameters: int = 70 * 10**9
    layers: int = 80
    hidden: int = 8192
    tflops: float = 125.0

    def __post_init__(self) -> None:
        if min(self.parameters, self.layers, self.hidden) < 0 or not self.tflops > 0:
            raise ValueError(f"{self}: expected sizes of 0 or more and a positive rate")

    def run_flop(self, first: int, stop: int) -> int:
        """FLOP of blocks ``first`` to ``stop - 1``, positions counted from the start of the context; exact, in closed form.

        Raises
        ------
        ValueError
            If the run is not 0 <= first <= stop.
        """
        if not 0 <= first <= stop:
            raise ValueError(f"blocks {first} to {stop}: expected 0 <= first <= stop")
        blocks, sum_of_blocks = stop - first, (stop - first) * (first + stop - 1) // 2
        linear = 2 * self.parameters * BLOCK_TOKENS
        attention = 4 * self.layers * self.hidden * BLOCK_TOKENS * BLOCK_TOKENS
        return blocks * linear + sum_of_blocks * attention

    def seconds(self, flop: int) -> float:
        """Time of so many operations [s]."""
        return flop / (self.tflops * 1e12)

    def run_s(self, first: int, stop: int) -> float:
        """Time of blocks ``first`` to ``stop - 1``, what stands before them being resident [s]. Block 0: 17.92 ms."""
        return self.seconds(self.run_flop(first, stop))


def choose(first: int, stop: int, fetch_s: float, compute: Compute) -> int:
    """Which of the blocks ``first`` to ``stop - 1``, all in the tier and all wanted, to compute again rather than fetch.

    Parameters
    ----------
    first, stop : int
        The run.
    fetch_s : float
        Time to fetch a block, queueing included if the caller knows it [s].
    compute : Compute

    Returns
    -------
    int
        The cut: blocks before it are computed again, blocks from it on are fetched. A block is fetched only if that is faster, so a tie
        goes to the GPU and a tier slower than it is never used. One cut is enough: regeneration gets dearer with position and a fetch
        does not. The choice is block by block, because a turn wants the whole context: what stands before a block is there anyway.

    Raises
    ------
    ValueError
        If the time is negative, or the run is not one.
    """
    if not fetch_s >= 0:
        raise ValueError(f"fetch_s {fetch_s}: expected 0 or more")
    compute.run_flop(first, stop)
    low, high = first, stop
    while low < high:
        middle = (low + high) // 2
        if fetch_s < compute.run_s(middle, middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class Plan:
    """What it takes to have some blocks.

    Parameters
    ----------
    fetched, recomputed : tuple of int
        Blocks, ascending.
    fetch_s, recompute_s : float
        Time of each kind [s]; one after the other they add up.
    overlapped_s : float
        End of both if they run side by side, in ascending order, and no block is computed before all that stand before it are there [s].
    """

    fetched: tuple[int, ...]
    recomputed: tuple[int, ...]
    fetch_s: float
    recompute_s: float
    overlapped_s: float


def _schedule(fetched: list[int], recomputed: list[int], fetch_s: float, compute: Compute) -> Plan:
    gpu_s, before = 0.0, 0
    for block in recomputed:
        while before < len(fetched) and fetched[before] < block:
            before += 1
        gpu_s = max(gpu_s, before * fetch_s) + compute.run_s(block, block + 1)
    link_s = len(fetched) * fetch_s
    compute_s = compute.seconds(sum(compute.run_flop(block, block + 1) for block in recomputed))
    return Plan(tuple(fetched), tuple(recomputed), link_s, compute_s, max(gpu_s, link_s))


def _may_recompute(where: Sequence[Where], block: int, fetch_s: float, compute: Compute) -> bool:
    return where[block] is Where.ABSENT or fetch_s >= compute.run_s(block, block + 1)


def whole_context(where: Sequence[Where], fetch_s: float, compute: Compute) -> Plan:
    """Have all blocks of a context: what is resident stays, what is in the tier is fetched or computed, whichever is faster.

    Parameters
    ----------
    where : sequence of Where, one a block of the context
    fetch_s : float
        Time to fetch a block [s].
    compute : Compute

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If the time is negative.
    """
    if not fetch_s >= 0:
        raise ValueError(f"fetch_s {fetch_s}: expected 0 or more")
    missing = [block for block, place in enumerate(where) if place is not Where.RESIDENT]
    recomputed = [block for block in missing if _may_recompute(where, block, fetch_s, compute)]
    again = set(recomputed)
    return _schedule([block for block in missing if block not in again], recomputed, fetch_s, compute)


def regenerate(hole: int, where: Sequence[Where], fetch_s: float, compute: Compute) -> Plan:
    """Compute one interior block again: all that stands before it must be resident, so what is missing there is fetched or computed too.

    Parameters
    ----------
    hole : int
        The block.
    where : sequence of Where, one a block up to `hole` at least
    fetch_s : float
        Time to fetch a block [s].
    compute : Compute

    Returns
    -------
    Plan
        A block that the tier has can be fetched alone; one that must be computed drags in all before it. That is why a tier that drops the
        first blocks of a context makes the copies of the later ones worth less.

    Raises
    ------
    ValueError
        If the context is shorter than the hole, or the time is negative.
    """
    if not 0 <= hole < len(where):
        raise ValueError(f"block {hole}: expected one of the {len(where)} of the context")
    before = whole_context(where[:hole], fetch_s, compute)
    return _schedule(list(before.fetched), [*before.recomputed, hole], fetch_s, compute)

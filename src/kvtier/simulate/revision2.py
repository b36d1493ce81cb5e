"""Revision 2 of the tiering simulator: the readable reference, block by block, exactly SPEC §4.

It breaks the study's own lossless constraint (it may evict what it is reading, SPEC §9 D1); that is kept, because it decides the
published records. :mod:`kvtier.simulate.engine` makes the same decisions faster.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from kvtier.simulate.metrics import TurnCounts
from kvtier.simulate.policies import REVISION2, Policy
from kvtier.workload.turns import Turns


class Hbm:
    """Resident blocks under one policy.

    Every policy keeps one key a resident block, of which the smallest is the victim, ties to the lowest identity. For the decayed
    score the key is K = ln s + t·(−ln(1 − α)): it orders as the score decayed to any later time does, so no key is ever revised.

    Parameters
    ----------
    policy : Policy
    capacity_blocks : int

    Raises
    ------
    ValueError
        If Revision 2 does not know the policy.
    """

    def __init__(self, policy: Policy, capacity_blocks: int) -> None:
        if policy.name not in REVISION2:
            raise ValueError(f"policy {policy.name!r}: Revision 2 knows {', '.join(REVISION2)}")
        self.policy, self.capacity_blocks = policy, capacity_blocks
        self.key: dict[int, float] = {}
        self.count: dict[int, int] = {}
        self.score: dict[int, tuple[float, int]] = {}
        self._touches = 0
        self._queue: list[tuple[float, int]] = []

    def __contains__(self, block: int) -> bool:
        return block in self.key

    def touch(self, block: int, turn: int) -> None:
        """Renew the block's key; a block that was not resident becomes so."""
        self._touches += 1
        if self.policy.name == "lru":
            key = float(self._touches)
        elif self.policy.name == "lfu":
            self.count[block] = self.count.get(block, 0) + 1
            key = float(self.count[block])
        else:
            alpha = self.policy.alpha
            score, touched = self.score.get(block, (0.0, turn))
            score = alpha + (1 - alpha) * (score * (1 - alpha) ** (turn - touched))
            self.score[block] = (score, turn)
            key = math.log(score) + turn * -math.log(1 - alpha)
        self.key[block] = key
        heapq.heappush(self._queue, (key, block))

    def admit(self, block: int, turn: int) -> list[int]:
        """Touch the block, then evict while over capacity; victims in order."""
        self.touch(block, turn)
        return [self._evict() for _ in range(len(self.key) - self.capacity_blocks)]

    def _evict(self) -> int:
        while True:
            key, victim = heapq.heappop(self._queue)
            # An entry that is not the block's present key was left behind by a later touch or by an eviction.
            if self.key.get(victim) == key:
                break
        del self.key[victim]
        if not self.policy.persistent:
            self.count.pop(victim, None)
            self.score.pop(victim, None)
        return victim


def simulate(
    turns: Turns,
    policy: Policy,
    hbm_blocks: int,
    cxl_blocks: int,
    on_evict: Callable[[int, int], None] | None = None,
) -> TurnCounts:
    """Replay a workload.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        Of HBM; CXL is LRU, and keeps its copy of a block that is fetched.
    hbm_blocks, cxl_blocks : int
        Capacities.
    on_evict : callable, optional
        Called with (turn, victim) at each eviction from HBM.

    Returns
    -------
    TurnCounts
    """
    hbm, cxl = Hbm(policy, hbm_blocks), OrderedDict()
    context = [int(blocks) for blocks in turns.context_blocks]
    counts = np.zeros((5, len(turns.session)), dtype=np.int64)

    for turn, session in enumerate(turns.session):
        first = int(turns.first_block[session])
        prefix, own = range(turns.prefix_blocks), range(first, first + context[session])
        grown = range(own.stop, own.stop + int(turns.growth_blocks[turn]))
        hits, fetch, recompute = 0, [], []
        for block in (*prefix, *own):
            if block in hbm:
                hbm.touch(block, turn)
                hits += 1
            else:
                (fetch if block in cxl else recompute).append(block)
        evicted = from_read_set = 0
        for block in (*fetch, *recompute, *grown):
            for victim in hbm.admit(block, turn):
                cxl[victim] = None
                cxl.move_to_end(victim)
                if len(cxl) > cxl_blocks:
                    cxl.popitem(last=False)
                evicted += 1
                from_read_set += victim < turns.prefix_blocks or own.start <= victim < grown.stop
                if on_evict:
                    on_evict(turn, victim)
        context[session] += len(grown)
        counts[:, turn] = hits, len(fetch), len(recompute), evicted, from_read_set
    return TurnCounts(*counts)

"""Brute-force victim audit: at each eviction, is there a resident block with a smaller score? (SPEC §5)

The audit keeps scores of its own, from the touches alone, and looks at every resident block: it shares no code with the heap
that it judges. On Revision 1 it finds the defect; on Revision 2 it must find nothing.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kvtier.audit.findings import Finding
from kvtier.simulate import revision1, revision2
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import Policy
from kvtier.workload.turns import Turns

TOLERANCE = 1e-12
"""A victim is wrong if its score exceeds the minimum by more than this (SPEC §5)."""

RELATIVE_TOLERANCE = 1e-9
"""The same, as a share of the minimum: it still tells scores apart that have decayed below ``TOLERANCE``."""


class Cache(Protocol):
    """What both revisions' caches can do."""

    def __contains__(self, block: int) -> bool: ...

    def touch(self, block: int, turn: int) -> None:
        """Renew a resident block."""

    def admit(self, block: int, turn: int) -> list[int]:
        """Bring a block in; return the victims in order."""


class Scores:
    """Scores of the resident blocks, kept by definition: recency, count or decayed frequency.

    Parameters
    ----------
    policy : Policy
    capacity_blocks : int
    """

    def __init__(self, policy: Policy, capacity_blocks: int) -> None:
        self.policy = policy
        self._slot: dict[int, int] = {}
        self._free = list(range(capacity_blocks + 1))
        self._value = np.full(capacity_blocks + 1, np.inf)
        self._touched = np.zeros(capacity_blocks + 1, dtype=np.int64)
        self._touches = 0

    def touch(self, block: int, turn: int) -> None:
        """Count a touch; a block that was not resident becomes so with no history."""
        self._touches += 1
        known = block in self._slot
        slot = self._slot[block] if known else self._slot.setdefault(block, self._free.pop())
        if self.policy.name == "lru":
            self._value[slot] = self._touches
        elif self.policy.name == "lfu":
            self._value[slot] = self._value[slot] + 1 if known else 1
        else:
            alpha = self.policy.alpha
            decayed = self._value[slot] * (1 - alpha) ** int(turn - self._touched[slot]) if known else 0.0
            self._value[slot] = alpha + (1 - alpha) * decayed
        self._touched[slot] = turn

    def of_victim(self, block: int, turn: int) -> tuple[float, float]:
        """The block's score and the smallest resident score at `turn`."""
        scores = self._value
        if self.policy.name == "ema":
            scores = self._value * (1 - self.policy.alpha) ** (turn - self._touched)
        return float(scores[self._slot[block]]), float(scores.min())

    def remove(self, block: int) -> None:
        """Forget a block."""
        slot = self._slot.pop(block)
        self._value[slot] = np.inf
        self._free.append(slot)


def count_wrong_victims(cache: Cache, policy: Policy, capacity_blocks: int, turns: Turns) -> tuple[int, int, int]:
    """Drive a cache through a workload, request by request, and judge each victim.

    Parameters
    ----------
    cache : Cache
        Empty.
    policy : Policy
        By which the victims are judged.
    capacity_blocks : int
    turns : Turns
        Contexts that do not grow.

    Returns
    -------
    (int, int, int)
        Wrong victims, victims wrong by the relative tolerance, evictions.
    """
    scores = Scores(policy, capacity_blocks)
    wrong = relatively_wrong = evictions = 0
    for turn, session in enumerate(turns.session):
        first = int(turns.first_block[session])
        for block in (*range(turns.prefix_blocks), *range(first, first + int(turns.context_blocks[session]))):
            scores.touch(block, turn)
            if block in cache:
                cache.touch(block, turn)
                continue
            for victim in cache.admit(block, turn):
                score, smallest = scores.of_victim(victim, turn)
                wrong += score - smallest > TOLERANCE
                relatively_wrong += score - smallest > RELATIVE_TOLERANCE * smallest
                evictions += 1
                scores.remove(victim)
    return wrong, relatively_wrong, evictions


def audit(revision: int, policy: Policy, turns: Turns, hbm_gib: float) -> tuple[Finding, Finding]:
    """Judge every victim of one revision under one policy.

    Parameters
    ----------
    revision : {1, 2}
    policy : Policy
    turns : Turns
        Contexts that do not grow.
    hbm_gib : float
        HBM budget [GiB].

    Returns
    -------
    (Finding, Finding)
        Evictions checked and wrong victims, by the published tolerance and by the relative one. Revision 2 must hold; Revision 1 is
        retained with its defect.
    """
    capacity = capacity_blocks(hbm_gib)
    cache = revision1.Cache(policy.name, policy.alpha, capacity) if revision == 1 else revision2.Hbm(policy, capacity)
    wrong, relatively_wrong, evictions = count_wrong_victims(cache, policy, capacity, turns)
    subject, must_hold = f"Revision {revision}, {policy.title}", revision != 1
    return (
        Finding("victims", subject, evictions, wrong, must_hold),
        Finding("victims, relative", subject, evictions, relatively_wrong, must_hold),
    )

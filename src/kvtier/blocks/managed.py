"""Operations of a scheduler step on many blocks at a time, compiled: what a production scheduler does with the records.

A :class:`Managed` table has a policy in charge of what HBM holds: LRU over a ring, LFU and EMA over a heap
(:mod:`kvtier.blocks.order`), their counts, times and scores in the 64-byte records. Payloads are not its business: it says which blocks
leave, takes and frees slots, and renews state; :class:`~kvtier.blocks.store.Store` moves payloads, one block a call, from Python.

State survives an eviction, as with the simulator's persistent policies, whose victims these are
(:class:`kvtier.simulate.eviction.Lru`, ``Lfu``, ``Ema``).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numba import njit

from kvtier.blocks import index
from kvtier.blocks.arena import Full, Slots
from kvtier.blocks.order import ABSENT, END, NEWER, OLDER, Ranking, Recency, enter, join, leave, withdraw
from kvtier.blocks.record import NO_SLOT, Tier
from kvtier.blocks.table import Table
from kvtier.errors import InputError

PolicyName = Literal["lru", "lfu", "ema"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
LRU, LFU, EMA = range(3)

NOWHERE = -1
"""Tier of a block without a copy."""

HBM = int(Tier.HBM)

# Not kept on disk: these call functions of other modules, whose changes a kept one would not see. They make no array (``_nrt``, see
# kvtier.simulate.compiled).
_compiled = njit(_nrt=False)


class Parts(NamedTuple):
    """Arrays of a managed table, as compiled functions take them: records' columns, index, free slots, order."""

    words: np.ndarray
    score: np.ndarray
    touched: np.ndarray
    count: np.ndarray
    slot: np.ndarray
    pins: np.ndarray
    index: np.ndarray
    free: np.ndarray
    links: np.ndarray
    ranks: np.ndarray
    stamps: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    size: np.ndarray
    stamp: np.ndarray


class Managed:
    """A table with a policy in charge of HBM.

    Parameters
    ----------
    table : Table
        Its rows must stay as they are: make a new one when blocks have been added or removed. Blocks that have a slot in HBM are in the
        order, by their state, ties by the time of the last touch.
    slots : Slots
        HBM's.
    policy : {'lru', 'lfu', 'ema'}
    alpha : float
        Weight of the newest touch, for EMA, in (0, 1).

    Raises
    ------
    InputError
        If the policy is another one or `alpha` is out of range.
    """

    def __init__(self, table: Table, slots: Slots, policy: PolicyName, alpha: float = 0.05) -> None:
        if policy not in POLICIES:
            raise InputError("managed table", "policy", repr(policy), f"one of {', '.join(POLICIES)}")
        if not 0 < alpha < 1:
            raise InputError("managed table", "alpha", alpha, "a number in (0, 1)")
        self.policy, self.alpha, self._table, self._slots = policy, alpha, table, slots
        self.kind = POLICIES.index(policy)
        blocks = len(table)
        resident = np.flatnonzero(table.slot[:blocks, HBM] != NO_SLOT)
        touched = table.touched[resident]
        self._order: Recency | Ranking
        if policy == "lru":
            self._order, ranking = Recency(blocks), Ranking(0)
            self._order.fill(resident[np.argsort(touched, kind="stable")])
            links = self._order.links
        else:
            self._order = ranking = Ranking(blocks)
            links = Recency(0).links
            if policy == "lfu":
                ranks = table.count[resident].astype(np.float64)
            else:
                ranks = np.log(table.score[resident]) + touched * -math.log(1 - alpha)
            ranking.fill(resident, ranks, touched)
        columns = (table.score, table.touched, table.count, table.slot, table.pins)
        self.parts = Parts(table.words, *columns, table.index, slots.stack, links, *ranking.heap, np.array([touched.max(initial=0) + 1]))

    @property
    def nbytes(self) -> int:
        """Bytes of records, index, free slots and order, what is free of them included [B]."""
        return self._table.nbytes + self._slots.nbytes + self._order.nbytes

    def lookup(self, identities: np.ndarray) -> np.ndarray:
        """Fastest tier with a copy, of each block.

        Parameters
        ----------
        identities : ndarray of int64, shape (blocks, 2)
            Both words of each identity, as :func:`kvtier.blocks.record.identity_of` packs them.

        Returns
        -------
        ndarray of int8, shape (blocks,)
            NOWHERE where a block has no copy or is not known.
        """
        tiers = np.empty(len(identities), dtype=np.int8)
        lookup(self.parts, identities, tiers)
        return tiers

    def touch(self, identities: np.ndarray, now: int) -> None:
        """Renew the state of blocks, and the place of those that are in HBM.

        Parameters
        ----------
        identities : ndarray of int64, shape (blocks, 2)
            Of known blocks, those nearest the root first: among equals the last one leaves first.
        now : int
            Time on the caller's clock, not before that of any touch.

        Raises
        ------
        InputError
            If a block is not known; those after it in `identities` have been touched.
        """
        untouched = touch(self.kind, self.alpha, self.parts, identities, now)
        if untouched:
            raise self._unknown(identities[untouched - 1])

    def evict(self, most: int) -> np.ndarray:
        """Take victims out of HBM, one after the other; pinned blocks are passed over.

        Parameters
        ----------
        most : int
            How many; there may be fewer.

        Returns
        -------
        ndarray of int64, shape (victims, 2)
            Their identities, in order.
        """
        victims = np.empty((most, 2), dtype=np.int64)
        evicted = evict(self.kind, self.parts, self._slots.free_slots, victims)
        self._slots.free_slots += evicted
        return victims[:evicted]

    def readmit(self, identities: np.ndarray, now: int) -> None:
        """Give known blocks that are not in HBM a slot there, and touch them.

        Parameters
        ----------
        identities, now
            As for :meth:`touch`.

        Raises
        ------
        Full
            If there are not that many free slots. Nothing has changed then.
        InputError
            If a block is not known or is in HBM; those after it in `identities` have been readmitted.
        """
        if len(identities) > self._slots.free_slots:
            raise Full(self._slots.name, "free slots", self._slots.free_slots, f"{len(identities)} or more")
        left = readmit(self.kind, self.alpha, self.parts, self._slots.free_slots, identities, now)
        self._slots.free_slots -= len(identities) - left
        if left:
            identity = identities[left - 1]
            if index.find(self.parts.index, self.parts.words, *identity) == index.EMPTY:
                raise self._unknown(identity)
            raise InputError(f"block {identity.tobytes().hex()}", "copy", "one in HBM", "none there")

    def _unknown(self, identity: np.ndarray) -> InputError:
        return InputError(f"block {identity.tobytes().hex()}", "identity", "no record", "a block that is known")


@_compiled
def lookup(parts, identities, tiers):
    """Fill in the fastest tier of each block.

    Parameters
    ----------
    parts : Parts
        Read alone.
    identities : ndarray of int64, shape (blocks, 2)
    tiers : ndarray of int64, shape (blocks,)
        Written: number of the tier, ``NOWHERE`` for a block that is not known or has no copy.
    """
    for position in range(len(identities)):
        tiers[position] = NOWHERE
        row = index.find(parts.index, parts.words, identities[position, 0], identities[position, 1])
        if row != index.EMPTY:
            for tier in range(parts.slot.shape[1]):
                if parts.slot[row, tier] != NO_SLOT:
                    tiers[position] = tier
                    break


@_compiled
def _renew(kind, alpha, parts, row, now):
    """Renew the state in the record; the rank that it gives. Expressions of :class:`kvtier.simulate.eviction.Ema`."""
    rank = 0.0
    if kind == EMA:
        score = parts.score[row] * math.pow(1 - alpha, now - parts.touched[row]) if parts.count[row] else 0.0
        score = alpha + (1 - alpha) * score
        parts.score[row] = score
        rank = math.log(score) + now * -math.log(1 - alpha)
    parts.touched[row] = now
    parts.count[row] += np.uint32(1)
    return float(parts.count[row]) if kind == LFU else rank


@_compiled
def _place(kind, parts, row, rank):
    """Enter the order, or move in it."""
    if kind == LRU:
        if parts.links[row + 1, OLDER] != ABSENT:
            leave(parts.links, row)
        join(parts.links, row)
    else:
        enter(parts.ranks, parts.stamps, parts.rows, parts.places, parts.size, row, rank, parts.stamp[0])
        parts.stamp[0] += 1


@_compiled
def touch(kind, alpha, parts, identities, now):
    """Touch blocks from the last to the first, so that of a path the deepest is the oldest.

    Parameters
    ----------
    kind : {LRU, LFU, EMA}
    alpha : float
        Weight of the newest touch, for EMA.
    parts : Parts
        Changed: state of the blocks, and the order of those that are in HBM.
    identities : ndarray of int64, shape (blocks, 2)
    now : int
        Turn of the touch; never less than that of an earlier one.

    Returns
    -------
    int
        Blocks that are left, the first that is not known the last of them; 0 if all were touched.
    """
    for left in range(len(identities), 0, -1):
        row = index.find(parts.index, parts.words, identities[left - 1, 0], identities[left - 1, 1])
        if row == index.EMPTY:
            return left
        rank = _renew(kind, alpha, parts, row, now)
        if parts.slot[row, HBM] != NO_SLOT:
            _place(kind, parts, row, rank)
    return 0


@_compiled
def _give_up(parts, row, free_slots, victims, evicted):
    """Free a victim's slot and name it."""
    parts.free[free_slots + evicted] = parts.slot[row, HBM]
    parts.slot[row, HBM] = NO_SLOT
    victims[evicted, 0], victims[evicted, 1] = parts.words[row, 0], parts.words[row, 1]


@_compiled
def evict(kind, parts, free_slots, victims):
    """Evict as many as `victims` has room for, as far as there are; pinned blocks are passed over.

    Parameters
    ----------
    kind : {LRU, LFU, EMA}
    parts : Parts
        Changed: order, slots of the victims, and the stack of free slots.
    free_slots : int
        Slots that are free already, by which the stack is as high.
    victims : ndarray of int64, shape (most, 2)
        Written: identities in order of eviction.

    Returns
    -------
    int
        How many were evicted.
    """
    if kind == LRU:
        return _evict_oldest(parts, free_slots, victims)
    return _evict_least(parts, free_slots, victims)


@_compiled
def _evict_oldest(parts, free_slots, victims):
    evicted, element = 0, parts.links[END, NEWER]
    while evicted < len(victims) and element != END:
        row, element = element - 1, parts.links[element, NEWER]
        if not parts.pins[row]:
            leave(parts.links, row)
            _give_up(parts, row, free_slots, victims, evicted)
            evicted += 1
    return evicted


@_compiled
def _evict_least(parts, free_slots, victims):
    ranks, stamps, rows, places, size = parts.ranks, parts.stamps, parts.rows, parts.places, parts.size
    evicted, aside, whole = 0, 0, size[0]
    while evicted < len(victims) and size[0]:
        row, rank, stamp = rows[0], ranks[0], stamps[0]
        withdraw(ranks, stamps, rows, places, size, row)
        if parts.pins[row]:
            # Behind the heap there is a free place for each row that has left it.
            aside += 1
            rows[whole - aside], ranks[whole - aside], stamps[whole - aside] = row, rank, stamp
        else:
            _give_up(parts, row, free_slots, victims, evicted)
            evicted += 1
    for place in range(whole - aside, whole):
        enter(ranks, stamps, rows, places, size, rows[place], ranks[place], stamps[place])
    return evicted


@_compiled
def readmit(kind, alpha, parts, free_slots, identities, now):
    """Readmit blocks from the last to the first, as :func:`touch` renews them.

    Parameters
    ----------
    kind, alpha, parts, identities, now
        As for :func:`touch`.
    free_slots : int
        Slots that are free, at least as many as there are blocks.

    Returns
    -------
    int
        Blocks that are left, the first that is not known or is in HBM already the last of them; 0 if all were readmitted.
    """
    for left in range(len(identities), 0, -1):
        row = index.find(parts.index, parts.words, identities[left - 1, 0], identities[left - 1, 1])
        if row == index.EMPTY or parts.slot[row, HBM] != NO_SLOT:
            return left
        parts.slot[row, HBM] = parts.free[free_slots - 1 - len(identities) + left]
        _place(kind, parts, row, _renew(kind, alpha, parts, row, now))
    return 0

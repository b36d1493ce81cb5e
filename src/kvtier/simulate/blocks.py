"""Compiled twins of the two published simulators, block by block: a second opinion on Revision 2, the only compiled form of Revision 1.

:func:`simulate` is the twin of :func:`kvtier.simulate.revision2.simulate`, :func:`simulate_revision1` that of
:func:`kvtier.simulate.revision1.simulate`. What makes them exact:

- Keys are computed by the reference's expressions in the reference's order, so equal blocks have bit-equal keys and ties are ties.
- The victim of Revision 2 is the smallest (key, identity). Touches of one turn that follow each other in ascending order with the
  same key form a group, and the heap holds groups, by key and first block. A block belongs to the group of its latest touch; what a
  group has lost is skipped when it comes to the top, and the heap is corrected until the top is a block that still belongs to it.
- Revision 1's queue is ordered by (entry, identity) as Python's ``heapq`` orders tuples; equal entries are interchangeable.

:mod:`kvtier.simulate.engine` makes Revision 2's decisions by extents and is what experiments of Revision 2 run;
those of Revision 1 run :func:`simulate_revision1`.
"""

from __future__ import annotations

import math

import numpy as np

from kvtier.simulate.compiled import compiled
from kvtier.simulate.metrics import TurnCounts, require_capacities
from kvtier.simulate.policies import Policy, decay
from kvtier.workload.turns import Turns

LRU, LFU, EMA = 0, 1, 2
KIND = {"lru": LRU, "lfu": LFU, "ema": EMA}


def simulate(turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int) -> TurnCounts:
    """Replay a workload under Revision 2; the same counts as the reference.

    Parameters
    ----------
    turns : Turns
    policy : Policy
    hbm_blocks, cxl_blocks : int
        Capacities.

    Returns
    -------
    TurnCounts

    Raises
    ------
    ValueError
        If a capacity is negative.
    """
    counts, _ = _replay(turns, policy, hbm_blocks, cxl_blocks, 0)
    return TurnCounts(*counts)


def victims(turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int) -> np.ndarray:
    """Every (turn, victim) of Revision 2 in order, shape (evictions, 2): what tests compare with the reference."""
    evictions = int(simulate(turns, policy, hbm_blocks, cxl_blocks).evictions.sum())
    return _replay(turns, policy, hbm_blocks, cxl_blocks, evictions)[1]


def _replay(turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int, record: int) -> tuple[np.ndarray, np.ndarray]:
    require_capacities(hbm_blocks=hbm_blocks, cxl_blocks=cxl_blocks)
    alpha, left, log_rate = decay(policy.alpha, len(turns.session))
    counts = np.zeros((5, len(turns.session)), dtype=np.int64)
    trail = np.zeros((record, 2), dtype=np.int64)
    _revision2(
        KIND[policy.name],
        policy.persistent,
        alpha,
        left,
        log_rate,
        turns.prefix_blocks,
        turns.first_block,
        turns.context_blocks,
        turns.session,
        turns.growth_blocks,
        int(turns.read_blocks.sum() + turns.growth_blocks.sum()),
        hbm_blocks,
        cxl_blocks,
        counts,
        trail,
    )
    return counts, trail


def simulate_revision1(
    turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int, record: int = 0
) -> tuple[list[tuple[int, int, int]], np.ndarray]:
    """Replay a workload under Revision 1; the same counts as the retained file, its defect included.

    Parameters
    ----------
    turns : Turns
        Contexts that do not grow.
    policy : Policy
        Not persistent.
    hbm_blocks, cxl_blocks : int
        Capacities.
    record : int
        How many (turn, victim) to keep, from the first.

    Returns
    -------
    counts : list of (hits, fetched, recomputed)
        One for each turn [blocks].
    victims : ndarray of int64, shape (record, 2)

    Raises
    ------
    ValueError
        If a capacity is negative.
    """
    require_capacities(hbm_blocks=hbm_blocks, cxl_blocks=cxl_blocks)
    alpha, left, _ = decay(policy.alpha, len(turns.session))
    counts = np.zeros((3, len(turns.session)), dtype=np.int64)
    trail = np.zeros((record, 2), dtype=np.int64)
    _revision1(
        KIND[policy.name],
        alpha,
        left,
        turns.prefix_blocks,
        turns.first_block,
        turns.context_blocks,
        turns.session,
        hbm_blocks,
        cxl_blocks,
        counts,
        trail,
    )
    return [tuple(turn) for turn in counts.T.tolist()], trail


# The heap is its own on purpose, and not the engine's: a second opinion shares no code with the first, and functions that call one another
# must stand in one module (:mod:`kvtier.simulate.compiled`).


@compiled
def _before(key, block, other_key, other):
    return key < other_key or (key == other_key and block < other)


@compiled
def _push(keys, blocks, owners, size, key, block, owner):
    """Add an entry to a binary heap of `size` entries, ordered by key, then block."""
    position = size
    while position > 0:
        parent = (position - 1) >> 1
        if not _before(key, block, keys[parent], blocks[parent]):
            break
        keys[position], blocks[position], owners[position] = keys[parent], blocks[parent], owners[parent]
        position = parent
    keys[position], blocks[position], owners[position] = key, block, owner


@compiled
def _replace_top(keys, blocks, owners, size, key, block, owner):
    """Put an entry in the place of the smallest of `size` entries."""
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and _before(keys[child + 1], blocks[child + 1], keys[child], blocks[child]):
            child += 1
        if not _before(keys[child], blocks[child], key, block):
            break
        keys[position], blocks[position], owners[position] = keys[child], blocks[child], owners[child]
        position = child
    keys[position], blocks[position], owners[position] = key, block, owner


@compiled
def _pop(keys, blocks, owners, size):
    """Remove the smallest of `size` entries."""
    last = size - 1
    if last > 0:
        _replace_top(keys, blocks, owners, last, keys[last], blocks[last], owners[last])


@compiled
def _renew_in_lru(newer, older, block, capacity):
    """Touch a block in an LRU tier kept as a ring around the sentinel ``len(newer) - 1``; return the change in size."""
    sentinel = len(newer) - 1
    grown = 0
    if newer[block] >= 0:
        newer[older[block]], older[newer[block]] = newer[block], older[block]
    elif capacity == 0:
        return 0
    else:
        grown = 1
    newest = older[sentinel]
    newer[newest], older[block], newer[block], older[sentinel] = block, newest, sentinel, block
    return grown


@compiled
def _drop_oldest(newer, older):
    sentinel = len(newer) - 1
    oldest = newer[sentinel]
    newer[sentinel], older[newer[oldest]] = newer[oldest], sentinel
    newer[oldest] = -1


@compiled
def _new_key(kind, alpha, decay, log_rate, score, touched, last, block, turn):
    """Touch a block's state and return its key; `last` holds the last touch, which blocks of one session repeat."""
    if kind == LFU:
        score[block] += 1.0
        return score[block]
    if score[block] != last[0] or touched[block] != last[1] or turn != last[2]:
        previous = score[block] * decay[turn - touched[block]] if score[block] > 0.0 else 0.0
        last[0], last[1], last[2] = score[block], touched[block], turn
        last[3] = alpha + (1 - alpha) * previous
        last[4] = math.log(last[3]) + turn * log_rate
    score[block], touched[block] = last[3], turn
    return last[4]


@compiled
def _revision2(
    kind,
    persistent,
    alpha,
    decay,
    log_rate,
    prefix_blocks,
    first_block,
    context_blocks,
    sessions,
    growth_blocks,
    touches,
    hbm_blocks,
    cxl_blocks,
    counts,
    trail,
):
    blocks = first_block[-1]
    score, touched, last = np.zeros(blocks), np.zeros(blocks, np.int64), np.full(5, -1.0)
    newer, older = np.full(blocks + 1, -1, np.int32), np.full(blocks + 1, -1, np.int32)
    newer[blocks] = older[blocks] = blocks
    hbm_newer, hbm_older = newer.copy(), older.copy()
    # Group of each resident block (-1: not resident; 0 for all under LRU). Group g is log[group_next[g]:group_next[g + 1]] at first;
    # group_next[g] moves on as blocks leave, and group_end[g] stays.
    group = np.full(blocks, -1, np.int32)
    log, group_next, group_end = np.empty(touches, np.int32), np.empty(touches, np.int64), np.empty(touches, np.int64)
    keys, heads, owners = np.empty(touches), np.empty(touches, np.int64), np.empty(touches, np.int64)
    context = context_blocks.copy()
    waiting = np.empty(blocks, np.int64)
    logged = queued = resident = cached = recorded = 0
    newest = -1

    for turn in range(len(sessions)):
        session = sessions[turn]
        first = first_block[session]
        stop, grown_stop = first + context[session], first + context[session] + growth_blocks[turn]
        read = prefix_blocks + context[session]
        hits = fetched = recomputed = evicted = from_read_set = 0
        # Key and last block of the newest group; no block continues a group of an earlier turn, nor one that has left the heap.
        open_key, open_block = -np.inf, blocks
        i = 0
        while i < read + fetched + recomputed + growth_blocks[turn]:
            # First the pass over the blocks read, then the admissions: fetched, recomputed, generated.
            reading = i < read
            if reading:
                block = i if i < prefix_blocks else first + i - prefix_blocks
            elif i < read + fetched:
                block = waiting[i - read]
            elif i < read + fetched + recomputed:
                block = waiting[blocks - 1 - (i - read - fetched)]
            else:
                block = stop + i - read - fetched - recomputed
            i += 1
            if reading:
                if group[block] < 0:
                    if newer[block] >= 0:
                        waiting[fetched] = block
                        fetched += 1
                    else:
                        # Recomputed blocks wait behind the fetched ones: from the far end, read backwards.
                        recomputed += 1
                        waiting[blocks - recomputed] = block
                    continue
                hits += 1
            else:
                resident += 1

            if kind == LRU:
                group[block] = 0
                _renew_in_lru(hbm_newer, hbm_older, block, 1)
            else:
                key = _new_key(kind, alpha, decay, log_rate, score, touched, last, block, turn)
                if key != open_key or block <= open_block:
                    if newest >= 0:
                        group_end[newest] = logged
                    newest += 1
                    group_next[newest] = logged
                    _push(keys, heads, owners, queued, key, block, newest)
                    queued += 1
                    open_key = key
                open_block = block
                log[logged] = block
                logged += 1
                group[block] = newest
            if resident <= hbm_blocks:
                continue

            if kind == LRU:
                victim = hbm_newer[blocks]
                _drop_oldest(hbm_newer, hbm_older)
            else:
                while True:
                    top = owners[0]
                    candidate, end = group_next[top], logged if top == newest else group_end[top]
                    while candidate < end and group[log[candidate]] != top:
                        candidate += 1
                    group_next[top] = candidate
                    if candidate == end:
                        _pop(keys, heads, owners, queued)
                        queued -= 1
                        if top == newest:
                            open_key = -np.inf
                        continue
                    victim = log[candidate]
                    if heads[0] == victim:
                        break
                    _replace_top(keys, heads, owners, queued, keys[0], victim, top)
            group[victim] = -1
            resident -= 1
            if not persistent:
                score[victim] = 0.0
            cached += _renew_in_lru(newer, older, victim, cxl_blocks)
            if cached > cxl_blocks:
                _drop_oldest(newer, older)
                cached -= 1
            evicted += 1
            if victim < prefix_blocks or first <= victim < grown_stop:
                from_read_set += 1
            if recorded < len(trail):
                trail[recorded, 0], trail[recorded, 1] = turn, victim
                recorded += 1
        context[session] += growth_blocks[turn]
        counts[0, turn], counts[1, turn], counts[2, turn] = hits, fetched, recomputed
        counts[3, turn], counts[4, turn] = evicted, from_read_set


@compiled
def _revision1(kind, alpha, decay, prefix_blocks, first_block, context_blocks, sessions, hbm_blocks, cxl_blocks, counts, trail):
    blocks = first_block[-1]
    score, touched = np.zeros(blocks), np.zeros(blocks, np.int64)
    resident = np.zeros(blocks, np.bool_)
    newer, older = np.full(blocks + 1, -1, np.int32), np.full(blocks + 1, -1, np.int32)
    newer[blocks] = older[blocks] = blocks
    # Recency in HBM, for LRU; the capacity passed with each touch is a bound that is never met.
    hbm_newer, hbm_older = newer.copy(), older.copy()
    entries, owners = np.empty(1024), np.empty(1024, np.int64)
    waiting = np.empty(blocks, np.int64)
    queued = used = cached = recorded = 0
    last = np.full(5, -1.0)

    for turn in range(len(sessions)):
        session = sessions[turn]
        hits = fetched = recomputed = 0
        read = prefix_blocks + context_blocks[session]
        # Room for every touch of the turn; an entry that goes back takes the place that its pop freed.
        if queued + read > len(entries):
            entries = np.concatenate((entries, np.empty(len(entries) + read)))
            owners = np.concatenate((owners, np.empty(len(owners) + read, np.int64)))
        for index in range(read):
            block = index if index < prefix_blocks else first_block[session] + index - prefix_blocks
            if resident[block]:
                if kind == LRU:
                    _renew_in_lru(hbm_newer, hbm_older, block, blocks)
                else:
                    _new_key(kind, alpha, decay, 0.0, score, touched, last, block, turn)
                    _push(entries, owners, owners, queued, score[block], block, block)
                    queued += 1
                hits += 1
            elif newer[block] >= 0:
                waiting[fetched] = block
                fetched += 1
            else:
                recomputed += 1
                waiting[blocks - recomputed] = block
        for i in range(fetched + recomputed):
            block = waiting[i] if i < fetched else waiting[blocks - 1 - (i - fetched)]
            if kind == LRU:
                _renew_in_lru(hbm_newer, hbm_older, block, blocks)
            else:
                _new_key(kind, alpha, decay, 0.0, score, touched, last, block, turn)
                _push(entries, owners, owners, queued, score[block], block, block)
                queued += 1
            resident[block] = True
            used += 1
            if used <= hbm_blocks:
                continue
            if kind == LRU:
                victim = hbm_newer[blocks]
                _drop_oldest(hbm_newer, hbm_older)
            else:
                while True:
                    entry, victim = entries[0], owners[0]
                    _pop(entries, owners, owners, queued)
                    queued -= 1
                    if not resident[victim]:
                        continue
                    now = score[victim] if kind == LFU else score[victim] * decay[turn - touched[victim]]
                    if now > entry + 1e-12:
                        _push(entries, owners, owners, queued, now, victim, victim)
                        queued += 1
                        continue
                    break
            resident[victim] = False
            score[victim] = 0.0
            used -= 1
            cached += _renew_in_lru(newer, older, victim, cxl_blocks)
            if cached > cxl_blocks:
                _drop_oldest(newer, older)
                cached -= 1
            if recorded < len(trail):
                trail[recorded, 0], trail[recorded, 1] = turn, victim
                recorded += 1
        counts[0, turn], counts[1, turn], counts[2, turn] = hits, fetched, recomputed

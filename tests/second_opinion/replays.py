"""The three revisions again, block by block, written from SPEC §4, §5 and §8 alone; compiled, as they are replayed at full size.

The search for a victim is a tournament over all blocks: no heap of stale entries, no extents, nothing assumed of the order of keys. What is
shared with the package are the expressions that SPEC §4 gives for a decayed score, whose last bits decide ties.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numba import njit

from second_opinion.workloads import PREFIX_BLOCKS, Workload, capacity

LRU, LFU, EMA = 0, 1, 2
CXL_GIB = 512


@njit(cache=True)
def _tournament(leaves):
    """Winners of a tournament in which no leaf has a key yet; node 1 is the final, children of node n are 2n and 2n + 1."""
    tree = np.empty(2 * leaves, dtype=np.int64)
    for leaf in range(leaves):
        tree[leaves + leaf] = leaf
    for node in range(leaves - 1, 0, -1):
        tree[node] = tree[2 * node]
    return tree


@njit(cache=True)
def _leaves(blocks):
    leaves = 1
    while leaves < blocks:
        leaves *= 2
    return leaves


@njit(cache=True)
def _play(tree, keys, leaf):
    """Play the matches above one leaf again, as far up as they can end otherwise; the smaller key wins, ties to the left."""
    node = (len(tree) // 2 + leaf) >> 1
    while node:
        left, right = tree[2 * node], tree[2 * node + 1]
        winner = left if keys[left] <= keys[right] else right
        if winner == tree[node] and winner != leaf:
            return
        tree[node] = winner
        node >>= 1


@njit(cache=True)
def _touch(block, turn, touches, policy, alpha, keys, state, touched):
    """Renew state and key of a block; state 0 is none."""
    decay = 1 - alpha
    if policy == 0:
        keys[block] = touches
    elif policy == 1:
        state[block] += 1
        keys[block] = state[block]
    else:
        state[block] = alpha + decay * (state[block] * math.pow(decay, float(turn - touched[block])))
        keys[block] = math.log(state[block]) + turn * -math.log(decay)
    touched[block] = turn


@njit(cache=True)
def _to_cxl(victim, cxl, stamp, log, capacity_blocks):
    """An LRU touch in CXL, which drops its oldest. `cxl` counts (blocks, entries of the log, entries read from its old end)."""
    cxl[0] += stamp[victim] == 0
    log[cxl[1]] = victim
    cxl[1] += 1
    stamp[victim] = cxl[1]
    while cxl[0] > capacity_blocks:
        # An entry of the log stands for its block if the block came to CXL no later.
        if stamp[log[cxl[2]]] == cxl[2] + 1:
            stamp[log[cxl[2]]] = 0
            cxl[0] -= 1
        cxl[2] += 1


@njit(cache=True)
def _most(session, starts, prefix):
    """No more blocks than this can leave HBM: each turn at its session's last length."""
    total = 0
    for mine in session:
        total += prefix + starts[mine + 1] - starts[mine]
    return total


@njit(cache=True)
def _revision2(session, growth, starts, context, prefix, policy, alpha, persistent, hbm_blocks, cxl_blocks):
    blocks = starts[-1]
    keys = np.full(_leaves(blocks), np.inf)
    tree = _tournament(len(keys))
    state, touched, stamp = np.zeros(blocks), np.zeros(blocks, dtype=np.int64), np.zeros(blocks, dtype=np.int64)
    log, cxl = np.empty(_most(session, starts, prefix), dtype=np.int64), np.zeros(3, dtype=np.int64)
    length = context.copy()
    counts = np.zeros((len(session), 5), dtype=np.int64)
    resident = touches = 0
    for turn in range(len(session)):
        first = starts[session[turn]]
        stop = first + length[session[turn]]
        end = stop + growth[turn]
        fetch, recompute = np.empty(prefix + stop - first, dtype=np.int64), np.empty(prefix + stop - first + growth[turn], dtype=np.int64)
        fetched = recomputed = 0
        for at in range(prefix + stop - first):
            block = at if at < prefix else first + at - prefix
            if keys[block] < np.inf:
                touches += 1
                _touch(block, turn, touches, policy, alpha, keys, state, touched)
                _play(tree, keys, block)
                counts[turn, 0] += 1
            elif stamp[block]:
                fetch[fetched] = block
                fetched += 1
            else:
                recompute[recomputed] = block
                recomputed += 1
        counts[turn, 1], counts[turn, 2] = fetched, recomputed
        for block in range(stop, end):
            recompute[recomputed] = block
            recomputed += 1
        for at in range(fetched + recomputed):
            block = fetch[at] if at < fetched else recompute[at - fetched]
            touches += 1
            _touch(block, turn, touches, policy, alpha, keys, state, touched)
            _play(tree, keys, block)
            resident += 1
            if resident > hbm_blocks:
                victim = tree[1]
                keys[victim] = np.inf
                if not persistent:
                    state[victim] = 0.0
                _play(tree, keys, victim)
                resident -= 1
                counts[turn, 3] += 1
                counts[turn, 4] += victim < prefix or first <= victim < end
                _to_cxl(victim, cxl, stamp, log, cxl_blocks)
        length[session[turn]] += growth[turn]
    return counts


def revision2(workload: Workload, policy: int, alpha: float, hbm_gib: int, persistent: bool = False) -> np.ndarray:
    """Blocks hit, fetched, recomputed, evicted, and evicted of what the turn reads or generates; int64 of shape (turns, 5)."""
    return _revision2(
        workload.session, workload.growth, workload.starts, workload.context, PREFIX_BLOCKS, policy, alpha, persistent,
        capacity(hbm_gib), capacity(CXL_GIB),
    )  # fmt: skip


@njit(cache=True)
def _revision1(session, starts, context, prefix, policy, alpha, hbm_blocks, cxl_blocks, audited):
    """Counts as of Revision 2, without growth; the fourth of them are evictions, the fifth wrong victims where `audited`.

    The defect, in a queue of old entries: what comes up goes back only if its score now is *larger*. With `audited` there is no CXL, a
    block is admitted as soon as it is missed, and each victim is held against the smallest score of all residents.
    """
    blocks = starts[-1]
    stamp, state, touched = np.zeros(blocks, dtype=np.int64), np.zeros(blocks), np.zeros(blocks, dtype=np.int64)
    is_resident = np.zeros(blocks, dtype=np.bool_)
    slots, slot_of = np.zeros(hbm_blocks + 1, dtype=np.int64), np.zeros(blocks, dtype=np.int64)
    # What is left of a score, by its age in turns; the scores of LRU and LFU do not fall.
    decays = np.array([math.pow(1 - alpha, float(age)) if policy == 2 else 1.0 for age in range(len(session) + 1)])
    queue = [(0.0, 0)]
    queue.pop()
    log, cxl = np.empty(_most(session, starts, prefix), dtype=np.int64), np.zeros(3, dtype=np.int64)
    counts = np.zeros((len(session), 5), dtype=np.int64)
    decay = 1 - alpha
    resident = touches = 0
    for turn in range(len(session)):
        first = starts[session[turn]]
        read = prefix + context[session[turn]]
        admitted = np.empty(read, dtype=np.int64)
        # First sweep: look up. Then what CXL has, then what nothing has; in an audit all in the first sweep.
        for sweep in range(1 if audited else 3):
            for at in range(read):
                block = at if at < prefix else first + at - prefix
                if sweep == 0:
                    admitted[at] = 0 if is_resident[block] else 1 if stamp[block] or audited else 2
                    counts[turn, admitted[at]] += 1
                    if admitted[at] and not audited:
                        continue
                elif admitted[at] != sweep:
                    continue
                touches += 1
                score = state[block] * decays[turn - touched[block]]
                state[block] = float(touches) if policy == 0 else score + 1 if policy == 1 else alpha + decay * score
                touched[block] = turn
                heapq.heappush(queue, (state[block], block))
                if is_resident[block]:
                    continue
                is_resident[block] = True
                slots[resident], slot_of[block] = block, resident
                resident += 1
                if resident <= hbm_blocks:
                    continue
                while True:
                    entry, victim = heapq.heappop(queue)
                    # An old entry of LRU is no bound to put back, only an earlier touch.
                    if not is_resident[victim] or (policy == 0 and entry != state[victim]):
                        continue
                    score = state[victim] * decays[turn - touched[victim]]
                    if score <= entry + 1e-12:
                        break
                    heapq.heappush(queue, (score, victim))
                counts[turn, 3] += 1
                if audited:
                    least = score
                    for other in slots:
                        least = min(least, state[other] * decays[turn - touched[other]])
                    counts[turn, 4] += score - least > 1e-12
                slots[slot_of[victim]], slot_of[slots[hbm_blocks]] = slots[hbm_blocks], slot_of[victim]
                is_resident[victim] = False
                state[victim] = 0.0
                resident -= 1
                if not audited:
                    _to_cxl(victim, cxl, stamp, log, cxl_blocks)
    return counts


def revision1(workload: Workload, policy: int, alpha: float, hbm_gib: int) -> np.ndarray:
    """Blocks hit, fetched, recomputed, evicted; int64 of shape (turns, 5), the last column empty."""
    return _revision1(
        workload.session, workload.starts, workload.context, PREFIX_BLOCKS, policy, alpha, capacity(hbm_gib), capacity(CXL_GIB), False
    )


def audited_revision1(workload: Workload, policy: int, alpha: float, hbm_gib: int) -> tuple[int, int]:
    """Evictions, and those whose victim had not the smallest score."""
    counts = _revision1(workload.session, workload.starts, workload.context, PREFIX_BLOCKS, policy, alpha, capacity(hbm_gib), 0, True)
    return int(counts[:, 3].sum()), int(counts[:, 4].sum())


@njit(cache=True)
def _audited_revision2(session, starts, context, prefix, alpha, hbm_blocks):
    """Evictions and wrong victims of the order-preserving key; the victim by the tournament, the smallest score by looking at all."""
    blocks = starts[-1]
    keys = np.full(_leaves(blocks), np.inf)
    tree = _tournament(len(keys))
    state, touched = np.zeros(blocks), np.zeros(blocks, dtype=np.int64)
    slots = np.full(hbm_blocks + 1, -1, dtype=np.int64)
    slot_of = np.full(blocks, -1, dtype=np.int64)
    decays = np.array([math.pow(1 - alpha, float(age)) for age in range(len(session) + 1)])
    resident = evicted = wrong = 0
    for turn in range(len(session)):
        first = starts[session[turn]]
        for at in range(prefix + context[session[turn]]):
            block = at if at < prefix else first + at - prefix
            known = keys[block] < np.inf
            _touch(block, turn, 0, 2, alpha, keys, state, touched)
            _play(tree, keys, block)
            if known:
                continue
            slots[resident], slot_of[block] = block, resident
            resident += 1
            if resident <= hbm_blocks:
                continue
            victim = tree[1]
            least = np.inf
            for other in slots:
                least = min(least, state[other] * decays[turn - touched[other]])
            wrong += state[victim] * decays[turn - touched[victim]] - least > 1e-12
            evicted += 1
            resident -= 1
            slots[slot_of[victim]], slot_of[slots[resident]] = slots[resident], slot_of[victim]
            slot_of[victim] = -1
            keys[victim], state[victim] = np.inf, 0.0
            _play(tree, keys, victim)
    return evicted, wrong


def audited_revision2(workload: Workload, alpha: float, hbm_gib: int) -> tuple[int, int]:
    """Evictions of EMA, and those whose victim had not the smallest score."""
    evicted, wrong = _audited_revision2(workload.session, workload.starts, workload.context, PREFIX_BLOCKS, alpha, capacity(hbm_gib))
    return int(evicted), int(wrong)


@njit(cache=True)
def _revision3(session, before, growth, starts, prefix, policy, alpha, persistent, hbm_blocks, cxl_blocks, by_session):
    """Counts of each turn, shape (turns, 3): blocks hit, fetched, recomputed.

    What a turn reads stays: victims are the deepest blocks of other sessions, the smallest key first, ties to the session read longest ago.
    A session's blocks have keys of their own, or one key together where `by_session`.
    """
    sessions, room = len(starts) - 1, max(hbm_blocks - prefix, 0)
    blocks = starts[-1]
    keys, state, touched = np.zeros(blocks), np.zeros(blocks), np.zeros(blocks, dtype=np.int64)
    resident, last = np.zeros(sessions, dtype=np.int64), np.full(sessions, -1, dtype=np.int64)
    # A turn's blocks leave once, evicted later or streamed now.
    stamp, cxl = np.zeros(blocks, dtype=np.int64), np.zeros(3, dtype=np.int64)
    log = np.empty(_most(session, starts, prefix) if cxl_blocks else 0, dtype=np.int64)
    counts = np.zeros((len(session), 3), dtype=np.int64)
    used = 0
    for turn in range(len(session)):
        mine = session[turn]
        first, whole = starts[mine], before[turn] + growth[turn]
        found = min(resident[mine], before[turn])
        counts[turn, 0] = found + (min(prefix, hbm_blocks) if turn else 0)
        for block in range(first + found, first + before[turn]) if cxl_blocks else range(0):
            counts[turn, 1 if stamp[block] else 2] += 1
        if not cxl_blocks:
            counts[turn, 2] += before[turn] - found
        counts[turn, 2] += prefix - (min(prefix, hbm_blocks) if turn else 0)
        kept = min(whole, room)
        leaving = used - resident[mine] + kept - room
        while leaving > 0:
            chosen, least = -1, np.inf
            for other in range(sessions):
                if other == mine or not resident[other]:
                    continue
                key = keys[starts[other] + (0 if by_session else resident[other] - 1)]
                if chosen < 0 or key < least or (key == least and last[other] < last[chosen]):
                    chosen, least = other, key
            # With one key, the blocks of the session above are next.
            while leaving > 0 and resident[chosen] and (by_session or keys[starts[chosen] + resident[chosen] - 1] == least):
                resident[chosen] -= 1
                # The deepest is the oldest of what is demoted together, and so is told first.
                deepest = starts[chosen] + resident[chosen]
                if cxl_blocks:
                    _to_cxl(deepest, cxl, stamp, log, cxl_blocks)
                used, leaving = used - 1, leaving - 1
                if not persistent and (not by_session or not resident[chosen]):
                    state[starts[chosen] if by_session else deepest] = 0.0
        for block in range(first + whole - 1, first + kept - 1, -1) if cxl_blocks else range(0):
            _to_cxl(block, cxl, stamp, log, cxl_blocks)
        history, renewed_at = -1.0, -1
        for block in range(first, first + (1 if by_session else kept)):
            if state[block] == history and touched[block] == renewed_at:
                # The same history as the block before: the same key.
                keys[block], state[block], touched[block] = keys[block - 1], state[block - 1], turn
                continue
            history, renewed_at = state[block], touched[block]
            _touch(block, turn, turn, policy, alpha, keys, state, touched)
        used += kept - resident[mine]
        resident[mine], last[mine] = kept, turn
    return counts


def revision3(
    workload: Workload, policy: int, alpha: float, hbm_gib: int, persistent: bool = False, by_session: bool = False, cxl_gib: int = 0
) -> np.ndarray:
    """Blocks hit, fetched, recomputed; int64 of shape (turns, 3). Without a tier what is missed is recomputed."""
    return _revision3(
        workload.session, workload.before, workload.growth, workload.starts, PREFIX_BLOCKS, policy, alpha, persistent,
        capacity(hbm_gib), capacity(cxl_gib), by_session,
    )  # fmt: skip


def optimum(workload: Workload, hbm_gib: int, counted_from: int) -> np.ndarray:
    """Most blocks that any eviction can find in HBM with what a turn reads pinned; int64 of shape (turns, 2): found, not found.

    Interval scheduling: what stays of a session between two of its turns is an interval, worth its blocks if the second turn counts. Over
    every turn in between, intervals and what is pinned fit HBM. Where they do not, those that end last give way, which is optimal for
    intervals of equal worth.
    """
    room = capacity(hbm_gib) - PREFIX_BLOCKS
    before, whole = workload.before, np.minimum(workload.before + workload.growth, room)
    session = workload.session.tolist()
    next_turn, latest = [len(session)] * len(session), {}
    for turn, mine in enumerate(session):
        if mine in latest:
            next_turn[latest[mine]] = turn
        latest[mine] = turn
    kept: dict[int, int] = {}
    counts = np.zeros((len(session), 2), dtype=np.int64)
    for turn in range(len(session)):
        found = PREFIX_BLOCKS * (turn > 0) + min(kept.pop(turn, 0), int(before[turn]))
        counts[turn] = found, PREFIX_BLOCKS + before[turn] - found
        over = sum(kept.values()) + int(whole[turn]) - room
        for end in sorted(kept, reverse=True):
            if over <= 0:
                break
            given = min(over, kept[end])
            kept[end], over = kept[end] - given, over - given
        if counted_from <= next_turn[turn] < len(session):
            kept[next_turn[turn]] = int(whole[turn])
    return counts

"""The fast simulators: exact, at the cost of extents and not of blocks.

A turn reads whole contexts in ascending order, so the blocks of a session fall into *extents*: neighbours in equal state, which are
touched, admitted and evicted together. Two disciplines:

- :func:`simulate`, the twin of :func:`kvtier.simulate.revision2.simulate`: a turn is looked up whole, then admitted, each block first
  inserted and then something evicted, CXL below;
- :func:`replay_requests`, the twin of :func:`kvtier.simulate.requests.replay`: request by request in one pass, first evicted and then
  inserted, nothing below. This is what general cache simulators do.

What makes them exact:

- Keys are computed by the reference's expressions in the reference's order, so equal blocks have bit-equal keys and ties are ties. The
  victim is the smallest (key, stamp); the stamp is the block's identity in Revision 2, its touch in the other discipline. It ascends
  inside an extent, so the first block of the smallest extent is the victim, and stays so while blocks leave from the front.
- Neighbours become one extent only if they are bit-equal in state and follow each other in every queue that they stand in.
- A run of n misses with equal state evicts n times from the same extent, unless that has fewer blocks or one of three things happens,
  each with a closed form: the new block is itself the smallest and goes as it comes; the smallest extent is what the run has just
  admitted, so the run slides through its own predecessors; the victim is the run's own next extent, not yet read, so the gap moves
  through it.

Complexity: a turn costs O((e + v) log x) for e extents read, v extents that lose blocks and x extents in all; a run creates a bounded
number of extents, and each step of it ends the run or uses an extent up. Contexts of any length cost the same (but under SIEVE with room
for one block, which takes a step a block). With one extent a block (an arbitrary trace, or states that no two neighbours share) it is a
block-by-block simulation with a binary heap, O(log x) a block, as :mod:`kvtier.simulate.blocks` is.
"""

from __future__ import annotations

import math

import numpy as np

from kvtier.simulate.compiled import compiled, compiled_inline, compiled_inner
from kvtier.simulate.metrics import TurnCounts, require_capacities
from kvtier.simulate.policies import Policy, decay
from kvtier.workload.turns import Turns

LRU, FIFO, SIEVE, LFU, EMA = range(5)
"""Kinds of queue: the first three are rings (:func:`_is_ring`), the others heaps by (key, stamp)."""

HEAP = EMA
"""The kind that MIN passes to enter and leave its heap: there it says no more than that the queue is one."""

KINDS_REVISION2 = {"lru": LRU, "lfu": LFU, "ema": EMA}
KINDS_REQUESTS = KINDS_REVISION2 | {"fifo": FIFO, "sieve": SIEVE}

EXTENT = np.dtype(
    [
        ("first", np.int64),
        ("stop", np.int64),
        # Neighbours in the session, in the queue of HBM (LRU, FIFO, SIEVE), and in CXL.
        ("left", np.int32),
        ("right", np.int32),
        ("older", np.int32),
        ("newer", np.int32),
        ("cxl_older", np.int32),
        ("cxl_newer", np.int32),
        # Place in the heap (LFU, EMA), what orders it there, and the policy's state.
        ("place", np.int32),
        ("resident", np.bool_),
        ("cached", np.bool_),
        ("visited", np.bool_),
        ("key", np.float64),
        ("stamp", np.int64),
        ("score", np.float64),
        ("touched", np.int64),
    ],
    align=True,
)
"""Blocks ``first`` to ``stop - 1`` of one session. Queues and sessions are rings, each closed by an extent without blocks."""

QUEUE, CXL, SESSIONS = 0, 1, 2
"""The extents that close the rings of HBM and CXL, and that of session 0; the others and the prefix follow."""

NONE = QUEUE
"""No extent: what closes a ring has no blocks."""

RESIDENT, CACHED, QUEUED, USED, SPARE, FREE, HAND, COUNTERS = range(8)
"""Counters of a simulation: blocks in HBM and in CXL, extents in the heap, extents ever used, extents to be had without making room, the
first that was given back, and the extent before which SIEVE's hand stands (NONE: the oldest; NEXT: the one admitted next); how many
counters there are."""

NEXT = -1

EXTENTS, ROOM = 16, 16
"""Extents a session that a simulation begins with; and more than any one step needs."""

DONE, NO_ROOM = -1, -2
"""How MIN ends, if not at a turn that contradicts the next turns."""


def simulate(turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int) -> TurnCounts:
    """Replay a workload under Revision 2; the same counts as the reference.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        ``lru``, ``lfu`` or ``ema``.
    hbm_blocks, cxl_blocks : int
        Capacities.

    Returns
    -------
    TurnCounts

    Raises
    ------
    ValueError
        If Revision 2 does not have the policy, or a capacity is negative.
    """
    counts, _ = _replay(turns, policy, hbm_blocks, cxl_blocks, 0)
    return TurnCounts(*counts)


def victims(turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int) -> np.ndarray:
    """Every (turn, victim) of Revision 2 in order, shape (evictions, 2): what tests compare with the reference."""
    counts, _ = _replay(turns, policy, hbm_blocks, cxl_blocks, 0)
    return _one_by_one(_replay(turns, policy, hbm_blocks, cxl_blocks, int(counts[3].sum()))[1])


def replay_requests(turns: Turns, policy: Policy, hbm_blocks: int) -> np.ndarray:
    """Replay a workload request by request; the same hits as :func:`kvtier.simulate.requests.replay`.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        ``lru``, ``fifo``, ``sieve``, ``lfu``, ``ema`` or ``min``.
    hbm_blocks : int
        Capacity.

    Returns
    -------
    ndarray of int64, shape (turns,)
        Requests of each turn that hit.

    Raises
    ------
    ValueError
        If the policy has no compiled form, the capacity is negative, or under ``min`` the next turns contradict the turns.
    """
    if policy.name == "min":
        return _replay_min(turns, hbm_blocks)
    return _replay_policy(turns, policy, hbm_blocks, 0)[0][0]


def request_victims(turns: Turns, policy: Policy, hbm_blocks: int) -> np.ndarray:
    """Every (turn, victim) of :func:`replay_requests` in order, shape (evictions, 2), for every policy but ``min``."""
    counts, _ = _replay_policy(turns, policy, hbm_blocks, 0)
    return _one_by_one(_replay_policy(turns, policy, hbm_blocks, int(counts[1].sum()))[1])


def _replay(turns: Turns, policy: Policy, hbm_blocks: int, cxl_blocks: int, record: int) -> tuple[np.ndarray, np.ndarray]:
    require_capacities(hbm_blocks=hbm_blocks, cxl_blocks=cxl_blocks)
    counts = np.zeros((5, len(turns.session)), dtype=np.int64)
    trail = np.zeros((record, 3), dtype=np.int64)
    _run_revision2(*_settings(turns, policy, KINDS_REVISION2), turns.context_blocks, hbm_blocks, cxl_blocks, counts, trail)
    return counts, trail


def _replay_policy(turns: Turns, policy: Policy, hbm_blocks: int, record: int) -> tuple[np.ndarray, np.ndarray]:
    require_capacities(hbm_blocks=hbm_blocks)
    counts = np.zeros((2, len(turns.session)), dtype=np.int64)
    trail = np.zeros((record, 3), dtype=np.int64)
    _run_requests(*_settings(turns, policy, KINDS_REQUESTS), turns.context_blocks, hbm_blocks, counts, trail)
    return counts, trail


def _replay_min(turns: Turns, hbm_blocks: int) -> np.ndarray:
    require_capacities(hbm_blocks=hbm_blocks)
    hits = np.zeros(len(turns.session), dtype=np.int64)
    wrong = _run_min(
        turns.prefix_blocks,
        turns.first_block,
        turns.context_blocks,
        turns.session,
        turns.growth_blocks,
        turns.first_turn,
        turns.next_turn,
        hbm_blocks,
        hits,
    )
    # The next turns are derived from the turns: what is guarded is the derivation.
    if wrong != DONE:
        raise ValueError(f"turn {wrong} reads session {turns.session[wrong]}; the next turns given say otherwise")
    return hits


def _settings(turns: Turns, policy: Policy, kinds: dict[str, int]) -> tuple:
    """What both kernels take: the policy, its decay as the references compute it, and the workload."""
    if policy.name not in kinds:
        raise ValueError(f"policy {policy.name!r}: expected one of {', '.join(kinds)}")
    workload = turns.prefix_blocks, turns.first_block, turns.session, turns.growth_blocks
    return kinds[policy.name], policy.persistent, *decay(policy.alpha, len(turns.session)), *workload


def _one_by_one(trail: np.ndarray) -> np.ndarray:
    """(turn, victim) of each eviction from rows of (turn, first victim, victims)."""
    trail = trail[trail[:, 2] > 0]
    start = np.cumsum(trail[:, 2]) - trail[:, 2]
    offset = np.arange(trail[:, 2].sum()) - np.repeat(start, trail[:, 2])
    return np.stack([np.repeat(trail[:, 0], trail[:, 2]), np.repeat(trail[:, 1], trail[:, 2]) + offset], axis=1)


# Extents: taking and giving back, rings, the heap. Its loops are called and not inlined: inlined, they are slower.


@compiled_inline
def _is_ring(kind):
    """Whether the queue of HBM is a ring, from the next victim (SIEVE: the oldest) to the newest; else it is a heap."""
    return kind <= SIEVE


@compiled_inline
def _begin(ext, counters, rings):
    """Close the rings; all other extents are to be had."""
    counters[:] = 0
    counters[USED], counters[SPARE], counters[FREE] = rings, len(ext) - rings, -1
    for ring in range(rings):
        ext[ring].first = ext[ring].stop = -1
        ext[ring].left = ext[ring].right = ring
        ext[ring].older = ext[ring].newer = ring
        ext[ring].cxl_older = ext[ring].cxl_newer = ring


@compiled_inline
def _fill(ext, counters, prefix_blocks, first_block, context_blocks):
    """One extent a context and one for the prefix, nothing resident; return how many rings there are."""
    rings = SESSIONS + len(context_blocks) + 1
    _begin(ext, counters, rings)
    for session in range(len(context_blocks)):
        if context_blocks[session] > 0:
            _append(ext, counters, SESSIONS + session, first_block[session], first_block[session] + context_blocks[session])
    if prefix_blocks > 0:
        _append(ext, counters, rings - 1, 0, prefix_blocks)
    return rings


@compiled_inline
def _take(ext, counters):
    extent = counters[FREE]
    if extent >= 0:
        counters[FREE] = ext[extent].right
    else:
        extent = counters[USED]
        counters[USED] += 1
    counters[SPARE] -= 1
    return extent


@compiled_inline
def _append(ext, counters, ring, first, stop):
    """A new extent at the end of a session, in no tier."""
    extent = _take(ext, counters)
    ext[extent].first, ext[extent].stop = first, stop
    ext[extent].resident = ext[extent].cached = ext[extent].visited = False
    ext[extent].score = ext[extent].key = 0.0
    ext[extent].touched = ext[extent].stamp = 0
    last = ext[ring].left
    ext[extent].left, ext[extent].right = last, ring
    ext[last].right = ext[ring].left = extent
    return extent


@compiled_inline
def _cut(ext, counters, extent, blocks):
    """Cut the first blocks off, into an extent of their own on the left, older in CXL; it is in no queue of HBM yet."""
    part = _take(ext, counters)
    ext[part] = ext[extent]
    ext[part].stop = ext[extent].first = ext[extent].first + blocks
    ext[extent].stamp += blocks
    left = ext[extent].left
    ext[part].right = extent
    ext[left].right = ext[extent].left = part
    if ext[extent].cached:
        _link_cxl(ext, part, extent)
    return part


@compiled_inline
def _drop(ext, counters, extent):
    """Give an extent back that has left every queue of HBM."""
    left, right = ext[extent].left, ext[extent].right
    ext[left].right, ext[right].left = right, left
    if ext[extent].cached:
        _unlink_cxl(ext, extent)
    ext[extent].right = counters[FREE]
    counters[FREE] = extent
    counters[SPARE] += 1


@compiled_inline
def _link(ext, extent, newer):
    older = ext[newer].older
    ext[extent].older, ext[extent].newer = older, newer
    ext[older].newer = ext[newer].older = extent


@compiled_inline
def _unlink(ext, extent):
    older, newer = ext[extent].older, ext[extent].newer
    ext[older].newer, ext[newer].older = newer, older


@compiled_inline
def _link_cxl(ext, extent, newer):
    older = ext[newer].cxl_older
    ext[extent].cxl_older, ext[extent].cxl_newer = older, newer
    ext[older].cxl_newer = ext[newer].cxl_older = extent


@compiled_inline
def _unlink_cxl(ext, extent):
    older, newer = ext[extent].cxl_older, ext[extent].cxl_newer
    ext[older].cxl_newer, ext[newer].cxl_older = newer, older


@compiled_inline
def _before(ext, extent, other):
    return ext[extent].key < ext[other].key or (ext[extent].key == ext[other].key and ext[extent].stamp < ext[other].stamp)


@compiled_inner
def _rise(ext, heap, extent, place):
    while place > 0:
        parent = (place - 1) >> 1
        if not _before(ext, extent, heap[parent]):
            break
        heap[place] = heap[parent]
        ext[heap[place]].place = place
        place = parent
    heap[place] = extent
    ext[extent].place = place


@compiled_inner
def _sink(ext, heap, size, extent, place):
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _before(ext, heap[child + 1], heap[child]):
            child += 1
        if not _before(ext, heap[child], extent):
            break
        heap[place] = heap[child]
        ext[heap[place]].place = place
        place = child
    heap[place] = extent
    ext[extent].place = place


@compiled_inner
def _settle(ext, heap, size, extent, place):
    if place > 0 and _before(ext, extent, heap[(place - 1) >> 1]):
        _rise(ext, heap, extent, place)
    else:
        _sink(ext, heap, size, extent, place)


# What both disciplines do to extents.


@compiled_inline
def _enqueue(kind, ext, heap, counters, extent, newer):
    """Enter the queue of HBM: a ring, before `newer`, or the heap."""
    if _is_ring(kind):
        _link(ext, extent, newer)
    else:
        _rise(ext, heap, extent, counters[QUEUED])
        counters[QUEUED] += 1


@compiled_inline
def _dequeue(kind, ext, heap, counters, extent):
    if _is_ring(kind):
        _unlink(ext, extent)
        if counters[HAND] == extent:
            counters[HAND] = ext[extent].newer
    else:
        counters[QUEUED] -= 1
        last = heap[counters[QUEUED]]
        if last != extent:
            _settle(ext, heap, counters[QUEUED], last, ext[extent].place)


@compiled_inline
def _join_left(kind, ext, heap, counters, extent):
    """Make an extent one with its left neighbour if the two can be one; return the one that its blocks are in now."""
    left = ext[extent].left
    if (
        ext[left].stop != ext[extent].first
        or ext[left].resident != ext[extent].resident
        or ext[left].cached != ext[extent].cached
        or ext[left].score != ext[extent].score
        or ext[left].touched != ext[extent].touched
        or (ext[left].cached and ext[left].cxl_newer != extent)
    ):
        return extent
    if ext[extent].resident:
        if _is_ring(kind):
            # SIEVE's hand stands between extents, never inside one.
            if ext[left].newer != extent or ext[left].visited != ext[extent].visited or counters[HAND] == extent:
                return extent
        elif ext[left].stamp + ext[left].stop - ext[left].first != ext[extent].stamp:
            return extent
        _dequeue(kind, ext, heap, counters, extent)
    ext[left].stop = ext[extent].stop
    _drop(ext, counters, extent)
    return left


@compiled_inline
def _touch(kind, alpha, decay, rate, score, touched, turn):
    """State and key of blocks touched now, from their state before."""
    if kind == LFU:
        return score + 1.0, 0, score + 1.0
    if kind == EMA:
        previous = score * decay[turn - touched] if score > 0.0 else 0.0
        score = alpha + (1 - alpha) * previous
        return score, turn, math.log(score) + turn * rate
    return 0.0, 0, 0.0


@compiled_inline
def _continues(kind, ext, left, state):
    """Whether a run of misses that begins where a resident extent ends continues it: same state, nothing in between in the queue."""
    if _is_ring(kind):
        return ext[left].newer == QUEUE and not ext[left].visited
    return ext[left].score == state[0] and ext[left].touched == state[1]


@compiled_inline
def _renew(kind, ext, heap, counters, extent, state, stamp):
    """Touch an extent that is resident."""
    if kind == LRU:
        if ext[extent].newer != QUEUE:
            _unlink(ext, extent)
            _link(ext, extent, QUEUE)
    elif kind == SIEVE:
        ext[extent].visited = True
    elif not _is_ring(kind):
        ext[extent].score, ext[extent].touched, ext[extent].key = state
        ext[extent].stamp = stamp
        _settle(ext, heap, counters[QUEUED], extent, ext[extent].place)


@compiled_inline
def _admit(kind, ext, heap, counters, extent, blocks, state, stamp):
    """Make the first blocks of an extent resident."""
    counters[RESIDENT] += blocks
    left, whole = ext[extent].left, blocks == ext[extent].stop - ext[extent].first
    # Mostly they continue what was admitted just before: then the border moves, and no extent is made.
    if (
        counters[HAND] != NEXT
        and ext[left].resident
        and ext[left].stop == ext[extent].first
        and ext[left].cached == ext[extent].cached
        and (not ext[left].cached or ext[left].cxl_newer == extent)
        and _continues(kind, ext, left, state)
        and (_is_ring(kind) or ext[left].stamp + ext[left].stop - ext[left].first == stamp)
    ):
        ext[left].stop += blocks
        if whole:
            _drop(ext, counters, extent)
        else:
            ext[extent].first += blocks
        return
    part = extent if whole else _cut(ext, counters, extent, blocks)
    ext[part].resident, ext[part].visited = True, False
    ext[part].score, ext[part].touched, ext[part].key = state
    ext[part].stamp = stamp
    _enqueue(kind, ext, heap, counters, part, QUEUE)
    if counters[HAND] == NEXT:
        counters[HAND] = part


@compiled_inline
def _evict(kind, persistent, ext, heap, counters, extent, blocks):
    """Take the first blocks of an extent out of HBM; return the extent that they are now."""
    counters[RESIDENT] -= blocks
    if blocks == ext[extent].stop - ext[extent].first:
        part = extent
        _dequeue(kind, ext, heap, counters, extent)
    else:
        part = _cut(ext, counters, extent, blocks)
        if not _is_ring(kind):
            _sink(ext, heap, counters[QUEUED], extent, ext[extent].place)
    ext[part].resident = ext[part].visited = False
    if not persistent:
        ext[part].score, ext[part].touched = 0.0, 0
    return part


@compiled_inline
def _record(trail, recorded, turn, first, blocks):
    """Note that blocks from `first` on were evicted, while there is room to note it; return how many notes there are."""
    if blocks == 0 or recorded == len(trail):
        return recorded
    trail[recorded, 0], trail[recorded, 1], trail[recorded, 2] = turn, first, blocks
    return recorded + 1


@compiled_inline
def _next_victim(kind, ext, counters):
    """The extent whose first block goes next, of a queue that is a ring."""
    if kind != SIEVE:
        return ext[QUEUE].newer
    hand = counters[HAND] if counters[HAND] != QUEUE else ext[QUEUE].newer
    while ext[hand].visited:
        ext[hand].visited = False
        hand = ext[hand].newer if ext[hand].newer != QUEUE else ext[QUEUE].newer
    counters[HAND] = hand
    return hand


@compiled_inline
def _pass_through(persistent, ext, counters, extent, blocks, state):
    """Let the first blocks of an extent be touched and go at once; return the extent that they are now."""
    part = extent if blocks == ext[extent].stop - ext[extent].first else _cut(ext, counters, extent, blocks)
    if persistent:
        ext[part].score, ext[part].touched, _ = state
    return part


@compiled_inline
def _renew_in_cxl(kind, ext, heap, counters, extent, first, capacity):
    """Touch the blocks from `first` to the end of an extent in CXL, in order; over capacity CXL drops its oldest."""
    if capacity == 0:
        return
    # A drop may have cut the extent since: its id stays with the last blocks.
    piece = extent
    while ext[piece].first > first:
        piece = ext[piece].left
    # All are touched before any is dropped, with the same end: what stays are the blocks touched last, as many as fit.
    while True:
        if ext[piece].cached:
            _unlink_cxl(ext, piece)
        else:
            ext[piece].cached = True
            counters[CACHED] += ext[piece].stop - ext[piece].first
        _link_cxl(ext, piece, CXL)
        if piece == extent:
            break
        piece = ext[piece].right
    while counters[CACHED] > capacity:
        oldest = ext[CXL].cxl_newer
        over, length = counters[CACHED] - capacity, ext[oldest].stop - ext[oldest].first
        if over < length:
            part = _cut(ext, counters, oldest, over)
            if ext[part].resident:
                if not _is_ring(kind):
                    _sink(ext, heap, counters[QUEUED], oldest, ext[oldest].place)
                _enqueue(kind, ext, heap, counters, part, oldest)
            oldest = part
        _unlink_cxl(ext, oldest)
        ext[oldest].cached = False
        counters[CACHED] -= min(over, length)


@compiled_inline
def _is_next_victim(kind, ext, victim, state, stamp):
    """Whether a block of that state and stamp would leave before the blocks of `victim`: of a ring the newest leaves last."""
    if victim == NONE:
        return True
    return not _is_ring(kind) and (state[2] < ext[victim].key or (state[2] == ext[victim].key and stamp < ext[victim].stamp))


@compiled_inline
def _exchange_revision2(kind, ext, heap, counters, extent, first, state):
    """How HBM that is full takes the blocks of a run from `first` to the end of their extent, as far as one extent gives way.

    Return the extent that gives way, how many blocks come, how many of that extent's leave, and how many of the run then go as they
    come; the rest of it stays.
    """
    victim = ext[QUEUE].newer if _is_ring(kind) else heap[0] if counters[QUEUED] > 0 else NONE
    length, left = ext[extent].stop - first, ext[extent].left
    if _is_next_victim(kind, ext, victim, state, first):
        return victim, length, 0, length
    if victim == left and _continues(kind, ext, left, state):
        # The run's own predecessors are the smallest: it slides through them.
        leaving = min(length, ext[left].stop - ext[left].first)
        return victim, length, leaving, length - leaving
    leaving = min(length, ext[victim].stop - ext[victim].first)
    return victim, leaving, leaving, 0


@compiled_inner
def _revision2(
    kind,
    persistent,
    alpha,
    decay,
    rate,
    prefix_blocks,
    first_block,
    sessions,
    growth_blocks,
    context_blocks,
    hbm_blocks,
    cxl_blocks,
    ext,
    heap,
    counters,
    runs,
    waiting,
    counts,
    trail,
):
    """Replay all turns under Revision 2; False if there were not extents enough.

    A *run* is extents of one turn that follow each other and do not hit; they have one source: fetched, recomputed, or generated.
    ``runs[source]`` is how many runs of it the turn has, and how many blocks; the last extent of each run and its first block wait in
    ``waiting[source, run]`` until the pass over the context is over. What is generated is one run, and does not wait.

    ``counts[:, turn]`` becomes hits, fetched, recomputed, evictions, evictions from the read set. `trail` takes (turn, first victim,
    victims) of each eviction in order, as many as it has rows.
    """
    rings = _fill(ext, counters, prefix_blocks, first_block, context_blocks)
    recorded = 0

    for turn in range(len(sessions)):
        session = sessions[turn]
        ring = SESSIONS + session
        hits = evicted = from_read_set = 0
        runs[:] = 0
        for part in range(2):
            end = rings - 1 if part == 0 else ring
            extent = ext[end].right
            while extent != end:
                following = ext[extent].right
                if ext[extent].resident:
                    hits += ext[extent].stop - ext[extent].first
                    state = _touch(kind, alpha, decay, rate, ext[extent].score, ext[extent].touched, turn)
                    _renew(kind, ext, heap, counters, extent, state, ext[extent].first)
                    _join_left(kind, ext, heap, counters, extent)
                else:
                    source = 0 if ext[extent].cached else 1
                    runs[source, 1] += ext[extent].stop - ext[extent].first
                    if _join_left(kind, ext, heap, counters, extent) == extent:
                        waiting[source, runs[source, 0], 0], waiting[source, runs[source, 0], 1] = extent, ext[extent].first
                        runs[source, 0] += 1
                extent = following
        growth = growth_blocks[turn]
        runs[2, 0] = 1 if growth > 0 else 0

        for source in range(3):
            for run in range(runs[source, 0]):
                if source < 2:
                    extent, first = waiting[source, run, 0], waiting[source, run, 1]
                else:
                    last = ext[ring].left
                    first = ext[last].stop if last != ring else first_block[session]
                    if counters[SPARE] < ROOM:
                        return False
                    extent = _append(ext, counters, ring, first, first + growth)
                stop = ext[extent].stop
                while first < stop:
                    if counters[SPARE] < ROOM:
                        return False
                    # Drops from CXL may have cut the run; an extent's id stays with its last blocks.
                    while ext[extent].first > first:
                        extent = ext[extent].left
                    following = ext[extent].right
                    length = ext[extent].stop - first
                    state = _touch(kind, alpha, decay, rate, ext[extent].score, ext[extent].touched, turn)
                    if counters[RESIDENT] < hbm_blocks:
                        moved = min(length, hbm_blocks - counters[RESIDENT])
                        _admit(kind, ext, heap, counters, extent, moved, state, first)
                    else:
                        victim, moved, leaving, passing = _exchange_revision2(kind, ext, heap, counters, extent, first, state)
                        out, first_out = NONE, ext[victim].first
                        if leaving > 0:
                            out = _evict(kind, persistent, ext, heap, counters, victim, leaving)
                            if first_out < prefix_blocks or first_block[session] <= first_out < first_block[session + 1]:
                                from_read_set += leaving
                            recorded = _record(trail, recorded, turn, first_out, leaving)
                        passed = NONE
                        if passing > 0:
                            passed = _pass_through(persistent, ext, counters, extent, passing, state)
                            from_read_set += passing
                            recorded = _record(trail, recorded, turn, first, passing)
                        if moved > passing:
                            _admit(kind, ext, heap, counters, extent, moved - passing, state, first + passing)
                        if leaving > 0:
                            _renew_in_cxl(kind, ext, heap, counters, out, first_out, cxl_blocks)
                        if passing > 0:
                            _renew_in_cxl(kind, ext, heap, counters, passed, first, cxl_blocks)
                        evicted += leaving + passing
                    if moved == length:
                        extent = following
                    first += moved
        counts[0, turn], counts[1, turn], counts[2, turn] = hits, runs[0, 1], runs[1, 1]
        counts[3, turn], counts[4, turn] = evicted, from_read_set
    return True


@compiled_inline
def _exchange_requests(kind, persistent, ext, heap, counters, extent, state, clock):
    """How HBM that is full takes an extent of misses, as far as one extent gives way; returns what :func:`_exchange_revision2` does."""
    victim = _next_victim(kind, ext, counters) if _is_ring(kind) else heap[0]
    length, left, right = ext[extent].stop - ext[extent].first, ext[extent].left, ext[extent].right
    victim_blocks = ext[victim].stop - ext[victim].first
    if (
        victim == left
        and _continues(kind, ext, left, state)
        and (_is_ring(kind) or ext[left].stamp + victim_blocks == clock)
        and (kind != SIEVE or victim_blocks > 1)
    ):
        # The run's own predecessors are the next to go: it slides through them.
        leaving = min(length, victim_blocks)
        return victim, length, leaving, length - leaving
    if victim == right and not persistent and (_is_ring(kind) or ext[victim].key <= state[2]):
        # The run's own next extent, not yet read: the gap moves through it.
        return victim, victim_blocks, victim_blocks, 0
    # Once a block of the run is in, it is the next to go if its key is the smallest.
    leaving = 1 if not _is_ring(kind) and state[2] < ext[victim].key else min(length, victim_blocks)
    return victim, leaving, leaving, 0


@compiled_inner
def _requests(
    kind,
    persistent,
    alpha,
    decay,
    rate,
    prefix_blocks,
    first_block,
    sessions,
    growth_blocks,
    context_blocks,
    hbm_blocks,
    ext,
    heap,
    counters,
    counts,
    trail,
):
    """Replay all turns request by request; False if there were not extents enough.

    What a turn appends joins its session first, then prefix and session are read extent by extent; `clock` counts requests, and a block's
    stamp is the request that touched it last. Extents that follow each other and miss are made one, a *run*, before they are admitted.

    ``counts[:, turn]`` becomes hits and evictions. `trail` takes (turn, first victim, victims) of each eviction in order, as many as it
    has rows.
    """
    rings = _fill(ext, counters, prefix_blocks, first_block, context_blocks)
    clock = recorded = 0

    for turn in range(len(sessions)):
        ring = SESSIONS + sessions[turn]
        hits = evicted = 0
        if growth_blocks[turn] > 0:
            last = ext[ring].left
            first = ext[last].stop if last != ring else first_block[sessions[turn]]
            if counters[SPARE] < ROOM:
                return False
            _append(ext, counters, ring, first, first + growth_blocks[turn])
        for part in range(2):
            end = rings - 1 if part == 0 else ring
            extent = ext[end].right
            while extent != end:
                length = ext[extent].stop - ext[extent].first
                state = _touch(kind, alpha, decay, rate, ext[extent].score, ext[extent].touched, turn)
                if ext[extent].resident:
                    hits += length
                    _renew(kind, ext, heap, counters, extent, state, clock)
                    clock += length
                    extent = ext[_join_left(kind, ext, heap, counters, extent)].right
                    continue
                if hbm_blocks == 0:
                    extent = ext[extent].right
                    continue
                right = ext[extent].right
                if right != end and _join_left(kind, ext, heap, counters, right) == extent:
                    continue
                if counters[SPARE] < ROOM:
                    return False
                moved, passing = length, 0
                if counters[RESIDENT] < hbm_blocks:
                    moved = min(length, hbm_blocks - counters[RESIDENT])
                else:
                    victim, moved, leaving, passing = _exchange_requests(kind, persistent, ext, heap, counters, extent, state, clock)
                    victim_blocks = ext[victim].stop - ext[victim].first
                    recorded = _record(trail, recorded, turn, ext[victim].first, leaving)
                    recorded = _record(trail, recorded, turn, ext[extent].first, passing)
                    newest = kind == SIEVE and ext[victim].newer == QUEUE
                    _join_left(kind, ext, heap, counters, _evict(kind, persistent, ext, heap, counters, victim, leaving))
                    if newest and leaving == victim_blocks and moved > 1:
                        # The hand leaves what was the newest extent when a block of the run is already behind it.
                        counters[HAND] = NEXT
                    if passing > 0:
                        _pass_through(persistent, ext, counters, extent, passing, state)
                    evicted += leaving + passing
                following = ext[extent].right if moved - passing == ext[extent].stop - ext[extent].first else extent
                _admit(kind, ext, heap, counters, extent, moved - passing, state, clock + passing)
                clock += moved
                extent = following
        counts[0, turn], counts[1, turn] = hits, evicted
    return True


@compiled_inner
def _min(prefix_blocks, first_block, sessions, growth_blocks, context, due, next_turn, hbm_blocks, ext, heap, counters, hits):
    """Belady's MIN, request by request; return the first turn that contradicts the next turns given, else DONE or NO_ROOM.

    `context` and `due` are the blocks and the next turn of each session, and are changed.

    Only resident extents are kept; a ring is ``resident`` if it stands in the heap, for its session. All blocks of a session have their
    next request in the same turn, the last of them last, so the victim is the last block of the session that returns last. Two sessions
    are cut by the pass: the one being read and the prefix, whose blocks up to here return later, and from here on in this turn. From
    farthest to nearest: sessions by next turn, the one being read up to here among them; the prefix up to here; the session from here;
    the prefix from here.
    """
    count = len(context)
    _begin(ext, counters, count + 1)

    for turn in range(len(sessions)):
        session = sessions[turn]
        if due[session] != turn or next_turn[turn] <= turn:
            return turn
        due[session] = next_turn[turn]
        hits[turn] = 0
        # The heap has the rings of the sessions that have blocks resident and are not read now, by next turn, farthest first.
        if ext[session].resident:
            _dequeue(HEAP, ext, heap, counters, session)
            ext[session].resident = False
        context[session] += growth_blocks[turn]
        for part in range(2):
            ring = count if part == 0 else session
            first = 0 if part == 0 else first_block[session]
            stop = prefix_blocks if part == 0 else first + context[session]
            # The extent read last, or the ring before the first.
            behind = ring
            while first < stop:
                ahead = ext[behind].right
                if ahead != ring and ext[ahead].first == first:
                    hits[turn] += ext[ahead].stop - first
                    first, behind = ext[ahead].stop, ahead
                    continue
                misses = (stop if ahead == ring else ext[ahead].first) - first
                if hbm_blocks == 0:
                    break
                if counters[SPARE] < ROOM:
                    return NO_ROOM
                if counters[RESIDENT] < hbm_blocks:
                    moved = min(misses, hbm_blocks - counters[RESIDENT])
                    counters[RESIDENT] += moved
                else:
                    farthest = due[heap[0]] if counters[QUEUED] > 0 else -1
                    own = -1 if behind == ring else due[session] if part == 1 else turn
                    if own > farthest:
                        # Each block of the run is the next to go once it is in: the last one stays, for one that was there before.
                        victim, moved = behind, misses
                        ext[victim].stop -= 1
                        first += misses - 1
                    else:
                        if farthest >= 0:
                            victim = ext[heap[0]].left
                            moved = min(misses, ext[victim].stop - ext[victim].first)
                            if part == 1 and due[session] > farthest:
                                moved = 1
                        else:
                            # The first block of the run; it is itself the next to go once it is in.
                            other = count if part == 1 else session
                            victim, moved = ext[other if ext[other].left != other else ring].left, 1
                        ext[victim].stop -= moved
                    if ext[victim].stop == ext[victim].first:
                        if victim == behind:
                            behind = ext[victim].left
                        _drop(ext, counters, victim)
                        if farthest >= 0 and ext[heap[0]].left == heap[0]:
                            ext[heap[0]].resident = False
                            _dequeue(HEAP, ext, heap, counters, heap[0])
                    if own > farthest:
                        moved = 1
                if behind != ring and ext[behind].stop == first:
                    ext[behind].stop += moved
                else:
                    ahead = ext[behind].right
                    extent = _take(ext, counters)
                    ext[extent].first, ext[extent].stop = first, first + moved
                    ext[extent].cached = False
                    ext[extent].left, ext[extent].right = behind, ahead
                    ext[behind].right = ext[ahead].left = extent
                    behind = extent
                first += moved
        if ext[session].left != session:
            ext[session].resident, ext[session].key, ext[session].stamp = True, -float(due[session]), session
            _enqueue(HEAP, ext, heap, counters, session, NONE)
    for foreseen in due:
        if foreseen < len(sessions):
            return foreseen
    return DONE


# Simulations start over with more room when they run out of extents: seldom are there more than a few a session.


@compiled
def _run_revision2(kind, persistent, alpha, decay, rate, prefix, first, sessions, growth, context, hbm_blocks, cxl_blocks, counts, trail):
    size = EXTENTS * (len(context) + ROOM)
    runs = np.zeros((3, 2), np.int64)
    done = False
    while not done:
        ext, heap, counters = np.zeros(size, EXTENT), np.zeros(size, np.int32), np.zeros(COUNTERS, np.int64)
        waiting = np.zeros((2, size, 2), np.int64)
        done = _revision2(
            kind,
            persistent,
            alpha,
            decay,
            rate,
            prefix,
            first,
            sessions,
            growth,
            context,
            hbm_blocks,
            cxl_blocks,
            ext,
            heap,
            counters,
            runs,
            waiting,
            counts,
            trail,
        )
        size *= 4


@compiled
def _run_requests(kind, persistent, alpha, decay, rate, prefix, first, sessions, growth, context, hbm_blocks, counts, trail):
    size = EXTENTS * (len(context) + ROOM)
    done = False
    while not done:
        ext, heap, counters = np.zeros(size, EXTENT), np.zeros(size, np.int32), np.zeros(COUNTERS, np.int64)
        done = _requests(
            kind,
            persistent,
            alpha,
            decay,
            rate,
            prefix,
            first,
            sessions,
            growth,
            context,
            hbm_blocks,
            ext,
            heap,
            counters,
            counts,
            trail,
        )
        size *= 4


@compiled
def _run_min(prefix, first, context, sessions, growth, first_turn, next_turn, hbm_blocks, hits):
    size = EXTENTS * (len(context) + ROOM)
    ended = NO_ROOM
    while ended == NO_ROOM:
        ext, heap, counters = np.zeros(size, EXTENT), np.zeros(size, np.int32), np.zeros(COUNTERS, np.int64)
        ended = _min(prefix, first, sessions, growth, context.copy(), first_turn.copy(), next_turn, hbm_blocks, ext, heap, counters, hits)
        size *= 4
    return ended

"""Which edge of a prefix tree loses blocks next: the eviction policies of Revision 3, one small class each.

A request is a path of edges from the root of a prefix tree: in the synthetic workloads the shared prefix, then the session's own
context. An edge is read whole, so its blocks have one history, and a policy keeps one state an edge. The simulator pins what the turn
reads, decides how many blocks an edge loses and from which end; a policy decides from which edge, and nothing else.

What the simulator calls in each turn, for each edge of the path, root first: :meth:`Eviction.asked`; then :meth:`Eviction.victim` and
:meth:`Eviction.lost` until there is room; then :meth:`Eviction.read` for each edge, root first; then :meth:`Eviction.demotes`. With
edges of one block, nothing pinned and one edge a turn this is an object cache that looks up, evicts while full, and inserts. Policies
of :mod:`kvtier.simulate.requests` then have the same victims here, but for MIN's ties among what is never read again; and FIFO, LRU,
LFU, LRU-2 without memory, 2Q, ARC, MQ, SIEVE, S3-FIFO, GDSF and MIN the hits of libCacheSim 0.3.5
(``benchmarks/policies_against_peer.py``).

Objects of many blocks. Shares of a queue, and what a ghost queue remembers, are counted in blocks; a name in a ghost queue weighs what
its edge had in HBM when it was last read, at least one block. An edge that has lost some of its blocks keeps its place and is next
again; its name moves on when the last block leaves.

Ties go to the edge that was read longest ago, and among edges of one turn to the deepest, as a block is of use only with all that
precede it. Numbers of edges decide nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kvtier.analytic import scoring
from kvtier.workload.turns import BLOCK_TOKENS


class ContradictsTrace(RuntimeError):
    """An edge is read in a turn that the policy's knowledge of the future does not have."""


class Eviction:
    """What all policies share: `blocks` holds the resident blocks of each edge that has any.

    Parameters
    ----------
    capacity_blocks : int
        Blocks that fit.
    """

    needs: tuple[str, ...] = ()
    """Parameters that depend on the trace and not on the policy: see :meth:`Named.build`."""

    def __init__(self, capacity_blocks: int) -> None:
        self.capacity_blocks = capacity_blocks
        self.blocks: dict[int, int] = {}

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Learn that a turn will read an edge, before anything is evicted for it; `resident` blocks of it are in HBM, 0 at a miss."""

    def victim(self, pinned: Container[int]) -> int:
        """Edge that loses blocks next: one that has some and is not pinned, which the caller knows to exist."""
        raise NotImplementedError

    def lost(self, edge: int, left: int) -> None:
        """Learn that blocks of an edge were evicted; `left` remain."""
        if left:
            self.blocks[edge] = left
        else:
            del self.blocks[edge]
            self.gone(edge)

    def read(self, edge: int, turn: int, blocks: int) -> None:
        """Learn that an edge has been read whole, and that `blocks` of it are resident now; with none it was streamed."""
        again = edge in self.blocks
        self.blocks[edge] = blocks
        if again:
            self.hit(edge, turn)
        else:
            self.insert(edge, turn)
        if not blocks:
            self.lost(edge, 0)

    def demotes(self, turn: int) -> list[int]:
        """Edges that should leave after a turn although nothing needs their room."""
        return []

    def insert(self, edge: int, turn: int) -> None:
        """Admit an edge that had no block in HBM; `blocks` has it already."""
        raise NotImplementedError

    def hit(self, edge: int, turn: int) -> None:
        """Touch an edge of which at least one block was in HBM; `blocks` has its new size already."""
        raise NotImplementedError

    def gone(self, edge: int) -> None:
        """Forget an edge whose last block has left; `blocks` does no longer have it."""
        raise NotImplementedError


class Queue:
    """Edges from the oldest to the newest, each with a weight in blocks; every operation but a search past pinned edges is O(1).

    A ring through END: its newer neighbour is the oldest edge, its older neighbour the newest. Edges that join in one turn come root
    first and stand deepest first.
    """

    END = None

    def __init__(self) -> None:
        self._newer: dict[int | None, int | None] = {self.END: self.END}
        self._older: dict[int | None, int | None] = {self.END: self.END}
        self._weight: dict[int, int] = {}
        self.total = 0
        # The edge that joined last in the latest turn given.
        self._turn, self._joined = -1, self.END

    def __contains__(self, edge: int) -> bool:
        return edge in self._weight

    def __len__(self) -> int:
        return len(self._weight)

    def append(self, edge: int, blocks: int, turn: int | None = None) -> None:
        """Join at the newest end; where the turn is given, before what has joined in it already."""
        newer = self.END
        if turn is not None:
            if turn == self._turn:
                newer = self._joined
            self._turn, self._joined = turn, edge
        older = self._older[newer]
        self._newer[older] = self._older[newer] = edge
        self._older[edge], self._newer[edge] = older, newer
        self._weight[edge] = blocks
        self.total += blocks

    def remove(self, edge: int) -> int:
        """Leave, from anywhere; the weight."""
        older, newer = self._older.pop(edge), self._newer.pop(edge)
        self._newer[older], self._older[newer] = newer, older
        if edge == self._joined:
            self._joined = newer
        blocks = self._weight.pop(edge)
        self.total -= blocks
        return blocks

    def weigh(self, edge: int, blocks: int) -> None:
        """Change an edge's weight."""
        self.total += blocks - self._weight[edge]
        self._weight[edge] = blocks

    def newer(self, edge: int | None) -> int | None:
        """Next newer edge, END past the newest; of END, the oldest."""
        return self._newer[edge]

    def oldest(self, pinned: Container[int] = ()) -> int | None:
        """Oldest edge that is not pinned; END if there is none."""
        edge = self._newer[self.END]
        while edge is not self.END and edge in pinned:
            edge = self._newer[edge]
        return edge

    def trim(self, most_blocks: int) -> list[int]:
        """Let the oldest leave while all weigh more than `most_blocks`; who left."""
        left = []
        while self.total > most_blocks and self._weight:
            left.append(self._newer[self.END])
            self.remove(left[-1])
        return left


class Queued(Eviction):
    """Resident edges stand in queues, which weigh what is resident of them; ghost queues remember names."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._at: dict[int, Queue] = {}
        self._name_blocks: dict[int, int] = {}

    def place(self, edge: int, queue: Queue, turn: int | None = None) -> None:
        """Join a queue at its newest end, wherever the edge has been."""
        if edge in self._at:
            self._at[edge].remove(edge)
        queue.append(edge, self.blocks[edge], turn)
        self._at[edge] = queue

    def leave(self, edge: int) -> tuple[Queue, int]:
        """Leave the present queue; which it was, and what the name weighs."""
        queue = self._at.pop(edge)
        queue.remove(edge)
        return queue, self._name_blocks.pop(edge)

    def lost(self, edge: int, left: int) -> None:
        """The queue weighs less."""
        self._at[edge].weigh(edge, left)
        super().lost(edge, left)

    def read(self, edge: int, turn: int, blocks: int) -> None:
        """The queue weighs more, if the edge has one."""
        self._name_blocks[edge] = max(blocks, 1)
        if edge in self._at:
            self._at[edge].weigh(edge, blocks)
        super().read(edge, turn, blocks)

    def hit(self, edge: int, turn: int) -> None:
        """Nothing."""

    def gone(self, edge: int) -> None:
        """Leave the queue."""
        self.leave(edge)


class Fifo(Queued):
    """First in, first out: a read of what is resident changes nothing."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._queue = Queue()

    def victim(self, pinned: Container[int]) -> int:
        """Oldest edge."""
        return self._queue.oldest(pinned)

    def insert(self, edge: int, turn: int) -> None:
        """Join at the newest end."""
        self.place(edge, self._queue, turn)


class Lru(Fifo):
    """Least recently used: a read of what is resident is like an insertion."""

    hit = Fifo.insert


class Sieve(Fifo):
    """One queue, a bit an edge, and a hand that moves from the oldest towards the newest (Zhang et al., NSDI 2024).

    A read of what is resident sets the bit. The hand clears set bits until it meets a clear one, whose edge loses blocks; once that is
    gone the hand rests on the next newer. Past the newest it starts again at the oldest. Survivors keep their place, and new edges join
    with a clear bit. The hand passes over pinned edges, whose bits stay.
    """

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._hand: int | None = Queue.END
        self._bit: dict[int, bool] = {}

    def victim(self, pinned: Container[int]) -> int:
        """Move the hand to an edge with a clear bit."""
        while (edge := self._hand) is Queue.END or edge in pinned or self._bit[edge]:
            if edge is not Queue.END and edge not in pinned:
                self._bit[edge] = False
            self._hand = self._queue.newer(edge)
        return edge

    def insert(self, edge: int, turn: int) -> None:
        """Join at the newest end."""
        super().insert(edge, turn)
        self._bit[edge] = False

    def hit(self, edge: int, turn: int) -> None:
        """Set the bit."""
        self._bit[edge] = True

    def gone(self, edge: int) -> None:
        """Leave the queue; the hand moves on if it rests there."""
        if edge == self._hand:
            self._hand = self._queue.newer(edge)
        super().gone(edge)
        del self._bit[edge]


class S3Fifo(Queued):
    """Three queues: small, main, and the names of what small has lost (Yang et al., SOSP 2023), as libCacheSim 0.3.5 has them.

    Small has a tenth of the capacity, at least one block; main the rest; the ghost queue remembers 9/10 of the capacity. Reads after
    insertion are counted up to 3. An edge enters main if the ghost queue knows it when it is asked for (and forgets it then), else
    small; until the first eviction, main also takes what comes when small has its share. A victim is sought in main if main exceeds its
    share or small has none, else in small. From small the oldest move to main, counts cleared, up to the first read less than twice,
    which loses blocks, and its name goes to the ghost queue with the last of them; if all of small moved, main is next. From main the
    oldest start again as the newest, with one read less, up to the first of count 0.
    """

    MOST, TO_MAIN = 3, 2

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._small_blocks, self._ghost_blocks = max(capacity_blocks // 10, 1), 9 * capacity_blocks // 10
        self._small, self._main, self._ghost = Queue(), Queue(), Queue()
        self._count: dict[int, int] = {}
        self._known: set[int] = set()
        self._has_evicted = False

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Look for the name in the ghost queue, before a victim's name may push it out."""
        if edge in self._ghost:
            self._ghost.remove(edge)
            self._known.add(edge)

    def victim(self, pinned: Container[int]) -> int:
        """Edge that was not read enough to stay."""
        self._has_evicted = True
        main_first = self._main.total > self.capacity_blocks - self._small_blocks
        # Pinned edges may be all that the first queue has; and small may move all it has to main.
        sources = (self._of_main, self._of_small, self._of_main) if main_first else (self._of_small, self._of_main)
        return next(edge for source in sources if (edge := source(pinned)) is not Queue.END)

    def _of_small(self, pinned: Container[int]) -> int | None:
        while (edge := self._small.oldest(pinned)) is not Queue.END and self._count[edge] >= self.TO_MAIN:
            self._count[edge] = 0
            self.place(edge, self._main)
        return edge

    def _of_main(self, pinned: Container[int]) -> int | None:
        while (edge := self._main.oldest(pinned)) is not Queue.END and self._count[edge]:
            self._count[edge] -= 1
            self.place(edge, self._main)
        return edge

    def insert(self, edge: int, turn: int) -> None:
        """Join main or small."""
        to_main = edge in self._known or (not self._has_evicted and self._small.total >= self._small_blocks)
        self._known.discard(edge)
        self._count[edge] = 0
        self.place(edge, self._main if to_main else self._small, turn)

    def hit(self, edge: int, turn: int) -> None:
        """Count the read."""
        self._count[edge] = min(self._count[edge] + 1, self.MOST)

    def gone(self, edge: int) -> None:
        """Leave; small remembers the name."""
        queue, name_blocks = self.leave(edge)
        del self._count[edge]
        if queue is self._small:
            self._ghost.append(edge, name_blocks)
            self._ghost.trim(self._ghost_blocks)


class TwoQueues(Queued):
    """2Q, the full version: FIFO for what is new, LRU for what came back after it (Johnson & Shasha, VLDB 1994).

    An edge enters `in`, where reads change nothing. While `in` exceeds its share its oldest loses blocks, and with the last of them its
    name goes to the ghost queue `out`; else the oldest of `main` loses blocks, and is forgotten. An edge whose name is in `out` when it
    is asked for enters `main`, which is LRU, and its name is taken out before the eviction.

    Parameters
    ----------
    capacity_blocks : int
    share_in, share_out : float
        Kin and Kout, as shares of the capacity, rounded down to blocks. The paper suggests 25 % and 50 %.
    """

    def __init__(self, capacity_blocks: int, share_in: float = 0.25, share_out: float = 0.5) -> None:
        super().__init__(capacity_blocks)
        self._in_blocks, self._out_blocks = int(capacity_blocks * share_in), int(capacity_blocks * share_out)
        self._in, self._main, self._out = Queue(), Queue(), Queue()
        self._known: set[int] = set()

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Look for the name in `out`, before a victim's name may push it out."""
        if edge in self._out:
            self._out.remove(edge)
            self._known.add(edge)

    def victim(self, pinned: Container[int]) -> int:
        """Oldest of `in` if that exceeds its share, else of `main`; the other queue if there is none."""
        queues = (self._in, self._main) if self._in.total > self._in_blocks else (self._main, self._in)
        return next(edge for queue in queues if (edge := queue.oldest(pinned)) is not Queue.END)

    def insert(self, edge: int, turn: int) -> None:
        """Join `main` if the name was known, else `in`."""
        self.place(edge, self._main if edge in self._known else self._in, turn)
        self._known.discard(edge)

    def hit(self, edge: int, turn: int) -> None:
        """Join `main` anew, if that is where the edge stands."""
        if edge in self._main:
            self.place(edge, self._main, turn)

    def gone(self, edge: int) -> None:
        """Leave; `in` remembers the name."""
        queue, name_blocks = self.leave(edge)
        if queue is self._in:
            self._out.append(edge, name_blocks)
            self._out.trim(self._out_blocks)


class Arc(Queued):
    """ARC: LRU among edges read once and LRU among those read again, with a share that adapts (Megiddo & Modha, FAST 2003).

    `once` and `again` are T1 and T2, their ghost queues B1 and B2, `share` is the target p of T1. A read of what is resident moves the
    edge to `again` as it is asked for. One that a ghost queue knows moves the share towards the queue that lost it: by the weight of
    its name, times the ratio of the ghost queues where the other one is heavier; and enters `again`. Any other enters `once`. `once`
    gives the victim if it exceeds the share, or equals it and B2 knew an edge of the turn; else `again`. After the read, B1 forgets its
    oldest while T1 and B1 exceed the capacity, then B2 while all four exceed twice the capacity. The paper makes that room before
    it evicts: with objects of one block the same names go, and there the case that evicts from T1 without a name is included.
    """

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self.share = 0.0
        self._once, self._again, self._once_ghost, self._again_ghost = Queue(), Queue(), Queue(), Queue()
        self._known: set[int] = set()
        # Latest turn with an edge that B2 knew.
        self._again_known_in, self._turn = -1, -1

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Move what is resident; adapt the share to what a ghost queue knows."""
        self._turn = turn
        if edge in self._at:
            self.place(edge, self._again, turn)
        elif edge in self._once_ghost:
            factor = max(1.0, self._again_ghost.total / self._once_ghost.total)
            self.share = min(self.share + factor * self._once_ghost.remove(edge), self.capacity_blocks)
            self._known.add(edge)
        elif edge in self._again_ghost:
            factor = max(1.0, self._once_ghost.total / self._again_ghost.total)
            self.share = max(self.share - factor * self._again_ghost.remove(edge), 0.0)
            self._known.add(edge)
            self._again_known_in = turn

    def victim(self, pinned: Container[int]) -> int:
        """Oldest of the queue that exceeds its share; of the other if there is none."""
        once = self._once.total
        of_once = once > self.share or (once == self.share and self._again_known_in == self._turn)
        queues = (self._once, self._again) if of_once else (self._again, self._once)
        return next(edge for queue in queues if (edge := queue.oldest(pinned)) is not Queue.END)

    def insert(self, edge: int, turn: int) -> None:
        """Join `again` if a ghost queue knew the edge, else `once`."""
        self.place(edge, self._again if edge in self._known else self._once, turn)
        self._known.discard(edge)
        self._once_ghost.trim(self.capacity_blocks - self._once.total)
        self._again_ghost.trim(2 * self.capacity_blocks - self._once.total - self._once_ghost.total - self._again.total)

    def gone(self, edge: int) -> None:
        """Leave; the ghost queue remembers the name."""
        queue, name_blocks = self.leave(edge)
        (self._once_ghost if queue is self._once else self._again_ghost).append(edge, name_blocks)


class MultiQueue(Queued):
    """MQ: LRU queues by the logarithm of the number of reads, from which edges sink in time (Zhou, Philbin & Li, USENIX 2001).

    An edge read n times stands in queue floor(log2 n), or in the last; the oldest of the lowest queue loses blocks. An edge that is
    not read for a lifetime sinks one queue, where it is the newest and a new lifetime starts; at each read the oldest of each queue is
    looked at. The number of reads of an edge that is gone is remembered with its name, which is looked up before the eviction.

    Parameters
    ----------
    capacity_blocks : int
    queues : int
        Eight in the paper.
    life_turns : int
        The paper takes the peak of the distances between reads of one edge, as measured on the way. Here it is given: 16 turns end the
        fullest class of distances, 9 to 16, of the published zipf and scan workloads (seed 1).
    history : float
        What the names weigh, as a share of the capacity; four in the paper.
    """

    def __init__(self, capacity_blocks: int, queues: int = 8, life_turns: int = 16, history: float = 4.0) -> None:
        super().__init__(capacity_blocks)
        self.life_turns, self._names_blocks = life_turns, int(capacity_blocks * history)
        self._queues = [Queue() for _ in range(queues)]
        self._names = Queue()
        self._count: dict[int, int] = {}
        self._expires: dict[int, int] = {}

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Take the name out of the history, before a victim's name may push it out; its count stays."""
        if edge in self._names:
            self._names.remove(edge)

    def victim(self, pinned: Container[int]) -> int:
        """Oldest of the lowest queue."""
        return next(edge for queue in self._queues if (edge := queue.oldest(pinned)) is not Queue.END)

    def insert(self, edge: int, turn: int) -> None:
        """Count the read, join the queue of the count, let expired edges sink."""
        self._count[edge] = count = self._count.get(edge, 0) + 1
        self.place(edge, self._queues[min(count.bit_length(), len(self._queues)) - 1], turn)
        self._expires[edge] = turn + self.life_turns
        for lower, queue in pairwise(self._queues):
            oldest = queue.oldest()
            if oldest is not Queue.END and self._expires[oldest] < turn + 1:
                self.place(oldest, lower)
                self._expires[oldest] = turn + 1 + self.life_turns

    hit = insert

    def gone(self, edge: int) -> None:
        """Leave; the history remembers name and count."""
        _, name_blocks = self.leave(edge)
        del self._expires[edge]
        self._names.append(edge, name_blocks)
        for name in self._names.trim(self._names_blocks):
            del self._count[name]


Entry = tuple[float, int, int, int]
"""Rank, turn of the last read, minus the number of the read, edge."""


class Ranked(Eviction):
    """The victim has the smallest rank, which only a read of the edge may change."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._entry: dict[int, Entry] = {}
        self._heap: list[Entry] = []
        self._reads = 0

    def rank(self, edge: int, turn: int) -> float:
        """Renew the edge's state and return its rank."""
        raise NotImplementedError

    def heap_of(self, edge: int) -> list[Entry]:
        """Heap that holds the edge."""
        return self._heap

    def renew(self, edge: int, turn: int) -> Entry:
        """Make the edge's present entry."""
        self._reads += 1
        self._entry[edge] = entry = self.rank(edge, turn), turn, -self._reads, edge
        return entry

    def insert(self, edge: int, turn: int) -> None:
        """Renew the rank."""
        heapq.heappush(self.heap_of(edge), self.renew(edge, turn))

    hit = insert

    def gone(self, edge: int) -> None:
        """Forget the rank."""
        del self._entry[edge]

    def least(self, heap: list[Entry], pinned: Container[int]) -> Entry | None:
        """Smallest entry of a heap whose edge is not pinned; the heap keeps it."""
        aside, found = [], None
        while heap and found is None:
            entry = heap[0]
            # Not the edge's present entry: left behind by a later read, or by an eviction.
            if self._entry.get(entry[-1]) is not entry:
                heapq.heappop(heap)
            elif entry[-1] in pinned:
                aside.append(heapq.heappop(heap))
            else:
                found = entry
        for entry in aside:
            heapq.heappush(heap, entry)
        return found

    def victim(self, pinned: Container[int]) -> int:
        """Edge of smallest rank."""
        return self.least(self._heap, pinned)[-1]


class Lfu(Ranked):
    """Least frequently used: the rank is the number of reads.

    Parameters
    ----------
    capacity_blocks : int
    persistent : bool
        Whether the count survives the edge's last block.
    """

    def __init__(self, capacity_blocks: int, persistent: bool = False) -> None:
        super().__init__(capacity_blocks)
        self.persistent = persistent
        self._count: dict[int, int] = {}

    def rank(self, edge: int, turn: int) -> float:
        """One read more."""
        self._count[edge] = count = self._count.get(edge, 0) + 1
        return count

    def gone(self, edge: int) -> None:
        """Forget the count, unless it persists."""
        super().gone(edge)
        if not self.persistent:
            del self._count[edge]


class Ema(Ranked):
    """Decayed frequency, published as LRFU (Lee et al., SIGMETRICS 1999; IEEE Transactions on Computers 50(12), 2001).

    The expressions are those of :class:`kvtier.simulate.revision2.Hbm`; the clock is the turn. The rank is ln s + t·(−ln(1 − α)), which
    orders as the score decayed to any later turn does.

    Parameters
    ----------
    capacity_blocks : int
    alpha : float
        Weight of the newest read, in (0, 1).
    persistent : bool
        Whether the score survives the edge's last block.

    Raises
    ------
    ValueError
        If `alpha` is out of range.
    """

    def __init__(self, capacity_blocks: int, alpha: float, persistent: bool = False) -> None:
        super().__init__(capacity_blocks)
        if not 0 < alpha < 1:
            raise ValueError(f"alpha {alpha!r}: expected a number in (0, 1)")
        self.alpha, self.persistent = alpha, persistent
        self._score: dict[int, tuple[float, int]] = {}

    @property
    def half_life_turns(self) -> float:
        """Turns after which the score of an edge that is not read has halved."""
        return half_life_turns(self.alpha)

    def rank(self, edge: int, turn: int) -> float:
        """Order-preserving key of the new score."""
        alpha = self.alpha
        score, read = self._score.get(edge, (0.0, turn))
        score = alpha + (1 - alpha) * (score * (1 - alpha) ** (turn - read))
        self._score[edge] = (score, turn)
        return math.log(score) + turn * -math.log(1 - alpha)

    def gone(self, edge: int) -> None:
        """Forget the score, unless it persists."""
        super().gone(edge)
        if not self.persistent:
            del self._score[edge]


def half_life_turns(alpha: float) -> float:
    """Turns after which a score halves: ln 0.5 / ln(1 − α). 13.5 at α = 0.05, 4.3 at 0.15.

    Raises
    ------
    ValueError
        If `alpha` is outside (0, 1).
    """
    return scoring.half_life_steps(alpha)


class LruK(Ranked):
    """LRU-K: the edge whose K-th last read is oldest loses blocks (O'Neil, O'Neil & Weikum, SIGMOD 1993).

    Edges read less than K times go before all others, in LRU order. Every read counts (the paper's Correlated Reference Period is 0).

    Parameters
    ----------
    capacity_blocks : int
    k : int
    persistent : bool
        Whether the turns of reads survive the edge's last block, then for good: the paper's Retained Information Period, without end.
        Without, as libCacheSim 0.3.5 has it.
    """

    def __init__(self, capacity_blocks: int, k: int = 2, persistent: bool = True) -> None:
        super().__init__(capacity_blocks)
        self.k, self.persistent = k, persistent
        self._last: dict[int, deque[int]] = {}

    def rank(self, edge: int, turn: int) -> float:
        """Turn of the K-th last read."""
        last = self._last.setdefault(edge, deque(maxlen=self.k))
        last.append(turn)
        return last[0] if len(last) == self.k else -math.inf

    def gone(self, edge: int) -> None:
        """Forget the turns of reads, unless they persist."""
        super().gone(edge)
        if not self.persistent:
            del self._last[edge]


def recompute_s(position_block: float) -> float:
    """Time to compute one block of Llama-3 70B anew at a position of its context [s].

    Parameters
    ----------
    position_block : float
        Blocks before it.

    Returns
    -------
    float
        17.9 ms at the start of the context, 20.7 ms after 8,192 tokens.

    Notes
    -----
    2 · 70e9 · 16 FLOP for the weights and 4 · 80 · 8,192 · 16 · p for attention over the p tokens before (80 layers, hidden 8,192: one
    product with the keys and one with the values), at an assumed 125 TFLOP/s (SPEC §2, §4).
    """
    tokens_before = BLOCK_TOKENS * position_block
    return (2 * 70e9 * BLOCK_TOKENS + 4 * 80 * 8192 * BLOCK_TOKENS * tokens_before) / 125e12


class Gdsf(Ranked):
    """GreedyDual-Size with frequency: what is cheap to compute anew goes (Cherkasova, HP Labs HPL-98-69R1, 1998).

    The rank is H = L + F · C/S, renewed by each read: F reads since the edge was admitted, C the cost of its S resident blocks, L
    the rank of the last victim as the edge is asked for, before the evictions that make room for it. C/S is the cost of the middle block:
    the mean, where cost is linear in position. An edge that ranks below all others is admitted all the same; in the report it is not.
    (libCacheSim 0.3.5 inserts first and may evict what it has just inserted: asked in that order, this class does the same.) Also in
    Arlitt, Cherkasova, Dilley, Friedrich & Jin (Performance Evaluation Review 27(4), 2000).

    Parameters
    ----------
    capacity_blocks : int
    first_block : sequence of int
        Blocks that precede each edge in its path.
    cost : callable
        Of a block, by the blocks that precede it.
    """

    needs = ("first_block",)

    def __init__(self, capacity_blocks: int, first_block: Sequence[int], cost: Callable[[float], float] = recompute_s) -> None:
        super().__init__(capacity_blocks)
        self.first_block, self.cost = first_block, cost
        self._count: dict[int, int] = {}
        self._floor = self._floor_asked = 0.0

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Note the floor."""
        self._floor_asked = self._floor

    def rank(self, edge: int, turn: int) -> float:
        """One read more, from the floor as the edge was asked for."""
        self._count[edge] = count = self._count.get(edge, 0) + 1
        return self._floor_asked + count * self.cost(self.first_block[edge] + max(self.blocks[edge] - 1, 0) / 2)

    def victim(self, pinned: Container[int]) -> int:
        """Edge of smallest rank, which is the floor of later turns."""
        self._floor, *_, edge = self.least(self._heap, pinned)
        return edge

    def gone(self, edge: int) -> None:
        """Forget the count."""
        super().gone(edge)
        del self._count[edge]


class Priority(Ema):
    """The published placement priority P = 0.25 · R + 0.55 · E + 0.20 · N as an eviction order (technical appendix, section 12).

    E is the score of :class:`Ema`, decayed to the present turn; N is 1 in the anchor zone, else 0. The appendix does not define the
    recency R beyond its name. Here R halves with each half-life of E since the last read: R = (1 − α)^age, 1 in the turn of a read. So R
    and E decay alike, and time alone changes no order among edges of equal N; each N has one heap, and P decides between two heads.

    The edge of smallest P loses blocks, so edges above the upper cut, 0.6, leave last, and those below the lower, 0.3, first: under
    pressure the cuts say nothing that P does not. Without it, an edge below the lower cut belongs to the tier below: `demotes` names
    it if `demote_below` is 0.3. An edge read once has P = (0.25 + 0.55 · α)(1 − α) one turn later, when it is no longer pinned: below that
    cut for every α, so each new session leaves unless it is read again at once. Weights and cuts were never fitted (Illustrative).

    Parameters
    ----------
    capacity_blocks : int
    anchors : collection of int
        Edges of the anchor zone.
    alpha : float
        Of the score, in (0, 1).
    weights : tuple of float
        Of R, E and N.
    demote_below : float
        Lower cut for demotion without pressure; 0 for none.
    persistent : bool
        Whether the score survives the edge's last block.
    """

    needs = ("anchors",)

    def __init__(
        self,
        capacity_blocks: int,
        anchors: Collection[int],
        alpha: float,
        weights: tuple[float, float, float] = (0.25, 0.55, 0.20),
        demote_below: float = 0.0,
        persistent: bool = False,
    ) -> None:
        super().__init__(capacity_blocks, alpha, persistent)
        self.anchors, self.weights, self.demote_below = frozenset(anchors), weights, demote_below
        self._anchor_heap: list[Entry] = []
        self._now = 0

    def priority(self, edge: int, turn: int) -> float:
        """P of a resident edge in a turn."""
        score, read = self._score[edge]
        recency = (1 - self.alpha) ** (turn - read)
        return scoring.priority(recency, score * recency, edge in self.anchors, self.weights)

    def heap_of(self, edge: int) -> list[Entry]:
        """One heap for each N."""
        return self._anchor_heap if edge in self.anchors else self._heap

    def rank(self, edge: int, turn: int) -> float:
        """Order-preserving key of what decays in P."""
        super().rank(edge, turn)
        recency, ema, _ = self.weights
        weight = recency + ema * self._score[edge][0]
        # Anchors alone have weight: all other edges are equal, and the oldest goes first.
        return math.log(weight) + turn * -math.log(1 - self.alpha) if weight else 0.0

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Note the time."""
        self._now = turn

    def victim(self, pinned: Container[int]) -> int:
        """Edge of smallest P."""
        heads = [self.least(heap, pinned) for heap in (self._heap, self._anchor_heap)]
        return min((self.priority(head[-1], self._now), *head[1:]) for head in heads if head)[-1]

    def demotes(self, turn: int) -> list[int]:
        """Edges below the lower cut, the lowest first; they stay until they are reported as lost."""
        below = []
        for heap in (self._heap, self._anchor_heap):
            aside = []
            while (head := self.least(heap, ())) and (priority := self.priority(head[-1], turn)) < self.demote_below:
                aside.append(heapq.heappop(heap))
                below.append((priority, *head[1:]))
            for entry in aside:
                heapq.heappush(heap, entry)
        return [edge for *_, edge in sorted(below)]


Reads = Sequence[Sequence[int]]
"""Turns that read each edge, ascending."""

NEVER = math.inf
"""Next turn of an edge that is read no more."""


def reads_of(paths: Sequence[Sequence[int]], edges: int) -> list[list[int]]:
    """Turns that read each edge.

    Parameters
    ----------
    paths : sequence of sequences of int
        Edges that each turn reads.
    edges : int
        How many there are.
    """
    reads: list[list[int]] = [[] for _ in range(edges)]
    for turn, path in enumerate(paths):
        for edge in path:
            reads[edge].append(turn)
    return reads


class _Foresight:
    """Next turn of each edge, checked against what is read."""

    def __init__(self, reads: Reads) -> None:
        self._reads, self._done = reads, [0] * len(reads)

    def after(self, edge: int, turn: int) -> float:
        """Next turn that reads an edge which `turn` reads.

        Raises
        ------
        ContradictsTrace
            If `turn` is not the edge's next.
        """
        reads, done = self._reads[edge], self._done[edge]
        if done >= len(reads) or reads[done] != turn:
            raise ContradictsTrace(f"turn {turn} reads edge {edge}; expected {reads[done] if done < len(reads) else 'no more reads'}")
        self._done[edge] = done + 1
        return reads[done + 1] if done + 1 < len(reads) else NEVER


class Farthest(Ranked):
    """The edge whose next turn is farthest loses blocks, one that is never read again before all others (Belady, 1966).

    With what the turn reads pinned and always admitted. The bound on all policies is :mod:`kvtier.simulate.optimal`.

    Parameters
    ----------
    capacity_blocks : int
    reads : sequence of sequences of int
        Turns that read each edge, ascending; checked against each read as it comes.

    Raises
    ------
    ContradictsTrace
        From a read that `reads` does not have.
    """

    needs = ("reads",)

    def __init__(self, capacity_blocks: int, reads: Reads) -> None:
        super().__init__(capacity_blocks)
        self._future = _Foresight(reads)

    def rank(self, edge: int, turn: int) -> float:
        """Minus the next turn."""
        return -self._future.after(edge, turn)


class LookAhead(Farthest):
    """The next turns of a window are known: LRU among edges that do not return in them, then the farthest of those that do.

    A window of no turns is LRU; one without end is :class:`Farthest`.

    Parameters
    ----------
    capacity_blocks : int
    window : float
        Turns after the present one that are known.
    reads : sequence of sequences of int
        Turns that read each edge, ascending; what lies beyond the window decides nothing.

    Raises
    ------
    ContradictsTrace
        From a read that `reads` does not have.
    """

    def __init__(self, capacity_blocks: int, window: float, reads: Reads) -> None:
        super().__init__(capacity_blocks, reads)
        self.window = window
        # Edges that do not return within the window; the heap of Ranked holds the others.
        self._beyond = Queue()
        self._returns: list[tuple[float, Entry]] = []

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Move the window on."""
        while self._returns and self._returns[0][0] <= turn + self.window:
            _, entry = heapq.heappop(self._returns)
            if self._entry.get(entry[-1]) is entry:
                self._beyond.remove(entry[-1])
                heapq.heappush(self._heap, entry)

    def victim(self, pinned: Container[int]) -> int:
        """Least recently read of those that do not return within the window, else the one that returns last."""
        beyond = self._beyond.oldest(pinned)
        return self.least(self._heap, pinned)[-1] if beyond is Queue.END else beyond

    def insert(self, edge: int, turn: int) -> None:
        """Join those within the window or those beyond it."""
        entry = self.renew(edge, turn)
        upcoming = -entry[0]
        if edge in self._beyond:
            self._beyond.remove(edge)
        if upcoming <= turn + self.window:
            heapq.heappush(self._heap, entry)
        else:
            self._beyond.append(edge, 0, turn)
            heapq.heappush(self._returns, (upcoming, entry))

    hit = insert

    def gone(self, edge: int) -> None:
        """Forget the edge."""
        super().gone(edge)
        if edge in self._beyond:
            self._beyond.remove(edge)


@dataclass(frozen=True)
class Named:
    """A policy with its parameters.

    Parameters
    ----------
    kind : type of Eviction
    title : str
        As tables and charts print it.
    slug : str
        Inside a number key.
    parameters : mapping
        What does not depend on the trace.
    """

    kind: type[Eviction]
    title: str
    slug: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def build(self, capacity_blocks: int, **known: Any) -> Eviction:
        """An empty cache's policy.

        Parameters
        ----------
        capacity_blocks : int
            Blocks that fit.
        **known
            What is known of the trace, of which a policy takes what it `needs`: ``reads`` (:func:`reads_of`), ``first_block``
            (position of each edge's first block in its path [blocks]) and ``anchors`` (edges of the anchor zone).

        Raises
        ------
        ValueError
            If something that the policy needs is not given.
        """
        missing = [name for name in self.kind.needs if name not in known]
        if missing:
            raise ValueError(f"policy {self.slug}: needs {', '.join(missing)}, given were {', '.join(known) or 'none'}")
        return self.kind(capacity_blocks, **self.parameters, **{name: known[name] for name in self.kind.needs})


def ema(alpha: float, *, persistent: bool = False) -> Named:
    """Decayed frequency with weight `alpha`."""
    slug = f"ema{alpha:g}".replace(".", "") + "_persistent" * persistent
    return Named(Ema, f"EMA a={alpha:g}" + ", persistent" * persistent, slug, {"alpha": alpha, "persistent": persistent})


def priority(alpha: float, *, demote_below: float = 0.0) -> Named:
    """The published placement priority over a decayed frequency with weight `alpha`."""
    demotion = f", demotes below {demote_below:g}" if demote_below else ""
    slug = f"priority{alpha:g}".replace(".", "") + "_demotes" * bool(demote_below)
    return Named(Priority, f"Priority a={alpha:g}{demotion}", slug, {"alpha": alpha, "demote_below": demote_below})


def look_ahead(window: int) -> Named:
    """The next `window` turns are known."""
    return Named(LookAhead, f"Look-ahead, {window} turn{'s' * (window != 1)}", f"look{window}", {"window": window})


NAMES: dict[str, Named] = {
    named.slug: named
    for named in (
        Named(Fifo, "FIFO", "fifo"),
        Named(Lru, "LRU", "lru"),
        Named(Lfu, "LFU", "lfu"),
        Named(Lfu, "LFU, persistent", "lfu_persistent", {"persistent": True}),
        *(ema(alpha, persistent=persistent) for alpha in (0.15, 0.05, 0.01) for persistent in (False, True)),
        Named(LruK, "LRU-2", "lru2", {"persistent": False}),
        Named(LruK, "LRU-2, persistent", "lru2_persistent", {"persistent": True}),
        Named(TwoQueues, "2Q", "2q"),
        Named(Arc, "ARC", "arc"),
        Named(MultiQueue, "MQ", "mq"),
        Named(Sieve, "SIEVE", "sieve"),
        Named(S3Fifo, "S3-FIFO", "s3fifo"),
        Named(Gdsf, "GDSF", "gdsf"),
        *(priority(alpha, demote_below=cut) for alpha in (0.15, 0.05) for cut in (0.0, 0.3)),
        *(look_ahead(window) for window in (8, 32, 128)),
        Named(Farthest, "Farthest", "farthest"),
    )
}
"""Policies by slug."""

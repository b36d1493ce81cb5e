"""Which edge of a prefix tree loses blocks next: the eviction policies of Revision 3, one small class each.

A request is a path of edges from the root of a prefix tree: in the synthetic workloads the shared prefix, then the session's own
context. An edge is read whole, so its blocks have one history, and a policy keeps one state an edge. The simulator pins what the turn
reads, decides how many blocks an edge loses and from which end; a policy decides from which edge, and nothing else.

What the simulator calls in each turn, for each edge of the path, root first: :meth:`Eviction.asked`; then :meth:`Eviction.victim` and
:meth:`Eviction.lost` until there is room; then :meth:`Eviction.read` for each edge, root first; then :meth:`Eviction.demotes`. With
edges of one block, nothing pinned and one edge a turn this is an object cache that looks up, evicts while full, and inserts
(:mod:`kvtier.simulate.requests`), and every policy here then has the decisions of that cache.

Objects of many blocks. Shares of a queue, and what a ghost queue remembers, are counted in blocks; a name in a ghost queue weighs what
its edge had in HBM when it was last read, at least one block. An edge that has lost some of its blocks keeps its place and is next
again; its name moves on when the last block leaves.

Ties go to the edge that was read longest ago, and among edges of one turn to the deepest, as a block is of use only with all that
precede it. Numbers of edges decide nothing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvtier.analytic import scoring


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

    def trim(self, most_blocks: float) -> None:
        """Let the oldest leave while all weigh more than `most_blocks`."""
        while self.total > most_blocks and self._weight:
            self.remove(self._newer[self.END])


class Fifo(Eviction):
    """First in, first out: a read of what is resident changes nothing."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._queue = Queue()

    def victim(self, pinned: Container[int]) -> int:
        """Oldest edge."""
        return self._queue.oldest(pinned)

    def insert(self, edge: int, turn: int) -> None:
        """Join at the newest end."""
        self._queue.append(edge, 0, turn)

    def hit(self, edge: int, turn: int) -> None:
        """Nothing."""

    def gone(self, edge: int) -> None:
        """Leave the queue."""
        self._queue.remove(edge)


class Lru(Fifo):
    """Least recently used: a read of what is resident is like an insertion."""

    def hit(self, edge: int, turn: int) -> None:
        """Join anew at the newest end."""
        self._queue.remove(edge)
        self._queue.append(edge, 0, turn)


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


def look_ahead(window: int) -> Named:
    """The next `window` turns are known."""
    return Named(LookAhead, f"Look-ahead, {window} turns", f"look{window}", {"window": window})


NAMES: dict[str, Named] = {
    named.slug: named
    for named in (
        Named(Fifo, "FIFO", "fifo"),
        Named(Lru, "LRU", "lru"),
        Named(Lfu, "LFU", "lfu"),
        Named(Lfu, "LFU, persistent", "lfu_persistent", {"persistent": True}),
        *(ema(alpha, persistent=persistent) for alpha in (0.15, 0.05, 0.01) for persistent in (False, True)),
        *(look_ahead(window) for window in (8, 32, 128)),
        Named(Farthest, "Farthest", "farthest"),
    )
}
"""Policies by slug."""

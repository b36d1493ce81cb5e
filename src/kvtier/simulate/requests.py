"""A cache that is asked request by request: the readable reference of seven policies.

Revision 2 looks a whole turn up before it admits anything. Here every block of :attr:`kvtier.workload.turns.Turns.requests` is one request,
as in trace-driven cache simulators: a resident block is a hit and is touched; any other evicts first, while the cache is full, and is then
inserted, so it is never its own victim. MIN is optimal among policies that always admit. Blocks that a turn appends are requests too, and
always miss. There is no tier below.

Ties between equal counts, scores or next uses are decided alike at every capacity: the oldest touch goes, and among blocks that are
never requested again the lowest.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from kvtier.simulate.metrics import require_capacities
from kvtier.simulate.policies import Policy
from kvtier.workload.turns import Turns, next_occurrence


class Cache:
    """A full cache evicts, then inserts; what is evicted is the policy's.

    Parameters
    ----------
    policy : Policy
    capacity : int
        Blocks that fit; with none, nothing is ever inserted.
    """

    def __init__(self, policy: Policy, capacity: int) -> None:
        self.policy, self.capacity = policy, capacity
        self.resident: dict[int, object] = {}

    def request(self, block: int, turn: int) -> tuple[bool, int | None]:
        """Ask for a block; whether it was resident, and the block that was evicted for it, if any."""
        if block in self.resident:
            self.hit(block, turn)
            return True, None
        if self.capacity == 0:
            return False, None
        victim = self.evict() if len(self.resident) >= self.capacity else None
        self.insert(block, turn)
        return False, victim

    def hit(self, block: int, turn: int) -> None:
        """Touch a resident block."""

    def insert(self, block: int, turn: int) -> None:
        """Add a block to a cache that has room for it."""
        self.resident[block] = None

    def evict(self) -> int:
        """Remove one resident block, and say which."""
        raise NotImplementedError


class Fifo(Cache):
    """First in, first out: hits change nothing. A dict keeps the order of insertion."""

    def __init__(self, policy: Policy, capacity: int) -> None:
        super().__init__(policy, capacity)
        self.resident = OrderedDict()

    def evict(self) -> int:
        """Remove the block inserted first."""
        return self.resident.popitem(last=False)[0]


class Lru(Fifo):
    """Least recently used: a hit is like an insertion."""

    def hit(self, block: int, turn: int) -> None:
        """Put the block last."""
        self.resident.move_to_end(block)


class Ranked(Cache):
    """The victim has the smallest rank, ties to the oldest touch; `resident` holds each block's last touch."""

    def __init__(self, policy: Policy, capacity: int) -> None:
        super().__init__(policy, capacity)
        self.state: dict[int, object] = {}
        self._touches = 0
        self._queue: list[tuple[float, int, int]] = []

    def rank(self, block: int, turn: int) -> float:
        """Renew the block's state and return its rank."""
        raise NotImplementedError

    def hit(self, block: int, turn: int) -> None:
        """Renew the block's rank."""
        self._touches += 1
        self.resident[block] = self._touches
        heapq.heappush(self._queue, (self.rank(block, turn), self._touches, block))

    def insert(self, block: int, turn: int) -> None:
        """Admit the block; its state goes on from where it was, if the policy persists."""
        self.hit(block, turn)

    def evict(self) -> int:
        """Remove the block of smallest (rank, touch), and its state unless the policy persists."""
        while True:
            _, touch, victim = heapq.heappop(self._queue)
            # Another touch than the block's last: the entry was left behind.
            if self.resident.get(victim) == touch:
                break
        del self.resident[victim]
        if not self.policy.persistent:
            del self.state[victim]
        return victim


class Lfu(Ranked):
    """Least frequently used: the rank is the number of touches."""

    def rank(self, block: int, turn: int) -> float:
        """One touch more."""
        self.state[block] = count = self.state.get(block, 0) + 1
        return count


class Ema(Ranked):
    """Decayed frequency, by the expressions of :class:`kvtier.simulate.revision2.Hbm`; the clock is the turn."""

    def rank(self, block: int, turn: int) -> float:
        """Order-preserving key of the new score."""
        alpha = self.policy.alpha
        score, touched = self.state.get(block, (0.0, turn))
        score = alpha + (1 - alpha) * (score * (1 - alpha) ** (turn - touched))
        self.state[block] = (score, turn)
        return math.log(score) + turn * -math.log(1 - alpha)


class Sieve(Cache):
    """One queue, a bit a block, and a hand that moves from the oldest towards the newest (Zhang et al., NSDI 2024).

    A hit sets the bit. The hand clears set bits until it meets a clear one, whose block goes; it then rests on the next newer block. Past
    the newest it starts again at the oldest. Survivors keep their place, and new blocks join at the newest end with a clear bit.
    """

    END = -1

    def __init__(self, policy: Policy, capacity: int) -> None:
        super().__init__(policy, capacity)
        # A ring through END: END's newer neighbour is the oldest block, its older neighbour the newest.
        self._newer, self._older = {self.END: self.END}, {self.END: self.END}
        self._hand = self.END

    def hit(self, block: int, turn: int) -> None:
        """Set the bit."""
        self.resident[block] = True

    def insert(self, block: int, turn: int) -> None:
        """Join at the newest end."""
        newest = self._older[self.END]
        self._newer[newest] = self._older[self.END] = block
        self._older[block], self._newer[block] = newest, self.END
        self.resident[block] = False

    def evict(self) -> int:
        """Move the hand to a block with a clear bit and remove it."""
        while self._hand == self.END or self.resident[self._hand]:
            if self._hand != self.END:
                self.resident[self._hand] = False
            self._hand = self._newer[self._hand]
        victim = self._hand
        older, self._hand = self._older.pop(victim), self._newer.pop(victim)
        self._newer[older], self._older[self._hand] = self._hand, older
        del self.resident[victim]
        return victim


class S3Fifo(Cache):
    """Three queues: small, main, and the names of what small has lost (Yang et al., SOSP 2023), as libCacheSim 0.3.5 has them.

    Small has a tenth of the capacity, at least one block (libCacheSim admits nothing where that is below two); main the rest; the ghost
    queue remembers 9/10 of the capacity. Touches after insertion are counted up to 3. A block enters main if the ghost queue knows it
    when it is asked for (and forgets it then), else small; until the first eviction, main also takes what small has no room for. A
    victim is sought in main if main exceeds its share or small is empty, else in small. From small the oldest blocks move to main,
    counts cleared, up to the first touched less than twice, which goes, its name to the ghost queue, which drops its oldest; if all
    of small moved, main is next. From main the oldest blocks start again as the newest, with one touch less, up to the first of count 0,
    which goes. The paper looks into the ghost queue after the eviction and does not say how main fills first.
    """

    MOST, TO_MAIN = 3, 2

    def __init__(self, policy: Policy, capacity: int) -> None:
        super().__init__(policy, capacity)
        self._small_blocks, self._ghost_blocks = max(capacity // 10, 1), 9 * capacity // 10
        self._small, self._main, self._ghost = OrderedDict(), OrderedDict(), OrderedDict()
        self._known, self._has_evicted = False, False

    def request(self, block: int, turn: int) -> tuple[bool, int | None]:
        """Ask for a block."""
        # Before the eviction, whose victim may push this name out of the ghost queue.
        self._known = block in self._ghost
        if self._known:
            del self._ghost[block]
        return super().request(block, turn)

    def hit(self, block: int, turn: int) -> None:
        """Count the touch."""
        self.resident[block] = min(self.resident[block] + 1, self.MOST)

    def insert(self, block: int, turn: int) -> None:
        """Join main or small."""
        to_main = self._known or (not self._has_evicted and len(self._small) >= self._small_blocks)
        (self._main if to_main else self._small)[block] = None
        self.resident[block] = 0

    def evict(self) -> int:
        """Remove a block that was not touched enough to stay."""
        self._has_evicted = True
        if len(self._main) <= self.capacity - self._small_blocks:
            while self._small:
                oldest, _ = self._small.popitem(last=False)
                if self.resident[oldest] < self.TO_MAIN:
                    self._ghost[oldest] = None
                    if len(self._ghost) > self._ghost_blocks:
                        self._ghost.popitem(last=False)
                    del self.resident[oldest]
                    return oldest
                self._main[oldest], self.resident[oldest] = None, 0
        while True:
            oldest, _ = self._main.popitem(last=False)
            if self.resident[oldest] == 0:
                del self.resident[oldest]
                return oldest
            self._main[oldest] = None
            self.resident[oldest] -= 1


class ContradictsTrace(RuntimeError):
    """A table of next requests says another thing than the requests themselves."""


class Min(Cache):
    """MIN (optimal among policies that always admit): the victim is requested again last, or never (Belady, 1966).

    Parameters
    ----------
    policy : Policy
    capacity : int
    next_request : ndarray of int64, shape (requests,)
        Of each request the next for the same block (:func:`kvtier.workload.turns.next_occurrence`); checked against each as it comes.

    Raises
    ------
    ContradictsTrace
        From a request that the table did not foresee, or foresaw for another block.
    """

    def __init__(self, policy: Policy, capacity: int, next_request: np.ndarray) -> None:
        super().__init__(policy, capacity)
        self._next_request = next_request.tolist()
        self._now, self._seen = -1, set()
        self._due: dict[int, int] = {}
        self._queue: list[tuple[int, int]] = []

    def hit(self, block: int, turn: int) -> None:
        """Note when the block is requested next."""
        self._now += 1
        # The table is derived from the requests: what is guarded is the derivation.
        foreseen, expected = self._due.pop(self._now, None), block if block in self._seen else None
        if foreseen != expected:
            raise ContradictsTrace(f"request {self._now} is for block {block}; foreseen was {foreseen}, from requests before {expected}")
        upcoming = self._next_request[self._now]
        self._seen.add(block)
        if upcoming < len(self._next_request):
            self._due[upcoming] = block
        heapq.heappush(self._queue, (-upcoming, block))

    def insert(self, block: int, turn: int) -> None:
        """Admit the block."""
        self.hit(block, turn)
        self.resident[block] = None

    def evict(self) -> int:
        """Remove the block requested last."""
        # Entries left behind by hits lie in the past, below those of all residents; an eviction takes its own entry away.
        _, victim = heapq.heappop(self._queue)
        del self.resident[victim]
        return victim


CACHES: dict[str, type[Cache]] = {
    "lru": Lru,
    "lfu": Lfu,
    "ema": Ema,
    "fifo": Fifo,
    "sieve": Sieve,
    "s3fifo": S3Fifo,
    "min": Min,
}
"""Cache of each policy name."""


def cache(policy: Policy, capacity: int, requests: np.ndarray) -> Cache:
    """An empty cache; only MIN looks at the requests that will come.

    Parameters
    ----------
    policy : Policy
    capacity : int
        Blocks that fit.
    requests : ndarray of int64, shape (requests,)
        All that will be asked, in order.
    """
    kind = CACHES[policy.name]
    return kind(policy, capacity, next_occurrence(requests)) if kind is Min else kind(policy, capacity)


def replay(turns: Turns, policy: Policy, hbm_blocks: int, on_evict: Callable[[int, int], None] | None = None) -> np.ndarray:
    """Hits of each turn when the cache is asked request by request.

    Parameters
    ----------
    turns : Turns
    policy : Policy
    hbm_blocks : int
        Blocks that fit.
    on_evict : callable, optional
        Called with (turn, victim) at each eviction.

    Returns
    -------
    ndarray of int64, shape (turns,)
        Blocks read that were resident when their turn came to them; at most ``turns.read_blocks``.

    Raises
    ------
    ValueError
        If the capacity is negative.
    ContradictsTrace
        Under MIN, if the table of next requests and the requests differ.
    """
    require_capacities(hbm_blocks=hbm_blocks)
    requests = turns.requests
    resident = cache(policy, hbm_blocks, requests)
    hits = np.zeros(len(turns.session), dtype=np.int64)
    asked_by = np.repeat(np.arange(len(hits)), turns.read_blocks + turns.growth_blocks)
    for turn, block in zip(asked_by.tolist(), requests.tolist(), strict=True):
        hit, victim = resident.request(block, turn)
        hits[turn] += hit
        if on_evict and victim is not None:
            on_evict(turn, victim)
    return hits

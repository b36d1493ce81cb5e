"""Which row of a table leaves next: the order that a policy keeps of the blocks in HBM.

Two structures over rows of one :class:`~kvtier.blocks.table.Table`. :class:`Recency`, for LRU, is a ring of links, O(1) an operation.
:class:`Ranking`, for any policy whose rank is changed by nothing but a touch (a count; the order-preserving key of a decayed score), is a
heap that knows where each row is, O(log n). Both name the same victims as the policies of :mod:`kvtier.simulate.eviction` do; unlike
those they hold a fixed number of bytes for each row and leave nothing behind at a touch.

Order is mechanism state: it can be made again from the records. A row moves when the table removes a block: an order is then to be made
anew, as it is when the table has grown.
"""

from __future__ import annotations

import numpy as np

from kvtier.simulate.compiled import compiled_inline, compiled_inner

ABSENT = -1
"""Row that is not in the order, or where a row would be that is not."""

END = 0
"""Element of the ring between the newest and the oldest row; row r is element r + 1."""

OLDER, NEWER = 0, 1

CHILDREN = 4
"""Children of each place of the heap: half the levels of a binary one, and the ranks that are compared at a level are neighbours."""


class Recency:
    """Rows from the one that joined longest ago to the newest: 8 bytes a row.

    Parameters
    ----------
    rows : int
        Rows that may join, fewer than 2^31.

    Attributes
    ----------
    links : ndarray of int32, shape (rows + 1, 2)
        The older and the newer neighbour of each element.
    """

    def __init__(self, rows: int) -> None:
        self.links = np.full((rows + 1, 2), ABSENT, dtype=np.int32)
        self.links[END] = END

    @property
    def nbytes(self) -> int:
        """Bytes of the links [B]."""
        return self.links.nbytes

    def fill(self, rows: np.ndarray) -> None:
        """Let int64 rows that are not in the ring join, the first one first."""
        _join_all(self.links, rows)

    def touch(self, row: int) -> None:
        """Join at the newest end, from wherever the row is."""
        if self.links[row + 1, OLDER] != ABSENT:
            leave(self.links, row)
        join(self.links, row)

    def leave(self, row: int) -> None:
        """Leave; the row must be in the ring."""
        leave(self.links, row)

    def first(self) -> int:
        """Row that leaves next, the oldest; ABSENT if there is none."""
        return int(self.links[END, NEWER]) - 1


class Ranking:
    """Rows by (rank, stamp), the smallest first: 24 bytes a row.

    Parameters
    ----------
    rows : int
        Rows that may enter, fewer than 2^31.

    Attributes
    ----------
    ranks : ndarray of float64, shape (rows,)
    stamps : ndarray of int64, shape (rows,)
        Of the row at each place of the heap, like the next.
    rows : ndarray of int32, shape (rows,)
    places : ndarray of int32, shape (rows,)
        Where each row is.
    size : ndarray of int64, shape (1,)
        How many are in.
    """

    def __init__(self, rows: int) -> None:
        self.ranks = np.empty(rows, dtype=np.float64)
        self.stamps = np.empty(rows, dtype=np.int64)
        self.rows = np.empty(rows, dtype=np.int32)
        self.places = np.full(rows, ABSENT, dtype=np.int32)
        self.size = np.zeros(1, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of heap and places [B]."""
        return sum(array.nbytes for array in (self.ranks, self.stamps, self.rows, self.places, self.size))

    @property
    def heap(self) -> tuple[np.ndarray, ...]:
        """The arrays, as compiled functions take them."""
        return self.ranks, self.stamps, self.rows, self.places, self.size

    def fill(self, rows: np.ndarray, ranks: np.ndarray, stamps: np.ndarray) -> None:
        """Enter int64 rows with their ranks (float64) and stamps (int64)."""
        _enter_all(*self.heap, rows, ranks, stamps)

    def touch(self, row: int, rank: float, stamp: int) -> None:
        """Enter, or change rank and stamp."""
        enter(*self.heap, row, rank, stamp)

    def leave(self, row: int) -> None:
        """Leave; the row must be in."""
        withdraw(*self.heap, row)

    def first(self) -> int:
        """Row that leaves next; ABSENT if there is none."""
        return int(self.rows[0]) if self.size[0] else ABSENT


@compiled_inline
def join(links, row):
    """Enter the ring at the newest end."""
    element, newest = row + 1, links[END, OLDER]
    links[element, OLDER], links[element, NEWER] = newest, END
    links[newest, NEWER] = links[END, OLDER] = element


@compiled_inline
def leave(links, row):
    """Leave the ring."""
    older, newer = links[row + 1, OLDER], links[row + 1, NEWER]
    links[older, NEWER], links[newer, OLDER] = newer, older
    links[row + 1, OLDER] = ABSENT


@compiled_inner
def _join_all(links, rows):
    for position in range(len(rows)):
        join(links, rows[position])


@compiled_inline
def _before(rank, stamp, other_rank, other_stamp):
    return rank < other_rank or (rank == other_rank and stamp < other_stamp)


@compiled_inline
def _store(ranks, stamps, rows, places, place, row, rank, stamp):
    ranks[place], stamps[place], rows[place] = rank, stamp, row
    places[row] = place


@compiled_inner
def _settle(ranks, stamps, rows, places, size, place, row, rank, stamp):
    """Put a row where it belongs, from a place that is free: up from there, or else down."""
    start = place
    while place > 0:
        parent = (place - 1) // CHILDREN
        if not _before(rank, stamp, ranks[parent], stamps[parent]):
            break
        _store(ranks, stamps, rows, places, place, rows[parent], ranks[parent], stamps[parent])
        place = parent
    while place >= start:
        first = CHILDREN * place + 1
        if first >= size:
            break
        least = first
        for child in range(first + 1, min(first + CHILDREN, size)):
            if _before(ranks[child], stamps[child], ranks[least], stamps[least]):
                least = child
        if not _before(ranks[least], stamps[least], rank, stamp):
            break
        _store(ranks, stamps, rows, places, place, rows[least], ranks[least], stamps[least])
        place = least
    _store(ranks, stamps, rows, places, place, row, rank, stamp)


@compiled_inner
def enter(ranks, stamps, rows, places, size, row, rank, stamp):
    """Enter the heap, or change rank and stamp."""
    place = places[row]
    if place == ABSENT:
        place = size[0]
        size[0] += 1
    _settle(ranks, stamps, rows, places, size[0], place, row, rank, stamp)


@compiled_inner
def withdraw(ranks, stamps, rows, places, size, row):
    """Leave the heap: what stood last takes the place and settles."""
    place = places[row]
    places[row] = ABSENT
    size[0] -= 1
    last = size[0]
    if place != last:
        _settle(ranks, stamps, rows, places, last, place, rows[last], ranks[last], stamps[last])


@compiled_inner
def _enter_all(ranks, stamps, rows, places, size, entering, entering_ranks, entering_stamps):
    for position in range(len(entering)):
        enter(ranks, stamps, rows, places, size, entering[position], entering_ranks[position], entering_stamps[position])

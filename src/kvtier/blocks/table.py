"""Records of all known blocks: one contiguous table, keyed by identity.

Rows are numbered without gaps and move when a row is removed: hold identities, not rows. The table grows by doubling.
"""

from __future__ import annotations

import mmap
import struct

import numpy as np

from kvtier.blocks import index
from kvtier.blocks.record import IDENTITY_BYTES, NO_SLOT, RECORD, RECORD_BYTES
from kvtier.errors import InputError

PLACES_PER_ROW = 2
"""Places of the index for each row of the table, so that it is at most half full."""

STATE_BYTES = RECORD_BYTES + 4 * PLACES_PER_ROW
"""Record and index of a block in a full table: 72 B. Twice that just after the table has grown."""

ABSENT = -1
"""Row of an identity that the table does not have."""

UNKNOWN = np.zeros(1, dtype=RECORD)
"""A record that knows nothing."""
UNKNOWN["slot"] = NO_SLOT


class Table:
    """Records by identity.

    Parameters
    ----------
    rows : int
        Blocks to have room for before the table grows.

    Attributes
    ----------
    score, touched, count, checksum, pins, flags : ndarray, shape (capacity,)
        Columns of the records; see :mod:`kvtier.blocks.record`. Renewed when the table grows: not to be held.
    slot : ndarray of int32, shape (capacity, tiers)
    """

    def __init__(self, rows: int = 1024) -> None:
        self._used = 0
        self._allocate(max(rows, 1))

    def _allocate(self, rows: int) -> None:
        # Anonymous memory: pages that no record has reached cost nothing, and the first record starts a cache line.
        records = np.frombuffer(mmap.mmap(-1, rows * RECORD_BYTES), dtype=RECORD)
        if self._used:
            records[: self._used] = self.records
        self._records = records
        self._words = records.view("<i8").reshape(rows, RECORD_BYTES // 8)
        self._index = np.full(rows * PLACES_PER_ROW, index.EMPTY, dtype=np.int32)
        index.insert(self._index, self._words, 0, self._used)
        for column in ("score", "touched", "count", "slot", "checksum", "pins", "flags"):
            setattr(self, column, records[column])

    def __len__(self) -> int:
        return self._used

    @property
    def records(self) -> np.ndarray:
        """The records in use, shape (blocks,), dtype :data:`RECORD`."""
        return self._records[: self._used]

    @property
    def words(self) -> np.ndarray:
        """The records as int64, shape (capacity, 8), for compiled functions. Renewed when the table grows, like the index."""
        return self._words

    @property
    def index(self) -> np.ndarray:
        """Places of the hash index, for :func:`kvtier.blocks.index.find`."""
        return self._index

    @property
    def nbytes(self) -> int:
        """Bytes of records and index, what is free of them included [B]."""
        return self._records.nbytes + self._index.nbytes

    def row(self, identity: bytes) -> int:
        """Row of a block, or :data:`ABSENT`.

        Raises
        ------
        InputError
            If the identity is not of 16 bytes.
        """
        return index.find(self._index, self._words, *_words(identity))

    def add(self, identity: bytes) -> int:
        """Row of a block, which is made if there is none."""
        row = self.row(identity)
        if row == ABSENT:
            if self._used == len(self._records):
                self._allocate(2 * self._used)
            row = self._used
            self._records[row] = UNKNOWN[0]
            self._words[row, :2] = _words(identity)
            self._used += 1
            index.insert(self._index, self._words, row, self._used)
        return row

    def extend(self, records: np.ndarray) -> None:
        """Append records whose identities the table does not have, shape (blocks,)."""
        first = self._used
        while first + len(records) > len(self._records):
            self._allocate(2 * len(self._records))
        self._records[first : first + len(records)] = records
        self._used += len(records)
        index.insert(self._index, self._words, first, self._used)

    def remove(self, identity: bytes) -> None:
        """Forget a block that the table has; its last row takes the place."""
        index.remove(self._index, self._words, self.row(identity), self._used - 1)
        self._used -= 1

    def payload_free(self) -> np.ndarray:
        """Rows of the blocks that no tier has, least recently touched first, ties by the identity's two numbers; int64."""
        rows = np.flatnonzero((self.slot[: self._used] == NO_SLOT).all(axis=1))
        high, low = self._words[rows, 0], self._words[rows, 1]
        return rows[np.lexsort((low, high, self.touched[rows]))]

    def identity(self, row: int) -> bytes:
        """Identity of a row."""
        return self._words[row, :2].tobytes()


def _words(identity: bytes) -> tuple[int, int]:
    try:
        return struct.unpack("<qq", identity)
    except struct.error:
        raise InputError("identity", "length", f"{len(identity)} bytes", f"{IDENTITY_BYTES} bytes") from None

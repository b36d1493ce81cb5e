"""Fixed slots of payload in real memory: anonymous for HBM's part, a mapped file for the CXL part.

A mapped file on a tmpfs (``/dev/shm``) is shared memory; on a device's path it is the device. Either way what an arena holds is gone
after a restart: the table of that process knew what was where.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from kvtier.errors import InputError


class Full(InputError):
    """A tier has no free slot."""


class Slots:
    """Which slots of a tier are free: the one freed last is taken first.

    Parameters
    ----------
    name : str
        What errors call the tier.
    capacity : int
        Slots [blocks]; may be 0.
    payload_bytes : int
        Bytes of each payload [B].

    Raises
    ------
    InputError
        If a size is out of range.
    """

    def __init__(self, name: str, capacity: int, payload_bytes: int) -> None:
        if not 0 <= capacity < 2**31:
            raise InputError(name, "capacity", f"{capacity} blocks", "0 to 2^31 - 1")
        if payload_bytes < 1:
            raise InputError(name, "payload_bytes", payload_bytes, "1 or more")
        self.name, self.capacity, self.payload_bytes = name, capacity, payload_bytes
        self.vacate(np.arange(capacity, dtype=np.int32))

    def vacate(self, slots: np.ndarray) -> None:
        """Make these slots, int32, the free ones; the first is taken first."""
        self._free = np.empty(self.capacity, dtype=np.int32)
        self.free_slots = len(slots)
        self._free[: len(slots)] = slots[::-1]

    @property
    def used(self) -> int:
        """Slots that are not free."""
        return self.capacity - self.free_slots

    @property
    def stack(self) -> np.ndarray:
        """The list of free slots, int32, for compiled functions: the one at ``free_slots - 1`` is taken next. Renewed by :meth:`vacate`."""
        return self._free

    @property
    def nbytes(self) -> int:
        """Bytes of the list of free slots [B]: 4 a slot."""
        return self._free.nbytes

    def require_free(self) -> None:
        """Raise :class:`Full` if there is no free slot."""
        if not self.free_slots:
            raise Full(self.name, "slots", f"{self.used} of {self.capacity} in use", "a free one (demote or evict a block first)")

    def take(self) -> int:
        """Take a free slot; :class:`Full` if there is none."""
        self.require_free()
        self.free_slots -= 1
        return int(self._free[self.free_slots])

    def give(self, slot: int) -> None:
        """Give a slot back that was taken."""
        self._free[self.free_slots] = slot
        self.free_slots += 1


class Arena(Slots):
    """Slots in memory.

    Parameters
    ----------
    name : str
    capacity : int
        Slots [blocks]; may be 0.
    payload_bytes : int
        Bytes of each payload [B].
    path : str or Path, optional
        File to map, made if there is none; anonymous memory without it. A file that is there must be as large as the arena, so that
        nothing else is overwritten by mistake; its content is not looked at.

    Raises
    ------
    InputError
        If a size is out of range, or the file has another size.
    """

    def __init__(self, name: str, capacity: int, payload_bytes: int, path: str | Path | None = None) -> None:
        super().__init__(name, capacity, payload_bytes)
        size = capacity * payload_bytes
        if not size:
            self._memory = memoryview(bytearray())
        elif path is None:
            self._memory = memoryview(mmap.mmap(-1, size))
        else:
            self._memory = memoryview(_mapped(Path(path), size))
        self._read_only = self._memory.toreadonly()

    def write(self, identity: bytes, payload: bytes | memoryview, digest: int) -> int:
        """Copy a payload into a free slot; which. Identity and checksum are the table's to keep.

        Raises
        ------
        Full
            If there is none.
        """
        slot = self.take()
        self._memory[slot * self.payload_bytes : (slot + 1) * self.payload_bytes] = payload
        return slot

    def read(self, slot: int, identity: bytes) -> memoryview:
        """The payload in a slot, in place: a view that is right for as long as the slot is not freed."""
        return self._read_only[slot * self.payload_bytes : (slot + 1) * self.payload_bytes]

    def free(self, slot: int) -> None:
        """Free a slot."""
        self.give(slot)

    def close(self) -> None:
        """Nothing: the memory goes with the last view of it."""


def _mapped(path: Path, size: int) -> mmap.mmap:
    try:
        path.touch(exist_ok=True)
        with path.open("r+b") as file:
            found = file.seek(0, 2)
            if found not in (0, size):
                raise InputError(path, "size", f"{found} bytes", f"{size} bytes, or no file: an arena overwrites what it maps")
            file.truncate(size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a file that can be made and mapped") from None

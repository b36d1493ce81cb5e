"""A tier in a file that survives a restart, and a crash at any point.

The file is a head of 4,096 bytes, then slots: a header of 64 bytes and a payload. A block is written in two phases: the payload first,
then, once that is on the medium, the header. It is acknowledged when the header is on the medium too. A slot whose header is all
zero is free, so a crash before the header leaves a free slot, and at any other point a block that is whole. To free a slot is to zero its
header; that reaches the medium with the next write at the latest, and until then a crash of the machine (not of the process) can
bring the block back, which does no harm: payloads never go stale. Header and payload have checksums. A slot that fails them is *torn*: it
is reported, never served, and out of use until :meth:`FileTier.reclaim`.

Reads go through the page cache; whoever measures this tier has to see to that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvtier.blocks.arena import Slots
from kvtier.blocks.record import checksum
from kvtier.errors import InputError

HEAD_BYTES = 4096
HEADER_BYTES = 64

FILE_MAGIC, SLOT_MAGIC, VERSION = b"kvtier-f", b"kvtier-b", 1
_HEAD = struct.Struct("<8sQQQ")
"""Magic, version, payload bytes, slots; then the checksum of these."""
_HEADER = struct.Struct("<8s16sQQ16x")
"""Magic, identity, length, checksum of the payload; then the checksum of these."""

FREE = bytes(HEADER_BYTES)


class Damaged(InputError):
    """A block in the file is not what was written."""


@dataclass(frozen=True)
class Intact:
    """A slot that was found whole when the file was opened."""

    slot: int
    identity: bytes
    checksum: int


@dataclass(frozen=True)
class Torn:
    """A slot that was found damaged.

    Parameters
    ----------
    slot : int
    identity : bytes or None
        None if the header cannot be trusted.
    reason : str
    """

    slot: int
    identity: bytes | None
    reason: str


class FileTier(Slots):
    """Slots in a file; opening it finds the blocks that it has.

    Parameters
    ----------
    path : str or Path
        Made if there is none.
    capacity : int
        Slots [blocks]; may be 0.
    payload_bytes : int
        Bytes of each payload [B].
    name : str
        What errors call the tier.

    Attributes
    ----------
    intact : list of Intact
        Blocks found, by slot; the table of the store takes them over.
    torn : list of Torn
        Slots found damaged.

    Raises
    ------
    InputError
        If the file is another one, has other sizes, or is open elsewhere.
    """

    def __init__(self, path: str | Path, capacity: int, payload_bytes: int, name: str = "NVMe") -> None:
        super().__init__(name, capacity, payload_bytes)
        self.path = Path(path)
        self._slot_bytes = HEADER_BYTES + payload_bytes
        self.intact: list[Intact] = []
        self.torn: list[Torn] = []
        try:
            if not self.path.exists():
                self._create()
            self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(self.path, "file", error.strerror, "a file that can be made, read and written") from None
        try:
            self._lock()
            self._check_head()
            self._scan()
        except BaseException:
            os.close(self._file)
            raise

    @property
    def file_bytes(self) -> int:
        """Size of the file [B]."""
        return HEAD_BYTES + self.capacity * self._slot_bytes

    def write(self, identity: bytes, payload: bytes | memoryview, digest: int) -> int:
        """Write a block durably; its slot.

        Parameters
        ----------
        identity : bytes of length 16
        payload : bytes-like of length `payload_bytes`
        digest : int
            :func:`kvtier.blocks.record.checksum` of the payload.

        Raises
        ------
        Full
            If there is no free slot.
        OSError
            If the file system fails. The slot is free again, as far as the medium can be told.
        """
        slot = self.take()
        try:
            _write(self._file, payload, self._at(slot) + HEADER_BYTES)
            os.fdatasync(self._file)
            _write(self._file, _sealed(_HEADER.pack(SLOT_MAGIC, identity, len(payload), digest)), self._at(slot))
            os.fdatasync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                _write(self._file, FREE, self._at(slot))
            self.give(slot)
            raise
        return slot

    def read(self, slot: int, identity: bytes) -> memoryview:
        """The payload in a slot, checked against its header.

        Raises
        ------
        Damaged
            If it is not the block's, whole.
        """
        content = _read(self._file, self._slot_bytes, self._at(slot))
        header = _unsealed(content[:HEADER_BYTES], _HEADER)
        if header is None or header[0] != SLOT_MAGIC:
            raise Damaged(self.path, f"slot {slot}", "no intact header", f"that of block {identity.hex()}")
        _, found, length, digest = header
        if found != identity:
            raise Damaged(self.path, f"slot {slot}", f"block {found.hex()}", f"block {identity.hex()}")
        payload = memoryview(content)[HEADER_BYTES:]
        if length != len(payload) or checksum(payload) != digest:
            raise Damaged(self.path, f"slot {slot} of block {identity.hex()}", _fault(length, payload), f"checksum {digest:016x}")
        return payload

    def free(self, slot: int) -> None:
        """Free a slot."""
        _write(self._file, FREE, self._at(slot))
        self.give(slot)

    def quarantine(self, found: Intact, reason: str) -> None:
        """Report a block as torn that was found whole, since what is known of it from elsewhere says that it is not."""
        self.torn.append(Torn(found.slot, found.identity, reason))

    def reclaim(self) -> None:
        """Make torn slots free; their report is dropped with them."""
        for torn in self.torn:
            self.free(torn.slot)
        self.torn = []

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _at(self, slot: int) -> int:
        return HEAD_BYTES + slot * self._slot_bytes

    def _create(self) -> None:
        head = _sealed(_HEAD.pack(FILE_MAGIC, VERSION, self.payload_bytes, self.capacity))
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                file.write(head)
                file.truncate(self.file_bytes)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        finally:
            part.unlink(missing_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(self.path, "file", "a file that is open elsewhere", "a tier of one process") from None

    def _check_head(self) -> None:
        head = _unsealed(_read(self._file, _HEAD.size + 8, 0), _HEAD)
        if head is None or head[0] != FILE_MAGIC:
            raise InputError(self.path, "head", "bytes that are none", "the head of a kvtier file tier")
        expected = (VERSION, self.payload_bytes, self.capacity)
        for field, found, wanted in zip(("version", "payload_bytes", "capacity"), head[1:], expected, strict=True):
            if found != wanted:
                raise InputError(self.path, field, found, str(wanted))

    def _scan(self) -> None:
        """Sort slots into intact, torn and free; a block that is there twice is freed once."""
        size = os.fstat(self._file).st_size
        if size < self.file_bytes:
            os.ftruncate(self._file, self.file_bytes)
        first_of: dict[bytes, Intact] = {}
        free = []
        for slot, found in enumerate(self._slots(size)):
            if found is None:
                free.append(slot)
            elif isinstance(found, Torn):
                self.torn.append(found)
            elif (first := first_of.setdefault(found.identity, found)) is found:
                self.intact.append(found)
            elif first.checksum == found.checksum:
                # Its slot was freed, which never reached the medium.
                _write(self._file, FREE, self._at(slot))
                free.append(slot)
            else:
                self.quarantine(found, f"slot {first.slot} has another payload of it")
        self.vacate(np.array(free, dtype=np.int32))

    def _slots(self, size: int) -> Iterator[Intact | Torn | None]:
        """What each slot holds of a file that had `size` bytes; None if it is free."""
        for slot in range(self.capacity):
            end = self._at(slot) + self._slot_bytes
            # Zeros stand where the file was cut: a header that was there says so by its payload, one that was cut off cannot.
            cut = f"the file ends {end - size} bytes before the slot does" if size < end else ""
            raw = _read(self._file, HEADER_BYTES, self._at(slot))
            header = _unsealed(raw, _HEADER)
            if raw == FREE:
                yield Torn(slot, None, cut) if cut else None
            elif header is None or header[0] != SLOT_MAGIC:
                yield Torn(slot, None, cut or "header damaged")
            else:
                _, identity, length, digest = header
                payload = _read(self._file, self.payload_bytes, self._at(slot) + HEADER_BYTES)
                if cut or length != self.payload_bytes or checksum(payload) != digest:
                    yield Torn(slot, identity, cut or f"payload damaged: {_fault(length, payload)}, its header says {digest:016x}")
                else:
                    yield Intact(slot, identity, digest)


def _fault(length: int, payload: bytes | memoryview) -> str:
    return f"checksum {checksum(payload):016x}" if length == len(payload) else f"{len(payload)} of {length} bytes"


def _sealed(content: bytes) -> bytes:
    return content + checksum(content).to_bytes(8, "little")


def _unsealed(content: bytes, layout: struct.Struct) -> tuple | None:
    """Fields of sealed content; None if it is not what was sealed."""
    if len(content) < layout.size + 8 or _sealed(content[: layout.size]) != content[: layout.size + 8]:
        return None
    return layout.unpack(content[: layout.size])


def _write(file: int, content: bytes | memoryview, at: int) -> None:
    content = memoryview(content)
    while content:
        written = os.pwrite(file, content, at)
        content, at = content[written:], at + written


def _read(file: int, size: int, at: int) -> bytes:
    """Up to `size` bytes; fewer where the file ends."""
    content = os.pread(file, size, at)
    while len(content) < size and (more := os.pread(file, size - len(content), at + len(content))):
        content += more
    return content

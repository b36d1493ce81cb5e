"""The table in a file: written whole or not at all, and refused if it is not what is expected.

A head of 64 bytes (magic, version, bytes of a record, bytes of a payload, records, checksum of the records, checksum of the head), then the
records. Slots and pins are not restored: what is where after a restart is for the tiers to say.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from kvtier.blocks.record import NO_SLOT, RECORD, RECORD_BYTES, checksum
from kvtier.errors import InputError
from kvtier.files import write_atomically

MAGIC, VERSION = b"kvtier-s", 1
_HEAD = struct.Struct("<8sQQQQQ8x")


def save(path: str | Path, records: np.ndarray, payload_bytes: int) -> None:
    """Write records, shape (blocks,)."""
    content = records.tobytes()
    head = _HEAD.pack(MAGIC, VERSION, RECORD_BYTES, payload_bytes, len(records), checksum(content))
    write_atomically(path, head + checksum(head).to_bytes(8, "little") + content)


def load(path: str | Path, payload_bytes: int) -> np.ndarray:
    """Records without slots and pins, shape (blocks,).

    Raises
    ------
    InputError
        If the file cannot be read, is another one, is of another version or record size, belongs to payloads of another size, is cut
        short, or is damaged.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a saved table") from None
    head, digest, content = content[: _HEAD.size], content[_HEAD.size : _HEAD.size + 8], content[_HEAD.size + 8 :]
    if len(digest) < 8 or not head.startswith(MAGIC):
        raise InputError(path, "head", "bytes that are none", "the head of a saved table")
    if checksum(head) != int.from_bytes(digest, "little"):
        raise InputError(path, "head", f"checksum {checksum(head):016x}", f"{int.from_bytes(digest, 'little'):016x}, as it says")
    _, version, record_bytes, saved_payload_bytes, count, records_digest = _HEAD.unpack(head)
    for field, found, expected in (
        ("version", version, VERSION),
        ("record size", record_bytes, RECORD_BYTES),
        ("payload size", saved_payload_bytes, payload_bytes),
        ("size", len(content), count * record_bytes),
    ):
        if found != expected:
            raise InputError(path, field, found, f"{expected}")
    if checksum(content) != records_digest:
        raise InputError(path, "records", f"checksum {checksum(content):016x}", f"{records_digest:016x}, as its head says")
    records = np.frombuffer(content, dtype=RECORD).copy()
    records["slot"], records["pins"] = NO_SLOT, 0
    return records

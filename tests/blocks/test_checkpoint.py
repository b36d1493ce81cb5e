"""The saved table is restored bit by bit, or refused in one line."""

import os
import struct

import numpy as np
import pytest

from kvtier.blocks import checkpoint
from kvtier.blocks.record import NO_SLOT, SEALED, checksum, identity_of
from kvtier.blocks.table import Table
from kvtier.errors import InputError


@pytest.fixture
def saved(fast_folder):
    table = Table(4)
    for number in range(6):
        row = table.add(identity_of(3, number))
        table.score[row], table.touched[row], table.count[row] = 0.1 * number, -(2**62) + number, 2**32 - 1 - number
        table.slot[row], table.checksum[row], table.pins[row], table.flags[row] = (1, 2, 3), 2**64 - 1 - number, 5, SEALED
    path = fast_folder / "state"
    checkpoint.save(path, table.records, 64)
    return path, table.records.copy()


def test_everything_but_slots_and_pins_is_restored(saved):
    path, records = saved
    found = checkpoint.load(path, 64)
    for field in ("identity", "score", "touched", "count", "checksum", "flags"):
        assert found[field].tobytes() == records[field].tobytes(), field
    assert (found["slot"] == NO_SLOT).all()
    assert not found["pins"].any()


def test_no_records(fast_folder):
    checkpoint.save(fast_folder / "state", Table().records, 64)
    assert checkpoint.load(fast_folder / "state", 64).shape == (0,)


def rehead(path, **fields):
    """Change fields of the head and seal it again."""
    content = path.read_bytes()
    names = ("magic", "version", "record", "payload", "count", "records")
    head = dict(zip(names, struct.unpack("<8sQQQQQ8x", content[:56]), strict=True)) | fields
    packed = struct.pack("<8sQQQQQ8x", *head.values())
    path.write_bytes(packed + checksum(packed).to_bytes(8, "little") + content[64:])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 2}, "version: found 2, expected 1"),
        ({"record": 128}, "record size: found 128, expected 64"),
        ({"payload": 5_242_880}, "payload size: found 5242880, expected 64"),
        ({"count": 7}, "size: found 384, expected 448"),
        ({"records": 0}, "records: found checksum [0-9a-f]{16}, expected 0{16}, as its head says"),
        ({"magic": b"other..."}, "head: found bytes that are none, expected the head of a saved table"),
    ],
)
def test_what_does_not_match_is_refused(saved, fields, message):
    path, _ = saved
    rehead(path, **fields)
    with pytest.raises(InputError, match=f"state: {message}$"):
        checkpoint.load(path, 64)


@pytest.mark.parametrize("at", [8, 30, 55, 60, 64, 100, 447])
def test_any_flipped_bit_is_refused(saved, at):
    path, _ = saved
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"state: (head|records): found checksum"):
        checkpoint.load(path, 64)


@pytest.mark.parametrize("size", [0, 10, 63, 64, 200, 447])
def test_a_file_cut_short_is_refused(saved, size):
    path, _ = saved
    os.truncate(path, size)
    with pytest.raises(InputError, match=r"state: (head|size): found"):
        checkpoint.load(path, 64)


def test_no_file_is_named(fast_folder):
    with pytest.raises(InputError, match="none: file: found No such file or directory, expected a saved table"):
        checkpoint.load(fast_folder / "none", 64)


def test_a_checkpoint_that_fails_leaves_the_old_one(saved, monkeypatch):
    path, records = saved

    def fails(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "replace", fails)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(path, np.zeros_like(records), 64)
    monkeypatch.undo()
    assert checkpoint.load(path, 64)["score"].tobytes() == records["score"].tobytes()
    assert list(path.parent.iterdir()) == [path]

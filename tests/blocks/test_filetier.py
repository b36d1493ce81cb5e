"""The file tier: what it finds again, what it refuses, and torn slots planted one by one."""

import os

import pytest

from kvtier.blocks import filetier
from kvtier.blocks.arena import Full
from kvtier.blocks.filetier import HEAD_BYTES, HEADER_BYTES, Damaged, FileTier, Intact
from kvtier.blocks.record import checksum, identity_of
from kvtier.errors import InputError

PAYLOAD_BYTES = 100
SLOT_BYTES = HEADER_BYTES + PAYLOAD_BYTES


def named(number):
    return identity_of(7, number)


def payload(number):
    return bytes((number * 31 + at) % 256 for at in range(PAYLOAD_BYTES))


def write(tier, number, content=None):
    content = content or payload(number)
    return tier.write(named(number), content, checksum(content))


@pytest.fixture
def path(fast_folder):
    """A tier of five slots, of which the first three are written."""
    tier = FileTier(fast_folder / "blocks", 5, PAYLOAD_BYTES)
    assert [write(tier, number) for number in range(3)] == [0, 1, 2]
    tier.close()
    return tier.path


@pytest.fixture
def reopened(path):
    tiers = []

    def reopen():
        tiers.append(FileTier(path, 5, PAYLOAD_BYTES))
        return tiers[-1]

    yield reopen
    for tier in tiers:
        tier.close()


def change(path, at, content):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def flip(path, at):
    change(path, at, bytes([path.read_bytes()[at] ^ 1]))


def start(slot):
    return HEAD_BYTES + slot * SLOT_BYTES


def test_what_was_written_is_found_again(path, reopened):
    tier = reopened()
    assert tier.intact == [Intact(number, named(number), checksum(payload(number))) for number in range(3)]
    assert not tier.torn
    assert [bytes(tier.read(number, named(number))) for number in range(3)] == [payload(number) for number in range(3)]
    assert tier.read(0, named(0)).readonly
    assert [write(tier, 3), write(tier, 4)] == [3, 4]
    with pytest.raises(Full, match="NVMe: slots: found 5 of 5 in use"):
        write(tier, 5)


def test_a_freed_slot_is_free_after_a_restart(path, reopened):
    tier = reopened()
    tier.free(1)
    tier.close()
    tier = FileTier(path, 5, PAYLOAD_BYTES)
    assert [found.slot for found in tier.intact] == [0, 2]
    assert [write(tier, number) for number in (11, 12, 13)] == [1, 3, 4]
    tier.close()


@pytest.mark.parametrize("at", range(0, SLOT_BYTES, 3))
def test_any_flipped_bit_is_found(path, reopened, at):
    flip(path, start(1) + at)
    tier = reopened()
    assert [found.slot for found in tier.intact] == [0, 2]
    (torn,) = tier.torn
    assert (torn.slot, torn.identity) == (1, named(1) if at >= HEADER_BYTES else None)
    assert ("payload damaged: checksum" if at >= HEADER_BYTES else "header damaged") in torn.reason
    with pytest.raises(Damaged):
        tier.read(1, named(1))


def test_a_flipped_bit_while_open_is_not_served(path, reopened):
    tier = reopened()
    flip(path, start(2) + HEADER_BYTES + 50)
    with pytest.raises(Damaged, match=rf"blocks: slot 2 of block {named(2).hex()}: found checksum [0-9a-f]{{16}}, expected checksum"):
        tier.read(2, named(2))


def test_half_a_header_is_torn(path, reopened):
    content = path.read_bytes()[start(0) : start(0) + HEADER_BYTES // 2]
    change(path, start(3), content)
    tier = reopened()
    assert [(torn.slot, torn.identity, torn.reason) for torn in tier.torn] == [(3, None, "header damaged")]
    assert len(tier.intact) == 3


def test_a_payload_without_a_header_is_free(path, reopened):
    """What a crash between the two phases leaves: the block was not acknowledged."""
    change(path, start(3) + HEADER_BYTES, payload(3))
    tier = reopened()
    assert not tier.torn
    assert tier.used == 3
    assert write(tier, 3) == 3


def test_a_header_before_its_payload_is_torn(path, reopened):
    header = filetier._sealed(filetier._HEADER.pack(filetier.SLOT_MAGIC, named(3), PAYLOAD_BYTES, checksum(payload(3))))
    change(path, start(3), header)
    assert [(torn.slot, torn.identity) for torn in reopened().torn] == [(3, named(3))]


def test_a_file_cut_in_a_payload(path, reopened):
    os.truncate(path, start(2) + HEADER_BYTES + 10)
    tier = reopened()
    assert [found.slot for found in tier.intact] == [0, 1]
    assert [(torn.slot, torn.identity, torn.reason) for torn in tier.torn] == [
        (2, named(2), "the file ends 90 bytes before the slot does"),
        (3, None, "the file ends 254 bytes before the slot does"),
        (4, None, "the file ends 418 bytes before the slot does"),
    ]
    assert path.stat().st_size == tier.file_bytes


@pytest.mark.parametrize("left", [0, 1, HEADER_BYTES - 1])
def test_a_file_cut_before_or_in_a_header(path, reopened, left):
    os.truncate(path, start(1) + left)
    tier = reopened()
    assert [found.slot for found in tier.intact] == [0]
    assert [torn.slot for torn in tier.torn] == [1, 2, 3, 4]
    assert {torn.identity for torn in tier.torn} == {None}


def test_torn_slots_are_out_of_use_until_reclaimed(path, reopened):
    flip(path, start(0) + HEADER_BYTES)
    tier = reopened()
    assert [write(tier, 8), write(tier, 9)] == [3, 4]
    with pytest.raises(Full):
        write(tier, 10)
    tier.reclaim()
    assert write(tier, 10) == 0
    assert bytes(tier.read(0, named(10))) == payload(10)
    assert not tier.torn


def test_another_blocks_slot_is_not_served(reopened):
    tier = reopened()
    with pytest.raises(Damaged, match=f"slot 0: found block {named(0).hex()}, expected block {named(1).hex()}"):
        tier.read(0, named(1))
    with pytest.raises(Damaged, match="slot 4: found no intact header, expected that of block"):
        tier.read(4, named(4))


def test_a_block_found_twice_is_kept_once(path, reopened):
    """A freed slot that came back, as after a power cut before the freeing reached the medium."""
    change(path, start(4), path.read_bytes()[start(1) : start(2)])
    tier = reopened()
    assert [found.slot for found in tier.intact] == [0, 1, 2]
    assert not tier.torn
    assert tier.used == 3


def test_two_payloads_of_one_block_are_reported(path, reopened):
    other = payload(99)
    header = filetier._sealed(filetier._HEADER.pack(filetier.SLOT_MAGIC, named(1), PAYLOAD_BYTES, checksum(other)))
    change(path, start(4), header + other)
    (torn,) = reopened().torn
    assert (torn.slot, torn.identity, torn.reason) == (4, named(1), "slot 1 has another payload of it")


def test_a_medium_that_fails_leaves_the_slot_free(path, reopened, monkeypatch):
    tier = reopened()

    def fails(file):
        raise OSError(28, "No space left on device")

    for phase in (1, 2):
        calls = iter([None] * (phase - 1))
        monkeypatch.setattr(os, "fdatasync", lambda file, calls=calls: fails(file) if next(calls, fails) is fails else None)
        with pytest.raises(OSError, match="No space left"):
            write(tier, 3)
        monkeypatch.undo()
        assert tier.used == 3
    tier.close()
    again = FileTier(path, 5, PAYLOAD_BYTES)
    assert (len(again.intact), again.torn) == (3, [])
    again.close()
    reopened()


def test_short_writes_and_reads_go_on(path, reopened, monkeypatch):
    """The system may write or read less than it was asked for."""
    tier, pwrite, pread = reopened(), os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda file, content, at: pwrite(file, bytes(content)[:7], at))
    monkeypatch.setattr(os, "pread", lambda file, size, at: pread(file, min(size, 11), at))
    slot = write(tier, 3)
    assert bytes(tier.read(slot, named(3))) == payload(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((5, 99), "payload_bytes: found 100, expected 99"), ((6, PAYLOAD_BYTES), "capacity: found 5, expected 6")],
)
def test_other_sizes_are_refused(path, arguments, message):
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"blocks: {message}"):
        FileTier(path, *arguments)
    assert path.read_bytes() == before


def test_another_version_is_refused(path):
    head = filetier._sealed(filetier._HEAD.pack(filetier.FILE_MAGIC, 2, PAYLOAD_BYTES, 5))
    change(path, 0, head)
    with pytest.raises(InputError, match="blocks: version: found 2, expected 1"):
        FileTier(path, 5, PAYLOAD_BYTES)


@pytest.mark.parametrize("content", [b"", b"years of work", bytes(5000)])
def test_another_file_is_refused_and_left_alone(fast_folder, content):
    thesis = fast_folder / "thesis"
    thesis.write_bytes(content)
    with pytest.raises(InputError, match="thesis: head: found bytes that are none, expected the head of a kvtier file tier"):
        FileTier(thesis, 5, PAYLOAD_BYTES)
    assert thesis.read_bytes() == content


def test_a_tier_has_one_process(path, reopened):
    reopened()
    with pytest.raises(InputError, match="blocks: file: found a file that is open elsewhere, expected a tier of one process"):
        FileTier(path, 5, PAYLOAD_BYTES)


def test_no_folder_is_named(fast_folder):
    with pytest.raises(InputError, match="none/blocks: file: found No such file or directory"):
        FileTier(fast_folder / "none" / "blocks", 1, 8)


def test_no_blocks(fast_folder):
    tier = FileTier(fast_folder / "blocks", 0, 8)
    with pytest.raises(Full):
        tier.write(b"a" * 16, bytes(8), 0)
    tier.close()

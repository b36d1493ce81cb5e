"""Slots in memory: what is written is read, nothing else is overwritten, full is full."""

import mmap

import pytest

from kvtier.blocks.arena import Arena, Full
from kvtier.errors import InputError

A = b"a" * 16


@pytest.fixture(params=["anonymous", "mapped"])
def arena(request, fast_folder):
    return Arena("CXL", 3, 8, fast_folder / "arena" if request.param == "mapped" else None)


def test_slots_do_not_overlap(arena):
    slots = [arena.write(A, bytes([number]) * 8, 0) for number in range(3)]
    assert slots == [0, 1, 2]
    assert [bytes(arena.read(slot, A)) for slot in slots] == [bytes([number]) * 8 for number in range(3)]
    assert (arena.used, arena.free_slots) == (3, 0)
    arena.free(1)
    assert arena.write(A, b"newwrite", 0) == 1
    assert [bytes(arena.read(slot, A)) for slot in slots] == [bytes(8), b"newwrite", bytes([2]) * 8]


def test_full_is_refused(arena):
    for _ in range(3):
        arena.write(A, bytes(8), 0)
    with pytest.raises(Full, match=r"^CXL: slots: found 3 of 3 in use, expected a free one \(demote or evict a block first\)$"):
        arena.write(A, bytes(8), 0)


def test_reads_are_views_that_cannot_be_written(arena):
    view = arena.read(arena.write(A, b"payload!", 0), A)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1


def test_mapped_memory_is_shared_through_its_file(fast_folder):
    arena = Arena("CXL", 2, 8, fast_folder / "arena")
    arena.write(A, b"payload!", 0)
    with (fast_folder / "arena").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as other:
        assert other[:8] == b"payload!"


@pytest.mark.parametrize("path", [None, "arena"])
def test_no_blocks(fast_folder, path):
    arena = Arena("CXL", 0, 8, path and fast_folder / path)
    with pytest.raises(Full, match="found 0 of 0 in use"):
        arena.write(A, bytes(8), 0)
    assert not (fast_folder / "arena").exists()


def test_another_file_is_not_overwritten(fast_folder):
    thesis = fast_folder / "thesis"
    thesis.write_bytes(b"years of work")
    with pytest.raises(InputError, match="thesis: size: found 13 bytes, expected 16 bytes, or no file"):
        Arena("CXL", 2, 8, thesis)
    assert thesis.read_bytes() == b"years of work"


def test_a_path_that_cannot_be_mapped_is_named(fast_folder):
    with pytest.raises(InputError, match="none/arena: file: found No such file or directory"):
        Arena("CXL", 2, 8, fast_folder / "none" / "arena")


@pytest.mark.parametrize(("capacity", "payload_bytes"), [(-1, 8), (2**31, 8), (1, 0)])
def test_sizes_out_of_range_are_refused(capacity, payload_bytes):
    with pytest.raises(InputError, match=r"CXL: (capacity|payload_bytes): found"):
        Arena("CXL", capacity, payload_bytes)

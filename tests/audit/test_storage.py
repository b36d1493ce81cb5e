"""A file that the page cache serves is planted, with the kernel's own counters, and refused."""

import mmap
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.audit.storage import ReadFromPageCache, read_from_device
from kvtier.errors import InputError
from kvtier.units import MIB

COUNTERS = Path("/proc/self/io")

counted = pytest.mark.skipif(not COUNTERS.is_file(), reason="the kernel keeps no I/O counters of a process: no /proc/self/io")


def device_read_bytes():
    return next(int(line.split()[1]) for line in COUNTERS.read_text().splitlines() if line.startswith("read_bytes:"))


@pytest.fixture
def written(tmp_path):
    """A file of 4 MiB that was just written, and is on its medium and in the page cache."""
    path = tmp_path / "block"
    with path.open("wb") as file:
        file.write(os.urandom(4 * MIB))
        os.fsync(file.fileno())
    return path


@counted
def test_refuses_a_real_read_of_the_page_cache(written):
    before = device_read_bytes()
    asked_bytes = len(written.read_bytes())
    with pytest.raises(ReadFromPageCache, match=r"bytes read by the device: found [\d,]+ B of 4,194,304 B, expected at least 95 %"):
        read_from_device(asked_bytes, device_read_bytes() - before, written)


@counted
def test_a_real_read_past_the_page_cache_passes(written):
    try:
        file = os.open(written, os.O_RDONLY | os.O_DIRECT)
    except (AttributeError, OSError) as error:
        pytest.skip(f"no O_DIRECT where tests keep their files: {error}")
    try:
        # An anonymous map is aligned to a page, as O_DIRECT demands.
        with mmap.mmap(-1, 4 * MIB) as buffer:
            before = device_read_bytes()
            asked_bytes = os.readv(file, [buffer])
            device_bytes = device_read_bytes() - before
    finally:
        os.close(file)
    if not device_bytes:
        pytest.skip("the file system of the tests has no block device")
    assert read_from_device(asked_bytes, device_bytes, "block").value >= 95


@given(st.integers(1, 10**18))
def test_the_edge_is_exact(asked_bytes):
    least = -(-95 * asked_bytes // 100)
    assert read_from_device(asked_bytes, least).bound == 95
    with pytest.raises(ReadFromPageCache):
        read_from_device(asked_bytes, least - 1)


def test_read_ahead_is_no_page_cache():
    assert read_from_device(4096, 131_072).value == 3200


@pytest.mark.parametrize(
    ("asked_bytes", "device_bytes", "message"),
    [
        (0, 0, "asked_bytes: found 0"),
        (-1, 0, "asked_bytes: found -1"),
        (float("nan"), 0, "asked_bytes: found nan"),
        (4096, -4096, "device_bytes: found -4096"),
        (4096, float("nan"), "device_bytes: found nan"),
        (4096, None, "device_bytes: found None"),
    ],
)
def test_refuses_what_are_no_bytes(asked_bytes, device_bytes, message):
    with pytest.raises(InputError, match=message):
        read_from_device(asked_bytes, device_bytes)

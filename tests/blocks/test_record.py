"""The record has the sizes of SPEC §2 where it says, and nothing outside its 64 bytes."""

from kvtier.blocks.record import IDENTITY_BYTES, RECORD, RECORD_BYTES, checksum, identity_of

RESERVED_BY_SPEC = 28


def test_layout():
    sizes = {name: RECORD.fields[name][0].itemsize for name in RECORD.names}
    offsets = [RECORD.fields[name][1] for name in RECORD.names]
    assert RECORD.itemsize == RECORD_BYTES == 64
    assert (sizes["identity"], sizes["score"], sizes["touched"], sizes["count"]) == (16, 8, 8, 4)
    assert sum(sizes.values()) == RECORD_BYTES
    assert RECORD_BYTES - offsets[RECORD.names.index("slot")] == RESERVED_BY_SPEC
    assert offsets == sorted(offsets)
    # Each number stands at a multiple of its size: no access crosses a cache line.
    for name in ("score", "touched", "count", "slot", "checksum", "pins", "flags"):
        kind, offset = RECORD.fields[name][:2]
        assert offset % kind.base.itemsize == 0, name


def test_identities_are_sixteen_bytes_and_differ():
    identities = {identity_of(owner, position) for owner in range(-3, 4) for position in range(-3, 4)}
    assert len(identities) == 49
    assert {len(identity) for identity in identities} == {IDENTITY_BYTES}


def test_a_checksum_tells_one_bit():
    assert checksum(bytes(64)) != checksum(bytes(63) + b"\x01") != checksum(bytes(63))
    assert checksum(memoryview(b"abc")) == checksum(b"abc") < 2**64

"""The table against a dictionary, what it costs, and its index where identities collide."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.blocks import index
from kvtier.blocks.record import NO_SLOT, RECORD, RECORD_BYTES, identity_of
from kvtier.blocks.table import ABSENT, STATE_BYTES, Table
from kvtier.errors import InputError


def assert_equal(table, expected, universe):
    assert len(table) == len(expected)
    for identity in universe:
        row = table.row(identity)
        assert (row != ABSENT) == (identity in expected)
        if row != ABSENT:
            assert table.identity(row) == identity
            assert table.count[row] == expected[identity]


# The hash wraps: numpy says so where the machine code does not.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=120), st.integers(1, 8))
def test_equals_a_dictionary(steps, rows):
    """Few places, so that searches run into each other and round the end."""
    table, expected = Table(rows), {}
    universe = [identity_of(number % 3, number) for number in range(31)]
    for step, (adds, number) in enumerate(steps):
        identity = universe[number]
        if adds:
            row = table.add(identity)
            table.count[row] = expected[identity] = step
        elif identity in expected:
            table.remove(identity)
            del expected[identity]
    assert_equal(table, expected, universe)


def test_equals_a_dictionary_when_full():
    """A table that never grows, at its fullest, under many removals."""
    rng = random.Random(7)
    universe = [rng.randbytes(16) for _ in range(600)]
    table, expected = Table(256), {}
    for step in range(20_000):
        identity = rng.choice(universe)
        if identity in expected and rng.random() < 0.5:
            table.remove(identity)
            del expected[identity]
        elif identity in expected or len(expected) < 256:
            row = table.add(identity)
            table.count[row] = expected[identity] = step
    assert_equal(table, expected, universe)
    assert table.nbytes == 256 * STATE_BYTES


def test_identities_with_one_home_are_told_apart():
    same = [identity_of(0, number) for number in range(2000)]
    places = 16
    first = [identity for identity in same if index.home.py_func(0, int.from_bytes(identity[8:], "little"), places) == 5][:7]
    table = Table(8)
    for count, identity in enumerate(first):
        row = table.add(identity)
        table.count[row] = count
    table.remove(first[2])
    assert_equal(table, {identity: count for count, identity in enumerate(first) if count != 2}, first)


def test_homes_are_spread():
    """Neighbouring blocks of a session, as identities number them: places are hit like by chance (Poisson), not worse."""
    places = 4096
    homes = [index.home.py_func(session, position, places) for session in range(8) for position in range(256)]
    assert 0 <= min(homes) <= max(homes) < places
    empty = 1 - len(set(homes)) / places
    assert empty == pytest.approx(np.exp(-len(homes) / places), abs=0.03)


def test_bytes_of_a_block_in_full():
    """64 B of record and 8 B of index in a full table; grown by doubling, at most twice that and a row."""
    assert STATE_BYTES == 72
    assert Table(1000).nbytes == 1000 * 72
    table = Table(1)
    for number in range(1, 1025):
        table.add(identity_of(0, number))
        assert len(table) * 72 <= table.nbytes < 2 * len(table) * 72
    assert table.records.dtype == RECORD
    assert table.records.flags.c_contiguous
    assert table.records.ctypes.data % RECORD_BYTES == 0


def test_a_new_record_knows_nothing():
    table = Table(1)
    first = table.add(b"a" * 16)
    table.score[first], table.count[first], table.slot[first] = 0.5, 9, 3
    table.remove(b"a" * 16)
    row = table.add(b"b" * 16)
    record = table.records[row]
    assert record["slot"].tolist() == [NO_SLOT] * 3
    assert (record["score"], record["touched"], record["count"], record["checksum"], record["pins"], record["flags"]) == (0, 0, 0, 0, 0, 0)


def test_growth_keeps_every_field():
    table = Table(2)
    for number in range(50):
        row = table.add(identity_of(1, number))
        table.score[row], table.touched[row], table.count[row], table.slot[row] = number / 7, -number, number, (number, NO_SLOT, 2)
    for number in range(50):
        record = table.records[table.row(identity_of(1, number))]
        assert (record["score"], record["touched"], record["count"]) == (number / 7, -number, number)
        assert record["slot"].tolist() == [number, NO_SLOT, 2]


@pytest.mark.parametrize("identity", [b"", b"a" * 15, b"a" * 17])
def test_an_identity_of_another_length_is_refused(identity):
    with pytest.raises(InputError, match=f"identity: length: found {len(identity)} bytes, expected 16 bytes"):
        Table().add(identity)

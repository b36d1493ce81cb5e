"""Tables as made, timings that do what they say, guards of the run; speed is asserted nowhere."""

import numpy as np
import polars as pl
import pytest

from kvtier.audit.timing import BelowResolution, Drift
from kvtier.blocks.managed import POLICIES
from kvtier.blocks.record import NO_SLOT, Tier
from kvtier.errors import InputError
from kvtier.kit import metadata
from kvtier.kit.machine import Machine
from kvtier.kit.metadata import Bench, Clock, Metadata, WentWrong, identities_of, made, made_table, readings, table_sizes
from kvtier.measure import kept

MACHINE = Machine("a test", "a_test", 1, 2**23, 2**34, 2**33, (0,), None)


def bench(blocks=64, policy="lru", operations=200):
    return Bench(blocks, policy, operations, 1, Clock.made(), 0.0)


def in_hbm(made_bench):
    return set(np.flatnonzero(made_bench.table.lookup(identities_of(np.arange(made_bench.blocks))) == Tier.HBM).tolist())


def test_identities_are_told_apart_by_either_word():
    words = identities_of(np.arange(100_000))
    assert len(np.unique(words[:, 0])) == 100_000
    assert words[:, 1].tolist() == list(range(100_000))


def test_a_made_table_is_full_and_the_same_each_time(monkeypatch):
    monkeypatch.setattr(metadata, "CHUNK", 100)
    table, again = made_table(250, 7), made_table(250, 7)
    assert len(table) == 250
    assert table.records.tobytes() == again.records.tobytes()
    assert sorted(table.slot[:250, Tier.HBM]) == list(range(250))
    assert (table.slot[:250, 1:] == NO_SLOT).all()
    assert table.count[:250].min() >= 1
    assert table.score[:250].min() > 0
    for number in (0, 99, 249):
        assert table.row(identities_of(np.array([number])).tobytes()) == number


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_timed_is_done(policy):
    """A touch is counted in the record; an eviction takes the policy's victims; as many come back as leave."""
    timed = bench(policy=policy, operations=200)
    managed, count = timed.table, lambda: int(managed.parts.count.sum(dtype=np.int64))
    resident, before = in_hbm(timed), count()
    assert len(resident) == 48
    assert timed.time("lookup") > 0
    assert count() == before
    assert timed.time("touch") > 0
    # A small table is warmed by as many touches.
    assert count() == before + 2 * 200
    assert timed.passes == 50
    assert timed.replaced == 800
    before = count()
    assert timed.time("evict") > 0
    assert timed.time("readmit") > 0
    assert count() == before + 51 * 16
    assert len(in_hbm(timed)) == 48
    assert in_hbm(timed) == set(range(64)) - set(timed._reserve[:, 1].tolist())


@pytest.mark.parametrize("policy", POLICIES)
def test_passes_evict_as_a_fresh_table_would(policy):
    """The timed loop is evict, readmit, in turn, of the managed table itself."""
    timed, expected = bench(policy=policy, operations=16), made(64, policy, 1)
    reserve = expected.evict(16)
    assert timed.passes == 1
    for turn in range(1, 6):
        timed.time("evict")
        victims = expected.evict(16)
        expected.readmit(reserve, metadata.TURNS_BEFORE + turn)
        reserve = victims
        assert timed._reserve.tolist() == reserve.tolist()


def test_operations_that_fail_are_caught():
    """Planted: a block that the table lost, and one that is not where the draw has it."""
    timed = bench()
    timed.table.parts.index[:] = -1
    for operation, says in (
        ("lookup", "lookup in 64 blocks: found tier"),
        ("touch", "an unknown block"),
        ("evict", "fewer victims or slots"),
    ):
        with pytest.raises(WentWrong, match=says):
            timed.time(operation)


def test_the_clock_moves():
    seen = readings(Clock.made(), 1001)
    assert 0 < seen.tick_s <= 1e-3
    assert 0 <= seen.reading_s <= 1e-3


def test_bytes_in_a_process_of_its_own():
    """100 B a block; what the process grows by is at least the records and the heap, and has few other pages."""
    sizes = table_sizes([1_000, 300_000], 1)
    assert sizes["table_bytes"].to_list() == [100 * 1_000 + 8, 100 * 300_000 + 8]
    # The list of free slots is not touched.
    assert 96 * 300_000 <= sizes["resident_bytes"][1] <= 104 * 300_000


def test_a_process_that_fails_says_why():
    with pytest.raises(InputError, match=r"table size: process: found .*Error"):
        table_sizes([-1], 1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"blocks": (1000, 7)}, "blocks: found 7, expected 8 to"),
        ({"blocks": (1000, 1000)}, "different sizes"),
        ({"python_blocks": 2**30}, "blocks: found 1073741824"),
        ({"operations": 0}, "metadata: operations: found 0"),
        ({"repetitions": 2}, "repetitions: found 2"),
    ],
)
def test_settings_that_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        Metadata(**settings).plan(MACHINE)


def test_plan_holds_all_tables_at_once():
    steps = Metadata().plan(MACHINE)
    blocks = sum(metadata.BLOCKS)
    assert max(step.memory_bytes for step in steps) > blocks * (84 + 100 + 100)
    assert sum(step.seconds for step in steps) < 100


SMALL = Metadata(blocks=(64, 256), python_blocks=64, operations=512, python_operations=32, repetitions=3)


@pytest.fixture
def quiet(monkeypatch):
    """No process of its own; guards that a tiny run on a shared machine may not pass, and that have tests of their own."""
    monkeypatch.setattr(metadata, "table_sizes", lambda sizes, seed: pl.DataFrame({"blocks": sizes}))
    monkeypatch.setattr(metadata, "readings", lambda clock: metadata.Readings(1e-12, 0.0))
    monkeypatch.setattr(metadata, "tick_s", lambda: 1e-12)
    monkeypatch.setattr(metadata, "steady", lambda times, source: times)


def test_run(quiet):
    shares = []
    outcome = SMALL.run(MACHINE, lambda says, share: shares.append(share))
    rows = kept.METADATA.check(outcome.tables["metadata"])
    assert rows.height == 3 * (2 * 3 * 4 + 2)
    assert rows["seconds"].min() > 0
    assert set(rows["policy"]) == {*POLICIES, "python"}
    evictions = rows.filter(pl.col("operation").is_in(["evict", "readmit"]) & (pl.col("blocks") == 64))
    assert set(evictions["operations"]) == {4 * 512}
    assert set(rows.filter(pl.col("policy") == "python")["operations"]) == {32}
    assert outcome.tables["table_size"]["blocks"].to_list() == [64, 256]
    assert outcome.about["bytes_per_block"] == {
        "record": 64,
        "index": 8,
        "free slot": 4,
        "order of lru": 8,
        "order of lfu": 24,
        "order of ema": 24,
    }
    assert shares == sorted(shares)
    assert shares[-1] <= 1
    assert len(outcome.checked) == 5


def test_timings_too_short_for_the_clock_are_refused(quiet, monkeypatch):
    monkeypatch.setattr(metadata, "readings", lambda clock: metadata.Readings(1e-3, 0.0))
    with pytest.raises(BelowResolution, match="ticks"):
        SMALL.run(MACHINE, lambda says, share: None)


def test_a_run_that_drifts_is_refused(quiet, monkeypatch):
    """Planted: each timing lasts longer than the one before."""
    monkeypatch.undo()
    monkeypatch.setattr(metadata, "table_sizes", lambda sizes, seed: pl.DataFrame({"blocks": sizes}))
    monkeypatch.setattr(metadata, "readings", lambda clock: metadata.Readings(1e-12, 0.0))
    monkeypatch.setattr(metadata, "tick_s", lambda: 1e-12)
    lasted = iter(np.geomspace(1e-3, 1.0, 1000).tolist())
    monkeypatch.setattr(Bench, "time", lambda self, operation: next(lasted))
    monkeypatch.setattr(metadata.PythonBench, "time", lambda self, operation: next(lasted))
    with pytest.raises(Drift, match="slower than the first"):
        SMALL.run(MACHINE, lambda says, share: None)

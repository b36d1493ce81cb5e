"""Every part asks its guards: each failure is planted under a real, tiny run, and the run says no in one line and writes no rows.

What the parts leave where nothing is planted passes the audit of kept runs, and is refused by it once a row is doctored.
"""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import fake_parts
import polars as pl
import pytest

from kvtier.audit import kept_run
from kvtier.audit.physical_bound import AboveTheBus
from kvtier.audit.timing import steady
from kvtier.kit import regions, timing
from kvtier.kit.campaign import Campaign, plan
from kvtier.kit.folding import Folding
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.memory import Unavailable, fresh
from kvtier.kit.metadata import Metadata
from kvtier.kit.movement import Movement
from kvtier.kit.regions import DirectFile
from kvtier.kit.stream import Stream
from kvtier.measure import kept_points
from kvtier.units import GIB, KIB

CORES = len(os.sched_getaffinity(0))


def machine(bus_gbps: float = 1e6) -> Machine:
    """With a cache of 16 KiB, so that tiny buffers are beyond it."""
    return Machine("a test machine", "test", CORES, 16 * KIB, 16 * GIB, 8 * GIB, (0,), Bus(bus_gbps, "a test"))


PARTS = {
    "stream": lambda folder: Stream(buffers_bytes=(8 * KIB, 64 * KIB), threads=(1,), repetitions=6, shortest_s=0.0005),
    "movement": lambda folder: Movement(pieces_bytes=(4 * KIB, 64 * KIB), volume_bytes=512 * KIB, repetitions=6, folder=folder),
    "metadata": lambda folder: Metadata(blocks=(64, 256), python_blocks=64, operations=256, python_operations=32, repetitions=6),
    "folding": lambda folder: Folding(streams=32, blocks=64, threads=(1,), repetitions=6),
}
"""By name, a run of some seconds at most."""


@dataclass
class Run:
    """What a run of one part left."""

    folder: Path

    @property
    def part(self):
        (part,) = json.loads((self.folder / "platform.json").read_text())["parts"].values()
        return part

    @property
    def tables(self):
        return sorted(path.stem for path in self.folder.glob("*.csv") if path.stem != "sensors")

    def audit(self):
        return kept_run.check(json.loads((self.folder / "platform.json").read_text()), kept_points.read(self.folder), "run")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a part as ``kvtier measure`` does. Timings so short drift by chance and are few ticks: both guards run, with room for it."""

    def of(name, on=None, patient=True):
        module = importlib.import_module(f"kvtier.kit.{name}")
        if patient:
            monkeypatch.setattr(module, "steady", partial(steady, tolerance=1e6))
            monkeypatch.setattr(kept_run, "steady", partial(steady, tolerance=1e6))
            monkeypatch.setattr(module, "tick_s", lambda *asked: 1e-12)
        part, on = PARTS[name](tmp_path), on or machine()
        folder = tmp_path / "run"
        folder.mkdir()
        record = replace(fake_parts.record_of(name, machine=on), clock_tick_s=1e-12)
        Campaign(folder, record, plan([part], on), fake_parts.Watcher([])).run([part])
        return Run(folder)

    return of


def refused(left: Run, says: str):
    """The run failed by this guard and no other, in one line, and there are no rows."""
    assert left.part["state"] == "failed"
    assert says in left.part["why"]
    assert "\n" not in left.part["why"]
    assert left.tables == []


@pytest.mark.parametrize("name", PARTS)
def test_a_clock_that_ticks_once_a_second_is_refused(name, run, monkeypatch):
    seconds = iter(range(10**6))
    monkeypatch.setattr(
        importlib.import_module(f"kvtier.kit.{name}"), "tick_s", lambda *asked: timing.tick_s(10, lambda: 10**9 * next(seconds))
    )
    refused(run(name, patient=False), "expected at least 1,000 ticks")


@pytest.mark.parametrize("name", PARTS)
def test_a_machine_that_becomes_slower_is_refused(name, run, monkeypatch):
    """A thousand times, so that nothing else that the machine does can hide it."""
    module = importlib.import_module(f"kvtier.kit.{name}")
    plain = module.time_points

    def throttled(points, repetitions, *how):
        timed = plain(points, repetitions, *how)
        return [replace(each, seconds=each.seconds * (1000 if each.repetition >= repetitions // 2 else 1)) for each in timed]

    monkeypatch.setattr(module, "time_points", throttled)
    monkeypatch.setattr(module, "tick_s", lambda *asked: 1e-12)
    refused(run(name, patient=False), "% slower than the first 2, expected no more than 15 %")


@pytest.mark.parametrize("name", ["stream", "movement", "folding"])
def test_bytes_faster_than_the_bus_are_refused(name, run):
    """A processor moves more than 1 MB/s, whatever else it does."""
    refused(run(name, machine(bus_gbps=1e-3)), "GB/s, expected nothing above the bus of 0.001 GB/s")


@pytest.fixture
def disk(tmp_path):
    """Files of the tests are on a device that does direct input and output."""
    try:
        DirectFile(tmp_path, fresh(64 * KIB)).close()
    except Unavailable as reason:
        pytest.skip(str(reason))


def buffered(folder):
    """An open file without a name, as the kit opens it, but for O_DIRECT."""
    path = Path(folder) / "buffered"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    path.unlink()
    return descriptor


@pytest.mark.usefixtures("disk")
def test_a_file_that_the_page_cache_serves_is_refused(run, monkeypatch):
    """The kit asks twice: a folder that shows no device is left out; here it seems to have one until blocks are read."""
    monkeypatch.setattr(regions, "open_direct", buffered)
    monkeypatch.setattr(DirectFile, "_probe", lambda self, content: None)
    refused(run("movement"), "bytes read by the device: found 0 B of")


@pytest.mark.parametrize("name", PARTS)
def test_a_sound_run_passes_the_audit_of_kept_runs(name, run):
    left = run(name)
    assert (left.part["state"], left.part["why"]) == ("complete", "")
    assert name in left.tables
    audited = left.audit()
    assert {"ticks at least", "%"} <= {each["unit"] for each in left.part["checked"]} & {each.unit for each in audited}


@pytest.mark.parametrize(
    ("name", "column", "factor"), [("stream", "seconds", 1e-6), ("movement", "seconds", 1e-9), ("folding", "seconds", 1e-9)]
)
def test_a_doctored_row_is_refused_by_the_audit_of_kept_runs(name, column, factor, run):
    left = run(name)
    path = left.folder / f"{name}.csv"
    rows = pl.read_csv(path)
    last = rows.height - 1
    rows.with_columns(pl.when(pl.row_index() == last).then(pl.col(column) * factor).otherwise(column).alias(column)).write_csv(path)
    with pytest.raises(AboveTheBus, match=rf"run/{name}\.csv: .*expected nothing above the bus of 1e\+06 GB/s"):
        left.audit()


def test_the_record_says_which_cache_a_stream_was_held_against(run):
    """An accelerator's is nowhere else in the record."""
    assert run("stream").part["about"]["last_level_cache_bytes"] == 16 * KIB

"""A machine and parts that measure nothing, to drive the kit."""

from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from kvtier.audit.physical_bound import Checked
from kvtier.errors import InputError
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.parts import Outcome, Step
from kvtier.kit.record import PartRecord, Record
from kvtier.kit.sensors import Sensors
from kvtier.measure import kept
from kvtier.units import GIB, MIB

MACHINE = Machine("2 cores of a test", "test_2_cores", 2, 8 * MIB, 16 * GIB, 12 * GIB, (0,), Bus(100.0, "a data sheet"), processor="a test")

STREAM_ROWS = pl.DataFrame(
    {
        "kernel": ["copy"] * 3,
        "buffer_bytes": [MIB] * 3,
        "threads": [1] * 3,
        "repetition": [0, 1, 2],
        "passes": [10] * 3,
        "moved_bytes": [20 * MIB] * 3,
        "seconds": [0.001, 0.0011, 0.0012],
    }
)


@dataclass
class Fake:
    """A part with the rows and the end that a test wants."""

    name: str = "stream"
    rows: pl.DataFrame = None
    table: str = "stream"
    ends: BaseException | None = None
    step: Step = Step("copy, 1 MiB", 2.0, 4 * MIB)  # noqa: RUF009
    repetitions: int = 3

    @classmethod
    def quick(cls):
        return cls(repetitions=1)

    def plan(self, machine):
        return [self.step]

    def run(self, machine, progress):
        progress("copy, 1 MiB", 0.0)
        if self.ends is not None:
            raise self.ends
        progress("copy, 1 MiB", 0.5)
        rows = STREAM_ROWS if self.rows is None else self.rows
        return Outcome({self.table: rows}, {"repetitions": self.repetitions, "dtype": "float32"}, [Checked("copy", 21.0, 100.0, "GB/s")])


def table_size(rows=1):
    return pl.DataFrame(
        {"blocks": [1000] * rows, "table_bytes": [64_000] * rows, "resident_bytes": [70_000] * rows}, schema=kept.TABLE_SIZE.columns
    )


@dataclass
class Watcher:
    """Remembers what it was told."""

    told: list

    def starts(self, part, seconds):
        self.told.append(("starts", part))

    def at(self, part, says, share):
        self.told.append(("at", part, share))

    def ends(self, part, state, said):
        self.told.append(("ends", part, state, said))


def record_of(*names, machine=MACHINE, quick=False):
    start = datetime(2026, 11, 30, 17, 5, tzinfo=UTC)
    software = {"kernel": "Linux", "python": "CPython 3.11", "libraries": {"numpy": "2.4"}, "kvtier": {"version": "1"}}
    return Record(machine, "kvtier measure stream", quick, start, 1e-7, software, {name: PartRecord() for name in names})


def no_sensors(tmp_path):
    return Sensors(tmp_path / "nowhere", lambda: None)


GUARD = InputError("stream", "copy", "120.0 GB/s", "nothing above the bus of 100 GB/s")

"""A run of parts, one after the other: what does not fit is refused first, and what ends is on disk at once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import polars as pl

from kvtier.errors import InputError
from kvtier.kit.machine import Machine
from kvtier.kit.parts import Outcome, Part, Step
from kvtier.kit.record import COMPLETE, FAILED, INTERRUPTED, RUNNING, PartRecord, Record, utc
from kvtier.kit.sensors import Log, Sensors, summed_up
from kvtier.measure.kept import SENSORS, TABLES
from kvtier.units import GIB

USABLE = 0.9
"""Share of what is free that a plan may take: the rest is for what a plan cannot know, such as the interpreter and its libraries."""

SENSORS_FILE = "sensors.csv"


class DoesNotFit(InputError):
    """A plan that needs more memory or disk than there is."""


class Watcher(Protocol):
    """Who is told how a run goes."""

    def starts(self, part: str, seconds: float) -> None:
        """A part starts that should take so long."""
        ...

    def at(self, part: str, says: str, share: float) -> None:
        """A part has come so far."""
        ...

    def ends(self, part: str, state: str, said: str) -> None:
        """A part has ended, with what there is to say of it."""
        ...


@dataclass(frozen=True)
class Plan:
    """What a run would do.

    Parameters
    ----------
    steps : dict of str to list of Step
        By part, in order.
    """

    steps: Mapping[str, Sequence[Step]]

    def _most(self, field_name: str) -> tuple[int, str]:
        return max(
            ((getattr(step, field_name), f"{name}, {step.says}") for name, steps in self.steps.items() for step in steps), default=(0, "")
        )

    @property
    def seconds(self) -> float:
        """Expected time of all parts [s]."""
        return sum(self.seconds_of(part) for part in self.steps)

    def seconds_of(self, part: str) -> float:
        """Expected time of a part [s]."""
        return sum(step.seconds for step in self.steps[part])

    @property
    def memory_bytes(self) -> int:
        """Most memory in use at a time [B]."""
        return self._most("memory_bytes")[0]

    @property
    def device_bytes(self) -> int:
        """Most memory of the accelerator in use at a time [B]."""
        return self._most("device_bytes")[0]

    @property
    def disk_bytes(self) -> int:
        """Most file space in use at a time [B]."""
        return self._most("disk_bytes")[0]

    def check(self, machine: Machine, folders: Sequence[Path], free: Callable[[Path], int] | None = None) -> None:
        """Refuse what does not fit.

        Parameters
        ----------
        machine : Machine
        folders : sequence of Path
            Where files will lie; each must have the room.
        free : callable
            Free space of a folder that exists [B].

        Raises
        ------
        DoesNotFit
            Naming the step, what it needs and what there is.
        """
        free = free or (lambda folder: shutil.disk_usage(folder).free)
        rooms = [("memory_bytes", "memory", machine.available_bytes)]
        if machine.accelerator is not None:
            rooms.append(("device_bytes", f"memory of {machine.accelerator.name}", machine.accelerator.available_bytes))
            if machine.accelerator.unified:
                # One memory holds both.
                both = max((step.memory_bytes + step.device_bytes for steps in self.steps.values() for step in steps), default=0)
                if both > USABLE * machine.available_bytes:
                    raise DoesNotFit("plan", "unified memory", _gib(both), f"at most {_room(machine.available_bytes)}")
        rooms += [("disk_bytes", f"space in {folder}", free(existing(folder))) for folder in folders]
        for name, what, available in rooms:
            needed, where = self._most(name)
            if needed > USABLE * available:
                raise DoesNotFit(f"plan of {where}", what, _gib(needed), f"at most {_room(available)}")


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.2f} GiB"


def _room(available_bytes: float) -> str:
    return f"{_gib(USABLE * available_bytes)}, {USABLE:.0%} of what is free"


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next(candidate for candidate in (folder, *folder.parents) if candidate.is_dir())


def plan(parts: Sequence[Part], machine: Machine) -> Plan:
    """Ask each part what it would do.

    Raises
    ------
    InputError
        If a part cannot be run here.
    """
    return Plan({part.name: part.plan(machine) for part in parts})


def scratch_folders(parts: Sequence[Part]) -> list[Path]:
    """Where parts put files while they run: their ``folder`` if they have one, else the system's temporary folder."""
    return [Path(getattr(part, "folder", None) or tempfile.gettempdir()) for part in parts]


@dataclass
class Campaign:
    """A run of parts.

    Parameters
    ----------
    folder : Path
        Exists; every file of the run goes there.
    record : Record
        With a part record for each part.
    plan : Plan
        Of the parts.
    watcher : Watcher
    sensors : Sensors
    now : callable
        The time of day.
    """

    folder: Path
    record: Record
    plan: Plan
    watcher: Watcher
    sensors: Sensors = field(default_factory=Sensors)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _sensor_rows: list[pl.DataFrame] = field(default_factory=list)

    def run(self, parts: Sequence[Part]) -> list[str]:
        """Run the parts in order. A part whose guard says no fails, and the next one runs.

        Returns
        -------
        list of str
            Why parts failed, one line each.

        Raises
        ------
        KeyboardInterrupt
            As it came; complete parts are on disk, and the record says which.
        """
        self.record.write(self.folder)
        failures = []
        try:
            for part in parts:
                why = self._run(part)
                if why:
                    failures.append(f"{part.name}: {why}")
        finally:
            self.record.end = self.now()
            self.record.write(self.folder)
        return failures

    def _run(self, part: Part) -> str:
        entry, log = self.record.parts[part.name], Log(part.name, self.sensors)
        entry.state, entry.start = RUNNING, utc(self.now())
        self.record.write(self.folder)
        self.watcher.starts(part.name, self.plan.seconds_of(part.name))

        def progress(says: str, share: float) -> None:
            log.during()
            self.watcher.at(part.name, says, share)

        try:
            log.before()
            try:
                outcome = part.run(self.record.machine, progress)
            finally:
                # Of a part that fails as well: load and clocks may say why.
                self._note(entry, log)
            self._write(part.name, outcome)
        except InputError as error:
            self._end(entry, FAILED, str(error))
        except KeyboardInterrupt:
            self._end(entry, INTERRUPTED, "")
            raise
        except BaseException as error:
            self._end(entry, FAILED, f"{type(error).__name__}: {error}")
            raise
        else:
            self._end(entry, COMPLETE, "")
        said = entry.why or ", ".join(f"{rows:,} rows in {name}" for name, rows in entry.tables.items())
        self.watcher.ends(part.name, entry.state, said)
        return entry.why

    def _note(self, entry: PartRecord, log: Log) -> None:
        log.after()
        self._sensor_rows.append(log.table())
        SENSORS.write(pl.concat(self._sensor_rows), self.folder / SENSORS_FILE)
        entry.sensors = summed_up(self._sensor_rows[-1])
        self.record.not_readable += list(log.not_readable)

    def _write(self, name: str, outcome: Outcome) -> None:
        taken = {file for part in self.record.parts.values() for file in part.tables}
        checked = {}
        for table, rows in outcome.tables.items():
            if table not in TABLES or table == SENSORS.name or f"{table}.csv" in taken:
                raise InputError(f"part {name}", "table", table, "a table of raw rows that no other part has written")
            if not rows.height:
                raise InputError(f"part {name}", f"table {table}", "no rows", "at least one")
            checked[f"{table}.csv"] = (TABLES[table], TABLES[table].check(rows, f"part {name}, table {table}"))
        for file, (table, rows) in checked.items():
            table.write(rows, self.folder / file)
        entry = self.record.parts[name]
        entry.tables = {file: rows.height for file, (_, rows) in checked.items()}
        entry.about, entry.checked = outcome.about, [asdict(each) for each in outcome.checked]

    def _end(self, entry: PartRecord, state: str, why: str) -> None:
        entry.state, entry.end, entry.why = state, utc(self.now()), why.replace("\n", " ")
        self.record.write(self.folder)

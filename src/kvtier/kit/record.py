"""``platform.json``: the machine, the software and every part of a run, renewed whenever a part starts or ends.

Format 1::

    format            1
    evidence          "Measured"
    date              day of the start, UTC: "2026-11-30"
    start, end        UTC: "2026-11-30T17:05:00Z"; end is null until the run has ended
    command           as it was called
    quick             whether this was a try, whose rows are not to be kept
    clock_tick_s      smallest step of the clock that was seen [s]
    machine           name, slug, processor, cores, last_level_cache_bytes, memory_bytes, available_bytes, numa_nodes, accelerator
    bus               gbps, source; null where it is not known
    software          kernel, python, libraries by name, kvtier (version, commit, modified)
    not_readable      what the system does not say, sensors among it
    left_out          why, by part that was not asked to run
    parts             by name of the part, in order:
      state           "not run", "running", "complete", "failed" or "interrupted"
      start, end      UTC or null
      tables          rows by file
      about           what the part says of itself: settings, what was really resident, what was left out
      checked         guards that held: subject, value, bound, unit
      sensors         by sensor: unit, and by moment readings, lowest, median, highest
      why             of a part that failed
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import read_json, write_atomically
from kvtier.kit.machine import Machine
from kvtier.measure.fields import Fields, shown

FORMAT = 1
FILE = "platform.json"

NOT_RUN, RUNNING, COMPLETE, FAILED, INTERRUPTED = "not run", "running", "complete", "failed", "interrupted"
STATES = (NOT_RUN, RUNNING, COMPLETE, FAILED, INTERRUPTED)

LIBRARIES = ("numpy", "numba", "polars", "torch", "transformers", "safetensors", "triton", "vllm", "flash-attn")
"""Whose versions are recorded where they are installed."""


def utc(moment: datetime) -> str:
    """A moment as the record writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class PartRecord:
    """One part of a run, as in the record."""

    state: str = NOT_RUN
    start: str | None = None
    end: str | None = None
    tables: dict[str, int] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    checked: list[dict[str, Any]] = field(default_factory=list)
    sensors: dict[str, dict[str, Any]] = field(default_factory=dict)
    why: str = ""


@dataclass
class Record:
    """A run.

    Parameters
    ----------
    machine : Machine
    command : str
        As it was called.
    quick : bool
        A try, not to be kept.
    start : datetime
    clock_tick_s : float
    software : mapping
        Of :func:`software`.
    parts : dict of str to PartRecord
        In the order in which they run.
    left_out : mapping of str to str
        Why, by part.
    """

    machine: Machine
    command: str
    quick: bool
    start: datetime
    clock_tick_s: float
    software: Mapping[str, Any]
    parts: dict[str, PartRecord]
    left_out: Mapping[str, str] = field(default_factory=dict)
    end: datetime | None = None
    not_readable: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The record, ready for JSON."""
        machine = asdict(self.machine)
        bus, not_readable = machine.pop("bus"), machine.pop("not_readable")
        return {
            "format": FORMAT,
            "evidence": "Measured",
            "date": utc(self.start)[:10],
            "start": utc(self.start),
            "end": None if self.end is None else utc(self.end),
            "command": self.command,
            "quick": self.quick,
            "clock_tick_s": self.clock_tick_s,
            "machine": machine,
            "bus": bus,
            "software": dict(self.software),
            "not_readable": list(dict.fromkeys([*not_readable, *self.not_readable])),
            "left_out": dict(self.left_out),
            "parts": {name: asdict(part) for name, part in self.parts.items()},
        }

    def text(self) -> str:
        """The record as JSON."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False, default=as_json) + "\n"

    def plain(self) -> dict[str, Any]:
        """The record as a reader of the file gets it."""
        return json.loads(self.text())

    def write(self, folder: Path) -> None:
        """Write ``platform.json``, whole or not at all."""
        write_atomically(folder / FILE, self.text())


def as_json(value: Any) -> Any:
    """What JSON does not know: numbers and arrays of numpy, paths, sets, dataclasses.

    Raises
    ------
    TypeError
        For anything else.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no place in {FILE}")


def software(root: Path | None) -> dict[str, Any]:
    """Kernel, Python, libraries, and the state of the checkout.

    Parameters
    ----------
    root : Path or None
        Top of the checkout; None outside one.
    """
    libraries = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            continue
    ours: dict[str, Any] = {"version": version("kvtier")}
    commit = None if root is None else _git(root, "rev-parse", "HEAD")
    if root is not None and commit:
        ours |= {"commit": commit, "modified": bool(_git(root, "status", "--porcelain", "--", "src"))}
    return {
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {sys.version.split()[0]}",
        "libraries": libraries,
        "kvtier": ours,
    }


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def read(folder: str | Path) -> dict[str, Any]:
    """Read the record of a run and check what keeping it rests on.

    Raises
    ------
    InputError
        If the file is missing, is broken, is of another format, or lacks a field.
    """
    path = Path(folder) / FILE
    fields = Fields(path, read_json(path))
    if fields["format"] != FORMAT:
        raise InputError(path, "format", fields["format"], f"{FORMAT}")
    for name in ("date", "start", "command"):
        fields.text(name)
    for name in ("end", "quick", "bus", "not_readable"):
        fields[name]
    for name in ("left_out", "software"):
        fields.section(name)
    fields.section("machine").text("slug")
    fields.section("machine").text("name")
    parts = fields.section("parts")
    for name in parts.content:
        part = parts.section(name)
        if part["state"] not in STATES:
            raise InputError(path, f"parts.{name}.state", part["state"], f"one of {', '.join(STATES)}")
        for section in ("tables", "about", "sensors"):
            part.section(section)
        if not isinstance(part["checked"], list):
            raise InputError(path, f"parts.{name}.checked", shown(part["checked"]), "a list of guards")
    return dict(fields.content)

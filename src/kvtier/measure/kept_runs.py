"""A kept run of the measurement kit: platform record and raw rows read and checked, points summed up, lines fitted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.files import read_json
from kvtier.measure import kept_points, medians, per_piece
from kvtier.measure.fields import Fields
from kvtier.measure.kept_decode import Decode, Loaded, weigh, word
from kvtier.measure.per_piece import PieceFit
from kvtier.measure.uncertainty import Between

RECORD = "platform.json"
"""The file that makes a folder of ``data/measured`` a kept run."""

US_PER_MS = 1e3

LEVELS = 4
"""A buffer of so many times the last-level cache is streamed from memory: at most a quarter of it can have stayed."""


@dataclass(frozen=True)
class Moved:
    """One path between memory regions.

    Parameters
    ----------
    path : str
        As in the rows: ``memory to memory``.
    points : polars.DataFrame
        Medians by size of a piece.
    line : PieceFit or None
        Setup and bandwidth.
    gbps : Between or None
        Bandwidth [GB/s].
    left_out : str
        Why there is no line or no bandwidth, if so.
    """

    path: str
    points: pl.DataFrame
    line: PieceFit | None
    gbps: Between | None
    left_out: str = ""

    @property
    def key(self) -> str:
        """Inside a number key."""
        return word(self.path)


@dataclass(frozen=True)
class Regenerated:
    """Forward compute of a block's tokens against moving the block.

    Parameters
    ----------
    backend, device, dtype : str
        As in the rows.
    tokens, context_tokens : int
        What is computed again, and on top of how much cached context.
    block_bytes : int
        KV of the tokens [B].
    ms : Between or None
        Time [ms]; None for fewer than three repetitions.
    over_move : dict of str to Between
        By path, the same over the time to move the block. A path that has no sizes around the block is missing.
    """

    backend: str
    device: str
    dtype: str
    tokens: int
    context_tokens: int
    block_bytes: int
    ms: Between | None
    over_move: dict[str, Between]

    @property
    def key(self) -> str:
        """Inside a number key."""
        return word(f"{self.backend} {self.device} {self.dtype}")


@dataclass(frozen=True)
class KeptRun:
    """A kept run.

    Parameters
    ----------
    folder : path
        Where its files are.
    slug, machine, date : str
        The machine in a word and in words, and the day.
    cores : int
        Cores that the run could use.
    memory_bytes, last_level_cache_bytes : int
        Memory, and the largest cache of the processor [B].
    bus_gbps : float
        Memory bandwidth by data sheet [GB/s].
    bus_source : str
        The data sheet, and in what respect it bounds.
    parts : Fields
        Record of each part.
    tables : dict of str to polars.DataFrame
        Raw rows by table.
    """

    folder: Path
    slug: str
    machine: str
    date: str
    cores: int
    memory_bytes: int
    last_level_cache_bytes: int
    bus_gbps: float
    bus_source: str
    parts: Fields
    tables: dict[str, pl.DataFrame]

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def key(self) -> str:
        """Inside a number key."""
        return word(self.name)

    @property
    def where(self) -> str:
        """Machine and day, for the end of a definition."""
        return f"{self.machine}, {self.date}"

    def about(self, part: str) -> Fields:
        """What a part says of itself."""
        return self.parts.section(part).section("about")

    def source(self, table: str) -> str:
        """File of a table, for messages."""
        return str(self.folder / f"{table}.csv")

    @cached_property
    def points(self) -> dict[str, pl.DataFrame]:
        """Medians by table."""
        return {
            name: kept_points.summed_up(name, self.tables[name], self.source(name))
            for name in kept_points.QUANTITIES
            if name in self.tables
        }

    @cached_property
    def decodes(self) -> list[Decode]:
        """One a backend, device and type."""
        if "decode" not in self.points:
            return []
        about, found = self.about("decode"), []
        read_bytes = about.count("weight_bytes") - about.count("unread_weight_bytes", 0)
        loaded = Loaded(read_bytes, about.count("kv_bytes_per_token"))
        for (backend, device, dtype), rows in self.points["decode"].group_by("backend", "device", "dtype", maintain_order=True):
            found.append(weigh(str(backend), str(device), str(dtype), rows, loaded, f"{self.name}, {backend} on {device}, {dtype}"))
        return found

    @cached_property
    def paths(self) -> list[Moved]:
        """One a path."""
        if "movement" not in self.points:
            return []
        return [
            _moved(str(path), rows, f"{self.name}, {path}")
            for (path,), rows in self.points["movement"].group_by("path", maintain_order=True)
        ]

    @cached_property
    def regenerated(self) -> list[Regenerated]:
        """One a backend, device, type and context."""
        if "regeneration" not in self.points:
            return []
        per_token = self.about("regeneration").count("kv_bytes_per_token")
        moves = self._moves()
        found = []
        for point, ms in kept_points.timings("regeneration", self.tables["regeneration"]).items():
            backend, device, dtype, tokens, context = point
            block_bytes, enough = tokens * per_token, len(ms) >= medians.MINIMUM_VALUES
            ratios = {}
            for path, times in moves.items():
                us = at_size(times, block_bytes)
                if us and enough:
                    ratios[path] = medians.ratio([each * US_PER_MS for each in ms], us, f"{self.name}, {path}")
            median = medians.median(ms, self.source("regeneration")) if enough else None
            found.append(Regenerated(backend, device, dtype, tokens, context, block_bytes, median, ratios))
        return found

    def _moves(self) -> dict[str, dict[int, list[float]]]:
        found: dict[str, dict[int, list[float]]] = {}
        if "movement" in self.tables:
            for (path, size), us in kept_points.timings("movement", self.tables["movement"]).items():
                found.setdefault(path, {})[size] = us
        return found


def _moved(path: str, points: pl.DataFrame, source: str) -> Moved:
    line = None
    try:
        line = per_piece.fit(points["piece_bytes"].to_list(), points["median"].to_list(), source)
        return Moved(path, points, line, line.gbps)
    except InputError as error:
        return Moved(path, points, line, None, str(error))


def at_size(times: Mapping[int, Sequence[float]], piece_bytes: int) -> list[float]:
    """Times to move a piece of some size, one a repetition.

    Parameters
    ----------
    times : mapping of int to sequence of float
        By size of a piece [B], its times in the order of repetitions.
    piece_bytes : int
        The size that is asked for [B].

    Returns
    -------
    list of float
        Where the size was not timed, on the straight line between the times of the sizes around it, repetition by repetition: exact for
        time = setup + bytes / bandwidth, whatever these are there. Empty where it lies outside the sizes timed.
    """
    sizes = sorted(times)
    at = bisect_left(sizes, piece_bytes)
    if at < len(sizes) and sizes[at] == piece_bytes:
        return list(times[piece_bytes])
    if not 0 < at < len(sizes):
        return []
    low, high = sizes[at - 1], sizes[at]
    share = (piece_bytes - low) / (high - low)
    return [a + share * (b - a) for a, b in zip(times[low], times[high], strict=False)]


def read(folder: str | Path) -> KeptRun:
    """Read a kept run.

    Raises
    ------
    InputError
        If the platform record or a table is damaged; the message names file and field.
    """
    folder = Path(folder)
    path = folder / RECORD
    fields = Fields(path, read_json(path))
    machine = fields.section("machine")
    bus = fields.section("bus")
    tables = kept_points.read(folder)
    return KeptRun(
        folder=folder,
        slug=machine.text("slug"),
        machine=machine.text("name"),
        date=fields.text("date"),
        cores=machine.count("cores"),
        memory_bytes=machine.count("memory_bytes"),
        last_level_cache_bytes=machine.count("last_level_cache_bytes"),
        bus_gbps=bus.positive("gbps"),
        bus_source=bus.text("source"),
        parts=fields.section("parts"),
        tables=tables,
    )


def read_all(folders: Iterable[str | Path]) -> list[KeptRun]:
    """Kept runs by machine and day.

    Raises
    ------
    InputError
        As :func:`read`, or if there is none.
    """
    runs = [run for own in by_machine(map(read, folders)).values() for run in own]
    if not runs:
        raise InputError("data/measured", "kept runs", "none", "one or more, as `kvtier measure all --keep` leaves them")
    return runs


def by_machine(runs: Iterable[KeptRun]) -> dict[str, list[KeptRun]]:
    """Runs by machine, those of a machine in the order of their days."""
    found: dict[str, list[KeptRun]] = {}
    for run in sorted(runs, key=lambda run: (run.slug, run.date, len(run.name), run.name)):
        found.setdefault(run.slug, []).append(run)
    return found

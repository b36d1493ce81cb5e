"""Kept runs of the measurement kit as figures take them in: which there are, and how sizes and paths are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.frames import Table
from kvtier.publish import tables

RUNS = Table(
    "kept runs",
    {
        "run": pl.String(),
        "machine": pl.String(),
        "date": pl.String(),
        "key": pl.String(),
        "words": pl.String(),
        "last_level_cache_bytes": pl.Int64(),
    },
)
"""One row a run, machines in order, the runs of a machine by day."""

UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


@dataclass(frozen=True)
class Run:
    """A kept run.

    Parameters
    ----------
    name, machine, date, key, words : str
        Folder, machine in a word, day, word in number keys, machine in words.
    last_level_cache_bytes : int
        Largest cache [B].
    """

    name: str
    machine: str
    date: str
    key: str
    words: str
    last_level_cache_bytes: int

    @property
    def said(self) -> str:
        """Machine and day."""
        return f"{self.words}, {self.date}"


def firsts(path: str | Path) -> list[Run]:
    """The first run of each machine; a later run of a machine is there to be held against it.

    Raises
    ------
    InputError
        If the table cannot be read.
    """
    found: dict[str, Run] = {}
    for row in tables.read(path, RUNS).iter_rows(named=True):
        found.setdefault(row["machine"], Run(row["run"], **{name: row[name] for name in RUNS.columns if name != "run"}))
    return list(found.values())


def first(path: str | Path) -> Run:
    """The first run of the first machine."""
    return firsts(path)[0]


def size(size_bytes: int) -> str:
    """A size as it is written: ``64 KiB``."""
    unit, factor = next(((unit, factor) for unit, factor in UNITS if size_bytes >= factor), ("B", 1))
    return f"{size_bytes / factor:g} {unit}"


def name(word: str) -> str:
    """A run as it is written, from its word in keys: ``epyc 2 cores, 2026-11-30``, and which of that day it is after the first."""
    found = re.fullmatch(r"(\w+?)_(\d{4})_(\d\d)_(\d\d)(?:_(\d+))?", word)
    if not found:
        return words(word)
    machine, year, month, day, again = found.groups()
    return f"{words(machine)}, {year}-{month}-{day}{f' ({again})' if again else ''}"


def words(word: str) -> str:
    """A word of a key as words: ``memory_to_memory``."""
    return word.replace("_", " ")


def none(source: str, what: str) -> InputError:
    """What to say of a run without a part."""
    return InputError(source, what, "no such numbers", "a kept run that has them")

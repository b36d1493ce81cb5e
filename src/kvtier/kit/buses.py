"""Bandwidth that data sheets give a memory bus, by what a processor or accelerator calls itself."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.frames import Table
from kvtier.kit.machine import Bus

FILE = "data/inputs/memory_buses.csv"
"""In a checkout."""

BUSES = Table(
    "memory buses",
    {"kind": pl.String(), "pattern": pl.String(), "gbps": pl.Float64(), "channels": pl.Int64(), "source": pl.String()},
    nullable=frozenset({"channels"}),
)
"""``pattern`` is a regular expression, searched in ``brand, family F, model M`` of a processor (``kind`` is ``cpu``; the bandwidth is one
socket's) or in the name of an accelerator. The first row that fits counts."""

KINDS = ("cpu", "accelerator")


def read(path: str | Path) -> pl.DataFrame:
    """Read the table of buses.

    Raises
    ------
    InputError
        If the file cannot be used: a column, a kind, an expression or a bandwidth that is none.
    """
    frame = BUSES.read_csv(path)
    for line, row in enumerate(frame.iter_rows(named=True), 2):
        if row["kind"] not in KINDS:
            raise InputError(path, f"line {line}, kind", repr(row["kind"]), f"one of {', '.join(KINDS)}")
        if not isfinite(row["gbps"]) or row["gbps"] <= 0:
            raise InputError(path, f"line {line}, gbps", row["gbps"], "a bandwidth above 0 GB/s")
        if not row["source"]:
            raise InputError(path, f"line {line}, source", "nothing", "the data sheet")
        try:
            re.compile(row["pattern"])
        except re.error as error:
            raise InputError(path, f"line {line}, pattern", f"{row['pattern']!r}: {error}", "a regular expression") from None
    return frame


def find(buses: pl.DataFrame, kind: str, name: str) -> Bus | None:
    """Bus of a processor's socket or of an accelerator; None where no row fits."""
    for row in buses.filter(pl.col("kind") == kind).iter_rows(named=True):
        if re.search(row["pattern"], name):
            return Bus(row["gbps"], row["source"])
    return None


def of_sockets(socket: Bus, sockets: int, guest: bool) -> Bus:
    """Bus of all memory that a machine's threads can reach.

    Parameters
    ----------
    socket : Bus
        Of one socket.
    sockets : int
        How many the machine has; in a guest, how many it may lie on.
    guest : bool
        A guest does not see which channels its memory lies on, so the figure is an upper bound, and the source says so.
    """
    words = f"{socket.source}; {socket.gbps:g} GB/s a socket" + (f", {sockets} sockets" if sockets > 1 else "")
    if guest:
        words += "; the guest does not see which channels it has, so this is an upper bound"
    return replace(socket, gbps=socket.gbps * sockets, source=words)

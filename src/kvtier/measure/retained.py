"""Retained raw rows: read, checked, and turned into KV sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.frames import Table
from kvtier.units import GIB

DECODE_STEPS = Table("decode steps", {"batch": pl.Int64(), "context_tokens": pl.Int64(), "step_ms": pl.Float64()})
STREAMING = Table(
    "streaming",
    {"kernel": pl.String(), "buffer_gib": pl.Float64(), "runs": pl.Int64(), "median_gbps": pl.Float64()},
)

PUBLISHED_KV_DECIMALS = 2
"""Decimals of the KV sizes [GiB] that the published fits were made on (D18)."""


def _refuse_rows(frame: pl.DataFrame, source: str | Path, column: str, bad: pl.Series, expected: str) -> None:
    if bad.any():
        row = int(bad.arg_true()[0])
        raise InputError(source, f"column {column}, row {row + 1}", frame[column][row], expected)


def read_decode_steps(path: str | Path) -> pl.DataFrame:
    """Read decode step times: batch [sequences], context_tokens, step_ms; rows in the order of the file.

    Raises
    ------
    InputError
        Naming file, column and row (first data row is 1) if a column is missing, a value is not a finite number or not
        positive, or a (batch, context_tokens) comes twice.
    """
    rows = DECODE_STEPS.read_csv(path)
    if rows.is_empty():
        raise InputError(path, "rows", "none", "at least one data row")
    _refuse_rows(rows, path, "batch", rows["batch"] < 1, "1 sequence or more")
    _refuse_rows(rows, path, "context_tokens", rows["context_tokens"] < 1, "1 token or more")
    _refuse_rows(rows, path, "step_ms", rows["step_ms"] <= 0, "a time above 0 ms")
    seen: dict[tuple[int, int], int] = {}
    for row, point in enumerate(rows.select("batch", "context_tokens").iter_rows(), start=1):
        if point in seen:
            found = f"{point[0]} × {point[1]} again (first in row {seen[point]})"
            raise InputError(path, f"columns batch, context_tokens, row {row}", found, "each (batch, context_tokens) once")
        seen[point] = row
    return rows


@dataclass(frozen=True)
class StreamingCopy:
    """Achieved bandwidth of a copy, and how it was taken.

    Parameters
    ----------
    gbps : float
        Bytes read plus bytes written, over the time of the median run [GB/s, decimal].
    buffer_gib : float
        Size of a buffer [GiB].
    runs : int
        Runs of which this is the median.
    """

    gbps: float
    buffer_gib: float
    runs: int


def read_streaming_copy(path: str | Path) -> StreamingCopy:
    """Read the copy of a streaming measurement.

    Raises
    ------
    InputError
        If the file does not hold exactly one row for the kernel ``copy``, or a value of any row is not positive.
    """
    rows = STREAMING.read_csv(path)
    _refuse_rows(rows, path, "median_gbps", rows["median_gbps"] <= 0, "a bandwidth above 0 GB/s")
    _refuse_rows(rows, path, "buffer_gib", rows["buffer_gib"] <= 0, "a size above 0 GiB")
    _refuse_rows(rows, path, "runs", rows["runs"] < 1, "1 run or more")
    copies = rows.filter(pl.col("kernel") == "copy")
    if copies.height != 1:
        raise InputError(path, "column kernel", f"{copies.height} rows named copy", "exactly one")
    row = copies.row(0, named=True)
    return StreamingCopy(gbps=row["median_gbps"], buffer_gib=row["buffer_gib"], runs=row["runs"])


def kv_gib(rows: pl.DataFrame, kv_bytes_per_token: int) -> list[float]:
    """KV that a step reads, from the geometry: batch × context × bytes a token [GiB], one value a row."""
    return [batch * tokens * kv_bytes_per_token / GIB for batch, tokens in rows.select("batch", "context_tokens").iter_rows()]


def as_published(sizes_gib: list[float]) -> list[float]:
    """KV sizes as the published fits took them: each rounded to two decimals of a GiB.

    Notes
    -----
    The nearest hundredth, half to even. The one tie of these rows, 0.875, goes to 0.88 under half-up as well, so the rule for
    ties does not matter; cutting the digits off instead would give a slope of 16.31 where 16.34 was printed.
    """
    return [round(size, PUBLISHED_KV_DECIMALS) for size in sizes_gib]

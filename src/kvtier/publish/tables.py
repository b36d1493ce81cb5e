"""Columns that figures take from result tables; a table may have more."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.frames import Table

HIT_RATES = Table(
    "hit rates",
    {
        "revision": pl.Int64(),
        "workload": pl.String(),
        "seed": pl.Int64(),
        "policy": pl.String(),
        "alpha": pl.Float64(),
        "hbm_gib": pl.Float64(),
        "cxl_gib": pl.Float64(),
        "counted_from": pl.Int64(),
        "turns": pl.Int64(),
        "hit_rate": pl.Float64(),
    },
    nullable=frozenset({"alpha"}),
)
"""One row a run; the rate is percent of blocks read in the counted turns."""

HIT_RATES_BY_STATE = Table(
    "hit rates by state",
    {**HIT_RATES.columns, "persist_meta": pl.Boolean()},
    nullable=HIT_RATES.nullable,
)
"""The same, with whether state is kept at eviction."""

DECODE_STEPS = Table(
    "decode steps",
    {
        "run": pl.String(),
        "batch": pl.Int64(),
        "context_tokens": pl.Int64(),
        "step_ms": pl.Float64(),
        "kv_gib": pl.Float64(),
    },
)
"""One row a timed point."""

DECODE_FITS = Table(
    "decode fits",
    {
        "run": pl.String(),
        "kv_sizes": pl.String(),
        "n": pl.Int64(),
        "r_squared": pl.Float64(),
        "intercept_ms": pl.Float64(),
        "intercept_ms_standard_error": pl.Float64(),
        "slope_ms_per_gib": pl.Float64(),
        "slope_ms_per_gib_standard_error": pl.Float64(),
    },
)
"""One row a fit of step time over KV size."""

ROPE_CURVE = Table(
    "RoPE curve",
    {
        "base": pl.Float64(),
        "first_tokens": pl.Int64(),
        "last_tokens": pl.Int64(),
        "mean": pl.Float64(),
        "lowest": pl.Float64(),
        "highest": pl.Float64(),
    },
)
"""One row a base and run of distances, both ends inside: the shape of the distance bound, 1 at distance 0."""

THROUGHPUT = Table(
    "throughput",
    {
        "key": pl.String(),
        "context_tokens": pl.Int64(),
        "turns": pl.Int64(),
        "policy": pl.String(),
        "side": pl.String(),
        "million_requests_per_s": pl.Float64(),
        "lowest": pl.Float64(),
        "highest": pl.Float64(),
    },
)
"""One row a context length, policy and simulator: median, slowest and fastest timing."""


def read(path: str | Path, table: Table) -> pl.DataFrame:
    """The declared columns of a Parquet or CSV file.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or a column is missing or of another type.
    """
    path = Path(path)
    try:
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(path, "file", str(error).splitlines()[0], f"a table with columns {', '.join(table.columns)}") from None
    if frame.is_empty():
        raise InputError(path, "file", "no rows", "one row or more")
    return table.check(frame.select(column for column in table.columns if column in frame.columns), path)


def only(frame: pl.DataFrame, column: str, path: str | Path) -> str | int | float:
    """The one value of a column that must not vary.

    Raises
    ------
    InputError
        If it varies.
    """
    values = frame[column].unique().sort().to_list()
    if len(values) != 1:
        raise InputError(path, f"column {column}", ", ".join(map(str, values)), "one value in all rows")
    return values[0]

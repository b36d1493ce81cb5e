"""From raw rows to one row a point: what was repeated, its median, and the interval of the median."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.frames import Table
from kvtier.measure import kept, medians
from kvtier.units import GB

MS_PER_S, US_PER_S, NS_PER_S = 1e3, 1e6, 1e9

SPREAD = {"repetitions": pl.Int64(), "median": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}
"""Columns that a table of points has besides those of a point. The ends are null where there are too few repetitions for an interval."""


@dataclass(frozen=True)
class Quantity:
    """What is taken from a row of a table of raw rows.

    Parameters
    ----------
    table : Table
        Raw rows.
    point : tuple of str
        Columns whose values make a point.
    name, unit : str
        Of the quantity, as in the column ``median``.
    of : callable
        Expression over the raw columns.
    """

    table: Table
    point: tuple[str, ...]
    name: str
    unit: str
    of: Callable[[], pl.Expr]

    @property
    def points(self) -> Table:
        """One row a point."""
        columns = {column: self.table.columns[column] for column in self.point}
        return Table(f"points of {self.table.name}", {**columns, **SPREAD}, frozenset({"low", "high"}))


QUANTITIES = {
    "stream": Quantity(
        kept.STREAM,
        ("kernel", "threads", "buffer_bytes"),
        "gbps",
        "GB/s",
        lambda: pl.col("moved_bytes") / pl.col("seconds") / GB,
    ),
    "decode": Quantity(kept.DECODE, ("backend", "device", "dtype", "batch", "context_tokens"), "step_ms", "ms", lambda: pl.col("step_ms")),
    "movement": Quantity(
        kept.MOVEMENT, ("path", "piece_bytes"), "us_per_piece", "µs", lambda: pl.col("seconds") / pl.col("pieces") * US_PER_S
    ),
    "regeneration": Quantity(
        kept.REGENERATION,
        ("backend", "device", "dtype", "tokens", "context_tokens"),
        "ms",
        "ms",
        lambda: pl.col("seconds") * MS_PER_S,
    ),
    "metadata": Quantity(
        kept.METADATA,
        ("operation", "policy", "blocks"),
        "ns_per_operation",
        "ns",
        lambda: pl.col("seconds") / pl.col("operations") * NS_PER_S,
    ),
    "folding": Quantity(kept.FOLDING, ("fold", "dtype", "streams", "blocks", "threads"), "us", "µs", lambda: pl.col("seconds") * US_PER_S),
}
"""By table, what is timed again and again. ``table_size`` and ``sensors`` are read once, not repeated."""

POSITIVE = {
    "stream": ("buffer_bytes", "threads", "moved_bytes", "seconds"),
    "decode": ("batch", "context_tokens", "short_s", "long_s"),
    "movement": ("piece_bytes", "pieces", "seconds"),
    "regeneration": ("tokens", "seconds"),
    "metadata": ("blocks", "operations", "seconds"),
    "table_size": ("blocks", "table_bytes"),
    "folding": ("streams", "blocks", "threads", "seconds"),
    "sensors": (),
}
"""Columns of raw rows in which a value of zero or less is a mistake."""


def read(folder: str | Path) -> dict[str, pl.DataFrame]:
    """The tables of raw rows that a folder has, by name.

    Raises
    ------
    InputError
        If a table is damaged, empty, times a point twice in a repetition, or holds a count, size or time that is not above zero; or if
        there is none, or a CSV file that is no table of the kit.
    """
    folder, found = Path(folder), {}
    for path in sorted(folder.glob("*.csv")):
        if path.stem not in kept.TABLES:
            raise InputError(path, "file", "a table of no known name", f"one of {', '.join(kept.TABLES)}")
    for name, table in kept.TABLES.items():
        path = folder / f"{name}.csv"
        if path.is_file():
            found[name] = check(name, table.read_csv(path), path)
    if not found:
        raise InputError(folder, "folder", "no table of raw rows", f"one or more of {', '.join(f'{name}.csv' for name in kept.TABLES)}")
    return found


def check(name: str, rows: pl.DataFrame, source: str | Path) -> pl.DataFrame:
    """The rows of a table, if they can be raw rows of the kit.

    Raises
    ------
    InputError
        As :func:`read`.
    """
    if rows.is_empty():
        raise InputError(source, "rows", "none", "at least one data row")
    for column in POSITIVE[name]:
        bad = rows[column] <= 0
        if bad.any():
            row = int(bad.arg_true()[0])
            raise InputError(source, f"column {column}, row {row + 1}", rows[column][row], "a value above 0")
    if name in QUANTITIES:
        columns = [*QUANTITIES[name].point, "repetition"]
        again = rows.select(columns).is_duplicated()
        if again.any():
            row = int(again.arg_true()[-1])
            found = ", ".join(f"{column} {rows[column][row]}" for column in columns)
            raise InputError(source, f"row {row + 1}", f"a second time of {found}", "each point once a repetition")
    return rows


def timings(name: str, rows: pl.DataFrame) -> dict[tuple, list[float]]:
    """Values by point, in the order of repetitions; points sorted by their columns."""
    quantity = QUANTITIES[name]
    kept_rows = rows.with_columns(quantity.of().alias("_value")).sort(*quantity.point, "repetition")
    return {point: group["_value"].to_list() for point, group in kept_rows.group_by(*quantity.point, maintain_order=True)}


def summed_up(name: str, rows: pl.DataFrame, source: str | Path = "") -> pl.DataFrame:
    """Median and interval of each point, sorted by its columns.

    Raises
    ------
    InputError
        As :func:`kvtier.measure.medians.median`; too few repetitions are none, and leave the ends null.
    """
    quantity, records = QUANTITIES[name], []
    for point, values in timings(name, rows).items():
        about = {**dict(zip(quantity.point, point, strict=True)), "repetitions": len(values)}
        if len(values) < medians.MINIMUM_VALUES:
            records.append({**about, "median": float(pl.Series(values).median()), "low": None, "high": None})
            continue
        found = medians.median(values, source or name)
        records.append({**about, "median": found.value, "low": found.low, "high": found.high})
    return quantity.points.check(pl.DataFrame(records, schema=quantity.points.columns), source)

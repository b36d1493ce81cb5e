"""Numbers of simulation tables: means over seeds, with what was counted said in the definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number

FIELDS: dict[str, tuple[pl.Expr, str, int, str]] = {
    "hit": (pl.col("hit_rate"), "%", 2, "blocks read that were in HBM / blocks read"),
    "cxl": (pl.col("cxl_rate"), "%", 2, "blocks read that were in CXL and not in HBM / blocks read"),
    "cold": (pl.col("cold_rate"), "%", 2, "blocks read that were in neither tier / blocks read"),
    "stall": (pl.col("stall_ms"), "ms", 1, "fetch and recompute time / counted turns"),
    "fetch": (pl.col("fetch_ms"), "ms", 2, "fetch time / counted turns"),
    "recompute_share": (100 * pl.col("recompute_ms") / pl.col("stall_ms"), "%", 1, "recompute time / stall"),
    "read_set_evictions": (
        100 * pl.col("evictions_from_read_set") / pl.col("evictions"),
        "%",
        1,
        "evictions whose victim the turn reads or generates / evictions, whole run",
    ),
}
"""Name in the key: value, unit, digits of the display, definition."""


def conditions(row: dict[str, Any]) -> str:
    """What a run's values are counted over: workload, capacities, turns."""
    last = row["counted_from"] + row["turns"] - 1
    kept = "" if row["policy"] == "lru" else ", state kept at eviction" if row["persist_meta"] else ", state dropped at eviction"
    policy = row["policy"].upper() if row["alpha"] is None else f"EMA alpha {row['alpha']:g}"
    overlap = ", fetches hidden behind decode" if row["overlap"] else ""
    return (
        f"Revision {row['revision']}, {row['workload']}, {policy}{kept}{overlap}, HBM {row['hbm_gib']:g} GiB, CXL {row['cxl_gib']:g} GiB, "
        f"turns {row['counted_from']:,} to {last:,}"
    )


def means(runs: pl.DataFrame, key: Callable[[dict[str, Any]], str], fields: Iterable[str]) -> list[Number]:
    """Mean over seeds of each field, one number a group of runs that share a key.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of the simulation run table.
    key : callable
        Row to number key, without the field's name; rows of one key differ by seed only.
    fields : iterable of str
        Names in ``FIELDS``.

    Returns
    -------
    list of Number
        Uncertainty gives the lowest and highest seed where there are two or more. A field that is undefined (0 / 0) makes no number.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in runs.with_columns(expression.alias(f"field.{name}") for name, (expression, *_) in FIELDS.items()).iter_rows(named=True):
        groups.setdefault(key(row), []).append(row)
    numbers = []
    for group, rows in groups.items():
        seeds = [row["seed"] for row in rows]
        over = f"seed {seeds[0]}" if len(seeds) == 1 else f"mean of seeds {', '.join(map(str, seeds))}"
        for name in fields:
            _, unit, digits, what = FIELDS[name]
            values = [row[f"field.{name}"] for row in rows]
            if any(value is None or value != value for value in values):
                continue
            numbers.append(
                Number(
                    f"{group}.{name}",
                    sum(values) / len(values),
                    unit,
                    digits,
                    Label.SIMULATED,
                    f"{what}; {conditions(rows[0])}, {over}",
                    {"lowest_seed": min(values), "highest_seed": max(values)} if len(values) > 1 else {},
                )
            )
    return numbers


def derived(key: str, value: float, unit: str, digits: int, definition: str, inputs: Sequence[Number]) -> Number:
    """A number computed from simulated ones; the definition names them."""
    return Number(key, value, unit, digits, Label.SIMULATED, f"{definition}: from {', '.join(number.key for number in inputs)}")


def difference(key: str, one: Number, other: Number, definition: str) -> Number:
    """`one` minus `other`, in points of their common unit."""
    return Number(key, one.value - other.value, "points", one.digits, Label.SIMULATED, f"{definition}: {one.key} minus {other.key}")


def extreme(key: str, choose: Callable[..., Number], among: Sequence[Number], definition: str) -> Number:
    """The lowest or highest of several numbers; the definition names it."""
    chosen = choose(among, key=lambda number: number.value)
    return Number(key, chosen.value, chosen.unit, chosen.digits, Label.SIMULATED, f"{definition}: {chosen.key}")


def by_key(numbers: Iterable[Number]) -> dict[str, Number]:
    """Numbers by their keys."""
    return {number.key: number for number in numbers}

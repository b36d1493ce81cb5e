"""Numbers of simulation tables: means over seeds, with what was counted said in the definition.

Where there are seeds enough for one, a mean carries a bootstrap interval; where there are two or three, the lowest and highest of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvtier.evidence import statistics
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number

COSTS = "5 MiB at 64 GB/s plus 300 ns a fetched block, 17.92 ms a recomputed block (linear term), one after the other, no queueing"
"""What a stall is made of (SPEC §4); a test holds it to the simulator's constants."""

STATUS = {1: Status.WITHDRAWN, 2: Status.PROVISIONAL, 3: Status.PROVISIONAL}
"""Standing of a revision's numbers."""


INTERVAL_SEEDS = 6
"""Fewest seeds that an interval of 95 % can be made of (see :func:`kvtier.evidence.statistics.bootstrap_interval`)."""


@dataclass(frozen=True)
class Field:
    """One quantity of a run: how a table row gives it, and how it is printed and defined."""

    value: pl.Expr
    unit: str
    digits: int
    definition: str
    whole_run: bool = False


FIELDS: dict[str, Field] = {
    "hit": Field(pl.col("hit_rate"), "%", 2, "blocks read that were in HBM / blocks read"),
    "cxl": Field(pl.col("cxl_rate"), "%", 2, "blocks read that were in CXL and not in HBM / blocks read"),
    "cold": Field(pl.col("cold_rate"), "%", 2, "blocks read that were in neither tier / blocks read"),
    "stall": Field(pl.col("stall_ms"), "ms", 1, f"fetch and recompute time / counted turns; {COSTS}"),
    "fetch": Field(pl.col("fetch_ms"), "ms", 2, f"fetch time / counted turns; {COSTS}"),
    "recompute_share": Field(100 * pl.col("recompute_ms") / pl.col("stall_ms"), "%", 1, f"recompute time / stall; {COSTS}"),
    "read_set_evictions": Field(
        100 * pl.col("evictions_from_read_set") / pl.col("evictions"),
        "%",
        1,
        "evictions whose victim the turn reads or generates / evictions",
        whole_run=True,
    ),
}
"""Name in the key to quantity."""


def conditions(row: Mapping[str, Any], *, whole_run: bool = False) -> str:
    """What a run's values are counted over: workload, capacities, turns."""
    first = 0 if whole_run else row["counted_from"]
    last = row["counted_from"] + row["turns"] - 1
    kept = "" if row["policy"] in ("lru", "min") else ", state kept at eviction" if row["persist_meta"] else ", state dropped at eviction"
    names = {"min": "the optimum, which knows all turns (Belady)", "ema": f"EMA alpha {row['alpha'] or 0:g}"}
    policy = names.get(row["policy"], row["policy"].upper())
    cxl = f"CXL {row['cxl_gib']:g} GiB" if row["cxl_gib"] else "no CXL"
    overlap = ", each turn's fetches hidden behind its own decode (a best case)" if row["overlap"] else ""
    return (
        f"Revision {row['revision']}, {row['workload']}, {policy}{kept}{overlap}, HBM {row['hbm_gib']:g} GiB, {cxl}, "
        f"turns {first:,} to {last:,}"
    )


def by_seed(runs: pl.DataFrame, key: Callable[[Mapping[str, Any]], str], field: str | pl.Expr) -> dict[str, dict[int, float | None]]:
    """Value of a field, or of any expression, by number key (without the field's name) and seed, in table order."""
    values: dict[str, dict[int, float | None]] = {}
    value = FIELDS[field].value if isinstance(field, str) else field
    for row in runs.with_columns(value.alias("_value")).iter_rows(named=True):
        values.setdefault(key(row), {})[row["seed"]] = row["_value"]
    return values


def means(runs: pl.DataFrame, key: Callable[[Mapping[str, Any]], str], fields: Iterable[str]) -> list[Number]:
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
        Group by group. Uncertainty gives the lowest and highest seed where there are two or more. A field that is undefined (0 / 0)
        makes no number.
    """
    of_field = {name: by_seed(runs, key, name) for name in fields}
    first_row: dict[str, dict[str, Any]] = {}
    for row in runs.iter_rows(named=True):
        first_row.setdefault(key(row), row)
    numbers = []
    for group, row in first_row.items():
        for name, groups in of_field.items():
            values = groups[group]
            if any(value is None or value != value for value in values.values()):
                continue
            about = conditions(row, whole_run=FIELDS[name].whole_run)
            numbers.append(_mean(f"{group}.{name}", values, FIELDS[name], f"{FIELDS[name].definition}; {about}", STATUS[row["revision"]]))
    return numbers


def difference(
    key: str, one: Mapping[int, float], other: Mapping[int, float], field: str, definition: str, status: Status = Status.PROVISIONAL
) -> Number:
    """Mean over common seeds of `one` minus `other`, seed by seed.

    Parameters
    ----------
    key : str
    one, other : mapping of int to float
        Values by seed, of the same field and the same seeds.
    field : str
        Name in ``FIELDS``; a difference of percentages is in points.
    definition : str
        What is subtracted from what.
    status : Status

    Raises
    ------
    ValueError
        If the seeds differ: the difference would not be paired.
    """
    if one.keys() != other.keys():
        raise ValueError(f"{key}: seeds {sorted(one)} and {sorted(other)} are not the same")
    unit = "points" if FIELDS[field].unit == "%" else FIELDS[field].unit
    paired = Field(FIELDS[field].value, unit, FIELDS[field].digits, "")
    return _mean(key, {seed: one[seed] - other[seed] for seed in one}, paired, f"{definition}, seed by seed", status)


def named(values: Mapping[int, Any]) -> str:
    """Seeds in words: ``seed 1``, ``seeds 1, 2``, ``seeds 1 to 30``."""
    seeds = list(values)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 3 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def _mean(key: str, values: Mapping[int, float], field: Field, definition: str, status: Status) -> Number:
    about = f"{definition}, {'' if len(values) == 1 else 'mean of '}{named(values)}"
    spread: Mapping[str, float] = {}
    if len(values) >= INTERVAL_SEEDS:
        interval = statistics.bootstrap_interval(values)
        spread, about = interval.uncertainty, f"{about}; {interval.words}"
    elif len(values) > 1:
        spread = {"lowest_seed": min(values.values()), "highest_seed": max(values.values())}
    # Not sum(): from Python 3.12 on it rounds otherwise than before.
    mean = math.fsum(values.values()) / len(values)
    return Number(key, mean, field.unit, field.digits, Label.SIMULATED, about, spread, status)


def mean(key: str, values: Mapping[int, float], unit: str, digits: int, definition: str) -> Number:
    """Mean over seeds of any quantity, with its interval or spread; provisional."""
    return _mean(key, values, Field(pl.lit(None), unit, digits, definition), definition, Status.PROVISIONAL)


def p_value(key: str, p: float, definition: str) -> Number:
    """A p-value above 0, with two digits that tell and four places at least; provisional."""
    return Number(key, p, "", max(4, 1 - math.floor(math.log10(p))), Label.SIMULATED, definition, status=Status.PROVISIONAL)


def extreme(key: str, choose: Callable[..., Number], among: Sequence[Number], definition: str) -> Number:
    """The lowest or highest of several numbers; the definition names it."""
    chosen = choose(among, key=lambda number: number.value)
    return Number(
        key, chosen.value, chosen.unit, chosen.digits, Label.SIMULATED, f"{definition}: {chosen.key}", chosen.uncertainty, chosen.status
    )


def seed_count(key: str, runs: pl.DataFrame, experiment: str) -> Number:
    """Seeds behind an experiment, from its runs."""
    definition = f"distinct seeds of the runs of {experiment}"
    return Number(key, runs["seed"].n_unique(), "seeds", 0, Label.SIMULATED, definition, status=Status.PROVISIONAL)


def by_key(numbers: Iterable[Number]) -> dict[str, Number]:
    """Numbers by their keys."""
    return {number.key: number for number in numbers}

"""Revision 3 options: which end of a session goes first, sequences in flight, chunked reading; one row an option, policy and seed."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import families, tables
from kvtier.workload.synthetic import Shape

FIELDS = {
    "hit": (pl.col("hit_rate"), "blocks read that were in HBM / blocks read"),
    "prefix_hit": (pl.col("prefix_hit_rate"), "blocks read that were in HBM, with nothing missing before them on the path / blocks read"),
    "streamed": (
        100 * pl.col("streamed") / (pl.col("reads") + pl.col("generated")),
        "blocks read or generated that were not admitted, for want of room beside what is pinned / blocks read or generated",
    ),
    "over_budget": (100 * pl.col("over_budget_turns") / pl.col("turns"), "turns that stream blocks / counted turns"),
}


def compare(in_flight: list[int], floors_blocks: list[int], seeds: list[int], shape: Shape, counted_from: int) -> pl.DataFrame:
    return families.replay(families.option_runs(in_flight, floors_blocks, seeds), shape, counted_from)


def option(row: Mapping[str, Any]) -> tuple[str, str]:
    """Slug and words of the one option that is changed."""
    if not row["suffix_first"]:
        return "prefix_first", "first blocks of a session evicted first"
    if row["in_flight"] > 1:
        return (
            f"in_flight{row['in_flight']}",
            f"sessions of the last {row['in_flight']} turns pinned, what does not fit beside them streamed",
        )
    if row["floor_blocks"] is not None:
        return (
            f"floor{row['floor_blocks']}",
            f"paths read through a buffer of {row['floor_blocks']:,} blocks, so that none is too long, and pinned no further",
        )
    return "plain", "deepest blocks of a session evicted first, the turn's path pinned whole"


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev3.options.{option(row)[0]}.{row['policy']}"


def number(runs: pl.DataFrame) -> list[Number]:
    values = {field: simulated.by_seed(runs, key, value) for field, (value, _) in FIELDS.items()}
    which = ["suffix_first", "in_flight", "floor_blocks", "policy"]
    found = []
    for row in runs.unique(which, keep="first", maintain_order=True).iter_rows(named=True):
        name, (slug, words) = key(row), option(row)
        counted = (
            f"Revision 3, zipf, {row['title']}, state kept for each session's blocks together, HBM {row['hbm_gib']:g} GiB, "
            f"turns {row['counted_from']:,} to {row['counted_from'] + row['turns'] - 1:,}"
        )
        for field, (_, definition) in FIELDS.items():
            found.append(simulated.mean(f"{name}.{field}", values[field][name], "%", 2, f"{definition}; {words}; {counted}"))
        if slug != "plain":
            plain = f"sim.rev3.options.plain.{row['policy']}"
            for field in ("hit", "prefix_hit"):
                about = f"{plain}.{field} subtracted from {name}.{field}; {words}; {counted}"
                found.append(simulated.difference(f"{name}.{field}_change", values[field][name], values[field][plain], "hit", about))
    return found


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        runs = compare(params.in_flight, params.floors_blocks, params.seeds, Shape(params.sessions, params.turns), params.counted_from)
        tables.EDGE_RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

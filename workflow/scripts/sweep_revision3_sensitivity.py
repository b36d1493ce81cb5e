"""Revision 3 under other workloads: one size changed at a time; one row a level, policy and seed."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import sensitivity, tables
from kvtier.workload.synthetic import Shape


def sweep(seeds: list[int], shape: Shape, counted_from: int) -> pl.DataFrame:
    return sensitivity.replay(shape, seeds, counted_from)


def level(row: Mapping[str, Any]) -> str:
    return f"sim.rev3.sensitivity.{row['factor']}.{row['level']}"


def key(row: Mapping[str, Any]) -> str:
    return f"{level(row)}.{row['policy']}"


def number(runs: pl.DataFrame) -> list[Number]:
    hits = simulated.by_seed(runs, key, "hit")
    over_budget = simulated.by_seed(runs, key, 100 * pl.col("over_budget_turns") / pl.col("turns"))
    found = []
    for row in runs.unique(["factor", "level", "policy"], keep="first", maintain_order=True).iter_rows(named=True):
        name, lru = key(row), f"{level(row)}.lru"
        counted = (
            f"Revision 3, zipf, of the published sizes but for this: {row['workload']}, HBM {row['hbm_gib']:g} GiB, "
            f"turns {row['counted_from']:,} to {row['counted_from'] + row['turns'] - 1:,}"
        )
        which = "the optimum, which knows all turns (Belady)" if row["policy"] == "min" else f"{row['title']}, state kept for each block"
        about = f"blocks read that were in HBM / blocks read; {which}; {counted}"
        found.append(simulated.mean(f"{name}.hit", hits[name], "%", 2, about))
        if name == lru:
            over = f"turns that read and generate more blocks than HBM holds / counted turns, the same under every policy; {counted}"
            found.append(simulated.mean(f"{level(row)}.over_budget", over_budget[name], "%", 1, over))
        else:
            margin = f"that of LRU subtracted from the hit rate of {which}; {counted}"
            found.append(simulated.difference(f"{name}.margin", hits[name], hits[lru], "hit", margin))
    return found


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        runs = sweep(params.seeds, Shape(params.sessions, params.turns), params.counted_from)
        tables.SENSITIVITY.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

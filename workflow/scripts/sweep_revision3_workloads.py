"""Revision 3 workloads (e3): one row a workload, policy and seed, with the optimum."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import PUBLISHED, slug


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev3.e3.{row['workload']}.{slug(row)}"


def number(runs: pl.DataFrame) -> list[Number]:
    hit = simulated.by_seed(runs, key, "hit")
    margins = [
        simulated.difference(
            f"sim.rev3.e3.{kind}.{policy.slug}.margin",
            hit[f"sim.rev3.e3.{kind}.{policy.slug}"],
            hit[f"sim.rev3.e3.{kind}.lru"],
            "hit",
            f"hit rate of {policy.title} minus that of LRU, e3, {kind}",
        )
        for kind in runs["workload"].unique(maintain_order=True)
        for policy in PUBLISHED[1:]
    ]
    return [*simulated.means(runs, key, ["hit", "cold"]), *margins, simulated.seed_count("sim.rev3.e3.seeds", runs, "e3")]


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

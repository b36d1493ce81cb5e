"""Revision 2 budget sweep (e1): one row a budget, policy and seed."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import LRU, PUBLISHED, slug

FIELDS = ["hit", "cxl", "cold", "stall", "recompute_share", "read_set_evictions"]


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev2.e1.{row['hbm_gib']:g}.{slug(row)}"


def number(runs: pl.DataFrame) -> list[Number]:
    means = simulated.means(runs, key, FIELDS)
    found, hit = simulated.by_key(means), simulated.by_seed(runs, key, "hit")
    margins = [
        simulated.difference(
            f"sim.rev2.e1.{gib:g}.{policy.slug}.margin",
            hit[f"sim.rev2.e1.{gib:g}.{policy.slug}"],
            hit[f"sim.rev2.e1.{gib:g}.{LRU.slug}"],
            "hit",
            f"hit rate of {policy.title} minus that of LRU, e1, HBM {gib:g} GiB",
        )
        for gib in runs["hbm_gib"].unique(maintain_order=True)
        for policy in PUBLISHED
        if policy != LRU
    ]
    hits = [value for key, value in found.items() if key.endswith(".hit")]
    shares = [value for key, value in found.items() if key.endswith(".recompute_share")]
    extremes = [
        simulated.extreme("sim.rev2.e1.hit.lowest", min, hits, "lowest mean hit rate of any budget and policy"),
        simulated.extreme("sim.rev2.e1.hit.highest", max, hits, "highest mean hit rate of any budget and policy"),
        simulated.extreme("sim.rev2.e1.recompute_share.lowest", min, shares, "lowest share of recomputation in the stall"),
        simulated.extreme("sim.rev2.e1.recompute_share.highest", max, shares, "highest share of recomputation in the stall"),
    ]
    return [*means, *margins, *extremes, simulated.seed_count("sim.rev2.e1.seeds", runs, "e1")]


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

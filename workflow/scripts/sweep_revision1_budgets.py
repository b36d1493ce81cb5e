"""Revision 1: hit rate against HBM budget, one row a budget, policy and seed."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import slug


def number(runs: pl.DataFrame) -> list[Number]:
    return simulated.means(runs, lambda row: f"sim.rev1.budgets.{row['hbm_gib']:g}.{slug(row)}", ["hit", "cold", "stall"])


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

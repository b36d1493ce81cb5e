"""Revision 2 alpha grid: one row an alpha, budget, seed and persistence."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import slug


def number(runs: pl.DataFrame) -> list[Number]:
    state = {False: "reset", True: "persistent"}
    return simulated.means(runs, lambda row: f"sim.rev2.grid.{row['hbm_gib']:g}.{slug(row)}.{state[row['persist_meta']]}", ["hit"])


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

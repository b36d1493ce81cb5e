"""Revision 1: the scan and loop workloads, one row a workload, policy and seed."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import sweeps, tables
from kvtier.simulate.policies import slug
from kvtier.workload.synthetic import Shape


def sweep(seeds: list[int], shape: Shape) -> pl.DataFrame:
    return sweeps.replay(sweeps.revision1_workloads(seeds), 1, shape, counted_from=0)


def number(runs: pl.DataFrame) -> list[Number]:
    return simulated.means(runs, lambda row: f"sim.rev1.workloads.{row['workload']}.{slug(row)}", ["hit"])


if __name__ == "__main__":
    with reporting(snakemake):
        runs = sweep(snakemake.params.seeds, Shape(snakemake.params.sessions, snakemake.params.turns))
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

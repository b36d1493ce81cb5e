"""Revision 1: where reads are served against the size of the CXL tier, one row a size and policy."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import sweeps, tables
from kvtier.simulate.policies import slug
from kvtier.workload.synthetic import Shape


def sweep(cxl_gib: list[float], shape: Shape) -> pl.DataFrame:
    return sweeps.replay(sweeps.revision1_cxl(cxl_gib), 1, shape, counted_from=0)


def number(runs: pl.DataFrame) -> list[Number]:
    return simulated.means(runs, lambda row: f"sim.rev1.cxl.{row['cxl_gib']:g}.{slug(row)}", ["hit", "cxl", "cold", "stall"])


if __name__ == "__main__":
    with reporting(snakemake):
        runs = sweep(snakemake.params.cxl_gib, Shape(snakemake.params.sessions, snakemake.params.turns))
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

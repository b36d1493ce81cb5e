"""Revision 2 alpha grid: one row an alpha, budget, seed and persistence."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import sweeps, tables
from kvtier.simulate.policies import slug
from kvtier.workload.synthetic import Shape


def sweep(alphas: list[float], budgets_gib: list[float], seeds: list[int], shape: Shape, counted_from: int) -> pl.DataFrame:
    return sweeps.replay(sweeps.revision2_alpha_grid(alphas, budgets_gib, seeds), 2, shape, counted_from)


def number(runs: pl.DataFrame) -> list[Number]:
    state = {False: "reset", True: "persistent"}
    return simulated.means(runs, lambda row: f"sim.rev2.grid.{row['hbm_gib']:g}.{slug(row)}.{state[row['persist_meta']]}", ["hit"])


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        shape = Shape(params.sessions, params.turns)
        runs = sweep(params.alphas, params.budgets_gib, params.seeds, shape, params.counted_from)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

"""Revision 2 alpha sweep (e2): one row an alpha, with LRU and LFU beside them."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import sweeps, tables
from kvtier.simulate.policies import slug
from kvtier.workload.synthetic import Shape


def sweep(alphas: list[float], shape: Shape, counted_from: int) -> pl.DataFrame:
    return sweeps.replay(sweeps.revision2_alphas(alphas), 2, shape, counted_from)


def number(runs: pl.DataFrame) -> list[Number]:
    means = simulated.means(runs, lambda row: f"sim.rev2.e2.{slug(row)}", ["hit"])
    found = simulated.by_key(means)
    best = max((value for key, value in found.items() if ".ema" in key), key=lambda value: value.value)
    best_alpha = next(row["alpha"] for row in runs.iter_rows(named=True) if row["hit_rate"] == best.value)
    return [
        *means,
        simulated.derived("sim.rev2.e2.best_alpha", best_alpha, "", 3, "alpha of the highest hit rate among those swept", [best]),
        simulated.difference(
            "sim.rev2.e2.best_margin", best, found["sim.rev2.e2.lru.hit"], "hit rate of the best alpha over LRU, same experiment"
        ),
    ]


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        runs = sweep(params.alphas, Shape(params.sessions, params.turns), params.counted_from)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

"""Revision 2 alpha sweep (e2): one row an alpha, with LRU and LFU beside them."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import slug


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev2.e2.{slug(row)}"


def number(runs: pl.DataFrame) -> list[Number]:
    hit = simulated.by_seed(runs, key, "hit")
    best = runs.filter(pl.col("policy") == "ema").sort("hit_rate", descending=True).row(0, named=True)
    margin = "hit rate of the best alpha of those swept minus that of LRU, e2"
    return [
        simulated.seed_count("sim.rev2.e2.seeds", runs, "e2"),
        *simulated.means(runs, key, ["hit"]),
        Number(
            "sim.rev2.e2.best_alpha",
            best["alpha"],
            "",
            2,
            Label.SIMULATED,
            f"alpha of the highest hit rate among those swept, one seed: {key(best)}.hit",
            status=Status.PROVISIONAL,
        ),
        simulated.difference("sim.rev2.e2.best_margin", hit[key(best)], hit["sim.rev2.e2.lru"], "hit", margin),
    ]


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

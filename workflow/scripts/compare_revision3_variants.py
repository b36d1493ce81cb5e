"""Revision 3, e4 to e6: cold against warm counting, dropped against kept state, exposed against hidden fetches; one row a run."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import slug

NAMES = {
    "e4cold": "e4.cold",
    "e4warm": "e4.warm",
    "e5loc": "e5.reset",
    "e5per": "e5.persistent",
    "e6no": "e6.exposed",
    "e6ov": "e6.overlap",
}


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev3.{NAMES[row['experiment']]}.{slug(row)}"


def number(runs: pl.DataFrame) -> list[Number]:
    fields = {"e4": ["hit", "stall"], "e5": ["hit"], "e6": ["stall", "fetch", "recompute_share"]}
    means = [
        value
        for name, wanted in fields.items()
        for value in simulated.means(runs.filter(pl.col("experiment").str.starts_with(name)), key, wanted)
    ]
    hit = simulated.by_seed(runs.filter(pl.col("experiment").str.starts_with("e5")), key, "hit")
    gains = [
        simulated.difference(
            f"{kept.replace('.persistent.', '.gain.')}.hit",
            values,
            hit[kept.replace(".persistent.", ".reset.")],
            "hit",
            f"hit rate with state kept at eviction minus with state dropped, e5: {kept} minus the same under reset",
        )
        for kept, values in hit.items()
        if ".persistent." in kept
    ]
    return [*means, *gains, simulated.seed_count("sim.rev3.e5.seeds", runs, "e4 to e6")]


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

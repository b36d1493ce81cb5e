"""Revision 3, e2: alpha against budget and persistence, with LRU, LFU and the optimum; one row a budget, policy and seed."""

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
    return f"sim.rev3.e2.{row['hbm_gib']:g}.{'persistent' if row['persist_meta'] else 'reset'}.{slug(row)}"


def number(runs: pl.DataFrame) -> list[Number]:
    found = simulated.means(runs, key, ["hit"])
    value = simulated.by_key(found)
    hit = simulated.by_seed(runs, key, "hit")
    best = []
    for gib in runs["hbm_gib"].unique(maintain_order=True):
        for state in ("reset", "persistent"):
            start = f"sim.rev3.e2.{gib:g}.{state}"
            emas = {name.removesuffix(".hit"): number for name, number in value.items() if name.startswith(f"{start}.ema")}
            top = max(emas, key=lambda name: emas[name].value)
            alpha = runs.filter(pl.col("policy") == "ema").filter(pl.col("alpha").is_not_null()).select("alpha", "policy").unique()
            chosen = next(a for a in alpha["alpha"].sort().to_list() if top.endswith(f".{slug({'policy': 'ema', 'alpha': a})}"))
            about = f"alpha of the highest mean hit rate of those swept, HBM {gib:g} GiB, state {state}: {top}.hit"
            best.append(Number(f"{start}.best_alpha", chosen, "", 3, Label.SIMULATED, about, status=Status.PROVISIONAL))
            margin = f"hit rate of the best alpha of those swept minus that of LRU, HBM {gib:g} GiB, state {state}"
            best.append(simulated.difference(f"{start}.best_margin", hit[top], hit[f"sim.rev3.e2.{gib:g}.reset.lru"], "hit", margin))
    return [*found, *best]


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

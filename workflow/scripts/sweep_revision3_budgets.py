"""Revision 3 budget sweep (e1): one row a budget, policy and seed; with kept state and the optimum."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated, statistics
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import Policy, slug

FIELDS = ["hit", "cold", "stall", "recompute_share", "read_set_evictions"]
PUBLISHED_SEEDS = 2


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev3.e1.{row['hbm_gib']:g}.{slug(row)}{'_persistent' * row['persist_meta']}"


def number(runs: pl.DataFrame) -> list[Number]:
    hit = simulated.by_seed(runs, key, "hit")
    compared, p_values = [], {}
    for row in runs.unique(["hbm_gib", "policy", "alpha", "persist_meta"], keep="first", maintain_order=True).iter_rows(named=True):
        name, gib = key(row), f"sim.rev3.e1.{row['hbm_gib']:g}"
        lru, optimum = hit[f"{gib}.lru"], hit[f"{gib}.min"]
        if row["policy"] == "lru":
            continue
        title = (
            "the optimum"
            if row["policy"] == "min"
            else Policy(row["policy"], row["alpha"]).title + " with kept state" * row["persist_meta"]
        )
        margin = f"hit rate of {title} minus that of LRU, e1, HBM {row['hbm_gib']:g} GiB"
        compared.append(simulated.difference(f"{name}.margin", hit[name], lru, "hit", margin))
        if row["policy"] == "min":
            continue
        if all(optimum[seed] > lru[seed] for seed in lru):
            regret = {seed: (optimum[seed] - hit[name][seed]) / (optimum[seed] - lru[seed]) for seed in lru}
            about = f"(optimum - {title}) / (optimum - LRU), hit rates, e1, HBM {row['hbm_gib']:g} GiB: 0 is the optimum, 1 is LRU"
            compared.append(simulated.mean(f"{name}.regret", regret, "", 2, about))
        differences = statistics.paired(hit[name], lru)
        if len(differences) > 1:
            p_values[f"{name}.margin_p"] = statistics.sign_flip_p(differences)
            if not row["persist_meta"]:
                seen = statistics.detectable(statistics.standard_deviation(differences), PUBLISHED_SEEDS)
                about = (
                    f"smallest true margin of {title} over LRU that {PUBLISHED_SEEDS} seeds would have shown four times in five, at 5 %; "
                    f"from the spread between {simulated.named(lru)}, taken as normal; HBM {row['hbm_gib']:g} GiB"
                )
                compared.append(Number(f"{name}.detectable", seen, "points", 1, Label.SIMULATED, about, status=Status.PROVISIONAL))
    family = f"sign-flip test of the margins over LRU of e1, Holm's adjustment over {len(p_values)} of them"
    tests = [
        simulated.p_value(name, p, f"p-value of {name.removesuffix('_p')}: {family}")
        for name, p in (statistics.holm(p_values) if p_values else {}).items()
    ]
    means = simulated.means(runs, key, FIELDS)
    return [*means, *compared, *tests, simulated.seed_count("sim.rev3.e1.seeds", runs, "e1")]


if __name__ == "__main__":
    with reporting(snakemake):
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

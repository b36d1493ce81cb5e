"""Revision 3 policy family: one row a budget, policy and seed; how far each is from LRU and from the optimum."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated, statistics
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import families, tables
from kvtier.workload.synthetic import Shape

STATE = "state kept for each session's blocks together (not for each block, as in e1)"


def sweep(windows_turns: list[int], budgets_gib: list[float], seeds: list[int], shape: Shape, counted_from: int) -> pl.DataFrame:
    return families.replay(families.policy_runs(windows_turns, budgets_gib, seeds), shape, counted_from)


def key(row: Mapping[str, Any]) -> str:
    return f"sim.rev3.family.{row['hbm_gib']:g}.{row['policy']}"


def number(runs: pl.DataFrame) -> list[Number]:
    hits = simulated.by_seed(runs, key, "hit")
    over_budget = simulated.by_seed(runs, key, 100 * pl.col("over_budget_turns") / pl.col("turns"))
    found, p_values = [], {}
    for row in runs.unique(["hbm_gib", "policy"], keep="first", maintain_order=True).iter_rows(named=True):
        name, budget, title = key(row), f"sim.rev3.family.{row['hbm_gib']:g}", row["title"]
        hit, lru, optimum = hits[name], hits[f"{budget}.lru"], hits[f"{budget}.min"]
        last = row["counted_from"] + row["turns"] - 1
        counted = f"Revision 3, zipf, HBM {row['hbm_gib']:g} GiB, turns {row['counted_from']:,} to {last:,}"
        which = "the optimum, which knows all turns (Belady)" if row["policy"] == "min" else f"{title}, {STATE}"
        about = f"blocks read that were in HBM / blocks read; {which}; {counted}"
        found.append(simulated.mean(f"{name}.hit", hit, "%", 2, about))
        if row["policy"] == "lru":
            over = f"turns that read and generate more blocks than HBM holds / counted turns, the same under every policy; {counted}"
            found.append(simulated.mean(f"{budget}.over_budget", over_budget[name], "%", 1, over))
            continue
        margin = f"that of LRU subtracted from the hit rate of {which}; {counted}"
        found.append(simulated.difference(f"{name}.margin", hit, lru, "hit", margin))
        if row["policy"] == "min":
            continue
        if all(optimum[seed] > lru[seed] for seed in lru):
            regret = {seed: (optimum[seed] - hit[seed]) / (optimum[seed] - lru[seed]) for seed in lru}
            about = f"(optimum - {title}) / (optimum - LRU), hit rates: 0 is the optimum, 1 is LRU; {STATE}; {counted}"
            found.append(simulated.mean(f"{name}.regret", regret, "", 2, about))
        if len(hit) > 1:
            p_values.setdefault(row["hbm_gib"], {})[name] = statistics.sign_flip_p(statistics.paired(hit, lru))
    for gib, family in p_values.items():
        about = f"sign-flip test of the margin over LRU, Holm's adjustment over the family's {len(family)} policies at {gib:g} GiB; {STATE}"
        found += [simulated.p_value(f"{name}.p", p, f"p-value of {name}.margin: {about}") for name, p in statistics.holm(family).items()]
    return [*found, simulated.seed_count("sim.rev3.family.seeds", runs, "the policy family")]


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        shape = Shape(params.sessions, params.turns)
        runs = sweep(params.windows_turns, params.budgets_gib, params.seeds, shape, params.counted_from)
        tables.EDGE_RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, number(runs), snakemake)

"""Revision 3 ablation: all 64 settings of six mechanisms, their effects, and whether gains add up as the retracted ladder had it."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import ablation
from kvtier.simulate.ablation import CELLS, FACTORS
from kvtier.simulate.factorial import Factorial
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import ema
from kvtier.simulate.sweeps import SIMULATED_CXL_GIB, SIMULATED_HBM_GIB
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape

RESPONSES = {
    "": ("hit_rate", "%", 2, "block hit rate: blocks read that were in HBM / blocks read"),
    "_prefix_hit": (
        "prefix_hit_rate",
        "%",
        2,
        "contiguous-prefix hit rate: blocks read that were in HBM with all that precede them / blocks read",
    ),
    "_stall": ("stall_ms", "ms", 1, f"stall, so that less is better: fetch and recompute time / counted turns; {simulated.COSTS}"),
}
"""End of a key to column, unit, decimals and definition."""

TITLES = {
    "persistence": "scores that outlast eviction",
    "ema": "EMA instead of LRU",
    "anchors": "the first 7 blocks of each session kept in HBM",
    "suffix_first": "eviction of the deepest block first instead of the first",
    "prefetch": "prefetch of the next turn's session, which is known, hidden behind decode",
    "exclusive": "a tier that gives up what it lends",
}

LADDER = ("anchors", "ema", "prefetch")
"""Rungs of the retracted ladder that the simulator has; tracking by head, its fourth, has no counterpart in a model without attention."""


def ablate(sessions: int, turns: int, counted_from: int, seeds: list[int], alphas: list[float]) -> pl.DataFrame:
    hbm, tier = capacity_blocks(SIMULATED_HBM_GIB), capacity_blocks(SIMULATED_CXL_GIB)
    shape = Shape(sessions, turns)
    return pl.concat(ablation.ablate(synthetic.generate("zipf", seed, shape), seed, hbm, tier, alphas, counted_from) for seed in seeds)


def number(cells: pl.DataFrame) -> list[Number]:
    alphas = cells["alpha"].unique(maintain_order=True).to_list()
    made = []
    for alpha in alphas:
        name = "sim.rev3.ablation" + (f".{ema(alpha).slug}" if alpha != alphas[0] else "")
        responses = RESPONSES if alpha == alphas[0] else {"": RESPONSES[""]}
        made += effects_of(cells.filter(pl.col("alpha") == alpha), name, alpha, responses)
    aliased = cells.filter(pl.col("aliased"))
    return [
        *made,
        simulated.seed_count("sim.rev3.ablation.seeds", cells, "the ablation"),
        Number(
            "sim.rev3.ablation.aliased",
            aliased.select(FACTORS).n_unique(),
            "cells",
            0,
            Label.SIMULATED,
            "cells of 64 with persistence and LRU: LRU has no score to keep, so each is its neighbour without persistence by definition",
            status=Status.PROVISIONAL,
        ),
    ]


def effects_of(cells: pl.DataFrame, prefix: str, alpha: float, responses: dict[str, tuple[str, str, int, str]]) -> list[Number]:
    first, turns = cells.row(0, named=True)["counted_from"], cells.row(0, named=True)["turns"]
    setting = (
        f"Revision 3, zipf, state by session, EMA alpha {alpha:g}, HBM {SIMULATED_HBM_GIB:g} GiB, CXL {SIMULATED_CXL_GIB:g} GiB, "
        f"turns {first:,} to {first + turns - 1:,}"
    )
    made = []
    for end, (column, unit, digits, counted) in responses.items():
        effects = {
            seed: Factorial(FACTORS, {frozenset(name for name in FACTORS if row[name]): row[column] for row in group.to_dicts()})
            for (seed,), group in cells.group_by("seed", maintain_order=True)
        }
        points = "points" if unit == "%" else unit

        def add(
            key: str, words: str, of: Callable[[Factorial], Fraction], effects=effects, counted=counted, digits=digits, unit=points
        ) -> None:
            by_seed = {seed: float(of(effect)) for seed, effect in effects.items()}
            made.append(simulated.mean(f"{prefix}.{key}", by_seed, unit, digits, f"{words}; {counted}; {setting}"))

        for cell, on in (("none", frozenset()), ("all", frozenset(FACTORS))):
            level = cells.filter(pl.all_horizontal(pl.col(name) == (name in on) for name in FACTORS))
            values = dict(level.select("seed", column).iter_rows())
            about = f"{'all six mechanisms' if on else 'none of the six mechanisms'}; {counted}; {setting}"
            made.append(simulated.mean(f"{prefix}.{cell}{end or '_hit'}", values, unit, digits, about))
        for one in FACTORS:
            title = TITLES[one]
            add(f"{one}.main{end}", f"main effect of {title}, mean over 32 settings of the others", lambda e, one=one: e.main(one))
            add(f"{one}.shapley{end}", f"Shapley share of {title} in the gain of all six", lambda e, one=one: e.shapley(one))
            add(f"{one}.alone{end}", f"what {title} adds to none of the six", lambda e, one=one: e.gain({one}))
            add(f"{one}.last{end}", f"what {title} adds to the other five", lambda e, one=one: e.last(one))
        words = f"what {TITLES['persistence']} add to EMA, with none of the others"
        add(f"persistence.with_ema{end}", words, lambda e: e.gain({"ema", "persistence"}) - e.gain({"ema"}))
        pairs = []
        for one, other in combinations(FACTORS, 2):
            words = f"what {TITLES[one]} adds with {TITLES[other]} less what it adds without, mean over 16 settings of the rest"
            add(f"interaction.{one}_{other}{end}", words, lambda e, one=one, other=other: e.interaction(one, other))
            pairs.append(made[-1])
        made.append(
            simulated.extreme(
                f"{prefix}.interaction.largest{end}",
                lambda among, key: max(among, key=lambda found: abs(key(found))),
                pairs,
                f"interaction of two mechanisms that is farthest from 0, of {len(pairs)}",
            )
        )
        add(f"total{end}", "what all six add to none", lambda e: e.total)
        for name, among in (("additivity", FACTORS), ("ladder", LADDER)):
            which = "the six" if among == FACTORS else "three of the retracted ladder's mechanisms (anchors, EMA, prefetch)"
            add(f"{name}.sum{end}", f"sum of what {which} add one by one to none", lambda e, among=among: e.gap(among) + e.gain(among))
            add(f"{name}.joint{end}", f"what {which} add to none together", lambda e, among=among: e.gain(among))
            words = f"sum of what {which} add one by one less what they add together, seed by seed; 0 if gains add up as the ladder had it"
            add(f"{name}.gap{end}", words, lambda e, among=among: e.gap(among))
    return made


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        cells = ablate(params.sessions, params.turns, params.counted_from, params.seeds, params.alphas)
        CELLS.write(cells, snakemake.output.cells)
        numbers.write(snakemake.output.numbers, number(cells), snakemake)

"""Simulated numbers again: integers of the published records for Revision 2, whole replays of this folder for Revisions 1 and 3.

That the records of Revision 2 are what a replay makes is shown beside, in test_second_opinion.py: some of them on every run, all with
``-m exhaustive``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from statistics import NormalDist

import numpy as np

from second_opinion import replays, workloads
from second_opinion.registry import ROOT, second_opinion, value
from second_opinion.replays import EMA, LFU, LRU

SEEDS_REVISION3 = range(1, 31)
FETCH_US = Fraction(5 * 2**20, 64_000) + Fraction(3, 10)
"""5 MiB at 64 GB/s, and 300 ns [µs]."""
RECOMPUTE_US = Fraction(2 * 70 * 16 * 10**9, 125 * 10**6)
"""16 tokens of a model of 70 B parameters at 125 TFLOP/s [µs]."""


def alpha_of(word: str) -> float:
    """``ema005`` is 0.05, ``ema0001`` 0.001."""
    digits = word.removeprefix("ema0")
    return int(digits) / 10 ** len(digits)


def policy_of(word: str) -> tuple[int, float]:
    return {"lru": (LRU, 0.5), "lfu": (LFU, 0.5)}.get(word) or (EMA, alpha_of(word))


@cache
def records(name: str) -> dict:
    return json.loads((ROOT / f"data/{name}.json").read_text(encoding="utf-8"))


def title(word: str) -> str:
    return word.upper() if word in ("lru", "lfu") else f"EMA a={alpha_of(word):g}"


def blocks_read(kind: str, seed: int) -> int:
    """In the counted turns."""
    workload = workloads.draw(kind, seed)
    return int(workloads.PREFIX_BLOCKS * workloads.WARM + workload.before[workloads.WARM :].sum())


def whole(rate: float, kind: str, seed: int) -> int:
    """Blocks behind a recorded rate: a whole number, or the record is not of this workload."""
    blocks = rate * blocks_read(kind, seed) / 100
    assert abs(blocks - round(blocks)) < 1e-6, (rate, kind, seed)
    return round(blocks)


def hit_rate(rate: float, kind: str, seed: int) -> Fraction:
    """Percent, from the integers behind a recorded rate."""
    return Fraction(100 * whole(rate, kind, seed), blocks_read(kind, seed))


def mean(rates: Iterable[Fraction]) -> Fraction:
    found = list(rates)
    return sum(found, Fraction()) / len(found)


def recorded(experiment: str, policy: str, *middle: str) -> list[Fraction]:
    """Hit rate of each seed of a cell of Revision 2."""
    seeds = {"e1": (1, 2), "e3": (1, 2, 3)}.get(experiment, (1,))
    name = f"{alpha_of(policy):g}" if experiment == "e2" and policy.startswith("ema") else title(policy)
    found = []
    for seed in seeds:
        key = "|".join([experiment, *middle, name, *([str(seed)] if experiment in ("e1", "e3") else [])])
        found.append(hit_rate(records("results_v2")[key]["hit_rate"], middle[0] if experiment == "e3" else "zipf", seed))
    return found


BUDGETS = ("8", "16", "32", "64", "128")
POLICIES = ("lru", "lfu", "ema015", "ema001")
ALPHAS = ("ema05", "ema03", "ema015", "ema005", "ema001", "ema0003", "ema0001")


@second_opinion("sim.rev2.e1.*.hit", "sim.rev2.e1.*.margin")
def revision2_budgets(key: str):
    _, _, _, budget, policy, form = key.split(".")
    rate, base = mean(recorded("e1", policy, budget)), mean(recorded("e1", "lru", budget))
    return float(rate - base if form == "margin" else rate)


@second_opinion("sim.rev2.e1.hit.lowest", "sim.rev2.e1.hit.highest")
def revision2_range(key: str):
    rates = [mean(recorded("e1", policy, budget)) for policy in POLICIES for budget in BUDGETS]
    return float({"lowest": min, "highest": max}[key.split(".")[-1]](rates))


def share_of_recompute(fetched: int, recomputed: int) -> float:
    """Percent of the stall, from blocks and the two costs."""
    recompute = recomputed * RECOMPUTE_US
    return float(100 * recompute / (recompute + fetched * FETCH_US))


def recorded_share(key: str, seed: int) -> float:
    record = records("results_v2")[key]
    return share_of_recompute(whole(record["cxl_rate"], "zipf", seed), whole(record["cold_rate"], "zipf", seed))


@second_opinion("sim.rev2.e1.recompute_share.*")
def revision2_recompute_range(key: str):
    cells = [
        sum(recorded_share(f"e1|{budget}|{title(policy)}|{seed}", seed) for seed in (1, 2)) / 2 for policy in POLICIES for budget in BUDGETS
    ]
    return {"lowest": min, "highest": max}[key.split(".")[-1]](cells)


@second_opinion("sim.rev2.e6.exposed.*.recompute_share")
def revision2_recompute(key: str):
    return recorded_share(f"e6no|{title(key.split('.')[4])}", 1)


@second_opinion("sim.rev2.e2.*.hit")
def revision2_alphas(key: str):
    return float(mean(recorded("e2", key.split(".")[3])))


def best_alpha() -> str:
    return max(ALPHAS, key=lambda policy: mean(recorded("e2", policy)))


@second_opinion("sim.rev2.e2.best_alpha", "sim.rev2.e2.best_margin")
def revision2_best(key: str):
    best = best_alpha()
    return alpha_of(best) if key.endswith("alpha") else float(mean(recorded("e2", best)) - mean(recorded("e2", "lru")))


@second_opinion("sim.rev2.e3.*.*.hit")
def revision2_workloads(key: str):
    _, _, _, kind, policy, _ = key.split(".")
    return float(mean(recorded("e3", policy, kind)))


@second_opinion("sim.rev2.e5.reset.*.hit", "sim.rev2.e5.persistent.*.hit", "sim.rev2.e5.gain.*.hit")
def revision2_persistence(key: str):
    _, _, _, form, policy, _ = key.split(".")
    reset, persistent = mean(recorded("e5loc", policy)), mean(recorded("e5per", policy))
    return float({"reset": reset, "persistent": persistent, "gain": persistent - reset}[form])


@second_opinion("sim.rev2.e2.seeds", "sim.rev2.e4.seeds", "sim.rev2.e5.seeds", "sim.rev2.e6.seeds")
def revision2_seeds(key: str):
    """One record a cell, and no seed in its key: no cell can have a second."""
    experiment = key.split(".")[2]
    found = [name.split("|")[1:] for name in records("results_v2") if name.startswith(experiment)]
    assert found
    assert all(len(rest) == 1 for rest in found)
    return 1


@second_opinion("sim.rev2.grid.*.hit")
def revision2_grid(key: str):
    _, _, _, budget, policy, form, _ = key.split(".")
    cells = [(f"{alpha_of(policy):g}|{budget}|{seed}|{form == 'persistent'}", seed) for seed in (1, 2)]
    return float(mean(hit_rate(records("alpha_grid")[cell], "zipf", seed) for cell, seed in cells))


@cache
def revision2(kind: str, seed: int, policy: str, budget: int, persistent: bool = False) -> np.ndarray:
    return replays.revision2(workloads.draw(kind, seed), *policy_of(policy), budget, persistent)


def own_share(counts: np.ndarray) -> float:
    """Evictions from what the turn reads, percent of all, over all turns."""
    return 100 * int(counts[:, 4].sum()) / int(counts[:, 3].sum())


@second_opinion("sim.rev2.e1.32.lru.read_set_evictions", "sim.rev2.e5.reset.*.read_set_evictions")
def revision2_own_evictions(key: str):
    _, _, experiment, _, policy, _ = key.split(".")
    seeds = (1, 2) if experiment == "e1" else (1,)
    return sum(own_share(revision2("zipf", seed, policy, 32)) for seed in seeds) / len(seeds)


def every_revision2() -> set[tuple[str, int, str, int, bool]]:
    """Distinct simulations behind the records: (kind, seed, policy, budget, whether state persists)."""
    alphas = {f"{alpha_of(word):g}": word for word in (*ALPHAS, "ema008", "ema003")}
    found = set()
    for key, record in records("results_v2").items():
        parts = key.split("|")
        seed = int(parts[-1]) if parts[0] in ("e1", "e3") else 1
        policy = alphas[f"{record['alpha']:g}"] if record["policy"] == "ema" else record["policy"]
        found.add((parts[1] if parts[0] == "e3" else "zipf", seed, policy, record["hbm_gib"], record["persist_meta"]))
    for key in records("alpha_grid"):
        alpha, budget, seed, persistent = key.split("|")
        found.add(("zipf", int(seed), alphas[alpha], int(budget), persistent == "True"))
    return found


@second_opinion("audit.lossless.rev2.failed", exhaustive=True)
def revision2_breaks_its_rule(_: str):
    """Evictions from what a turn reads, over a replay of every distinct simulation."""
    return sum(int(revision2(*simulation)[:, 4].sum()) for simulation in sorted(every_revision2()))


def renumbered_rate(policy: str, number: np.ndarray) -> float:
    workload = workloads.renumbered(workloads.draw("zipf", 1), number)
    counts = replays.revision2(workload, *policy_of(policy), 32)[workloads.WARM :].sum(axis=0)
    return float(Fraction(100 * int(counts[0]), int(counts[:3].sum())))


@cache
def renumbered_backwards(policy: str) -> float:
    return renumbered_rate(policy, np.arange(workloads.SESSIONS)[::-1])


@second_opinion(*(f"sim.rev2.renumbered.{policy}.{end}" for policy in ("lru", "ema015", "ema001") for end in ("lowest", "highest")))
def renumbered_in_vain(key: str):
    """Sessions in reverse: a permutation that the build does not try. Ties stay inside a session, so that it moves nothing."""
    return renumbered_backwards(key.split(".")[3])


@cache
def renumbered_lfu() -> list[float]:
    """The build's permutations: numpy's generator with the seed of rule renumber_revision2_sessions, 1."""
    rng = np.random.default_rng(1)
    return [renumbered_rate("lfu", rng.permutation(workloads.SESSIONS)) for _ in range(100)]


@second_opinion("sim.rev2.renumbered.lfu.*", exhaustive=True)
def renumbered(key: str):
    return {"lowest": min, "highest": max}[key.split(".")[-1]](renumbered_lfu())


@cache
def revision1_rate(kind: str, policy: str, budget: int, seed: int) -> Fraction:
    counts = replays.revision1(workloads.draw(kind, seed, growing=False), *policy_of(policy), budget).sum(axis=0)
    return Fraction(100 * int(counts[0]), int(counts[:3].sum()))


@second_opinion("sim.rev1.budgets.*.hit")
def revision1_budgets(key: str):
    _, _, _, budget, policy, _ = key.split(".")
    return float(mean(revision1_rate("zipf", policy, int(budget), seed) for seed in (1, 2)))


@second_opinion("sim.rev1.workloads.*.hit")
def revision1_workloads(key: str):
    _, _, _, kind, policy, _ = key.split(".")
    return float(mean(revision1_rate(kind, policy, 32, seed) for seed in (1, 2, 3)))


@second_opinion("sim.rev1.alphas.*.hit")
def revision1_alphas(key: str):
    return float(revision1_rate("zipf", key.split(".")[3], 32, 1))


@cache
def revision3_rates(kind: str, policy: str, budget: int, persistent: bool = False, by_session: bool = False) -> list[Fraction]:
    """Hit rate of each seed."""
    found = []
    for seed in SEEDS_REVISION3:
        workload = workloads.draw(kind, seed)
        if policy == "min":
            counts = replays.optimum(workload, budget, workloads.WARM)
        else:
            counts = replays.revision3(workload, *policy_of(policy), budget, persistent, by_session)
        counted = counts[workloads.WARM :].sum(axis=0)
        found.append(Fraction(100 * int(counted[0]), int(counted.sum())))
    return found


def difference(rates: list[Fraction], base: list[Fraction]) -> list[Fraction]:
    """Seed by seed."""
    return [rate - other for rate, other in zip(rates, base, strict=True)]


def by_seed(key: str) -> list[Fraction]:
    """What each of the thirty seeds gives for a cell of Revision 3, a margin over LRU or a gain."""
    _, _, experiment, first, policy, form = key.split(".")
    if experiment == "e5":
        return difference(revision3_rates("zipf", policy, 32, True), revision3_rates("zipf", policy, 32))
    kind, budget = (first, 32) if experiment == "e3" else ("zipf", int(first))
    base = revision3_rates(kind, "lru", budget)
    if experiment == "family":
        # State by session. Under LRU all blocks of a session have one key either way.
        rates = revision3_rates(kind, policy.removesuffix("_persistent"), budget, policy.endswith("_persistent"), True)
    else:
        rates = revision3_rates(kind, policy, budget)
    return difference(rates, base) if form == "margin" else rates


@second_opinion(
    *(f"sim.rev3.{experiment}.*.{form}" for experiment in ("e1", "e3") for form in ("hit", "margin")),
    "sim.rev3.e5.gain.*.hit",
    *(f"sim.rev3.family.*.{policy}" for policy in ("lfu.hit", "lfu.margin", "lfu_persistent.hit")),
)
def revision3(key: str):
    return float(mean(by_seed(key)))


@second_opinion("sim.rev3.e1.*.lru.recompute_share")
def revision3_recompute(key: str):
    """With a tier below, block by block."""
    budget, shares = int(key.split(".")[3]), []
    for seed in SEEDS_REVISION3:
        counts = replays.revision3(workloads.draw("zipf", seed), *policy_of("lru"), budget, cxl_gib=replays.CXL_GIB)
        _, fetched, recomputed = counts[workloads.WARM :].sum(axis=0).tolist()
        shares.append(share_of_recompute(fetched, recomputed))
    return sum(shares) / len(shares)


@second_opinion("sim.rev3.e1.seeds")
def revision3_seeds(_: str):
    """As many as the mean of 32 GiB needs: with one seed more or less it is another number."""
    rates = revision3_rates("zipf", "lru", 32)
    stated = value("sim.rev3.e1.32.lru.hit")
    return next(count for count in range(len(rates), 0, -1) if abs(float(mean(rates[:count])) - stated) < 1e-9)


@second_opinion("sim.rev3.e2.32.reset.best_alpha", "sim.rev3.e2.32.reset.best_margin")
def revision3_best(key: str):
    best = max(ALPHAS, key=lambda policy: mean(revision3_rates("zipf", policy, 32)))
    if key.endswith("alpha"):
        return alpha_of(best)
    return float(mean(revision3_rates("zipf", best, 32)) - mean(revision3_rates("zipf", "lru", 32)))


def interval(sample: list[Fraction], resamples: int = 20_000) -> tuple[float, float]:
    """Of the mean, 95 %: bias-corrected and accelerated bootstrap (Efron 1987), with draws of its own."""
    values = np.array([float(each) for each in sample])
    normal, rng = NormalDist(), np.random.default_rng(20261130)
    means = np.sort(values[rng.integers(0, len(values), size=(resamples, len(values)))].mean(axis=1))
    bias = normal.inv_cdf(float((means < values.mean()).mean()))
    apart = (values - values.mean()) / (len(values) - 1)
    acceleration = float((apart**3).sum() / (6 * (apart**2).sum() ** 1.5))

    def end(tail: float) -> float:
        away = bias + normal.inv_cdf(tail)
        return float(means[int(resamples * normal.cdf(bias + away / (1 - acceleration * away)))])

    return end(0.025), end(0.975)


MECHANISMS = ("suffix_first", "ema", "persistence", "anchors", "prefetch", "exclusive")


@second_opinion("sim.rev3.ablation.additivity.sum")
def ablation_sum(_: str):
    return sum(value(f"sim.rev3.ablation.{mechanism}.alone") for mechanism in MECHANISMS)


@second_opinion("sim.rev3.ablation.additivity.joint")
def ablation_joint(_: str):
    """All six, less none of them: what none gives is replayed here, since which end of a session goes does not move its block hits."""
    return value("sim.rev3.ablation.all_hit") - float(mean(revision3_rates("zipf", "lru", 32)[:10]))


@second_opinion("workload.zipf.footprint.*")
def footprint(key: str):
    """GiB of the prefix and all contexts, summed in tokens of whole blocks."""
    workload = workloads.draw("zipf", 1)
    blocks = workloads.PREFIX_BLOCKS + int(workload.context.sum()) + (int(workload.growth.sum()) if key.endswith("last") else 0)
    return blocks * 5 / 1024


@second_opinion("workload.zipf.over_budget.*")
def over_budget(key: str):
    _, _, _, budget, form = key.split(".")
    shares = []
    for seed in (1, 2):
        workload = workloads.draw("zipf", seed)
        read = (workloads.PREFIX_BLOCKS + workload.before)[workloads.WARM :]
        over = read + workload.growth[workloads.WARM :] > workloads.capacity(int(budget))
        shares.append(Fraction(int(read[over].sum()), int(read.sum())) if form == "reads" else Fraction(int(over.sum()), len(over)))
    return float(100 * mean(shares))


def missed_at_once(hits: np.ndarray, workload: workloads.Workload, budget: int) -> int:
    """Blocks that the turn just before has read or made, that fit, and that a session misses when it comes twice in a row."""
    again = np.flatnonzero(workload.session[1:] == workload.session[:-1]) + 1
    there = np.minimum(workload.before[again], max(workloads.capacity(budget) - workloads.PREFIX_BLOCKS, 0)) + workloads.PREFIX_BLOCKS
    return int((there - np.minimum(hits[again], there)).sum())


@second_opinion("audit.lossless.rev3.failed")
def revision3_keeps_its_rule(_: str):
    """What follows from the rule: a session that comes twice in a row finds all that fits. Replays that equal the build's in every hit."""
    return sum(
        missed_at_once(replays.revision3(workloads.draw("zipf", seed), *policy_of(policy), 32)[:, 0], workloads.draw("zipf", seed), 32)
        for policy in POLICIES
        for seed in range(1, 6)
    )


@cache
def audited(revision: str, policy: str) -> tuple[int, int]:
    workload = workloads.draw("zipf", 1, growing=False, sessions=60, turns=250)
    kind, alpha = policy_of(policy)
    return replays.audited_revision1(workload, kind, alpha, 8) if revision == "rev1" else replays.audited_revision2(workload, alpha, 8)


@second_opinion(*(
    f"audit.victims.{cell}.{form}"
    for cell in ("rev1.lfu", "rev1.ema015", "rev1.ema001", "rev2.ema015", "rev2.ema001")
    for form in ("evictions", "wrong")
))  # fmt: skip
def victims(key: str):
    _, _, revision, policy, form = key.split(".")
    return audited(revision, policy)[form == "wrong"]

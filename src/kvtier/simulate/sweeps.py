"""The experiments of the three revisions as lists of runs (SPEC §4 and §5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars as pl

from kvtier.simulate import blocks, engine, revision3, tables
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.metrics import TurnCounts, capacity_blocks, summarise
from kvtier.simulate.policies import LFU, LRU, MIN, PUBLISHED, Policy, ema
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape
from kvtier.workload.turns import Turns

SIMULATED_HBM_GIB = 32.0
"""HBM of every experiment that does not sweep it [GiB]."""

SIMULATED_CXL_GIB = 512.0
"""CXL tier of every experiment that does not sweep it [GiB]."""


@dataclass(frozen=True)
class Run:
    """One simulation: a workload, a policy, two capacities, and how it is reported."""

    experiment: str
    policy: Policy
    workload: str = "zipf"
    seed: int = 1
    hbm_gib: float = SIMULATED_HBM_GIB
    cxl_gib: float = SIMULATED_CXL_GIB
    warm: bool = True
    overlap: bool = False

    @property
    def simulation(self) -> tuple[str, int, Policy, float, float]:
        """Workload, seed, policy, HBM and CXL [GiB]: what is replayed. Runs that agree here differ in how they are reported only."""
        return self.workload, self.seed, self.policy, self.hbm_gib, self.cxl_gib


def revision2_budgets(budgets_gib: Sequence[float], seeds: Sequence[int]) -> list[Run]:
    """e1: hit rate against HBM budget."""
    return [Run("e1", policy, seed=seed, hbm_gib=gib) for gib in budgets_gib for policy in PUBLISHED for seed in seeds]


def revision2_alphas(alphas: Sequence[float]) -> list[Run]:
    """e2: hit rate against alpha, with LRU and LFU."""
    return [Run("e2", policy) for policy in (*map(ema, alphas), LRU, LFU)]


def revision2_workloads(seeds: Sequence[int]) -> list[Run]:
    """e3: three workloads."""
    return [Run("e3", policy, workload=kind, seed=seed) for kind in synthetic.KINDS for policy in PUBLISHED for seed in seeds]


def revision2_warmup() -> list[Run]:
    """e4: all turns counted, against warm turns only."""
    return [Run(name, policy, warm=warm) for name, warm in (("e4cold", False), ("e4warm", True)) for policy in PUBLISHED]


def revision2_persistence() -> list[Run]:
    """e5: a block's state dropped at eviction, against kept."""
    policies = (LFU, ema(0.15), ema(0.01))
    return [
        Run(name, replace(policy, persistent=persistent)) for name, persistent in (("e5loc", False), ("e5per", True)) for policy in policies
    ]


def revision2_overlap() -> list[Run]:
    """e6: fetches exposed, against hidden behind decode."""
    return [Run(name, policy, overlap=overlap) for name, overlap in (("e6no", False), ("e6ov", True)) for policy in PUBLISHED]


def revision2_variants() -> list[Run]:
    """e4 to e6, one after the other."""
    return [*revision2_warmup(), *revision2_persistence(), *revision2_overlap()]


def revision2_alpha_grid(alphas: Sequence[float], budgets_gib: Sequence[float], seeds: Sequence[int]) -> list[Run]:
    """Alpha against budget, seed and persistence."""
    return [
        Run("alpha_grid", ema(alpha, persistent=persistent), seed=seed, hbm_gib=gib)
        for alpha in alphas
        for gib in budgets_gib
        for seed in seeds
        for persistent in (False, True)
    ]


def revision1_budgets(budgets_gib: Sequence[float], seeds: Sequence[int]) -> list[Run]:
    """Revision 1: hit rate against HBM budget, all turns counted."""
    return [Run("budgets", policy, seed=seed, hbm_gib=gib, warm=False) for gib in budgets_gib for policy in PUBLISHED for seed in seeds]


def revision1_cxl(cxl_gib: Sequence[float]) -> list[Run]:
    """Revision 1: hit and cold rates against the size of the CXL tier."""
    return [Run("cxl", policy, cxl_gib=gib, warm=False) for gib in cxl_gib for policy in PUBLISHED]


def revision1_workloads(seeds: Sequence[int]) -> list[Run]:
    """Revision 1: the scan and loop workloads."""
    return [
        Run("workloads", policy, workload=kind, seed=seed, warm=False)
        for kind in ("scan", "loop")
        for policy in PUBLISHED
        for seed in seeds
    ]


def revision1_alphas(alphas: Sequence[float]) -> list[Run]:
    """Revision 1: hit rate against alpha."""
    return [Run("alphas", ema(alpha), warm=False) for alpha in alphas]


PERSISTENT = (Policy("lfu", persistent=True), ema(0.15, persistent=True), ema(0.01, persistent=True))
"""The published policies that have a state, with the state of evicted blocks kept."""


def revision3_budgets(budgets_gib: Sequence[float], seeds: Sequence[int]) -> list[Run]:
    """e1 under Revision 3, with kept state and the optimum beside the published policies."""
    return [Run("e1", policy, seed=seed, hbm_gib=gib) for gib in budgets_gib for policy in (*PUBLISHED, *PERSISTENT, MIN) for seed in seeds]


def revision3_workloads(seeds: Sequence[int]) -> list[Run]:
    """e3 under Revision 3, with the optimum."""
    return [Run("e3", policy, workload=kind, seed=seed) for kind in synthetic.KINDS for policy in (*PUBLISHED, MIN) for seed in seeds]


def revision3_variants(seeds: Sequence[int]) -> list[Run]:
    """e4 to e6 under Revision 3."""
    return [replace(run, seed=seed) for run in revision2_variants() for seed in seeds]


def revision3_alphas(alphas: Sequence[float], budgets_gib: Sequence[float], seeds: Sequence[int]) -> list[Run]:
    """e2 under Revision 3, and alpha against budget and persistence; without CXL, for it serves no hit of HBM."""
    policies = [LRU, LFU, PERSISTENT[0], MIN, *(ema(alpha, persistent=persistent) for alpha in alphas for persistent in (False, True))]
    return [Run("e2", policy, seed=seed, hbm_gib=gib, cxl_gib=0.0) for gib in budgets_gib for policy in policies for seed in seeds]


def replay(runs: Iterable[Run], revision: int, shape: Shape, counted_from: int) -> pl.DataFrame:
    """Simulate runs compiled: Revision 2 by extents (`engine.simulate`), Revision 1 block by block (`blocks.simulate_revision1`).

    Parameters
    ----------
    runs : iterable of Run
    revision : {1, 2, 3}
    shape : Shape
        Sizes of the synthetic workloads.
    counted_from : int
        First counted turn of warm runs.

    Returns
    -------
    polars.DataFrame
        Columns of ``tables.RUNS``, one row a run, in the order given.
    """
    workload = lru_cache(maxsize=None)(lambda kind, seed: synthetic.generate(kind, seed, shape, growing=revision > 1))
    # Reporting alone tells some runs apart (warm-up, overlap): each simulation is made once.
    simulated = lru_cache(maxsize=None)(
        lambda kind, seed, policy, hbm_gib, cxl_gib: _simulate(workload(kind, seed), revision, policy, hbm_gib, cxl_gib, counted_from)
    )
    rows = []
    for run in runs:
        counts = simulated(*run.simulation)
        first = counted_from if run.warm else 0
        summary = summarise(counts, workload(run.workload, run.seed), first, overlap=run.overlap)
        if revision == 1:
            summary |= {"evictions": None, "evictions_from_read_set": None}
        rows.append(
            {
                "revision": revision,
                "experiment": run.experiment,
                "workload": run.workload,
                "seed": run.seed,
                "policy": run.policy.name,
                "alpha": run.policy.alpha,
                "persist_meta": run.policy.persistent,
                "overlap": run.overlap,
                "hbm_gib": run.hbm_gib,
                "cxl_gib": run.cxl_gib,
                "counted_from": first,
                **summary,
            }
        )
    return tables.RUNS.check(pl.DataFrame(rows, None if rows else tables.RUNS.columns, infer_schema_length=None))


def _simulate(turns: Turns, revision: int, policy: Policy, hbm_gib: float, cxl_gib: float, counted_from: int) -> TurnCounts:
    hbm_blocks, cxl_blocks = capacity_blocks(hbm_gib), capacity_blocks(cxl_gib)
    if revision == 3:
        tiers = [Tier("CXL", cxl_blocks)] if cxl_blocks else []
        return revision3.with_tiers(turns, revision3.replay(turns, policy, hbm_blocks, counted_from), tiers)[0]
    if revision == 2:
        return engine.simulate(turns, policy, hbm_blocks, cxl_blocks)
    counts, _ = blocks.simulate_revision1(turns, policy, hbm_blocks, cxl_blocks)
    hits, fetched, recomputed = np.array(counts, dtype=np.int64).T
    unknown = np.zeros_like(hits)
    return TurnCounts(hits, fetched, recomputed, unknown, unknown)

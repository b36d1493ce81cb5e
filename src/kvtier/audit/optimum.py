"""Optimal bound: no run serves more blocks from HBM than the best demand-fetching schedule that knows all turns ahead."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_run
from kvtier.simulate import optimal, pinned_optimum
from kvtier.simulate.metrics import capacity_blocks
from kvtier.workload.turns import Turns


def audit(runs: pl.DataFrame, workload: Callable[[str, int], Turns]) -> list[Finding]:
    """Hits of each run against the most that any demand-fetching policy can have in its counted turns (:mod:`kvtier.simulate.optimal`;
    of Revision 3, the most that any policy can have that pins what a turn reads, :mod:`kvtier.simulate.pinned_optimum`).

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.RUNS``, of one revision.
    workload : callable
        (kind, seed) to the turns that the runs replayed.
    """

    @cache
    def most(revision: int, kind: str, seed: int, hbm_gib: float, counted_from: int) -> int:
        # Revision 3 pins what it reads, so its optimum has less room.
        bound = pinned_optimum if revision == 3 else optimal
        return int(bound.turn_hits(workload(kind, seed), capacity_blocks(hbm_gib), counted_from)[counted_from:].sum())

    findings = []
    for row in runs.iter_rows(named=True):
        bound = most(row["revision"], row["workload"], row["seed"], row["hbm_gib"], row["counted_from"])
        broken = row["hits"] > bound
        note = f"{row['hits']} hits, at most {bound} are possible" if broken else ""
        findings.append(Finding("optimum", name_run(row), 1, int(broken), note=note))
    return findings

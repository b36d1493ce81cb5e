"""Conservation audit: every block read is a hit, a fetch or a recomputation, and a workload reads the same under every policy."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_run
from kvtier.workload.turns import Turns


def audit(runs: pl.DataFrame, workload: Callable[[str, int], Turns]) -> list[Finding]:
    """Compare each run's counts with what its workload reads, which is computed from the turns alone.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.RUNS``, of one revision.
    workload : callable
        (kind, seed) to the turns that the runs replayed.
    """
    findings = []
    for row in runs.iter_rows(named=True):
        read = int(workload(row["workload"], row["seed"]).read_blocks[row["counted_from"] :].sum())
        counted = row["hits"] + row["fetched"] + row["recomputed"]
        # Rates are rounded quotients of these integers: their sum may miss 100 by a few units in the last place.
        percent = row["hit_rate"] + row["cxl_rate"] + row["cold_rate"]
        broken = counted != read or min(row["hits"], row["fetched"], row["recomputed"]) < 0 or abs(percent - 100) > 1e-9
        note = f"{counted} blocks counted, {read} read; rates sum to {percent}" if broken else ""
        findings.append(Finding("conservation", name_run(row), 1, int(broken), note=note))
    return findings

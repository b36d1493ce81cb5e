"""Compulsory floor: a block that nobody read or generated before cannot be a hit, nor in any tier."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_run
from kvtier.workload.turns import Turns


def audit(runs: pl.DataFrame, workload: Callable[[str, int], Turns]) -> list[Finding]:
    """Recomputed blocks of each run against the first reads in its counted turns.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.RUNS``, of one revision.
    workload : callable
        (kind, seed) to the turns that the runs replayed.
    """
    findings = []
    for row in runs.iter_rows(named=True):
        floor = int(workload(row["workload"], row["seed"]).compulsory_blocks[row["counted_from"] :].sum())
        broken = row["recomputed"] < floor
        note = f"{row['recomputed']} recomputed, {floor} read for the first time" if broken else ""
        findings.append(Finding("compulsory", name_run(row), 1, int(broken), note=note))
    return findings

"""Lossless audit: does a run evict blocks of the sequence that it is reading? (SPEC §8, §9 D1)

Lossless residency asks that every block of Read(t) be resident while turn t is served. An eviction whose victim is in the prefix, or
in the session's context, what the turn generates included, breaks it.
"""

from __future__ import annotations

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_run


def audit(runs: pl.DataFrame, *, must_hold: bool) -> list[Finding]:
    """Evictions from the read set, of all evictions of each run.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.RUNS``; runs that do not report evictions or evict nothing are left out.
    must_hold : bool
        False for Revision 2, which is known to break the constraint.
    """
    return [
        Finding("lossless", name_run(row), row["evictions"], row["evictions_from_read_set"], must_hold)
        for row in runs.iter_rows(named=True)
        if row["evictions"]
    ]

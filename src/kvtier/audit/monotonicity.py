"""Monotonicity audit: does a larger HBM ever serve fewer reads?

No theorem forbids it for policies without the inclusion property, so a fall is reported and does not stop the build. It is a smell all
the same: it would have caught Revision 1, whose EMA at 64 GiB falls below itself at 32 GiB (SPEC §6).
"""

from __future__ import annotations

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_curve

CURVE = ["revision", "experiment", "workload", "seed", "policy", "alpha", "persist_meta", "overlap", "cxl_gib", "counted_from"]


def audit(runs: pl.DataFrame) -> list[Finding]:
    """Steps of each hit curve over HBM budgets, and how many of them fall.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.RUNS``; curves of a single budget are left out.
    """
    findings = []
    for _, curve in runs.group_by(CURVE, maintain_order=True):
        curve = curve.sort("hbm_gib")
        if curve.height < 2:
            continue
        budgets, hits = curve["hbm_gib"].to_list(), curve["hits"].to_list()
        falls = [i for i in range(1, len(hits)) if hits[i] < hits[i - 1]]
        note = "; ".join(f"{budgets[i]:g} GiB serves {hits[i]} blocks, {budgets[i - 1]:g} GiB {hits[i - 1]}" for i in falls)
        findings.append(
            Finding("monotonicity", name_curve(curve.row(0, named=True)), len(hits) - 1, len(falls), must_hold=False, note=note)
        )
    return findings

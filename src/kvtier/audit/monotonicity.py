"""Monotonicity audit: does a larger HBM ever serve fewer reads?

It must not where the policy includes (:mod:`kvtier.simulate.reuse` says which do, and why): under Revision 2, LFU and EMA whose state
persists; under Revision 3, LRU (HBM is the head of one list, whatever its size) and the optimum (more room never hurts it). There a
fall is an error of the simulator and stops the build. No other run is held to it, and a fall is reported. It is a smell all the same: it
would have caught Revision 1, whose EMA at 64 GiB falls below itself at 32 GiB (SPEC §6).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_curve

CURVE = ["revision", "experiment", "workload", "seed", "policy", "alpha", "persist_meta", "overlap", "cxl_gib", "counted_from"]


LEAST_ALPHA = 1e-4
"""Below it, or as near to 1, no proof is claimed for EMA: what a touch adds nears the key's rounding below; 1 − α loses digits above."""


def includes(row: dict[str, Any]) -> bool:
    """Whether a run's policy provably serves no fewer blocks from a larger HBM, in the run's revision."""
    if row["revision"] == 3:
        return row["policy"] in ("lru", "min")
    known = row["policy"] == "lfu" or (row["policy"] == "ema" and LEAST_ALPHA <= row["alpha"] <= 1 - LEAST_ALPHA)
    return row["revision"] == 2 and row["persist_meta"] and known


def audit(runs: pl.DataFrame) -> list[Finding]:
    """Steps of each hit curve over HBM budgets, and how many of them fall; none may where the policy includes.

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
        row = curve.row(0, named=True)
        findings.append(Finding("monotonicity", name_curve(row), len(hits) - 1, len(falls), must_hold=includes(row), note=note))
    return findings

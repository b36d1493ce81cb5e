"""Monotonicity audit: does a larger HBM ever serve fewer reads?

It must not where the policy includes, that is, where what a smaller HBM holds is at each turn a part of what a larger one holds
(Mattson et al., IBM Systems Journal 9, 1970); there a fall is an error of the simulator and stops the build. Under Revision 2 these are
LFU and EMA whose state persists. A turn touches each block that it reads or appends once, at the same turn whatever HBM holds, so
counts, scores and keys do not depend on the capacity, and a touch never lowers a key. A turn touches its hits, then admits all else and
evicts the smallest (key, identity) as it goes; what stays is the highest of all blocks seen so far, as many as fit, in whatever order
they came. CXL changes that order alone. In floating point a touch raises the EMA key by at least ln(1 + α − α²), as a score never exceeds
1 / (2 − α); the least α here leaves this above 10^9 times the rounding.

No other run is held to it. A policy that forgets at eviction has a state that depends on the capacity. Nor does Revision 2's LRU include:
hits are touched before misses are admitted, so the order inside a turn depends on what was resident, and a turn that outgrows HBM may
keep less of the prefix in the larger one (``tests/simulate/test_inclusion.py``: two hits of HBM of two blocks, one of HBM of three, in
the turn counted). Revision 1 has its defect, and forgets. There a fall is reported and does not stop the build. It is a smell all the
same: it would have caught Revision 1, whose EMA at 64 GiB falls below itself at 32 GiB (SPEC §6).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.audit.subjects import name_curve

CURVE = ["revision", "experiment", "workload", "seed", "policy", "alpha", "persist_meta", "overlap", "cxl_gib", "counted_from"]


LEAST_ALPHA = 1e-4
"""Below it, or as near to 1, no proof is claimed for EMA: rounding is no longer negligible against what a touch adds."""


def includes(row: dict[str, Any]) -> bool:
    """Whether a run's policy provably serves no fewer blocks from a larger HBM, in the run's revision."""
    known = row["policy"] == "lfu" or (row["policy"] == "ema" and LEAST_ALPHA <= row["alpha"] <= 1 - LEAST_ALPHA)
    return row["revision"] == 2 and row["persist_meta"] and known


def audit(runs: pl.DataFrame) -> list[Finding]:
    """Steps of each hit curve over HBM budgets, and how many of them fall; none must where the policy includes.

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

"""Names of runs, as audits print them."""

from __future__ import annotations

from typing import Any

from kvtier.simulate.policies import Policy


def name_curve(row: dict[str, Any]) -> str:
    """Revision, experiment, workload, seed and policy of a run: all but its capacities."""
    policy = Policy(row["policy"], row["alpha"], row["persist_meta"])
    details = [f"{row['experiment']}", row["workload"], f"seed {row['seed']}", policy.title]
    if policy.persistent:
        details.append("persistent")
    if row["overlap"]:
        details.append("overlap")
    return f"Revision {row['revision']} {', '.join(details)}"


def name_run(row: dict[str, Any]) -> str:
    """A curve's name with the capacities of HBM and CXL."""
    return f"{name_curve(row)}, {row['hbm_gib']:g} + {row['cxl_gib']:g} GiB"

"""Tables in the published schemas and names (SPEC §4 and §5)."""

from __future__ import annotations

from typing import Any

import polars as pl

from kvtier.simulate.policies import Policy

PUBLISHED_ALPHA = 0.15
"""Written by the published records for policies that have no alpha."""


def _policy(row: dict[str, Any]) -> Policy:
    return Policy(row["policy"], row["alpha"], row["persist_meta"])


def _whole(gib: float) -> int | float:
    return int(gib) if gib == int(gib) else gib


def _revision2_key(row: dict[str, Any]) -> str:
    experiment, title = row["experiment"], _policy(row).title
    if experiment == "e1":
        return f"e1|{_whole(row['hbm_gib'])}|{title}|{row['seed']}"
    if experiment == "e2":
        return f"e2|{title if row['alpha'] is None else format(row['alpha'], 'g')}"
    if experiment == "e3":
        return f"e3|{row['workload']}|{title}|{row['seed']}"
    return f"{experiment}|{title}"


def revision2_records(runs: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Records of e1 to e6 at full precision, keyed as published.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.RUNS``.
    """
    rates = ("hit_rate", "cxl_rate", "cold_rate", "stall_ms", "fetch_ms", "recompute_ms", "turns")
    return {
        _revision2_key(row): {
            "policy": row["policy"],
            "alpha": PUBLISHED_ALPHA if row["alpha"] is None else row["alpha"],
            "hbm_gib": _whole(row["hbm_gib"]),
            "cxl_gib": _whole(row["cxl_gib"]),
            "persist_meta": row["persist_meta"],
            "overlap": row["overlap"],
            **{name: row[name] for name in rates},
        }
        for row in runs.iter_rows(named=True)
    }


def alpha_grid(runs: pl.DataFrame) -> dict[str, float]:
    """Warm hit rate [%] of each point of the alpha grid, keyed ``alpha|hbm_gib|seed|persistent``."""
    return {
        f"{row['alpha']:g}|{_whole(row['hbm_gib'])}|{row['seed']}|{row['persist_meta']}": row["hit_rate"]
        for row in runs.iter_rows(named=True)
    }


def revision1_sweep(runs: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Revision 1 budget sweep: mean and population deviation over seeds of the hit rate [%], mean stall [ms], keyed ``hbm_gib|policy``."""
    records = {}
    for _, group in runs.group_by("hbm_gib", "policy", "alpha", maintain_order=True):
        first = group.row(0, named=True)
        records[f"{_whole(first['hbm_gib'])}|{_policy(first).title}"] = {
            "policy": first["policy"],
            "hbm_gib": _whole(first["hbm_gib"]),
            "hit_rate_mean": round(group["hit_rate"].mean(), 2),
            "hit_rate_std": round(group["hit_rate"].std(ddof=0), 2),
            "stall_ms_mean": round(group["stall_ms"].mean(), 1),
        }
    return records


def revision1_cxl_sweep(runs: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Revision 1 CXL sweep, rounded to three decimals, keyed ``cxl_gib|policy``."""
    return {
        f"{_whole(row['cxl_gib'])}|{_policy(row).title}": {
            "policy": row["policy"],
            "hbm_gib": _whole(row["hbm_gib"]),
            **{name: round(row[name], 3) for name in ("hit_rate", "cxl_rate", "cold_rate")},
            "mean_turn_stall_ms": round(row["stall_ms"], 3),
        }
        for row in runs.iter_rows(named=True)
    }

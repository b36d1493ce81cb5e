"""Columns of the simulation tables, declared once."""

from __future__ import annotations

import polars as pl

from kvtier.frames import Table

RUNS = Table(
    "simulation runs",
    {
        "revision": pl.Int64,
        "experiment": pl.String,
        "workload": pl.String,
        "seed": pl.Int64,
        "policy": pl.String,
        "alpha": pl.Float64,
        "persist_meta": pl.Boolean,
        "overlap": pl.Boolean,
        "hbm_gib": pl.Float64,
        "cxl_gib": pl.Float64,
        "counted_from": pl.Int64,
        "turns": pl.Int64,
        "hits": pl.Int64,
        "fetched": pl.Int64,
        "recomputed": pl.Int64,
        "hit_rate": pl.Float64,
        "cxl_rate": pl.Float64,
        "cold_rate": pl.Float64,
        "stall_ms": pl.Float64,
        "fetch_ms": pl.Float64,
        "recompute_ms": pl.Float64,
        "evictions": pl.Int64,
        "evictions_from_read_set": pl.Int64,
    },
    nullable=frozenset({"alpha", "evictions", "evictions_from_read_set"}),
)
"""One row a run. Rates are percent of blocks read in the counted turns, times are ms per counted turn, evictions are of the whole run.

Revision 1 does not report evictions; its policies other than ``ema`` have no alpha.
"""

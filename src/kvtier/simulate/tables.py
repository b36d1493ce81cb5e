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

EDGE_RUNS = Table(
    "simulation runs by edges",
    {
        "policy": pl.String,
        "title": pl.String,
        "hbm_gib": pl.Float64,
        "seed": pl.Int64,
        "suffix_first": pl.Boolean,
        "in_flight": pl.Int64,
        "floor_blocks": pl.Int64,
        "counted_from": pl.Int64,
        "turns": pl.Int64,
        "reads": pl.Int64,
        "generated": pl.Int64,
        "hits": pl.Int64,
        "prefix_hits": pl.Int64,
        "hit_rate": pl.Float64,
        "prefix_hit_rate": pl.Float64,
        "over_budget_turns": pl.Int64,
        "streamed": pl.Int64,
        "evictions": pl.Int64,
        "evictions_from_read_set": pl.Int64,
    },
    nullable=frozenset({"floor_blocks"}),
)
"""One row a run of Revision 3 on zipf: the policy (slug and title), the options of :func:`kvtier.simulate.revision3.replay_edges`, and in
the counted turns blocks read and generated, hits and contiguous-prefix hits (rates in percent of blocks read), turns over budget and what
they streamed; evictions are of the whole run. Without a floor the whole path is pinned.
"""

SENSITIVITY = Table(
    "simulation runs by workload",
    {"factor": pl.String, "level": pl.String, "workload": pl.String, **EDGE_RUNS.columns},
    EDGE_RUNS.nullable,
)
"""One row a run, with what was changed in the workload: a slug for the factor and for its level, and the workload in words."""

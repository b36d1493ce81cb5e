"""Losslessness and the optimal bound, of the tables whose runs go by edges (``tables.EDGE_RUNS``) or by workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import polars as pl

from kvtier.audit.findings import Finding
from kvtier.simulate import optimal, pinned_optimum
from kvtier.simulate.families import Options
from kvtier.simulate.metrics import capacity_blocks
from kvtier.workload.turns import Turns


def audit(runs: pl.DataFrame, workload: Callable[[Mapping[str, Any]], Turns]) -> list[Finding]:
    """Two findings a run: evictions from what it reads, and hits above the most that are possible.

    Parameters
    ----------
    runs : polars.DataFrame
        Columns of ``tables.EDGE_RUNS``, or more.
    workload : callable
        Row to the turns that it replayed: the same object for the same turns.

    Notes
    -----
    Where the turn's path is pinned whole, and no other, the bound is :mod:`kvtier.simulate.pinned_optimum`. With several sequences in
    flight, and with chunked reading, other blocks than that path may stay after a turn: then it is :mod:`kvtier.simulate.optimal`, which
    lets any stay that were there, or were read or generated.
    """

    @cache
    def most(turns_id: int, hbm_gib: float, counted_from: int, pins_path: bool) -> int:
        bound = pinned_optimum if pins_path else optimal
        return int(bound.turn_hits(replayed[turns_id], capacity_blocks(hbm_gib), counted_from)[counted_from:].sum())

    replayed: dict[int, Turns] = {}
    findings = []
    for row in runs.iter_rows(named=True):
        options = Options(row["suffix_first"], row["in_flight"], row["floor_blocks"])
        turns = workload(row)
        replayed[id(turns)] = turns
        possible = most(id(turns), row["hbm_gib"], row["counted_from"], options.pins_path)
        note = f"{row['hits']} hits, at most {possible} are possible" if row["hits"] > possible else ""
        findings.append(Finding("optimum", name(row), 1, int(row["hits"] > possible), note=note))
        if row["evictions"]:
            findings.append(Finding("lossless", name(row), row["evictions"], row["evictions_from_read_set"]))
    return findings


def name(row: Mapping[str, Any]) -> str:
    """A run, as audits print it: what differs from the published workload and from the default options is said."""
    details = [row.get("workload"), f"seed {row['seed']}", row["title"], f"{row['hbm_gib']:g} GiB"]
    if not row["suffix_first"]:
        details.append("prefix first")
    if row["in_flight"] > 1:
        details.append(f"{row['in_flight']} in flight")
    if row["floor_blocks"] is not None:
        details.append(f"floor of {row['floor_blocks']} blocks")
    return f"Revision 3 zipf, {', '.join(filter(None, details))}"

"""A sweep in parts: its runs dealt out to several jobs like cards, and the parts put together in the order of the sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import polars as pl

from kvtier.errors import InputError
from kvtier.simulate import sweeps, tables
from kvtier.simulate.sweeps import Run
from kvtier.workload.synthetic import Shape

PLANS: dict[str, tuple[int, Callable[..., list[Run]]]] = {
    "sweep_revision1_budgets": (1, sweeps.revision1_budgets),
    "sweep_revision1_cxl": (1, sweeps.revision1_cxl),
    "sweep_revision1_workloads": (1, sweeps.revision1_workloads),
    "sweep_revision1_alphas": (1, sweeps.revision1_alphas),
    "sweep_revision2_budgets": (2, sweeps.revision2_budgets),
    "sweep_revision2_alphas": (2, sweeps.revision2_alphas),
    "sweep_revision2_workloads": (2, sweeps.revision2_workloads),
    "compare_revision2_variants": (2, sweeps.revision2_variants),
    "sweep_revision2_alpha_grid": (2, sweeps.revision2_alpha_grid),
    "sweep_revision3_budgets": (3, sweeps.revision3_budgets),
    "sweep_revision3_alphas": (3, sweeps.revision3_alphas),
    "sweep_revision3_workloads": (3, sweeps.revision3_workloads),
    "compare_revision3_variants": (3, sweeps.revision3_variants),
}
"""Sweep, by the rule that makes it, to its revision and its list of runs; the list's arguments are settings of the rule, by name."""


def planned(sweep: str, settings: Mapping[str, Any]) -> list[Run]:
    """Runs of a sweep, in order.

    Parameters
    ----------
    sweep : str
        Name in ``PLANS``.
    settings : mapping
        Parameters of the rule by name.
    """
    _, plan = PLANS[sweep]
    return plan(**{name: settings[name] for name in signature(plan).parameters})


def replay(sweep: str, settings: Mapping[str, Any], shard: int = 1, shards: int = 1) -> pl.DataFrame:
    """Simulate one shard: the runs number `shard`, `shard` + `shards`, and so on.

    Parameters
    ----------
    sweep : str
        Name in ``PLANS``.
    settings : mapping
        Parameters of the rule by name; ``sessions`` and ``turns``, and ``counted_from`` where warm turns are counted apart.
    shard, shards : int
        From 1; the last shards are empty if there are more of them than runs.

    Returns
    -------
    polars.DataFrame
        Columns of ``tables.RUNS``, one row a run.
    """
    revision, _ = PLANS[sweep]
    shape = Shape(settings["sessions"], settings["turns"])
    return sweeps.replay(planned(sweep, settings)[shard - 1 :: shards], revision, shape, settings.get("counted_from", 0))


def gather(sweep: str, settings: Mapping[str, Any], paths: Sequence[str | Path]) -> pl.DataFrame:
    """Put the shards of a sweep together.

    Parameters
    ----------
    sweep : str
        Name in ``PLANS``.
    settings : mapping
        Parameters of the rule by name.
    paths : sequence of str or Path
        Parquet files of all shards, the first first.

    Returns
    -------
    polars.DataFrame
        What :func:`replay` makes of the whole sweep in one shard.

    Raises
    ------
    InputError
        If a shard is damaged, or holds other runs than its share of the sweep.
    """
    runs = planned(sweep, settings)
    parts = []
    for shard, path in enumerate(paths):
        part = tables.RUNS.read_parquet(path)
        share = [_identity(run) for run in runs[shard :: len(paths)]]
        if (held := part.select(IDENTITY).rows()) != share:
            row = next((row for row, (one, other) in enumerate(zip(held, share, strict=False)) if one != other), min(len(held), len(share)))
            found, expected = (str(rows[row]) if row < len(rows) else "no more runs" for rows in (held, share))
            raise InputError(path, f"row {row + 1}", found, f"{expected}, by {sweep}; delete it and build again")
        parts.append(part.with_columns(position=pl.int_range(pl.len()) * len(paths) + shard))
    return tables.RUNS.check(pl.concat(parts).sort("position").drop("position"))


def runs_of(sweep: str, settings: Mapping[str, Any], paths: Sequence[str | Path]) -> pl.DataFrame:
    """Table of a sweep: gathered from its shards, or simulated here and now where it has none."""
    return gather(sweep, settings, paths) if paths else replay(sweep, settings)


IDENTITY = ["experiment", "workload", "seed", "policy", "alpha", "persist_meta", "overlap", "hbm_gib", "cxl_gib"]
"""Columns that tell which run a row is of."""


def _identity(run: Run) -> tuple[Any, ...]:
    policy = run.policy
    return (
        run.experiment,
        run.workload,
        run.seed,
        policy.name,
        policy.alpha,
        policy.persistent,
        run.overlap,
        run.hbm_gib,
        run.cxl_gib,
    )

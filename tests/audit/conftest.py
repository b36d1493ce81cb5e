"""A small set of honest runs, for audits to pass and for tests to spoil."""

from functools import cache

import polars as pl
import pytest

from kvtier.simulate import sweeps
from kvtier.simulate.policies import PUBLISHED
from kvtier.simulate.sweeps import Run
from kvtier.workload.synthetic import Shape, generate

SHAPE = Shape(sessions=40, turns=80)


@pytest.fixture(scope="session")
def workload():
    """The turns that the runs replayed."""
    return cache(lambda kind, seed: generate(kind, seed, SHAPE))


@pytest.fixture(scope="session")
def runs():
    """Revision 2: two workloads, four policies, three budgets, warm and cold."""
    planned = [
        Run("test", policy, workload=kind, hbm_gib=gib, cxl_gib=16, warm=warm)
        for kind in ("zipf", "scan")
        for policy in PUBLISHED
        for gib in (2, 4, 8)
        for warm in (False, True)
    ]
    return sweeps.replay(planned, 2, SHAPE, counted_from=40)


@pytest.fixture(scope="session")
def spoil():
    """Change columns of one row."""

    def change(runs, row, **values):
        return runs.with_columns(
            pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
            for column, value in values.items()
        )

    return change

"""Fit on one half, test on the other."""

import polars as pl
import pytest

from kvtier.simulate import calibration
from kvtier.simulate.calibration import Grid
from kvtier.simulate.eviction import Ema, Lru
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.revision3 import replay_edges
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape

SHAPE = Shape(40, 200)


@pytest.fixture(scope="module")
def grid():
    return Grid(SHAPE, 100, [8], [0.15], [0.0, 0.3], [1, 2], [3])


@pytest.fixture(scope="module")
def chosen(grid):
    return calibration.choose(grid, calibration.fit(grid))


def test_runs_distinct_points_alone_and_the_published_alpha_too(grid):
    fitted = calibration.fit(grid)
    assert fitted.height == (129 + 211) * 2 * 2
    assert set(fitted["alpha"]) == {0.15, 0.05}
    assert fitted.group_by("cut", "alpha", "persistent").agg(pl.col("points").sum())["points"].unique().to_list() == [231]


def test_best_has_most_hits_on_the_fit_seeds(grid, chosen):
    fitted = calibration.fit(grid)
    for cut in (0.0, 0.3):
        best = chosen.filter((pl.col("choice") == "best") & pl.col("fitted") & (pl.col("cut") == cut))
        assert best["hits"].sum() == fitted.filter(pl.col("cut") == cut)["hits"].max()


def test_all_weight_on_one_signal_is_ema_or_lru(chosen):
    turns, hbm_blocks = synthetic.generate("zipf", 3, SHAPE), capacity_blocks(8)
    for row in chosen.filter((pl.col("seed") == 3) & (pl.col("cut") == 0) & pl.col("choice").is_in(["ema", "recency"])).iter_rows(
        named=True
    ):
        policy = Lru(hbm_blocks) if row["choice"] == "recency" else Ema(hbm_blocks, row["alpha"], row["persistent"])
        assert row["hits"] == replay_edges(turns, policy, hbm_blocks).hits[100:].sum()
        assert row["read"] == turns.read_blocks[100:].sum()


def test_refuses_a_seed_in_both_halves():
    with pytest.raises(ValueError, match=r"seeds \[2\]"):
        Grid(SHAPE, 100, [8], [0.15], [0.0], [1, 2], [2, 3])

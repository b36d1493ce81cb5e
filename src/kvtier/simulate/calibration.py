"""The weights of the published priority, fitted on some seeds and tested on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from kvtier.frames import Table
from kvtier.simulate import priority_grid
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.priority_grid import PUBLISHED, STEPS, Point, Replay
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape

PUBLISHED_ALPHA = 0.05
"""Of the score, as published: a half-life of 13.5 turns (SPEC §2)."""

WEIGHTS = {"recency": pl.Float64, "ema": pl.Float64, "anchor": pl.Float64}

FIT = Table(
    "fit of the weights",
    {
        "hbm_gib": pl.Float64,
        "cut": pl.Float64,
        "alpha": pl.Float64,
        "persistent": pl.Boolean,
        **WEIGHTS,
        "points": pl.Int64,
        "hits": pl.Int64,
        "read": pl.Int64,
    },
)
"""One row a budget, cut, alpha, state and distinct point, summed over the fit seeds; `points` of the simplex are the same as this one."""

CHOSEN = Table(
    "chosen weights",
    {
        "hbm_gib": pl.Float64,
        "cut": pl.Float64,
        "choice": pl.String,
        "alpha": pl.Float64,
        "persistent": pl.Boolean,
        **WEIGHTS,
        "tied": pl.Int64,
        "fitted": pl.Boolean,
        "seed": pl.Int64,
        "hits": pl.Int64,
        "read": pl.Int64,
    },
)
"""One row a budget, cut, choice and seed; `fitted`: whether it is a seed of the fit; `tied`: how many points fit as well."""


@dataclass(frozen=True)
class Grid:
    """What is tried, on which workloads.

    Parameters
    ----------
    shape : Shape
        Sizes of the zipf workload.
    counted_from : int
        First counted turn.
    budgets_gib : sequence of float
    alphas : sequence of float
        Of the score; the published one is tried in any case.
    cuts : sequence of float
        Lower cuts for demotion; 0 for none.
    fit_seeds, test_seeds : sequence of int

    Raises
    ------
    ValueError
        If a seed is in both halves.
    """

    shape: Shape
    counted_from: int
    budgets_gib: Sequence[float]
    alphas: Sequence[float]
    cuts: Sequence[float]
    fit_seeds: Sequence[int]
    test_seeds: Sequence[int]

    def __post_init__(self) -> None:
        if both := sorted(set(self.fit_seeds) & set(self.test_seeds)):
            raise ValueError(f"seeds {both}: expected none that is fitted on and tested on")

    def replayed(self, seed: int, gib: float) -> tuple[Replay, int]:
        """A workload at a budget, and the blocks that its counted turns read."""
        return _replayed(seed, gib, self.shape, self.counted_from)

    def hits(self, seed: int, gib: float, row: dict[str, Any]) -> int:
        """Hits of the counted turns, with the settings of a row."""
        replay, _ = self.replayed(seed, gib)
        found = replay.hits(row["alpha"], row["recency"], row["ema"], cut=row["cut"], persistent=row["persistent"])
        return int(found[self.counted_from :].sum())


@lru_cache(maxsize=64)
def _replayed(seed: int, gib: float, shape: Shape, counted_from: int) -> tuple[Replay, int]:
    turns = synthetic.generate("zipf", seed, shape)
    return Replay(turns, capacity_blocks(gib)), int(turns.read_blocks[counted_from:].sum())


def _settings(cut: float, alpha: float, persistent: bool, point: Point) -> dict[str, Any]:
    return {"cut": cut, "alpha": alpha, "persistent": persistent, **dict(zip(WEIGHTS, priority_grid.weights(point), strict=True))}


def fit(grid: Grid) -> pl.DataFrame:
    """Hits of every distinct point of the simplex on the fit seeds, with scores that go with a session's last block and that stay.

    Returns
    -------
    polars.DataFrame
        Columns of ``FIT``.
    """
    rows = []
    for gib in grid.budgets_gib:
        read = sum(grid.replayed(seed, gib)[1] for seed in grid.fit_seeds)
        for cut in grid.cuts:
            for alpha in sorted({*grid.alphas, PUBLISHED_ALPHA}, reverse=True):
                for persistent in (False, True):
                    for point, same in priority_grid.distinct(priority_grid.simplex(), cut).items():
                        settings = _settings(cut, alpha, persistent, point)
                        hits = sum(grid.hits(seed, gib, settings) for seed in grid.fit_seeds)
                        rows.append({"hbm_gib": gib, **settings, "points": len(same), "hits": hits, "read": read})
    return FIT.check(pl.DataFrame(rows))


def choose(grid: Grid, fitted: pl.DataFrame) -> pl.DataFrame:
    """Settings with most hits on the fit seeds, and their hits on each seed.

    Parameters
    ----------
    grid : Grid
    fitted : polars.DataFrame
        Columns of ``FIT``.

    Returns
    -------
    polars.DataFrame
        Columns of ``CHOSEN``. Choices: ``best`` of all; ``published``, weights and alpha; ``published_weights`` with the best alpha;
        ``ema`` and ``recency``, all weight on that. Each with the state that fits best. Of what fits equally well the first in the table.
    """

    def weighing(point: Point) -> pl.Expr:
        return pl.all_horizontal(pl.col(name) == value for name, value in zip(WEIGHTS, priority_grid.weights(point), strict=True))

    published = weighing(PUBLISHED)
    among = {
        "best": pl.lit(True),
        "published": published & (pl.col("alpha") == PUBLISHED_ALPHA),
        "published_weights": published,
        "ema": weighing((0, STEPS, 0)),
        "recency": weighing((STEPS, 0, 0)),
    }
    rows = []
    for (gib, _), group in fitted.group_by("hbm_gib", "cut", maintain_order=True):
        for choice, wanted in among.items():
            tied = group.filter(wanted).filter(pl.col("hits") == pl.col("hits").max())
            settings = tied.select("cut", "alpha", "persistent", *WEIGHTS).row(0, named=True)
            for seed in (*grid.fit_seeds, *grid.test_seeds):
                rows.append(
                    {"hbm_gib": gib, **settings, "choice": choice, "tied": tied["points"].sum()}
                    | {"fitted": seed in grid.fit_seeds, "seed": seed}
                    | {"hits": grid.hits(seed, gib, settings), "read": grid.replayed(seed, gib)[1]}
                )
    return CHOSEN.check(pl.DataFrame(rows))

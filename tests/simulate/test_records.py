"""Published schemas: keys, fields, rounding; and the retained files, value for value."""

from pathlib import Path

import polars as pl
import pytest

from kvtier import config
from kvtier.files import read_json
from kvtier.simulate import records, sweeps
from kvtier.simulate.policies import LFU, LRU, ema
from kvtier.simulate.sweeps import Run
from kvtier.workload.synthetic import PUBLISHED, Shape

ROOT = Path(__file__).resolve().parents[2]
CONFIG = config.load(ROOT / "config/full.yaml", ROOT / "workflow/schemas/config.schema.json")
COUNTED_FROM, REVISION1, REVISION2 = CONFIG["workload"]["counted_from"], CONFIG["revision1"], CONFIG["revision2"]
SMALL = Shape(sessions=40, turns=6)

TITLES = ("LRU", "LFU", "EMA a=0.15", "EMA a=0.01")
KEYS = {
    *(f"e1|{gib}|{title}|{seed}" for gib in (8, 16, 32, 64, 128) for title in TITLES for seed in (1, 2)),
    *(f"e2|{name}" for name in ("0.5", "0.3", "0.15", "0.05", "0.01", "0.003", "0.001", "LRU", "LFU")),
    *(f"e3|{kind}|{title}|{seed}" for kind in ("zipf", "scan", "loop") for title in TITLES for seed in (1, 2, 3)),
    *(f"{name}|{title}" for name in ("e4cold", "e4warm", "e6no", "e6ov") for title in TITLES),
    *(f"{name}|{title}" for name in ("e5loc", "e5per") for title in TITLES if title != "LRU"),
}
GRID_KEYS = {
    f"{alpha}|{gib}|{seed}|{persistent}"
    for alpha in ("0.3", "0.15", "0.08", "0.05", "0.03", "0.01", "0.003")
    for gib in (16, 32, 64)
    for seed in (1, 2)
    for persistent in (False, True)
}
FIELDS = [
    "policy",
    "alpha",
    "hbm_gib",
    "cxl_gib",
    "persist_meta",
    "overlap",
    "hit_rate",
    "cxl_rate",
    "cold_rate",
    "stall_ms",
    "fetch_ms",
    "recompute_ms",
    "turns",
]


def revision2_runs(shape, counted_from):
    runs = [
        *sweeps.revision2_budgets(REVISION2["budgets_gib"], REVISION2["seeds"]),
        *sweeps.revision2_alphas(REVISION2["alphas"]),
        *sweeps.revision2_workloads(REVISION2["workload_seeds"]),
        *sweeps.revision2_warmup(),
        *sweeps.revision2_persistence(),
        *sweeps.revision2_overlap(),
    ]
    return sweeps.replay(runs, 2, shape, counted_from)


def alpha_grid_runs(shape, counted_from):
    runs = sweeps.revision2_alpha_grid(REVISION2["grid_alphas"], REVISION2["grid_budgets_gib"], REVISION2["grid_seeds"])
    return sweeps.replay(runs, 2, shape, counted_from)


def test_published_keys_and_fields():
    found = records.revision2_records(revision2_runs(SMALL, 3))
    assert len(KEYS) == 107
    assert set(found) == KEYS
    assert {tuple(record) for record in found.values()} == {tuple(FIELDS)}


def test_published_alpha_grid_keys():
    found = records.alpha_grid(alpha_grid_runs(SMALL, 3))
    assert len(GRID_KEYS) == 84
    assert set(found) == GRID_KEYS


def test_a_record_copies_its_run():
    runs = sweeps.replay([Run("e1", ema(0.01), seed=2, hbm_gib=2.5), Run("e6ov", LFU, overlap=True)], 2, SMALL, 0)
    first, second = runs.iter_rows(named=True)
    found = records.revision2_records(runs)
    measures = FIELDS[6:]
    assert found == {
        "e1|2.5|EMA a=0.01|2": {
            "policy": "ema",
            "alpha": 0.01,
            "hbm_gib": 2.5,
            "cxl_gib": 512,
            "persist_meta": False,
            "overlap": False,
            **{name: first[name] for name in measures},
        },
        # Policies without an alpha carry 0.15, as published.
        "e6ov|LFU": {
            "policy": "lfu",
            "alpha": 0.15,
            "hbm_gib": 32,
            "cxl_gib": 512,
            "persist_meta": False,
            "overlap": True,
            **{name: second[name] for name in measures},
        },
    }
    # JSON tells 32 from 32.0.
    assert isinstance(found["e6ov|LFU"]["hbm_gib"], int)


def test_revision1_sweep_rounds_mean_and_population_deviation():
    runs = sweeps.replay(sweeps.revision1_budgets([4], [1, 2]), 1, SMALL, 0)
    lru = pl.col("policy") == "lru"
    planted = runs.with_columns(
        hit_rate=pl.when(lru).then(pl.when(pl.col("seed") == 1).then(40.0).otherwise(43.333)).otherwise("hit_rate"),
        stall_ms=pl.when(lru).then(pl.when(pl.col("seed") == 1).then(10.0).otherwise(10.5)).otherwise("stall_ms"),
    )
    found = records.revision1_sweep(planted)
    assert list(found) == ["4|LRU", "4|LFU", "4|EMA a=0.15", "4|EMA a=0.01"]
    assert found["4|LRU"] == {"policy": "lru", "hbm_gib": 4, "hit_rate_mean": 41.67, "hit_rate_std": 1.67, "stall_ms_mean": 10.2}


def test_revision1_cxl_sweep_rounds_to_three_decimals():
    runs = sweeps.replay([Run("cxl", LRU, hbm_gib=2, cxl_gib=4, warm=False)], 1, SMALL, 0)
    row = runs.row(0, named=True)
    assert records.revision1_cxl_sweep(runs) == {
        "4|LRU": {
            "policy": "lru",
            "hbm_gib": 2,
            "hit_rate": round(row["hit_rate"], 3),
            "cxl_rate": round(row["cxl_rate"], 3),
            "cold_rate": round(row["cold_rate"], 3),
            "mean_turn_stall_ms": round(row["stall_ms"], 3),
        }
    }


RETAINED = {
    "results_v2.json": lambda: records.revision2_records(revision2_runs(PUBLISHED, COUNTED_FROM)),
    "alpha_grid.json": lambda: records.alpha_grid(alpha_grid_runs(PUBLISHED, COUNTED_FROM)),
    "sweep_rev1_superseded.json": lambda: records.revision1_sweep(
        sweeps.replay(sweeps.revision1_budgets(REVISION1["budgets_gib"], REVISION1["seeds"]), 1, PUBLISHED, 0)
    ),
    "cxl_sweep.json": lambda: records.revision1_cxl_sweep(sweeps.replay(sweeps.revision1_cxl(REVISION1["cxl_gib"]), 1, PUBLISHED, 0)),
}


@pytest.mark.parametrize("name", RETAINED)
def test_retained_records_are_remade_to_the_last_digit(name):
    assert RETAINED[name]() == read_json(ROOT / "data" / name)

"""The experiments as lists of runs: how many, which, and what a run of each says."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kvtier import config
from kvtier.simulate import revision2, sweeps, tables
from kvtier.simulate.metrics import capacity_blocks, summarise
from kvtier.simulate.policies import LRU, PUBLISHED, Policy, ema
from kvtier.simulate.sweeps import Run
from kvtier.workload.synthetic import Shape, generate

ROOT = Path(__file__).resolve().parents[2]
CONFIG = config.load(ROOT / "config/full.yaml", ROOT / "workflow/schemas/config.schema.json")
REVISION1, REVISION2 = CONFIG["revision1"], CONFIG["revision2"]
SHAPE = Shape(sessions=40, turns=60)


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        (sweeps.revision2_budgets(REVISION2["budgets_gib"], REVISION2["seeds"]), 40),
        (sweeps.revision2_alphas(REVISION2["alphas"]), 9),
        (sweeps.revision2_workloads(REVISION2["workload_seeds"]), 36),
        (sweeps.revision2_warmup(), 8),
        (sweeps.revision2_persistence(), 6),
        (sweeps.revision2_overlap(), 8),
        (sweeps.revision2_alpha_grid(REVISION2["grid_alphas"], REVISION2["grid_budgets_gib"], REVISION2["grid_seeds"]), 84),
        (sweeps.revision1_budgets(REVISION1["budgets_gib"], REVISION1["seeds"]), 40),
        (sweeps.revision1_cxl(REVISION1["cxl_gib"]), 20),
        (sweeps.revision1_workloads(REVISION1["workload_seeds"]), 24),
        (sweeps.revision1_alphas(REVISION1["alphas"]), 6),
    ],
    ids=["e1", "e2", "e3", "e4", "e5", "e6", "grid", "rev1 budgets", "rev1 cxl", "rev1 workloads", "rev1 alphas"],
)
def test_published_experiments_have_their_runs_once(runs, count):
    assert len(runs) == len(set(runs)) == count


def test_unswept_settings_are_the_published_ones():
    """32 GiB of HBM, 512 of CXL, seed 1, zipf, warm, exposed fetches, unless the experiment says otherwise."""
    assert Run("e2", LRU) == Run("e2", LRU, workload="zipf", seed=1, hbm_gib=32, cxl_gib=512, warm=True, overlap=False)
    assert {run.warm for run in sweeps.revision1_alphas([0.5])} == {False}
    assert Counter(run.warm for run in sweeps.revision2_warmup()) == {True: 4, False: 4}
    assert Counter(run.overlap for run in sweeps.revision2_overlap()) == {True: 4, False: 4}
    assert Counter(run.policy.persistent for run in sweeps.revision2_persistence()) == {True: 3, False: 3}
    assert {run.policy.name for run in sweeps.revision2_persistence()} == {"lfu", "ema"}


def test_a_row_says_what_the_reference_says():
    run = Run("e3", ema(0.15, persistent=True), workload="scan", seed=2, hbm_gib=4, cxl_gib=16, overlap=True)
    row = sweeps.replay([run], 2, SHAPE, counted_from=30).row(0, named=True)
    turns = generate("scan", 2, SHAPE)
    counts = revision2.simulate(turns, run.policy, capacity_blocks(4), capacity_blocks(16))
    assert row == {
        "revision": 2,
        "experiment": "e3",
        "workload": "scan",
        "seed": 2,
        "policy": "ema",
        "alpha": 0.15,
        "persist_meta": True,
        "overlap": True,
        "hbm_gib": 4.0,
        "cxl_gib": 16.0,
        "counted_from": 30,
        **summarise(counts, turns, 30, overlap=True),
    }
    assert row["turns"] == 30
    assert row["evictions"] > 0


def test_rows_keep_the_order_of_the_runs():
    runs = [Run("x", policy, seed=seed, hbm_gib=gib) for gib in (4, 2) for policy in reversed(PUBLISHED) for seed in (2, 1)]
    table = sweeps.replay(runs, 2, SHAPE, counted_from=0)
    assert list(table.columns) == list(tables.RUNS.columns)
    assert table.select("hbm_gib", "policy", "alpha", "seed").rows() == [
        (run.hbm_gib, run.policy.name, run.policy.alpha, run.seed) for run in runs
    ]


def test_revision1_reports_no_evictions_and_counts_every_turn():
    table = sweeps.replay(sweeps.revision1_alphas([0.5, 0.15]), 1, SHAPE, counted_from=0)
    assert table["evictions"].to_list() == table["evictions_from_read_set"].to_list() == [None, None]
    assert table["turns"].to_list() == [60, 60]
    fixed = generate("zipf", 1, SHAPE, growing=False)
    assert table.select("hits", "fetched", "recomputed").sum_horizontal().to_list() == [int(fixed.read_blocks.sum())] * 2


def test_warm_up_is_left_out_of_warm_runs_only():
    table = sweeps.replay([Run("x", LRU, warm=warm) for warm in (False, True)], 2, SHAPE, counted_from=20)
    assert table["counted_from"].to_list() == [0, 20]
    read = generate("zipf", 1, SHAPE).read_blocks
    assert table.select("hits", "fetched", "recomputed").sum_horizontal().to_list() == [int(read.sum()), int(read[20:].sum())]


def test_each_simulation_is_made_once(monkeypatch):
    made = []

    def simulate(turns, policy, hbm_blocks, cxl_blocks):
        made.append((policy, hbm_blocks))
        return revision2.simulate(turns, policy, hbm_blocks, cxl_blocks)

    monkeypatch.setattr(sweeps.engine, "simulate", simulate)
    runs = [*sweeps.revision2_warmup(), *sweeps.revision2_overlap(), Run("x", Policy("lfu", persistent=True))]
    table = sweeps.replay(runs, 2, SHAPE, counted_from=20)
    assert len(made) == len(set(made)) == 5
    warm = np.array([row["experiment"] in ("e4warm", "e6no") for row in table.iter_rows(named=True)])
    assert table.filter(warm)["hits"].to_list()[:4] == table.filter(warm)["hits"].to_list()[4:]

"""A small ledger and the tables that belong to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.publish.ledger import Ledger

BUDGETS = (8.0, 32.0, 128.0)
POLICIES = (("lru", None), ("lfu", None), ("ema", 0.15), ("ema", 0.01))
SLUGS = ("lru", "lfu", "ema015", "ema001")
SWEPT = {0.001: 24.44, 0.05: 55.96, 0.15: 44.33, 0.5: 37.2}
STEPS = {
    "hf": {(1, 4096): (0.21875, 104.6), (4, 16384): (3.5, 155.4), (4, 32768): (7.0, 212.4)},
    "vllm": {(1, 4096): (0.21875, 95.1), (16, 4096): (3.5, 127.5), (16, 16384): (14.0, 345.9)},
}


EFFECTS = {
    "e5.gain.lfu.hit": (34.15, 1.75),
    "e5.gain.ema001.hit": (24.85, 1.91),
    "e5.gain.ema015.hit": (-0.21, 0.7),
    "e1.32.lfu.margin": (-22.25, 6.9),
    "e1.8.ema015.margin": (3.83, 0.17),
    "e1.128.ema015.margin": (0.13, 0.12),
}
"""Value in Revision 2, value in Revision 3."""


def record(value: float, unit: str, digits: int, label: Label, definition: str = "x / y", **more: Any) -> dict[str, Any]:
    """One record as the ledger holds it."""
    display = Number("a.b", value, unit, digits, label, definition).display
    record = {"value": value, "display": display, "unit": unit, "label": str(label), "definition": definition}
    return {
        "status": str(Status.STANDS),
        **record,
        "rule": "some_rule",
        "params": {"seeds": [1, 2]},
        "inputs": {},
        "uncertainty": {},
        **more,
    }


def simulated(value: float, **more: Any) -> dict[str, Any]:
    return record(value, "%", 2, Label.SIMULATED, "blocks read that were in HBM / blocks read", **more)


def hit_rate(policy: int, budget: float, seed: int) -> float:
    return 5.0 * (policy + 1) + budget / 2 + seed


def runs(rows: list[dict[str, Any]]) -> pl.DataFrame:
    common = {"revision": 2, "workload": "zipf", "cxl_gib": 512.0, "counted_from": 1250, "turns": 1250}
    return pl.DataFrame([{**common, **row} for row in rows], schema_overrides={"alpha": pl.Float64}, infer_schema_length=None)


def line(points: dict[tuple[int, int], tuple[float, float]]) -> dict[str, float]:
    """Least squares by hand: coefficients and their standard errors."""
    xs, ys = zip(*points.values(), strict=True)
    n, mean_x, mean_y = len(xs), sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    residual = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    slope_error = (residual / (n - 2) / spread) ** 0.5
    return {
        "n": n,
        "r_squared": 1 - residual / sum((y - mean_y) ** 2 for y in ys),
        "intercept_ms": intercept,
        "intercept_ms_standard_error": slope_error * (spread / n + mean_x**2) ** 0.5,
        "slope_ms_per_gib": slope,
        "slope_ms_per_gib_standard_error": slope_error,
    }


@pytest.fixture
def records() -> dict[str, dict[str, Any]]:
    """Records of all classes, with those of the tables below."""
    found: dict[str, dict[str, Any]] = {
        "analytic.hbm.capacity_gb": record(192, "GB", 0, Label.VENDOR, "HBM, data sheet"),
        "analytic.tier.t2.latency_ns": record(200, "ns", 0, Label.TARGET),
        "analytic.users.16.free_gb": record(-639.9, "GB", 0, Label.ANALYTICAL, "mean |S| of users"),
        "analytic.gqa.old_state": record(1.6, "%", 1, Label.ILLUSTRATIVE, "state of each position", status="retracted"),
        "analytic.softmax.of.percent": record(20.3, "%", 0, Label.ILLUSTRATIVE),
        "measured.gb10.stream.copy_gbps": record(236.5, "GB/s", 1, Label.MEASURED),
        "sim.rev2.e2.best_alpha": record(0.05, "", 3, Label.SIMULATED),
        "sim.rev2.e2.best_margin": record(19.11, "points", 2, Label.SIMULATED),
        "sim.rev2.e2.lru.hit": simulated(36.85),
        "sim.rev2.e2.lfu.hit": simulated(15.56),
        "measured.gb10.vllm_loo_16x16384.slope": record(11.87, "ms/GiB", 2, Label.MEASURED, uncertainty={"standard_error": 1.196}),
    }
    for alpha, value in SWEPT.items():
        found[f"sim.rev2.e2.ema{alpha:g}.hit".replace("0.", "0", 1)] = simulated(value)
    for budget in BUDGETS:
        for index, slug in enumerate(SLUGS):
            seeds = [hit_rate(index, budget, seed) for seed in (1, 2)]
            found[f"sim.rev2.e1.{budget:g}.{slug}.hit"] = simulated(
                sum(seeds) / 2, uncertainty={"lowest_seed": min(seeds), "highest_seed": max(seeds)}
            )
    for run, points in STEPS.items():
        fit = line(points)
        for field, column, unit in (("intercept_ms", "intercept_ms", "ms"), ("slope", "slope_ms_per_gib", "ms/GiB")):
            error = {"standard_error": fit[f"{column}_standard_error"]}
            found[f"measured.gb10.{run}.{field}"] = record(fit[column], unit, 2, Label.MEASURED, uncertainty=error)
        found[f"measured.gb10.{run}.r2"] = record(fit["r_squared"], "", 3, Label.MEASURED)
        found[f"measured.gb10.{run}.n"] = record(fit["n"], "", 0, Label.MEASURED)
        for (batch, tokens), (_, step_ms) in points.items():
            found[f"measured.gb10.{run}.{batch}x{tokens}.step_ms"] = record(step_ms, "ms", 1, Label.MEASURED)
    return found


@pytest.fixture
def ledger(records) -> Ledger:
    return Ledger("numbers.json", records)


@pytest.fixture
def numbers(records, tmp_path) -> Path:
    """The ledger as a file."""
    path = tmp_path / "numbers.json"
    path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture
def budgets_table(tmp_path) -> Path:
    """Runs of a budget sweep."""
    path = tmp_path / "e1.parquet"
    runs(
        [
            {"policy": policy, "alpha": alpha, "hbm_gib": budget, "seed": seed, "hit_rate": hit_rate(index, budget, seed)}
            for budget in BUDGETS
            for index, (policy, alpha) in enumerate(POLICIES)
            for seed in (1, 2)
        ]
    ).write_parquet(path)
    return path


@pytest.fixture
def revisions(tmp_path) -> tuple[Path, Path, dict[str, dict[str, Any]]]:
    """Runs of the budget sweep in Revisions 2 and 3, and the records of both."""
    tables, records = [], {}
    for revision, seeds in ((2, (1, 2)), (3, (1, 2, 3))):
        policies = [*zip(POLICIES, SLUGS, strict=True), *([(("min", None), "min")] if revision == 3 else [])]
        rows = []
        for budget in BUDGETS:
            for index, ((policy, alpha), slug) in enumerate(policies):
                rates = {seed: hit_rate(index, budget, seed) for seed in seeds}
                about = {"revision": revision, "policy": policy, "alpha": alpha, "hbm_gib": budget, "persist_meta": False}
                rows += [{**about, "seed": seed, "hit_rate": rate} for seed, rate in rates.items()]
                mean = sum(rates.values()) / len(rates)
                interval = {"interval_low": mean - 0.5, "interval_high": mean + 0.5, "interval_level": 0.95}
                ends = {"lowest_seed": min(rates.values()), "highest_seed": max(rates.values())}
                records[f"sim.rev{revision}.e1.{budget:g}.{slug}.hit"] = simulated(mean, uncertainty=interval if revision == 3 else ends)
        if revision == 3:
            rows.append({**rows[0], "persist_meta": True, "hit_rate": 99.0})
        tables.append(tmp_path / f"revision{revision}.parquet")
        runs(rows).write_parquet(tables[-1])
    for budget in BUDGETS:
        records[f"workload.zipf.over_budget.{budget:g}.reads"] = simulated(80.0 if budget < 32 else 0.0)
    return *tables, records


@pytest.fixture
def effects() -> dict[str, dict[str, Any]]:
    """Records of differences in Revisions 2 and 3."""

    def points(value: float, **uncertainty: float) -> dict[str, Any]:
        return record(value, "points", 2, Label.SIMULATED, uncertainty=uncertainty)

    found = {
        "sim.rev2.e1.16.ema015.margin": points(4.71),
        "sim.rev2.e2.best_margin": points(19.11),
        "sim.rev3.e2.32.reset.best_margin": points(7.15, interval_low=6.8, interval_high=7.47, interval_level=0.95),
        "sim.rev2.e2.best_alpha": record(0.05, "", 3, Label.SIMULATED),
        "sim.rev3.e2.32.reset.best_alpha": record(0.01, "", 3, Label.SIMULATED),
        "sim.rev2.e1.seeds": record(2, "seeds", 0, Label.SIMULATED),
        "sim.rev3.e1.seeds": record(30, "seeds", 0, Label.SIMULATED),
    }
    for name, (old, new) in EFFECTS.items():
        found[f"sim.rev2.{name}"] = points(old, **({"lowest_seed": old - 1, "highest_seed": old + 1} if name.startswith("e1") else {}))
        found[f"sim.rev3.{name}"] = points(new, interval_low=new - 0.1, interval_high=new + 0.1, interval_level=0.95)
    return found


@pytest.fixture
def alphas_table(tmp_path) -> Path:
    """Runs of an alpha sweep."""
    path = tmp_path / "e2.parquet"
    swept = [{"policy": "ema", "alpha": alpha, "hit_rate": rate} for alpha, rate in SWEPT.items()]
    references = [{"policy": "lru", "alpha": None, "hit_rate": 36.85}, {"policy": "lfu", "alpha": None, "hit_rate": 15.56}]
    runs([{**row, "hbm_gib": 32.0, "seed": 1} for row in (*swept, *references)]).write_parquet(path)
    return path


@pytest.fixture
def decode_tables(tmp_path) -> tuple[Path, Path, Path]:
    """Rows, fits and platform file of a decode measurement."""
    rows, fits, platform = tmp_path / "rows.csv", tmp_path / "fits.csv", tmp_path / "platform.yaml"
    pl.DataFrame(
        [
            {"run": run, "batch": batch, "context_tokens": tokens, "step_ms": step_ms, "kv_gib": size}
            for run, points in STEPS.items()
            for (batch, tokens), (size, step_ms) in points.items()
        ]
    ).write_csv(rows)
    pl.DataFrame([{"run": run, "kv_sizes": "exact", **line(points)} for run, points in STEPS.items()]).write_csv(fits)
    platform.write_text(
        "machine: Box One\ndate: 2026-08-19\nmodel: {name: Small-1B, dtype: float16}\n"
        "decode: {hf: {name: HF + SDPA}, vllm: {name: vLLM 0.20.1 + FlashAttention-2}}\n",
        encoding="utf-8",
    )
    return rows, fits, platform

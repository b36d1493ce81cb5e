"""Measured numbers again, from the raw rows: exact least squares in fractions, sorted lists for medians, integers of the trace tables."""

from __future__ import annotations

import csv
from fractions import Fraction
from functools import cache

import yaml

from second_opinion.registry import ROOT, second_opinion

GB, GIB = 10**9, 2**30
GB10 = ROOT / "data/measured/gb10-2026-08-19"
DECODE = {"hf": "decode_hf_sdpa.csv", "vllm": "decode_vllm_fa2.csv"}


def rows(path: str) -> list[dict[str, str]]:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@cache
def machine() -> dict:
    return yaml.safe_load((GB10 / "platform.yaml").read_text(encoding="utf-8"))


def kv_gib(batch: int, tokens: int) -> Fraction:
    """KV of a batch, key by key and value by value."""
    model = machine()["model"]
    layer = 2 * model["kv_heads"] * model["head_dim"] * model["bytes_per_element"]
    return Fraction(batch * tokens * sum(layer for _ in range(model["layers"])), GIB)


def points(run: str, variant: str = "") -> list[tuple[Fraction, Fraction]]:
    """(KV in GiB, step time in ms); `variant` is a row left out, or ``published``: sizes rounded to two decimals."""
    found = []
    for row in rows(f"data/measured/gb10-2026-08-19/{DECODE[run]}"):
        batch, tokens = int(row["batch"]), int(row["context_tokens"])
        if variant == f"loo_{batch}x{tokens}":
            continue
        size = kv_gib(batch, tokens)
        found.append((Fraction(str(round(float(size), 2))) if variant == "published" else size, Fraction(row["step_ms"])))
    return found


def line(run: str, variant: str = "") -> tuple[Fraction, Fraction, Fraction]:
    """Intercept, slope and R² of least squares, exactly: from the differences of all pairs, without means."""
    found = points(run, variant)
    pairs = [(b[0] - a[0], b[1] - a[1]) for at, a in enumerate(found) for b in found[at + 1 :]]
    xx, xy, yy = (sum(values) for values in zip(*((x * x, x * y, y * y) for x, y in pairs), strict=True))
    slope = xy / xx
    return sum(y - slope * x for x, y in found) / len(found), slope, xy * xy / (xx * yy)


def of_line(run: str, variant: str, form: str) -> float:
    intercept, slope, r2 = line(run, variant)
    weights_gb = Fraction(machine()["model"]["weight_bytes"], GB)
    fixed, kv = weights_gb / intercept * 1000, Fraction(GIB, GB) / slope * 1000
    forms = {"intercept_ms": intercept, "slope": slope, "r2": r2, "fixed_gbps": fixed, "kv_gbps": kv, "fixed_over_kv": fixed / kv}
    if form == "fixed_from_printed_gbps":
        return float(weights_gb / Fraction(f"{float(intercept):.1f}") * 1000)
    if form == "missed_ms":
        batch, tokens = map(int, variant.removeprefix("loo_").split("x"))
        return float(step_ms(run, batch, tokens) - intercept - slope * kv_gib(batch, tokens))
    return float(forms[form])


def step_ms(run: str, batch: int, tokens: int) -> Fraction:
    found = rows(f"data/measured/gb10-2026-08-19/{DECODE[run]}")
    return next(Fraction(row["step_ms"]) for row in found if (int(row["batch"]), int(row["context_tokens"])) == (batch, tokens))


@second_opinion(
    *(
        f"measured.gb10.{run}{variant}.{form}"
        for run in DECODE
        for variant in ("", "_published", "_loo_16x16384", "_loo_4x32768")
        for form in ("intercept_ms", "slope", "r2", "fixed_gbps", "kv_gbps", "fixed_over_kv", "fixed_from_printed_gbps", "missed_ms")
    )
)
def fitted(key: str):
    _, _, name, form = key.split(".")
    run, _, variant = name.partition("_")
    return of_line(run, variant, form)


@second_opinion("measured.gb10.vllm_over_hf*.*")
def change(key: str):
    """Of vLLM over HF, less one; where a row of vLLM is left out, HF is the fit of all its rows."""
    _, _, name, form = key.split(".")
    variant = name.removeprefix("vllm_over_hf").removeprefix("_")
    form = {"slope_change": "slope", "fixed_change": "fixed_gbps"}[form]
    return 100 * (of_line("vllm", variant, form) / of_line("hf", "" if variant.startswith("loo") else variant, form) - 1)


@second_opinion("measured.gb10.*.tokens_per_s")
def throughput(key: str):
    _, _, run, point, _ = key.split(".")
    batch, tokens = map(int, point.split("x"))
    return float(batch / (step_ms(run, batch, tokens) / 1000))


@second_opinion(
    *(f"measured.gb10.{run}_theil_sen.{form}" for run in DECODE for form in ("slope", "intercept_ms", "pairs", "fixed_over_kv"))
)
def theil_sen(key: str):
    """All pairs of rows, and the middle of their slopes, exactly."""
    _, _, run, form = key.split(".")
    found = points(run.removesuffix("_theil_sen"))
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for at, a in enumerate(found) for b in found[at + 1 :] if a[0] != b[0]]
    slope = median(slopes)
    intercept = median([y - slope * x for x, y in found])
    weights_gb = Fraction(machine()["model"]["weight_bytes"], GB)
    ratio = (weights_gb / intercept) / (Fraction(GIB, GB) / slope)
    return len(slopes) if form == "pairs" else float({"slope": slope, "intercept_ms": intercept, "fixed_over_kv": ratio}[form])


@second_opinion("measured.gb10.bus_gbps")
def bus(_: str):
    return machine()["memory"]["bus_gbps"]


@second_opinion("measured.gb10.model.weights_gib")
def weights_gib(_: str):
    """Two bytes a parameter."""
    return machine()["model"]["parameters"] * 2 / GIB


@second_opinion("measured.gb10.stream.*")
def stream(key: str):
    (row,) = rows("data/measured/gb10-2026-08-19/streaming.csv")
    copied = Fraction(row["median_gbps"])
    return float(copied if key.endswith("copy_gbps") else 100 * copied / machine()["memory"]["bus_gbps"])


def median(values: list[float]) -> float:
    """The middle of a sorted list, or half way between the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def folder(word: str) -> str:
    """``epyc_2_cores_2026_11_30_2`` is a folder whose date has hyphens."""
    (found,) = [path.name for path in sorted((ROOT / "data/measured").iterdir()) if path.name.replace("-", "_") == word]
    return found


@second_opinion("measured.epyc_*.block_state.*.ns")
def block_state(key: str):
    _, run, _, operation, policy, blocks, _ = key.split(".")
    wanted = {"operation": operation, "policy": policy, "blocks": blocks}
    found = [row for row in rows(f"data/measured/{folder(run)}/metadata.csv") if wanted.items() <= row.items()]
    return 1e9 * median([float(row["seconds"]) / int(row["operations"]) for row in found])


@second_opinion("measured.epyc_*.regeneration.*.over_move.*")
def regeneration_over_move(key: str):
    """The size of a block was timed here, so nothing is interpolated."""
    _, run, _, backend, context, _, path = key.split(".")
    made = [
        float(row["seconds"])
        for row in rows(f"data/measured/{folder(run)}/regeneration.csv")
        if "_".join([*row["backend"].split(), row["device"], row["dtype"]]) == backend and row["context_tokens"] == context
    ]
    moved = [
        float(row["seconds"]) / int(row["pieces"])
        for row in rows(f"data/measured/{folder(run)}/movement.csv")
        if row["path"].replace(" ", "_") == path and int(row["piece_bytes"]) == 262_144
    ]
    return median(made) / median(moved)


@second_opinion("measured.bench.peers.*.ratio", "measured.bench.arbitrary.*.ratio")
def bench(key: str):
    _, _, table, comparison, _ = key.split(".")
    sides: dict[str, list[float]] = {"kvtier": [], "libcachesim": []}
    for row in rows("data/bench/peers.csv"):
        if (row["table"], row["comparison"]) == ({"peers": "policies"}.get(table, table), comparison):
            sides[row["side"]].append(float(row["cpu_s"]) / int(row["replays"]))
    return median(sides["libcachesim"]) / median(sides["kvtier"])


@second_opinion("sim.traces.*.closed")
def closed(key: str):
    """From the integers of the table: (hits - LRU) / (optimum - LRU)."""
    _, _, trace, size, policy, _ = key.split(".")
    tokens = str(int(size[:-1]) * {"k": 2**10, "m": 2**20}[size[-1]])
    wanted = {"trace": trace, "capacity_tokens": tokens, "counted": "whole", "users": ""}
    hits = {row["policy"]: int(row["hits"]) for row in rows("data/traces/policies.csv") if wanted.items() <= row.items()}
    return (hits[policy] - hits["lru"]) / (hits["min"] - hits["lru"])

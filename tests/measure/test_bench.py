"""Retained benchmark rows: summed up as by hand, and refused where they cannot be compared."""

import json

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.measure import bench

MACHINE = bench.Machine("Small CPU", 2, "2026-11-30", "0.3.5")


def timing(step, cpu_s, **more):
    side = bench.PEER if step % 2 else bench.OURS
    row = {
        "table": "policies",
        "context_tokens": 6656,
        "sessions": 4,
        "turns": 10,
        "requests": 2_000_000,
        "capacity_blocks": 100,
        "comparison": "lru",
        "same_rules": True,
        "step": step,
        "side": side,
        "policy": "lru",
        "hashpower": 9 if step % 2 else None,
        "replays": 1 if step % 2 else 10,
        "cpu_s": cpu_s,
        "hits": 77,
    }
    return {**row, **more}


def kept(tmp_path, rows):
    path = tmp_path / "peers.csv"
    pl.DataFrame(rows, infer_schema_length=None).write_csv(path)
    return path


ROWS = [timing(0, 0.01), timing(1, 0.2), timing(2, 0.03), timing(3, 0.4), timing(4, 0.02)]


def test_ratio_is_of_medians_and_its_interval_is_of_neighbours(tmp_path):
    (each,) = bench.read_comparisons(kept(tmp_path, ROWS))
    assert each.ratio == pytest.approx(0.3 / 0.002)
    assert each.ratios == pytest.approx([0.2 / 0.002, 0.4 / 0.0025])
    assert each.rates(bench.PEER) == pytest.approx((2 / 0.3, 2 / 0.4, 2 / 0.2))


def test_numbers_are_measured_and_name_machine_and_workload(tmp_path):
    by_context = [{**row, "table": "contexts", "context_tokens": 2**20} for row in ROWS]
    arbitrary = [{**row, "table": "arbitrary", "cpu_s": row["cpu_s"] * (1 if row["step"] % 2 else 750)} for row in ROWS]
    comparisons = bench.read_comparisons(kept(tmp_path, [*ROWS, *by_context, *arbitrary]))
    found = {number.key.removeprefix("measured.bench."): number for number in bench.of_peers(comparisons, MACHINE)}
    assert {number.label for number in found.values()} == {Label.MEASURED}
    assert found["peers.lru.ratio"].display == found["contexts.1m.lru.ratio"].display == "150"
    assert found["arbitrary.lru.ratio"].display == "0.20"
    assert found["peers.lru.libcachesim_hits"].value == 77
    assert "2,000,000 requests of 10 turns" in found["peers.lru.ratio"].definition
    assert "Small CPU, one of 2 cores, 2026-11-30" in found["peers.lru.ratio"].definition
    rows = bench.throughput(comparisons)
    assert rows["key"].to_list() == [f"measured.bench.contexts.1m.lru.{side}_rate" for side in (bench.OURS, bench.PEER)]
    assert rows["million_requests_per_s"].to_list() == [found[key.removeprefix("measured.bench.")].value for key in rows["key"]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hits": 78}, r"column hits, .*lru: found 77 and 78, expected equal hits"),
        ({"side": bench.OURS}, r"column side, .*: found kvtier, kvtier, .* expected kvtier, libcachesim"),
        ({"cpu_s": 0.0}, r"column cpu_s, row 2: found 0\.0, expected a value above 0"),
        ({"requests": 3}, r"column requests, .*: found 3, 2000000, expected one value"),
    ],
)
def test_rows_that_cannot_be_compared_are_refused(tmp_path, changed, message):
    rows = [{**row, **changed} if row["step"] == 1 else row for row in ROWS]
    rows = [{**row, "hits": 78} if changed.get("hits") and row["side"] == bench.PEER else row for row in rows]
    with pytest.raises(InputError, match=message):
        bench.read_comparisons(kept(tmp_path, rows))


def test_other_rules_may_find_other_hits(tmp_path):
    rows = [{**row, "same_rules": False, "hits": 77 + row["step"] % 2} for row in ROWS]
    (each,) = bench.read_comparisons(kept(tmp_path, rows))
    assert each.hits == {bench.OURS: 77, bench.PEER: 78}
    definitions = [number.definition for number in bench.of_peers([each], MACHINE)]
    assert "other rules" in definitions[0]


def test_a_machine_without_a_name_is_refused(tmp_path):
    path = tmp_path / "peers.json"
    path.write_text(json.dumps({"cpu": "", "cores": 2, "date": "2026-11-30"}), encoding="utf-8")
    with pytest.raises(InputError, match=r"peers\.json: cpu"):
        bench.read_machine(path)


def growth_row(sessions, context_tokens, turns, growing=True):
    sizes = {"sessions": sessions, "context_tokens": context_tokens, "turns": turns, "growing": growing}
    counts = {"requests": 10, "blocks": 5, "hbm_blocks": 3, "cxl_blocks": None, "hits": 2}
    return {**sizes, "semantics": "requests", "policy": "lru", **counts, "prepare_s": 0.5, "replays": 2, "cpu_s": 0.1, "peak_mib": 150.0}


def test_growth_by_sweep(tmp_path):
    path = tmp_path / "growth.csv"
    cases = [
        (200, 8192, 2500, False),
        (200, 8192, 2500),
        (200, 8192, 25_000),
        (200, 2**20, 2500),
        (20_000, 8192, 25_000),
        (20_000, 2**17, 250_000),
    ]
    pl.DataFrame([growth_row(*case) for case in cases]).write_csv(path)
    found = {number.key.removeprefix("measured.bench.growth."): number.value for number in bench.of_growth(path, MACHINE)}
    assert found["contexts.8k.requests_lru.us_per_turn"] == found["turns.2500.requests_lru.us_per_turn"] == pytest.approx(20)
    assert found["sessions.20000.requests_lru.us_per_turn"] == pytest.approx(2)
    assert found["largest.all.requests_lru.cpu_s"] == pytest.approx(0.05)
    assert "contexts.1m.requests_lru.peak_mib" in found
    assert [key for key in found if key.startswith("still_contexts")] == [
        "still_contexts.8k.requests_lru.us_per_turn",
        "still_contexts.8k.requests_lru.peak_mib",
    ]
    pl.DataFrame([growth_row(*case) for case in cases[:-1]]).write_csv(path)
    with pytest.raises(InputError, match="no case of largest"):
        list(bench.of_growth(path, MACHINE))

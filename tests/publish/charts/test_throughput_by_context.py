import json

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.publish import render
from kvtier.publish.charts import throughput_by_context
from kvtier.publish.ledger import Ledger

RATES = {("kvtier", "lru"): (3000.0, 200_000.0), ("libcachesim", "lru"): (30.0, 4.0), ("libcachesim", "min"): (10.0, 2.0)}
CONTEXTS = {"8k": (8192, 2500), "1m": (2**20, 312)}


def measured(value, unit):
    record = {"value": value, "display": f"{value:,.0f}", "unit": unit, "label": str(Label.MEASURED), "definition": "x / y"}
    return {**record, "status": "stands", "rule": "tabulate_benchmarks", "params": {}, "inputs": {}, "uncertainty": {}}


@pytest.fixture
def given(tmp_path):
    """Table, machine file and ledger."""
    rows, records = [], {}
    for (side, policy), rates in RATES.items():
        for (word, (tokens, turns)), rate in zip(CONTEXTS.items(), rates, strict=True):
            key = f"measured.bench.contexts.{word}.{policy}.{side}_rate"
            records[key] = measured(rate, "M requests/s")
            sizes = {"key": key, "context_tokens": tokens, "turns": turns, "policy": policy, "side": side}
            rows.append({**sizes, "million_requests_per_s": rate, "lowest": 0.9 * rate, "highest": 1.1 * rate})
    for word, ratio in (("8k", 100.0), ("1m", 50_000.0)):
        records[f"measured.bench.contexts.{word}.lru.ratio"] = measured(ratio, "")
    records["measured.bench.arbitrary.lru.ratio"] = {**measured(0.2, ""), "display": "0.20"}
    table, machine = tmp_path / "throughput.csv", tmp_path / "peers.json"
    pl.DataFrame(rows).write_csv(table)
    machine.write_text(json.dumps({"cpu": "Small CPU", "cores": 2, "date": "2026-11-30", "libcachesim": "0.3.5"}), encoding="utf-8")
    return table, machine, Ledger("numbers.json", records)


def test_is_measured_on_a_named_machine_and_says_each_rate(given):
    figure = throughput_by_context.draw(*given)
    assert figure.badge == "Measured · Small CPU, one of 2 cores, 2026-11-30"
    assert "kvtier, LRU: 3,000 M requests/s, 200,000 M requests/s" in figure.alt
    assert "LRU of kvtier over that of libCacheSim: 100, 50,000" in figure.alt
    assert "fewer turns at 1M" in figure.caption
    assert "in no order: 0.20 times libCacheSim's rate (LRU)" in figure.caveat
    picture = render.svg(figure, render.spec(figure))
    for words in ("×50,000", "libCacheSim MIN: 2 M requests/s", "8K", "1M", figure.caption[:60]):
        assert f">{words}" in picture


def test_axis_holds_every_timing_in_whole_decades(given):
    table, _, ledger = given
    rows = throughput_by_context.drawn(pl.read_csv(table), ledger)
    assert throughput_by_context.domain(rows) == (1.0, 1_000_000.0)


def test_a_table_that_is_not_the_ledgers_is_refused(given):
    table, machine, ledger = given
    pl.read_csv(table).with_columns(pl.col("million_requests_per_s") * 2).write_csv(table)
    with pytest.raises(InputError, match=r"measured\.bench\.contexts\.8k\.lru\.kvtier_rate"):
        throughput_by_context.draw(table, machine, ledger)


def test_a_machine_that_does_not_name_the_peer_is_refused(given):
    table, machine, ledger = given
    machine.write_text(json.dumps({"cpu": "Small CPU", "cores": 2, "date": "2026-11-30"}), encoding="utf-8")
    with pytest.raises(InputError, match=r"peers\.json: libcachesim"):
        throughput_by_context.draw(table, machine, ledger)

"""Numbers of run tables: means over seeds, what is left out, what the definitions say."""

import re

import polars as pl
import pytest

from kvtier.evidence import simulated
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.simulate import metrics

ROW = {
    "revision": 2,
    "experiment": "e1",
    "workload": "zipf",
    "seed": 1,
    "policy": "lru",
    "alpha": None,
    "persist_meta": False,
    "overlap": False,
    "hbm_gib": 32.0,
    "cxl_gib": 512.0,
    "counted_from": 1250,
    "turns": 1250,
    "hit_rate": 40.0,
    "cxl_rate": 50.0,
    "cold_rate": 10.0,
    "stall_ms": 8.0,
    "fetch_ms": 2.0,
    "recompute_ms": 6.0,
    "evictions": 200,
    "evictions_from_read_set": 50,
}


def table(*changes):
    return pl.DataFrame([{**ROW, **change} for change in changes], schema_overrides={"alpha": pl.Float64, "evictions": pl.Int64})


def by_policy(row):
    return f"sim.{row['policy']}"


def test_mean_over_seeds_with_lowest_and_highest():
    runs = table({"seed": 1, "hit_rate": 40.0}, {"seed": 2, "hit_rate": 43.0}, {"seed": 3, "hit_rate": 38.5})
    (number,) = simulated.means(runs, by_policy, ["hit"])
    assert number == Number(
        "sim.lru.hit",
        40.5,
        "%",
        2,
        Label.SIMULATED,
        "blocks read that were in HBM / blocks read; "
        "Revision 2, zipf, LRU, HBM 32 GiB, CXL 512 GiB, turns 1,250 to 2,499, mean of seeds 1, 2, 3",
        {"lowest_seed": 38.5, "highest_seed": 43.0},
        Status.PROVISIONAL,
    )


@pytest.mark.parametrize(("revision", "status"), [(1, Status.WITHDRAWN), (2, Status.PROVISIONAL)])
def test_status_is_that_of_the_revision(revision, status):
    assert [number.status for number in simulated.means(table({"revision": revision}), by_policy, ["hit"])] == [status]


def test_definitions_of_stalls_say_the_simulators_costs():
    """64 GB/s, 300 ns and 17.92 ms are words in the definition and constants in the simulator."""
    words = re.match(r"5 MiB at (\d+) GB/s plus (\d+) ns a fetched block, ([\d.]+) ms a recomputed block", simulated.COSTS)
    gbps, setup_ns, recompute_ms = map(float, words.groups())
    assert pytest.approx((5 * 2**20 / (gbps * 1e9) + setup_ns * 1e-9, recompute_ms / 1e3)) == (metrics.FETCH_S, metrics.RECOMPUTE_S)
    for name in ("stall", "fetch", "recompute_share"):
        assert simulated.COSTS in simulated.means(table({}), by_policy, [name])[0].definition


def test_evictions_are_of_the_whole_run():
    """Counted from turn 1,250 as everything else is, but evictions are not."""
    share, hit = simulated.means(table({}), by_policy, ["read_set_evictions", "hit"])
    assert "turns 0 to 2,499" in share.definition
    assert "turns 1,250 to 2,499" in hit.definition


def test_one_seed_has_no_spread():
    (number,) = simulated.means(table({"seed": 7}), by_policy, ["hit"])
    assert number.uncertainty == {}
    assert number.definition.endswith(", seed 7")


def test_groups_keep_apart_and_in_order():
    runs = table({"policy": "lfu", "hit_rate": 1.0}, {"hit_rate": 2.0}, {"policy": "lfu", "seed": 2, "hit_rate": 3.0})
    found = [(number.key, number.value) for number in simulated.means(runs, by_policy, ["hit", "stall"])]
    assert found == [("sim.lfu.hit", 2.0), ("sim.lfu.stall", 8.0), ("sim.lru.hit", 2.0), ("sim.lru.stall", 8.0)]


@pytest.mark.parametrize(
    ("field", "value", "unit"),
    [
        ("hit", 40, "%"),
        ("cxl", 50, "%"),
        ("cold", 10, "%"),
        ("stall", 8, "ms"),
        ("fetch", 2, "ms"),
        ("recompute_share", 75, "%"),
        ("read_set_evictions", 25, "%"),
    ],
)
def test_every_field_by_hand(field, value, unit):
    (number,) = simulated.means(table({}), by_policy, [field])
    assert (number.key, number.value, number.unit, number.label) == (f"sim.lru.{field}", value, unit, Label.SIMULATED)
    assert set(simulated.FIELDS) >= {field}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("recompute_share", {"stall_ms": 0.0, "fetch_ms": 0.0, "recompute_ms": 0.0}),
        ("read_set_evictions", {"evictions": 0, "evictions_from_read_set": 0}),
        ("read_set_evictions", {"evictions": None, "evictions_from_read_set": None}),
    ],
)
def test_a_share_of_nothing_makes_no_number(field, change):
    """Even if only one of the seeds is undefined: a mean of the others would be of other seeds than it says."""
    found = simulated.means(table({"seed": 1}, {"seed": 2, **change}), by_policy, [field, "hit"])
    assert [number.key for number in found] == ["sim.lru.hit"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": "ema", "alpha": 0.003}, "EMA alpha 0.003, state dropped at eviction"),
        ({"policy": "lfu", "persist_meta": True}, "LFU, state kept at eviction"),
        ({"overlap": True}, "LRU, each turn's fetches hidden behind its own decode"),
        ({"hbm_gib": 2.5, "counted_from": 0, "turns": 2500}, "HBM 2.5 GiB, CXL 512 GiB, turns 0 to 2,499"),
    ],
)
def test_definitions_say_the_conditions(change, words):
    assert words in simulated.conditions({**ROW, **change})


def numbers_of(*values):
    return [Number(f"sim.n{i}.hit", value, "%", 2, Label.SIMULATED, "hits", status=Status.WITHDRAWN) for i, value in enumerate(values)]


def test_difference_is_paired_by_seed():
    """Seed 1: 44 − 38 = 6; seed 2: 43 − 42 = 1; their mean 3.5, whatever the order of the seeds."""
    margin = simulated.difference("sim.margin", {1: 44.0, 2: 43.0}, {2: 42.0, 1: 38.0}, "hit", "over LRU")
    assert margin == Number(
        "sim.margin",
        3.5,
        "points",
        2,
        Label.SIMULATED,
        "over LRU, seed by seed, mean of seeds 1, 2",
        {"lowest_seed": 1.0, "highest_seed": 6.0},
        Status.PROVISIONAL,
    )


def test_difference_of_times_keeps_its_unit():
    saved = simulated.difference("sim.saved", {1: 9.5}, {1: 8.0}, "stall", "exposed minus hidden")
    assert (saved.display, saved.unit, saved.uncertainty) == ("1.5", "ms", {})
    assert saved.definition == "exposed minus hidden, seed by seed, seed 1"


def test_difference_of_other_seeds_is_refused():
    with pytest.raises(ValueError, match=r"sim\.margin: seeds \[1, 2\] and \[1, 3\] are not the same"):
        simulated.difference("sim.margin", {1: 1.0, 2: 2.0}, {1: 1.0, 3: 2.0}, "hit", "over LRU")


def test_values_by_key_and_seed():
    runs = table({"seed": 2, "hit_rate": 3.0}, {"seed": 1}, {"policy": "lfu", "hit_rate": 1.0})
    assert simulated.by_seed(runs, by_policy, "hit") == {"sim.lru": {2: 3.0, 1: 40.0}, "sim.lfu": {1: 1.0}}


def test_extremes_name_what_they_chose():
    among = numbers_of(3.0, -1.0, 2.0)
    lowest = simulated.extreme("sim.lowest", min, among, "lowest hit rate")
    highest = simulated.extreme("sim.highest", max, among, "highest hit rate")
    assert (lowest.value, lowest.definition, lowest.unit) == (-1.0, "lowest hit rate: sim.n1.hit", "%")
    assert lowest.status is Status.WITHDRAWN
    assert (highest.value, highest.definition) == (3.0, "highest hit rate: sim.n0.hit")


def test_by_key():
    one, other = numbers_of(1.0, 2.0)
    assert simulated.by_key([one, other]) == {"sim.n0.hit": one, "sim.n1.hit": other}

"""Runs that a reader may look up: each combination once, with the keys of its numbers."""

import pytest

from kvtier.publish.facts import Facts
from kvtier.publish.ledger import Ledger
from kvtier.publish.pages.runs import runs
from kvtier.publish.verdicts import Claims

KEYS = (
    "sim.rev2.e1.32.lru.hit",
    "sim.rev2.e1.32.ema015.hit",
    "sim.rev2.e1.32.ema015.margin",
    "sim.rev2.grid.32.ema015.reset.hit",
    "sim.rev2.grid.32.ema015.persistent.hit",
    "sim.rev2.e5.persistent.lfu.hit",
    "sim.rev3.e1.8.min.hit",
    "sim.rev3.e1.8.lru.hit",
    "sim.rev3.e1.8.lfu_persistent.hit",
    "sim.rev3.e1.8.lfu_persistent.regret",
    "sim.rev3.family.16.arc.hit",
    "sim.rev3.family.16.over_budget",
)


@pytest.fixture
def facts(records):
    some = records["sim.rev2.e2.lru.hit"]
    ledger = Ledger("numbers.json", dict.fromkeys(KEYS, some))
    return Facts(ledger, Claims("claims.json", {}, ledger, {}))


@pytest.fixture
def found(facts):
    return {(run["revision"], run["budget"], run["policy"], run["state"]): run for run in runs(facts)}


def test_each_combination_once_in_reading_order(found):
    assert list(found) == [
        ("2", "32", "lru", "dropped"),
        ("2", "32", "lfu", "kept"),
        ("2", "32", "ema015", "dropped"),
        ("2", "32", "ema015", "kept"),
        ("3", "8", "lru", "dropped"),
        ("3", "8", "lfu", "kept"),
        ("3", "8", "min", "dropped"),
        ("3", "16", "arc", "dropped"),
    ]


def test_the_first_experiment_has_it(found):
    assert found["2", "32", "ema015", "dropped"]["hit"] == "sim.rev2.e1.32.ema015.hit"
    assert found["2", "32", "ema015", "kept"]["experiment"] == "grid of α"


def test_what_the_ledger_has_is_there_and_nothing_else(found):
    kept = found["3", "8", "lfu", "kept"]
    assert (kept["regret"], kept["lru"], kept["optimum"]) == (
        "sim.rev3.e1.8.lfu_persistent.regret",
        "sim.rev3.e1.8.lru.hit",
        "sim.rev3.e1.8.min.hit",
    )
    assert "margin" not in kept
    assert found["2", "32", "ema015", "dropped"]["margin"] == "sim.rev2.e1.32.ema015.margin"
    assert {"lru", "optimum"}.isdisjoint(found["2", "32", "lfu", "kept"]), "one seed of e5: the LRU of two seeds is not beside it"
    assert {"lru", "optimum"}.isdisjoint(found["3", "16", "arc", "dropped"])


def test_their_papers_come_with_the_page(facts):
    keys = {run[field] for run in runs(facts) for field in ("hit", "margin", "regret", "lru", "optimum") if field in run}
    assert {f"n/{key}" for key in keys} <= set(facts.used)

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.publish.ledger import Ledger


def test_a_quote_prints_the_ledgers_display_and_unit(ledger):
    assert ledger["sim.rev2.e2.lru.hit"].text == "36.85 %"
    assert ledger["sim.rev2.e2.best_alpha"].text == "0.050"


def test_a_negative_number_has_a_real_minus(ledger):
    assert ledger["analytic.users.16.free_gb"].text == "−640 GB"
    assert ledger["analytic.users.16.free_gb"].signed == "−640 GB"
    assert ledger["sim.rev2.e2.best_margin"].signed == "+19.11 points"


def test_zero_has_no_sign(records):
    records["sim.rev2.e2.best_margin"] |= {"value": 0.0, "display": "0.00"}
    assert Ledger("numbers.json", records)["sim.rev2.e2.best_margin"].signed == "0.00 points"


def test_what_rounds_to_zero_has_no_sign(records):
    ends = {"interval_low": -0.0649, "interval_high": -0.0001, "interval_level": 0.95}
    records["sim.rev2.e2.best_margin"] |= {"value": -0.0003, "display": "-0.00", "uncertainty": ends}
    records["sim.rev2.e2.lru.hit"] |= {"value": -1000.5, "display": "-1,000.50"}
    quote = Ledger("numbers.json", records)["sim.rev2.e2.best_margin"]
    assert (quote.bare, quote.signed, quote.interval) == ("0.00", "0.00 points", "[−0.06, 0.00] points")
    assert Ledger("numbers.json", records)["sim.rev2.e2.lru.hit"].bare == "−1,000.50"


def test_intervals_have_the_decimals_of_the_display(ledger):
    assert ledger["measured.gb10.vllm_loo_16x16384.slope"].interval == "± 1.20 ms/GiB"
    assert ledger["sim.rev2.e1.8.lru.hit"].interval == "10.00 to 11.00 %"
    assert ledger["sim.rev2.e2.lru.hit"].interval is None


def test_an_interval_goes_before_the_lowest_and_highest_seed(records):
    ends = {"interval_low": -0.149, "interval_high": 45.1551, "interval_level": 0.95, "lowest_seed": 36.0, "highest_seed": 37.0}
    records["sim.rev2.e2.lru.hit"]["uncertainty"] = ends
    records["sim.rev2.e2.best_alpha"]["uncertainty"] = ends
    ledger = Ledger("numbers.json", records)
    assert ledger["sim.rev2.e2.lru.hit"].interval == "[−0.15, 45.16] %"
    assert ledger["sim.rev2.e2.best_alpha"].interval == "[−0.149, 45.155]"


def test_an_unknown_key_is_named(ledger):
    with pytest.raises(InputError, match=r"numbers\.json: sim\.rev9\.hit: found no such key"):
        ledger["sim.rev9.hit"]


def test_a_label_that_is_no_class_is_refused(records):
    records["analytic.hbm.capacity_gb"]["label"] = "Measured-ish"
    with pytest.raises(InputError, match=r"capacity_gb: label: found Measured-ish, expected one of Measured,"):
        Ledger("numbers.json", records)


def test_a_record_without_its_papers_is_refused(records):
    del records["analytic.hbm.capacity_gb"]["rule"]
    with pytest.raises(InputError, match="the field rule"):
        Ledger("numbers.json", records)


def test_a_table_of_another_build_is_refused(ledger):
    assert ledger.drawn("sim.rev2.e2.lru.hit", 36.85).label is Label.SIMULATED
    with pytest.raises(InputError, match=r"sim\.rev2\.e2\.lru\.hit: found 36\.85, expected 36\.86"):
        ledger.drawn("sim.rev2.e2.lru.hit", 36.86)


def test_a_pattern_finds_what_its_names_stand_for(ledger):
    found = ledger.matches("sim.rev2.e1.<gib>.<policy>.hit")
    assert {"gib": "32", "policy": "ema015"} in found
    assert len(found) == 12
    assert ledger.matches("sim.rev2.e1.<gib>.hit") == []

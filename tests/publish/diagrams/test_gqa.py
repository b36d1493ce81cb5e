"""Figures of the score streams: areas to scale, a field of as many cells as streams, and what their captions say of the ledger."""

import json
import re
from pathlib import Path

import pytest

from kvtier.publish.diagrams import catalogue
from kvtier.publish.diagrams.gqa import BLOCKS, BUDGETS_GIB, POLICIES, boxes, bundle, side_of
from kvtier.publish.drawing import NARROW, WIDE

DATA = Path(__file__).parents[3] / "data"
NUMBERS = json.loads((DATA / "numbers.json").read_text(encoding="utf-8"))
CLAIMS = json.loads((DATA / "claims.json").read_text(encoding="utf-8"))


def value(key):
    return NUMBERS[key]["value"]


def printed(claim):
    return float(CLAIMS[claim]["printed"].replace(",", ""))


def test_square_of_a_share_has_that_share_of_the_area():
    assert side_of(0.25, 40, 10) ** 2 == pytest.approx(100)


def test_boxes_are_closed_and_one_a_corner():
    assert boxes([(0, 0), (5, 1)], 3, 2) == "M0.00 0.00h3.00v2.00h-3.00zM5.00 1.00h3.00v2.00h-3.00z"


def test_bundle_ends_side_by_side_at_one_height():
    curves = bundle([(0, 0), (10, 0)], [4, 6], 20)
    assert re.findall(r"([\d.]+) ([\d.]+)(?=M|$)", curves) == [("4.0", "20.0"), ("6.0", "20.0")]


def test_figures_of_the_page_stand_behind_those_of_the_appendix():
    numbers = list(catalogue.read())
    assert numbers[-6:] == [f"gqa.{number}" for number in range(1, 7)]


def test_as_a_bar_the_state_would_not_be_seen():
    assert max(WIDE, NARROW) * value("analytic.gqa.state_percent") / 100 < 0.01, "a hundredth of a pixel"


def test_all_states_fill_a_tenth_of_a_block():
    assert value("analytic.gqa.state_kib") / 1024 / value("analytic.kv.llama3_70b.block_mib") == pytest.approx(0.1)


def test_example_is_hot_to_cold_and_touched_more_than_its_first_block():
    scores = [printed(f"gqa.description.block_{block}_score") for block in BLOCKS]
    assert scores == sorted(scores, reverse=True)
    assert printed("gqa.description.block_7993_touches") > printed("gqa.description.block_0_touches")


@pytest.mark.parametrize("policy", [policy for policy, _, _ in POLICIES])
def test_gain_from_kept_state_is_clear_of_zero(policy):
    assert NUMBERS[f"sim.rev3.e5.gain.{policy}.hit"]["uncertainty"]["interval_low"] > 0


@pytest.mark.parametrize("state", ["", "_persistent"])
@pytest.mark.parametrize("budget", BUDGETS_GIB[2:])
def test_ema_001_leads_the_three_from_32_gib_on(budget, state):
    margins = {policy: value(f"sim.rev3.e1.{budget}.{policy}{state}.margin") for policy, _, _ in POLICIES}
    assert max(margins, key=margins.get) == "ema001"


@pytest.mark.parametrize("budget", ["64", "128"])
def test_lfu_without_its_state_does_not_lead_lru(budget):
    assert NUMBERS[f"sim.rev3.e1.{budget}.lfu.margin"]["uncertainty"]["interval_low"] < 0 > value(f"sim.rev3.e1.{budget}.lfu.margin")

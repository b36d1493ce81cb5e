"""Where Diagram 12.1 says its blocks go."""

from __future__ import annotations

from kvtier.analytic.scoring import priority, tier_of
from kvtier.evidence.labels import Label
from kvtier.publish.diagrams.priority import BLOCKS, place_of
from kvtier.publish.facts import Fact, Kind

WEIGHTS = {"recency": 0.25, "ema": 0.55, "anchor": 0.2}
CUTS = tuple(Fact(f"n/{cut}", str(cut), cut, Label.ILLUSTRATIVE, Kind.NUMBER) for cut in (0.3, 0.6))


def test_the_three_blocks_show_the_three_places():
    assert [place_of(block, WEIGHTS, CUTS) for block in BLOCKS] == ["pinned HBM", "HBM", "CXL"]


def test_a_place_follows_from_weights_and_cuts():
    by_anchor = {"recency": 0.0, "ema": 0.0, "anchor": 1.0}
    assert [place_of(block, by_anchor, CUTS) for block in BLOCKS] == ["CXL", "pinned HBM", "CXL"]


def test_a_place_is_the_tier_of_the_model():
    names = {"T0": "pinned HBM", "T1": "HBM", "T2": "CXL"}
    for block in BLOCKS:
        score = priority(block.levels["recency"], block.levels["ema"], block.levels["anchor"], list(WEIGHTS.values()))
        assert place_of(block, WEIGHTS, CUTS) == names[tier_of(score, [cut.value for cut in CUTS])]

"""The spread of a number as charts draw and write it."""

import pytest

from kvtier.evidence.labels import Label, Status
from kvtier.publish import intervals
from kvtier.publish.ledger import Quote

LEVEL = {"interval_low": 1.2, "interval_high": 2.3, "interval_level": 0.95}
SEEDS = {"lowest_seed": 0.5, "highest_seed": 4.5}


def quote(display="1.75", unit="points", **uncertainty):
    return Quote("a.b", float(display), display, unit, Label.SIMULATED, Status.STANDS, "x / y", "some_rule", {}, uncertainty)


@pytest.mark.parametrize(
    ("uncertainty", "expected"),
    [(LEVEL, (1.2, 2.3)), (SEEDS, (0.5, 4.5)), (LEVEL | SEEDS, (1.2, 2.3)), ({"standard_error": 0.1}, (None, None)), ({}, (None, None))],
)
def test_the_interval_comes_before_the_range_of_the_seeds(uncertainty, expected):
    assert tuple(intervals.ends(quote(**uncertainty)).values()) == expected


def test_units_are_the_axis_own():
    assert intervals.with_interval(quote(**LEVEL)) == "1.75 [1.20, 2.30]"
    assert intervals.signed_with_interval(quote(**LEVEL)) == "+1.75 [1.20, 2.30]"
    assert intervals.signed(quote("-1.75")) == "−1.75"
    assert quote(**LEVEL).plus_minus == "1.75 [1.20, 2.30] points"


def test_a_range_of_seeds_is_not_written_as_an_interval():
    assert intervals.with_interval(quote(**SEEDS)) == "1.75"


def test_one_seed_has_no_interval():
    assert intervals.said("bars,", [quote()], "one seed") == "one seed, no interval"
    assert (
        intervals.said("bars,", [quote(), quote(**LEVEL)], "30 seeds", ", paired")
        == "bars, 95 % intervals of the mean over 30 seeds, paired"
    )

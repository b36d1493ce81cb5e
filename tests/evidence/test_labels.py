from itertools import product

import pytest

from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label, Status, weakest

STRONGEST_FIRST = [
    "Measured",
    "Simulated (provisional)",
    "Analytical model",
    "Vendor specification",
    "External literature",
    "Design target",
    "Illustrative",
]


def test_classes_are_the_published_ones_in_order():
    assert [str(label) for label in sorted(Label, key=lambda label: label.rank)] == STRONGEST_FIRST
    assert set(MEANING) == set(Label)


@pytest.mark.parametrize("pair", list(product(Label, Label)), ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_a_derived_value_is_as_weak_as_its_weakest_input(pair):
    assert str(weakest(pair)) == STRONGEST_FIRST[max(STRONGEST_FIRST.index(label) for label in pair)]


def test_weakest_of_many_and_of_one():
    assert weakest(iter([Label.MEASURED, Label.TARGET, Label.VENDOR])) is Label.TARGET
    assert weakest([Label.MEASURED]) is Label.MEASURED


def test_a_value_derived_from_nothing_has_no_label():
    with pytest.raises(ValueError, match="empty"):
        weakest([])


def test_statuses_cover_the_published_ones():
    """SPEC §1, with the assumption to which a value is demoted."""
    assert {"stands", "provisional", "demoted", "withdrawn", "reversed", "retracted"} < {str(status) for status in Status}


def test_simulated_values_never_go_without_their_caveat():
    assert "provisional" in SIMULATION_CAVEAT

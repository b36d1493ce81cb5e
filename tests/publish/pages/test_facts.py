"""What may be shown as what, and which class a figure has."""

from __future__ import annotations

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.publish.facts import Fact, Kind, label_of


def test_a_number_is_shown_with_its_papers(facts):
    fact = facts.num("analytic.kv.llama3_70b.128k.gib")
    assert (fact.ref, fact.text, fact.label) == ("n/analytic.kv.llama3_70b.128k.gib", "40.00 GiB", Label.ANALYTICAL)


def test_an_interval_that_is_not_there_is_not_made_up(facts):
    with pytest.raises(InputError, match="no uncertainty"):
        facts.num("analytic.kv.llama3_70b.128k.gib", "unc")


def test_a_retracted_number_is_no_result(facts):
    with pytest.raises(InputError, match="retracted"):
        facts.num("analytic.gqa.retracted_state_mib")


def test_a_stated_input_is_no_way_to_print_a_result(facts):
    assert facts.stated("appendix.s01.layers").text == "80 layers"
    with pytest.raises(InputError, match="stated input"):
        facts.stated("appendix.s15.e1_32_lru")


def test_a_retracted_value_stands_in_its_box_alone(facts):
    assert facts.retracted("appendix.s15.users").kind is Kind.RETRACTED
    with pytest.raises(InputError, match="retraction box"):
        facts.published("appendix.s15.users")
    with pytest.raises(InputError, match="not retracted"):
        facts.retracted("appendix.s01.layers")


def test_both_gives_the_printed_number_and_the_ledgers(facts):
    pair = facts.both("appendix.s09.transfer", 1)
    assert (pair.published.text, pair.recomputed.ref) == ("82 µs", "n/analytic.transfer.64gbps.us")


def test_one_number_of_several_is_taken_by_its_position(facts):
    assert [facts.stated("appendix.s08.split", position).value for position in range(3)] == [40.0, 15.0, 25.0]


def test_collecting_sees_what_is_shown_meanwhile(facts):
    facts.num("analytic.hbm.kv_gb")
    with facts.collecting() as shown:
        facts.num("analytic.hbm.pinned_gb")
    facts.num("analytic.hbm.evictable_gb")
    assert list(shown) == ["n/analytic.hbm.pinned_gb"]
    assert len(facts.used) == 3


def test_an_outer_collection_stays_open_when_an_equal_one_inside_it_ends(facts):
    with facts.collecting() as outer:
        with facts.collecting():
            facts.num("analytic.hbm.pinned_gb")
        facts.num("analytic.hbm.evictable_gb")
    assert list(outer) == ["n/analytic.hbm.pinned_gb", "n/analytic.hbm.evictable_gb"]


def of(*labels: Label) -> dict[str, Fact]:
    return {str(index): Fact(str(index), "1", 1.0, label, Kind.NUMBER) for index, label in enumerate(labels)}


def test_a_figure_has_the_weakest_class_of_its_results():
    assert label_of(of(Label.MEASURED, Label.ANALYTICAL)) is Label.ANALYTICAL
    assert label_of(of(Label.SIMULATED, Label.ILLUSTRATIVE)) is Label.ILLUSTRATIVE


def test_inputs_give_a_figure_its_class_only_where_nothing_else_is_shown():
    assert label_of(of(Label.ANALYTICAL, Label.VENDOR, Label.TARGET)) is Label.ANALYTICAL
    assert label_of(of(Label.VENDOR, Label.TARGET)) is Label.TARGET


def test_an_input_beside_a_measurement_is_not_passed_off_as_measured():
    assert label_of(of(Label.MEASURED, Label.VENDOR)) is Label.VENDOR
    assert label_of(of(Label.MEASURED, Label.ANALYTICAL, Label.VENDOR)) is Label.ANALYTICAL


def test_a_figure_without_values_has_no_class():
    with pytest.raises(InputError, match="evidence label"):
        label_of({})

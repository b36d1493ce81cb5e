import itertools

import pytest

from kvtier.analytic.inputs import StatedInput
from kvtier.analytic.labelling import derived, derived_label, derived_status, restated
from kvtier.evidence.labels import Label, Status


def stated(label=Label.VENDOR, status=Status.STANDS):
    return StatedInput(1, "GB", label, "data sheet", status)


@pytest.mark.parametrize("labels", [*itertools.combinations([label for label in Label if label is not Label.ILLUSTRATIVE], 2)])
def test_computed_is_analytical_whatever_it_was_computed_from(labels):
    """SPEC §1: a number computed from a literature input is Analytical, a ratio of fitted coefficients too."""
    assert derived_label(labels) is Label.ANALYTICAL


def test_an_illustrative_input_makes_it_illustrative():
    assert derived_label([Label.MEASURED, Label.ILLUSTRATIVE]) is Label.ILLUSTRATIVE
    assert derived_label(iter([])) is Label.ANALYTICAL


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([], Status.STANDS),
        ([Status.STANDS, Status.PROVISIONAL], Status.PROVISIONAL),
        ([Status.PROVISIONAL, Status.ASSUMPTION], Status.ASSUMPTION),
        ([Status.STANDS, Status.DEMOTED], Status.ASSUMPTION),
        ([Status.ASSUMPTION, Status.WITHDRAWN], Status.WITHDRAWN),
        ([Status.WITHDRAWN, Status.RETRACTED], Status.RETRACTED),
    ],
)
def test_the_weakest_standing_passes_on(statuses, status):
    assert derived_status(statuses) is status


def test_every_status_has_a_standing():
    assert {derived_status([status]) for status in Status} == set(Status) - {Status.DEMOTED}


def test_restated_keeps_the_label_and_derived_does_not():
    source = stated(Label.VENDOR, Status.DEMOTED)
    same, other = restated("a.b", 1, "GB", 0, source, "as stated"), derived("a.c", 2, "GB", 0, iter([source]), "doubled")
    assert (same.label, same.status) == (Label.VENDOR, Status.ASSUMPTION)
    assert (other.label, other.status) == (Label.ANALYTICAL, Status.ASSUMPTION)

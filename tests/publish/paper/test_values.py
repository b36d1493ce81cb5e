"""What the paper may print: forms of a number, published values, pictures."""

import json

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.publish.ledger import Ledger
from kvtier.publish.paper import values
from kvtier.publish.sources import Sources

from .conftest import PICTURE, RECORDS


def test_forms_of_a_number_keep_unit_and_interval_together():
    forms = values.number(Ledger("numbers.json", RECORDS)["sim.margin"])
    assert forms == {
        "text": "1.75\u00a0points",
        "bare": "1.75",
        "signed": "+1.75\u00a0points",
        "interval": "[1.64,\u00a01.86]\u00a0points",
        "plus_minus": "1.75 [1.64,\u00a01.86]\u00a0points",
        "label": str(Label.SIMULATED),
    }


def test_a_claim_has_its_numbers_apart(small):
    _, _, sources, printable = small.parts("")
    claim = printable["claims"]["appendix.summary.transfer"]
    assert claim["text"].split() == ["164,", "82", "or", "43", "µs"]
    assert [part.split() for part in claim["parts"]] == [["164", "µs"], ["82", "µs"], ["43", "µs"]]
    assert not claim["withdrawn"]
    assert printable["claims"]["retractions.s1.hit_rate"]["withdrawn"]
    for row in printable["verdicts"]:
        assert sum(int(count) for count in row["counts"]) == int(row["all"])
    assert sum(int(row["all"]) for row in printable["verdicts"]) == len(sources.claims.records)


def test_without_claims_there_is_no_paper():
    with pytest.raises(InputError, match="claims: found none"):
        values.printable(Ledger("numbers.json", RECORDS), Sources(), {}, "1.0")


def test_a_picture_says_how_wide_it_is(tmp_path):
    page, picture = tmp_path / "drawn.page.json", tmp_path / "drawn.svg"
    page.write_text(json.dumps({"name": "drawn", "label": "Measured", "alt": "A chart"}), encoding="utf-8")
    picture.write_text(PICTURE, encoding="utf-8")
    assert values.read_figures([page]) == {"drawn": {"label": "Measured", "alt": "A chart", "width_px": 100}}
    picture.write_text(PICTURE.replace(' width="100"', "", 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"drawn\.svg: svg: found no width"):
        values.read_figures([page])

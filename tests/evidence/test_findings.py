from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from kvtier.errors import InputError
from kvtier.evidence import findings
from kvtier.evidence.arithmetic import Values, evaluate
from kvtier.files import read_json
from kvtier.publish.ledger import Ledger
from kvtier.publish.verdicts import Claims

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "data/published/findings.yaml"
VALUES = Values({"sim.hit": 44.0, "sim.other": 40.0}, {"doc.hit": (Decimal(44),)})
GOOD = {
    "id": "D1",
    "title": "The hit rate is too high.",
    "claims": ["doc.hit"],
    "condition": 'num("sim.hit") > num("sim.other")',
    "shows": 'It is {{ num("sim.other") }}, printed {{ printed("doc.hit") }}.',
}


@pytest.fixture
def read(tmp_path):
    def read(*entries):
        path = tmp_path / "findings.yaml"
        path.write_text(yaml.safe_dump({"findings": list(entries)}, allow_unicode=True), encoding="utf-8")
        return findings.read(path)

    return read


def test_a_finding_that_holds(read):
    (found,) = read(GOOD)
    findings.check("f.yaml", [found], VALUES, ["doc.hit"])
    assert findings.numbers_of(found) == ["sim.hit", "sim.other"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, r"D1\.colour: found an unknown field"),
        ({"pending": "Revision 3"}, r"D1\.condition: found both or neither"),
        ({"condition": ""}, r"D1\.condition: found both or neither"),
        ({"shows": "It is 40.2 %."}, r"D1\.shows: found '40\.2', typed"),
        ({"title": "It is 40."}, r"D1\.title: found '40\.', typed"),
        ({"shows": "It is {{ 40 }}."}, r"D1\.shows: found 40, expected one call"),
        ({"shows": '{{ open("x") }}'}, r"D1\.shows: found open"),
    ],
)
def test_a_bad_finding_is_named_with_its_field(read, change, message):
    with pytest.raises(InputError, match=message):
        read({**GOOD, **change})


def test_a_missing_field_and_a_second_id_are_named(read):
    with pytest.raises(InputError, match=r"D1\.shows: found nothing"):
        read({key: value for key, value in GOOD.items() if key != "shows"})
    with pytest.raises(InputError, match="D1: found the id twice"):
        read(GOOD, GOOD)


def test_names_may_have_digits(read):
    assert read({**GOOD, "names": ["32 GiB"], "title": "At 32 GiB EMA 0.15 of Revision 2 leads (e1, D7)."})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"condition": 'num("sim.hit") < 40'}, r"D1\.condition: found false"),
        ({"condition": 'num("sim.hit")'}, r"D1\.condition: found 44\.0, expected true or false"),
        ({"condition": 'num("sim.gone") > 1'}, r"D1\.condition: num\('sim\.gone'\): found no such key"),
        ({"shows": '{{ num("sim.gone") }}'}, r"D1\.shows: num\('sim\.gone'\): found no such key"),
        ({"shows": '{{ printed("doc.gone") }}'}, r"D1\.shows: found doc\.gone"),
        ({"claims": ["doc.gone"]}, r"D1\.claims: found doc\.gone"),
    ],
)
def test_a_finding_that_does_not_hold_fails(read, change, message):
    with pytest.raises(InputError, match=message):
        findings.check("f.yaml", read({**GOOD, **change}), VALUES, ["doc.hit"])


@pytest.fixture(scope="module")
def kept():
    ledger = read_json(ROOT / "data/numbers.json")
    claims = Claims("claims.json", read_json(ROOT / "data/claims.json"), Ledger("numbers.json", ledger))
    return findings.read(KEPT), claims


def test_the_findings_hold_in_the_published_copy(kept):
    found, claims = kept
    findings.check(KEPT, found, claims.values(), claims.records)
    assert [finding.id for finding in found] == [f"D{i + 1}" for i in range(len(found))]
    assert not [finding.id for finding in found if finding.pending]


def holds(condition, numbers, claims):
    try:
        return evaluate(condition, Values(numbers, claims, {key: (value, value) for key, value in numbers.items()}), "condition")
    except InputError:
        return False


def test_every_condition_can_turn_false(kept):
    """No condition is true whatever the ledger holds; one over published values alone is not true whatever the package printed."""
    found, claims = kept
    values = claims.values()
    for finding in found:
        if finding.pending:
            continue
        if "num(" in finding.condition:
            printed = {float(value) for claim in finding.claims for value in values.claims[claim]}
            ledgers = [dict.fromkeys(values.numbers, value) for value in {0.0, 40.0, 1e9, *printed}]
            ledgers += [{key: factor * value for key, value in values.numbers.items()} for factor in (-1, 0.1, 10)]
            others = [(ledger, values.claims) for ledger in ledgers]
        else:
            others = [(values.numbers, {**values.claims, claim: (Decimal(999),)}) for claim in finding.claims]
        assert not all(holds(finding.condition, *other) for other in others), finding.id

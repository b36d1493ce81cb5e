import json
from pathlib import Path

import pytest
import yaml

from kvtier.errors import InputError
from kvtier.evidence import claims
from kvtier.evidence.claims import Verdict

ROOT = Path(__file__).resolve().parents[2]

CLAIM = {"id": "doc.s1.hit", "section": "1", "printed": "44.18", "unit": "%", "says": "hit rate", "label": "Simulated (provisional)"}
CLAIM |= {"status": "provisional", "keys": "sim.hit"}
LEDGER = {"sim.hit": {"value": 44.1815}, "count": {"value": 114114}, "low": {"value": 2.5}, "high": {"value": 5.84}, "loo": {"value": 1.9}}


@pytest.fixture
def judged(tmp_path):
    def judge(*changes, ledger=LEDGER):
        entries = [{name: value for name, value in (CLAIM | change).items() if value is not None} for change in changes]
        path = tmp_path / "doc.yaml"
        path.write_text(yaml.safe_dump({"name": "doc", "title": "A document", "sha256": "0", "claims": entries}), encoding="utf-8")
        return claims.judge_all([claims.read(path)], ledger)

    return judge


def verdict(judged, **change):
    return judged(change)[0].verdict


def test_a_value_that_prints_alike_is_reproduced(judged):
    assert verdict(judged) is Verdict.REPRODUCED


def test_a_value_that_moves_is_contradicted_with_what_came_out(judged):
    moved = judged({}, ledger=LEDGER | {"sim.hit": {"value": 44.3}})[0]
    assert moved.verdict is Verdict.CONTRADICTED
    assert "44.3" in moved.reason


def test_a_whole_number_is_reproduced_exactly(judged):
    assert verdict(judged, printed="114,114", keys="count") is Verdict.EXACTLY
    assert verdict(judged, printed="114,115", keys="count") is Verdict.CONTRADICTED


def test_a_range_needs_both_ends(judged):
    assert verdict(judged, printed="2.5 to 5.8", keys=["low", "high"]) is Verdict.REPRODUCED
    assert verdict(judged, printed="2.5 to 5.9", keys=["low", "high"]) is Verdict.CONTRADICTED


def test_scale_and_sign(judged):
    assert verdict(judged, printed="4.418", scale=0.1) is Verdict.REPRODUCED
    assert verdict(judged, printed="−2.5", keys=None, arithmetic="-num('low')") is Verdict.EXACTLY


def test_a_tie_may_have_been_rounded_either_way():
    assert claims.agrees(claims.Decimal("0.88"), 0.875)
    assert claims.agrees(claims.Decimal("0.12"), 0.125)
    assert not claims.agrees(claims.Decimal("0.89"), 0.875)


def test_a_challenge_is_a_condition_over_numbers(judged):
    change = {"challenge": "num('loo') < 2", "because": "one point decides"}
    assert verdict(judged, **change) is Verdict.CHALLENGED
    assert judged(change, ledger=LEDGER | {"loo": {"value": 2.4}})[0].verdict is Verdict.REPRODUCED


def test_a_retracted_value_is_never_reproduced_and_shows_its_derivation(judged):
    split = {"id": "doc.s1.split", "printed": "97", "keys": None, "stated": True}
    latency = {"id": "doc.s1.ns", "printed": "177", "status": "retracted", "keys": None, "arithmetic": "printed('doc.s1.split') + 80.4"}
    found = judged(split, latency)[1]
    assert found.verdict is Verdict.RETRACTED
    assert "177.4" in found.reason


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"keys": None, "stated": True}, Verdict.STATED),
        ({"keys": None, "because": "no raw row gives it"}, Verdict.UNTRACEABLE),
        ({"pending": "Revision 3"}, Verdict.PENDING),
    ],
)
def test_other_verdicts(judged, change, expected):
    assert verdict(judged, **change) is expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "Strong"}, "doc.s1.hit.label: found Strong"),
        ({"status": "fine"}, "doc.s1.hit.status: found fine"),
        ({"says": None}, "doc.s1.hit.says: found nothing"),
        ({"colour": "red"}, "doc.s1.hit.colour: found an unknown field"),
        ({"id": "other.s1"}, "expected an id that starts with doc."),
        ({"keys": None}, "no way to a verdict"),
        ({"stated": True}, "more than one way to a verdict"),
        ({"keys": ["low", "high"]}, "2 of them, expected one for each of the 1 numbers"),
        ({"challenge": "num('loo') < 2"}, "doc.s1.hit.because: found nothing"),
        ({"challenge": "678585 / 2500 > 1", "because": "it grows"}, "doc.s1.hit.challenge: found 678585"),
        ({"keys": "nothing.here"}, "no such key"),
    ],
)
def test_a_bad_claim_is_named_with_its_field(judged, change, said):
    with pytest.raises(InputError) as refused:
        judged(change)
    assert said in str(refused.value)


def test_an_id_twice_is_refused(judged):
    with pytest.raises(InputError, match="the id twice"):
        judged({}, {})


@pytest.fixture(scope="module")
def published():
    documents = [claims.read(ROOT / f"data/published/claims/{name}.yaml") for name in ("appendix", "retractions", "gqa")]
    ledger = json.loads((ROOT / "data/numbers.json").read_text(encoding="utf-8"))
    return documents, ledger


def test_no_published_claim_is_reproduced_by_itself(published):
    """Mutate every number: no claim that rests on one may stay reproduced, so none compares a literal with itself."""
    documents, ledger = published
    before = claims.judge_all(documents, ledger)
    # Another factor for each key, so that no ratio survives; a zero becomes large, so that no rounding hides it.
    mutated = {
        key: record | {"value": record["value"] * (2.1 + position % 7) + 1.3 if record["value"] else 1e9}
        for position, (key, record) in enumerate(ledger.items())
    }
    after = {judged.claim.id: judged for judged in claims.judge_all(documents, mutated)}
    kept = [
        judged.claim.id
        for judged in before
        if judged.verdict in (Verdict.EXACTLY, Verdict.REPRODUCED)
        and after[judged.claim.id].verdict in (Verdict.EXACTLY, Verdict.REPRODUCED)
        and (judged.claim.keys or any("num(" in expression for expression in judged.claim.arithmetic))
    ]
    assert kept == []


def test_claims_without_a_number_rest_on_other_claims(published):
    """What is reproduced by arithmetic alone derives from another printed value, not from a literal that repeats the claim."""
    documents, ledger = published
    bare = [
        judged.claim.id
        for judged in claims.judge_all(documents, ledger)
        if judged.verdict in (Verdict.EXACTLY, Verdict.REPRODUCED)
        and not judged.claim.keys
        and not any("num(" in expression or "printed(" in expression for expression in judged.claim.arithmetic)
    ]
    assert bare == []

from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence import claims, coverage
from kvtier.evidence.labels import Label, Status
from kvtier.files import read_yaml, sha256

ROOT = Path(__file__).resolve().parents[2]
EXCUSES = {"section_number": "numbers a section"}
TEXT = "1. Capacity\nA context of 8,192 tokens takes 2.50 GiB, and θ₃₂ is 0.01, 2.50 again.\n"


def claim(name, printed):
    return claims.Claim(f"doc.{name}", "1", printed, "GiB", "size", Label.ANALYTICAL, Status.STANDS, stated=True, document="doc")


@pytest.fixture
def document():
    return claims.Document("doc", "A document", "0", (claim("size", "2.50"), claim("tokens", "8,192"), claim("theta", "0.01")))


ROWS = ["1,1,1,,section_number", '2,2,"8,192",doc.tokens,', "3,2,2.50,doc.size,", "4,2,₃₂,,section_number", "5,2,0.01,doc.theta,"]
ROWS += ["6,2,2.50,doc.size,"]


@pytest.fixture
def tokens(tmp_path):
    def write(*rows):
        path = tmp_path / "doc.csv"
        path.write_text("position,line,token,claim,excuse\n" + "\n".join(rows) + "\n", encoding="utf-8")
        return path

    return write


def test_tokens_are_found_in_order_with_their_lines():
    assert coverage.numeric_tokens(TEXT) == [(1, "1"), (2, "8,192"), (2, "2.50"), (2, "₃₂"), (2, "0.01"), (2, "2.50")]


def test_a_covered_document_passes(document, tokens):
    assert coverage.check(document, tokens(*ROWS), EXCUSES) == []


@pytest.mark.parametrize(
    ("position", "row", "said"),
    [
        (2, "3,2,2.50,,", "token 3, 2.50: not covered"),
        (2, "3,2,2.50,doc.size,section_number", "both a claim and an excuse"),
        (2, "3,2,2.50,doc.other,", "no claim doc.other"),
        (2, "3,2,2.50,doc.theta,", "claim doc.theta prints 0.01"),
        (0, "1,1,1,,because", "no excuse named because"),
    ],
)
def test_what_is_not_covered_is_named(document, tokens, position, row, said):
    found = coverage.check(document, tokens(*ROWS[:position], row, *ROWS[position + 1 :]), EXCUSES)
    assert len(found) == 1
    assert said in found[0]


def test_a_claim_that_covers_nothing_is_named(document, tokens):
    (found,) = coverage.check(document, tokens(*(row.replace("doc.theta,", ",section_number") for row in ROWS)), EXCUSES)
    assert found == "doc: claim doc.theta covers no token"


def test_the_kept_list_is_held_against_the_document(document, tokens, tmp_path):
    source = tmp_path / "doc.txt"
    source.write_text(TEXT, encoding="utf-8")
    known = claims.Document("doc", "A document", sha256(source), document.claims)
    coverage.check_against(known, tokens(*ROWS), source)
    with pytest.raises(InputError, match="sha256"):
        coverage.check_against(document, tokens(*ROWS), source)
    with pytest.raises(InputError, match="token 3"):
        coverage.check_against(known, tokens(*ROWS[:2], "3,2,2.51,doc.size,", *ROWS[3:]), source)
    with pytest.raises(InputError, match="length: found 5, expected 6 tokens"):
        coverage.check_against(known, tokens(*ROWS[:5]), source)


@pytest.mark.parametrize("name", ["appendix", "retractions", "gqa"])
def test_every_token_of_the_published_documents_is_covered(name):
    document = claims.read(ROOT / f"data/published/claims/{name}.yaml")
    excuses = read_yaml(ROOT / "data/published/excuses.yaml")
    assert coverage.check(document, ROOT / f"data/published/tokens/{name}.csv", excuses) == []

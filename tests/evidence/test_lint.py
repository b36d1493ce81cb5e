from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence import claims, lint
from kvtier.evidence.labels import Label, Status
from kvtier.files import read_yaml

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {r"\bRevision [123]\b": "name of a revision", r"\bAugust \d{4}\b": "a date"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The hit rate is 44.18 %.", [(1, "44.18")]),
        ("one\ntwo\n≈427,000 tokens", [(3, "≈427,000")]),
        ("−0.21 points and +34.15", [(1, "−0.21"), (1, "+34.15")]),
        ("| LRU | 38.34 |", [(1, "38.34")]),
        ("5x better, saves 65GB in 12ms", [(1, "5"), (1, "65"), (1, "12")]),
        ("It is {{ 51.3 }} or `51.3 GB`.", [(1, "51.3"), (1, "51.3")]),
    ],
)
def test_a_typed_number_is_found_with_its_line(text, found):
    assert lint.bare_numbers(text, ALLOWED) == found


@pytest.mark.parametrize(
    "text",
    [
        'The hit rate is {{ num("sim.rev2.e1.32.lru.hit") }}.',
        "{# 12 #}{% set budget = 32 %}",
        "`sim.rev2.e1.32.lru.hit` and\n```sh\nsnakemake --cores 2\n```",
        "[figures](figures/2.svg) <!-- 17 -->",
        "Revision 2 of August 2026",
        "gb10 and vllm2 and x16",
    ],
)
def test_what_is_printed_by_key_or_excused_passes(text):
    assert lint.bare_numbers(text, ALLOWED) == []


def test_an_excuse_covers_its_own_place_only():
    assert lint.bare_numbers("Revision 2 reaches 2 %", ALLOWED) == [(1, "2")]


def test_lines_are_right_after_what_is_hidden():
    assert lint.bare_numbers("```\n1\n2\n```\n{% if\n3 %}\n7 blocks", ALLOWED) == [(7, "7")]


def test_a_file_with_a_bare_number_is_refused(tmp_path):
    page = tmp_path / "page.md.j2"
    page.write_text("Good.\nThe rate is 44.18 %.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"page\.md\.j2: line 2: found the bare number 44\.18, expected num\(\) of a key"):
        lint.check([str(page)], ALLOWED)
    page.write_text("Good.\n", encoding="utf-8")
    assert lint.check([str(page)], ALLOWED) == 1


def test_the_projects_own_texts_hold_no_bare_number():
    allowed = read_yaml(ROOT / "data/published/allowed_numbers.yaml")
    texts = [ROOT / "README.md", *sorted((ROOT / "src/kvtier/publish/templates").glob("*.j2"))]
    assert lint.check([str(text) for text in texts], allowed) == len(texts)


FIGURE = """
def draw(ledger):
    return theme.Figure(
        name="rate_12",
        title=f"Hit rate at {ledger['a'].text}",
        layers=[alt.Y("rate:Q", title="Hit rate (% of reads)")],
        caption="Mean of seeds" " {} percent",
        alt=ALT,
        drawn=3.5,
    )
"""


def test_a_number_typed_into_a_caption_is_refused(tmp_path):
    chart = tmp_path / "chart.py"
    chart.write_text(FIGURE.replace("{} percent", "some percent"), encoding="utf-8")
    assert lint.check_figures([str(chart)], ALLOWED) == 1
    chart.write_text(FIGURE.replace("{} percent", "44.18 percent"), encoding="utf-8")
    with pytest.raises(InputError, match=r"chart\.py: line 7: found the bare number 44\.18"):
        lint.check_figures([str(chart)], ALLOWED)


def test_the_projects_own_figures_hold_no_bare_number():
    allowed = read_yaml(ROOT / "data/published/allowed_numbers.yaml")
    charts = [str(path) for path in sorted((ROOT / "src/kvtier/publish/charts").glob("*.py"))]
    assert lint.check_figures(charts, allowed) == len(charts) >= 4
    words = lint.written_strings(Path(charts[1]).read_text(encoding="utf-8"))
    assert words, "the lint must see the words of a figure"


def test_a_number_typed_into_a_reason_is_refused():
    def document(because):
        claim = claims.Claim("doc.a", "1", "3.4", "", "ratio", Label.ANALYTICAL, Status.STANDS, because=because, document="doc")
        return claims.Document("doc", "A document", "0", (claim,))

    assert lint.check_reasons([document('Without the row it is {{ num("loo") | 1 }}.')], ALLOWED) == 1
    with pytest.raises(InputError, match=r"claim doc\.a: because: found the bare number 1\.9"):
        lint.check_reasons([document("Without the row it is 1.9.")], ALLOWED)


def test_the_projects_own_reasons_hold_no_bare_number():
    allowed = read_yaml(ROOT / "data/published/allowed_numbers.yaml")
    documents = [claims.read(ROOT / f"data/published/claims/{name}.yaml") for name in ("appendix", "retractions", "gqa")]
    assert lint.check_reasons(documents, allowed) == sum(len(document.claims) for document in documents) > 500

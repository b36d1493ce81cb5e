"""The published appendix: every part, diagram, table, claim and retraction of the technical appendix is there."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kvtier.evidence import retractions
from kvtier.evidence.claims import NUMBER
from kvtier.evidence.labels import Label
from kvtier.files import read_json
from kvtier.publish.facts import class_of
from kvtier.publish.pages.appendix import PARTS
from kvtier.publish.pages.page import anchor

ROOT = Path(__file__).parents[3]
TABLES = {
    1: "Architecture of the model",
    9: "HBM and CXL DRAM",
    13: "The example as printed",
    15: "Block hit rate by HBM budget and policy, Revision 2",
}
"""Part, and the caption's beginning, of each table of the technical appendix."""


class Reader(HTMLParser):
    """Ids, figures with what is inside them, and captions by section."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.part = ""
        self.figures: dict[str, dict] = {}
        self.captions: list[tuple[str, str]] = []
        self._figure: dict | None = None
        self._caption = False

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "section":
            self.part = attributes.get("id", "")
        if tag == "figure":
            self._figure = {"label": attributes.get("data-label"), "refs": [], "svgs": 0, "part": self.part}
            self.figures[attributes["id"]] = self._figure
        if self._figure is not None:
            self._figure["svgs"] += tag == "svg"
            if tag == "a" and "num" in (attributes.get("class") or "").split():
                self._figure["refs"].append(attributes["href"][1:])
        if tag == "caption":
            self._caption = True
            self.captions.append((self.part, ""))

    def handle_endtag(self, tag):
        if tag == "figure":
            self._figure = None
        if tag == "caption":
            self._caption = False

    def handle_data(self, data):
        if self._caption:
            part, text = self.captions[-1]
            self.captions[-1] = (part, text + data)


@pytest.fixture(scope="module")
def html() -> str:
    return (ROOT / "paper" / "appendix.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


@pytest.fixture(scope="module")
def papers(html) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="papers">(.*?)</script>', html, re.DOTALL)[1])


def diagrams() -> list[str]:
    """Numbers of the diagrams, from the kept list of the document's tokens."""
    with (ROOT / "data" / "published" / "tokens" / "appendix.csv").open(encoding="utf-8") as rows:
        return list(dict.fromkeys(row["token"] for row in csv.DictReader(rows) if row["excuse"] == "diagram_number"))


def test_the_document_has_diagrams_in_all_of_its_parts():
    assert {int(number.partition(".")[0]) for number in diagrams()} == {part.number for part in PARTS} == set(range(1, 17))


@pytest.mark.parametrize("number", diagrams())
def test_each_diagram_is_there_in_two_layouts(number, page):
    figure = page.figures[anchor(number)]
    assert figure["part"] == f"part-{number.partition('.')[0]}"
    # The last one, a list of numbers with a class each, is set as text.
    assert figure["svgs"] == (0 if number == diagrams()[-1] else 2)
    assert figure["refs"]


@pytest.mark.parametrize(("part", "caption"), TABLES.items())
def test_each_table_is_there(part, caption, page):
    assert any(where == f"part-{part}" and text.startswith(caption) for where, text in page.captions)


def test_each_value_of_the_document_is_on_the_page(papers):
    """By its own card; or as an input, which the document repeats, by the text of another one."""
    texts = {paper["text"] for paper in papers["numbers"].values()} | {paper["printed"] for paper in papers["claims"].values()}
    digits = {token.rstrip(",") for text in texts for token in NUMBER.findall(text)}
    missing = [
        claim
        for claim, record in read_json(ROOT / "data" / "claims.json").items()
        if record["document"] == "appendix"
        and claim not in papers["claims"]
        and not {token.rstrip(",") for token in NUMBER.findall(record["printed"])} <= digits
    ]
    assert missing == []


def test_each_retracted_value_of_the_document_has_its_card(papers):
    records = read_json(ROOT / "data" / "claims.json")
    wanted = {claim for claim, record in records.items() if record["document"] == "appendix" and record["verdict"] == "retracted"}
    assert sorted(wanted - set(papers["claims"])) == []


def test_each_retraction_that_the_document_repeats_has_its_box(page):
    listed = retractions.read(ROOT / "data" / "published" / "retractions.yaml")
    wanted = {f"retraction-{entry.id.replace('_', '-')}" for entry in listed}
    assert sorted(wanted - set(page.ids)) == []


def test_no_id_is_there_twice(page):
    assert len(page.ids) == len(set(page.ids))


def test_labels_of_figures_are_the_weakest_of_their_results(page, papers):
    # A figure that is a list has a badge in each row and none of its own.
    labelled = {name: figure for name, figure in page.figures.items() if figure["label"]}
    assert len(labelled) == len(page.figures) - 1
    for name, figure in labelled.items():
        kinds = {"n": "numbers", "c": "claims"}
        labels = {Label(papers[kinds[ref[0]]][ref[2:]]["label"]) for ref in figure["refs"]}
        assert figure["label"] == str(class_of(labels)), name


def test_each_value_has_its_papers(html, papers):
    kinds = {"n": "numbers", "c": "claims"}
    for kind, name in re.findall(r'href="#([nc])/([^"]+)"', html):
        assert name in papers[kinds[kind]], name


def test_nothing_is_asked_from_elsewhere(html):
    assert not re.search(r'(src|href)="(https?:)?//', html)
    assert not re.search(r"url\((?!data:)", html)
    assert "default-src 'none'" in html


def test_the_page_is_small_enough(html):
    assert len(html.encode()) < 6_000_000

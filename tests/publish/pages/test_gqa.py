"""The published page of the score streams: its figures and every claim of its document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kvtier.evidence.claims import NUMBER
from kvtier.files import read_json

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def html() -> str:
    return (ROOT / "paper" / "gqa.html").read_text(encoding="utf-8")


def test_its_figures_are_there_in_two_layouts(html):
    figures = re.findall(r'<figure id="(diagram-gqa-\d+)".*?</figure>', html, re.DOTALL)
    assert figures == [f"diagram-gqa-{number}" for number in range(1, 7)]
    for figure in re.findall(r"<figure id=.*?</figure>", html, re.DOTALL):
        assert figure.count("<svg ") == 2


def test_each_value_of_the_document_is_on_the_page(html):
    papers = json.loads(re.search(r'<script type="application/json" id="papers">(.*?)</script>', html, re.DOTALL)[1])
    texts = {paper["text"] for paper in papers["numbers"].values()} | {paper["printed"] for paper in papers["claims"].values()}
    digits = {token.rstrip(",") for text in texts for token in NUMBER.findall(text)}
    missing = [
        claim
        for claim, record in read_json(ROOT / "data" / "claims.json").items()
        if record["document"] == "gqa"
        and claim not in papers["claims"]
        and not {token.rstrip(",") for token in NUMBER.findall(record["printed"])} <= digits
    ]
    assert missing == []


def test_what_it_takes_back_is_in_its_box_with_what_replaces_it(html):
    box = re.search(r'<div class="retraction" role="note" id="retraction-metadata".*?</div>', html, re.DOTALL)[0]
    assert re.findall(r"<s><a [^>]*>([^<]*)</a></s>", box) == ["640 MiB", "1.5 %"]
    assert "#n/analytic.gqa.state_kib" in box


def test_persistence_is_told_in_both_revisions(html):
    assert {"sim.rev2.e5.gain.lfu.hit", "sim.rev3.e5.gain.lfu.hit"} <= set(re.findall(r'href="#n/([^"]+)"', html))

"""Small papers over a small ledger, by the functions that the real one calls; and the real one, from the published copy."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kvtier.evidence import findings, retractions, survival
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.files import read_json, read_yaml
from kvtier.publish.ledger import Ledger
from kvtier.publish.paper import typeset, values
from kvtier.publish.sources import Sources
from kvtier.publish.verdicts import Claims

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "paper"
PUBLISHED = ROOT / "data/published"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50"><rect width="9" height="9"/></svg>'
ALL = (
    "bare, caveat, chart, class-table, count, fate, fated, holds, interval, num, paper, plus-minus, printed, signed, tabular, total, "
    "verdict, verdict-table, version, withdrawn"
)


def record(value: float, unit: str, digits: int, label: Label, **more: Any) -> dict[str, Any]:
    display = Number("a.b", value, unit, digits, label, "x / y").display
    fields = {"value": value, "display": display, "unit": unit, "label": str(label), "definition": "x / y", "status": str(Status.STANDS)}
    return {**fields, "rule": "some_rule", "params": {}, "inputs": {}, "uncertainty": {}, **more}


RECORDS = {
    "measured.copy": record(236.5, "GB/s", 1, Label.MEASURED),
    "analytic.block": record(5.0, "MiB", 2, Label.ANALYTICAL),
    "analytic.loss": record(-0.25, "points", 2, Label.ANALYTICAL),
    "sim.margin": record(1.75, "points", 2, Label.SIMULATED, uncertainty={"interval_low": 1.64, "interval_high": 1.86}),
    "sim.wrong": record(58.34, "%", 2, Label.SIMULATED, status=str(Status.WITHDRAWN)),
    "analytic.gone": record(12, "GB", 0, Label.ANALYTICAL, status=str(Status.RETRACTED)),
}


class Small:
    """A paper of a few lines: call it with the text for the PDF, or ask for the metadata that carry a label."""

    def __init__(self, folder: Path, claim_records: dict[str, Any], withdrawn: tuple[retractions.Retraction, ...]) -> None:
        self.folder, self.claim_records, self.withdrawn = folder, claim_records, withdrawn
        self.source = folder / "paper.typ"
        self.records = dict(RECORDS)
        self.figures = {"drawn": {"label": str(Label.SIMULATED), "alt": "Chart of 42 points", "width_px": 100}}
        self.allowed: dict[str, str] = {}
        self.imports = f'#import "style.typ": ({ALL})'

    def parts(self, text: str) -> tuple[typeset.Manuscript, Ledger, Sources, dict[str, Any]]:
        """Write the text; what a paper is made from."""
        head = '#show: paper.with(title: "A title", subtitle: [Below it], authors: [Somebody])'
        self.source.write_text(f"{self.imports}\n{head}\n{text}\n", encoding="utf-8")
        ledger = Ledger("numbers.json", self.records)
        result = survival.Survival("S1", "A result.", "", "", "", "", ())
        claims = Claims("claims.json", self.claim_records, ledger)
        sources = Sources(claims, retractions=self.withdrawn, survivals=[(result, survival.Fate.GONE)])
        manuscript = typeset.Manuscript(self.source, PAPER / "style.typ", self.folder / "references.bib", [self.folder / "drawn.svg"])
        return manuscript, ledger, sources, values.printable(ledger, sources, self.figures, "1.0")

    def __call__(self, text: str) -> bytes:
        return typeset.render(*self.parts(text), self.allowed)

    def queried(self, text: str, label: str) -> list[Any]:
        manuscript, _, _, printable = self.parts(text)
        with typeset._compiler(manuscript, printable) as compiler:
            return typeset.queried(compiler, label)


@pytest.fixture(scope="session")
def claim_records() -> dict[str, Any]:
    return read_json(ROOT / "data/claims.json")


@pytest.fixture(scope="session")
def withdrawn() -> tuple[retractions.Retraction, ...]:
    return retractions.read(PUBLISHED / "retractions.yaml")


@pytest.fixture
def small(tmp_path, claim_records, withdrawn):
    """A small paper: its text, and what differs from :data:`RECORDS`; gives the PDF."""
    (tmp_path / "references.bib").write_text("@misc{one, author={One, A.}, title={First}, year={1999}}", encoding="utf-8")
    (tmp_path / "drawn.svg").write_text(PICTURE, encoding="utf-8")

    return Small(tmp_path, claim_records, withdrawn)


def published_figures() -> dict[str, dict[str, Any]]:
    """What the real build reads beside each picture, from the picture itself: the published copy has no such file."""
    found = {}
    for path in sorted((ROOT / "figures").glob("*.svg")):
        text = path.read_text(encoding="utf-8")
        words = [unescape(match) for match in re.findall(r">([^<]+)<", text)]
        label = next(label for label in Label if any(word.startswith(f"{label} · ") for word in words))
        alt = unescape(re.search(r"<desc[^>]*>(.*?)</desc>", text, re.DOTALL)[1])
        found[path.stem] = {"label": str(label), "alt": alt, "width_px": int(re.search(r' width="(\d+)"', text)[1])}
    return found


def whole_paper() -> tuple[typeset.Manuscript, Ledger, Sources, dict[str, Any], dict[str, str]]:
    """The paper over the published ledger: manuscript, ledger, sources, what it may print, patterns."""
    ledger = Ledger.read(ROOT / "data/numbers.json")
    claims = Claims("claims.json", read_json(ROOT / "data/claims.json"), ledger)
    results = survival.read(PUBLISHED / "survival.yaml")
    fates = survival.judge(PUBLISHED / "survival.yaml", results, claims.values())
    sources = Sources(
        claims,
        findings.read(PUBLISHED / "findings.yaml"),
        retractions.read(PUBLISHED / "retractions.yaml"),
        survivals=[(result, fates[result.id]) for result in results],
    )
    pictures = sorted((ROOT / "figures").glob("*.svg"))
    manuscript = typeset.Manuscript(PAPER / "paper.typ", PAPER / "style.typ", PAPER / "references.bib", pictures)
    printable = values.printable(ledger, sources, published_figures(), "1.0")
    lists = ("allowed_numbers.yaml", "allowed_in_paper.yaml")
    allowed = {pattern: reason for name in lists for pattern, reason in read_yaml(PUBLISHED / name).items()}
    return manuscript, ledger, sources, printable, allowed


@pytest.fixture(scope="session")
def real():
    return whole_paper()

"""The gallery: every chart and diagram as a card, in its narrow layout, with its files and where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup

from kvtier.evidence.labels import Label
from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import NARROW
from kvtier.publish.facts import label_of
from kvtier.publish.pages.appendix import PARTS
from kvtier.publish.pages.markup import anchor, plain_text
from kvtier.publish.pages.page import TEMPLATES, Page, drawing_of, limits_of
from kvtier.publish.verdicts import slug

CALLS = re.compile(r"\b(diagram|chart)\(\"([^\"]+)\"(?:, \"([^\"]+)\")?")
HOMES = {"paper/appendix.html": "appendix/part-*.html.j2", "paper/gqa.html": "gqa.html.j2"}


@dataclass(frozen=True)
class Card:
    """One figure.

    Parameters
    ----------
    title : str
    label : Label
    source : str
        Model, platform or revision.
    limits : str
        The standing caveat, or the one line that limits what it shows; may be empty.
    alt : str
        The figure in words.
    drawing : Markup
        SVG in the narrow layout.
    part : int
        Part of the appendix in which it stands; 0 for none.
    home : str
        Where it stands, from the gallery's folder; empty for nowhere.
    files : tuple of (str, str)
        What can be had of it: name and path from the gallery's folder.
    words : str
        What a search looks through besides the title.
    chart : str
        Name of a chart, whose own code put its words together; empty for a diagram.
    """

    title: str
    label: Label
    source: str
    limits: str
    alt: str
    drawing: Markup
    part: int
    home: str
    files: tuple[tuple[str, str], ...]
    words: str
    chart: str = ""


def homes() -> dict[str, tuple[int, str]]:
    """Part and address of each figure that a page shows, by number of the diagram or name of the chart; the first place counts."""
    found: dict[str, tuple[int, str]] = {}
    for page, pattern in HOMES.items():
        for template in sorted(TEMPLATES.glob(pattern)):
            number = re.search(r"part-(\d+)", template.name)
            for kind, name, placed in CALLS.findall(template.read_text(encoding="utf-8")):
                identity = anchor(name if kind == "diagram" else placed) if kind == "diagram" or placed else f"figure-{slug(name)}"
                found.setdefault(name, (int(number[1]) if number else 0, f"../{page}#{identity}"))
    return found


def _of_diagram(page: Page, diagram: Diagram, part: int, home: str) -> Card:
    with page.facts.collecting() as shown:
        canvas = drawing_of(diagram, page.facts, NARROW)
        alt = plain_text(page.told(diagram.alt, f"diagram {diagram.number}"))
    return Card(
        title=diagram.title,
        label=label_of(shown),
        source=diagram.source,
        limits=limits_of(diagram, shown),
        alt=alt,
        drawing=Markup(canvas.svg(alt)),
        part=part,
        home=home,
        files=tuple((kind, f"diagrams/{diagram.name}.{kind.lower()}") for kind in ("SVG", "CSV")),
        words=" ".join(shown),
    )


def _of_chart(page: Page, name: str, part: int, home: str) -> Card:
    chart = page.charts[name]
    for key in chart["keys"]:
        page.facts.num(key)
    shape = Markup('<svg role="group" aria-label="{}" {}')
    return Card(
        title=chart["title"],
        label=Label(chart["label"]),
        source=chart["source"],
        limits=chart["caveat"],
        alt=chart["alt"],
        drawing=shape.format(chart["alt"], Markup(chart["narrow"].partition("<svg ")[2])),
        part=part,
        home=home,
        files=(("SVG", f"{name}.svg"), ("spec", f"{name}.vl.json"), ("CSV", f"{name}.csv")),
        words=" ".join(chart["keys"]),
        chart=name,
    )


def cards(page: Page) -> list[Card]:
    """Cards of all figures: by part, those of no part last."""
    placed = homes()
    found = [_of_diagram(page, diagram, *placed.get(number, (0, ""))) for number, diagram in page.diagrams.items()]
    found += [_of_chart(page, name, *placed.get(name, (0, ""))) for name in page.charts]
    return sorted(found, key=lambda card: (card.part or len(PARTS) + 1, card.home))

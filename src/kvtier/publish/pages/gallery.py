"""The gallery: every chart and diagram as a card, in its narrow layout, with its files and where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup

from kvtier.evidence.labels import Label
from kvtier.publish.drawing import NARROW, Canvas
from kvtier.publish.facts import label_of
from kvtier.publish.pages.page import TEMPLATES, Page, anchor, plain_text
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


def cards(page: Page) -> list[Card]:
    """Cards of all figures: by part, those of no part last."""
    placed = homes()
    found = []
    for diagram in page.diagrams.values():
        with page.facts.collecting() as shown:
            canvas = Canvas(NARROW, page.facts)
            diagram.draw(canvas)
            alt = plain_text(page.told(diagram.alt, f"diagram {diagram.number}"))
        part, home = placed.get(diagram.number, (0, ""))
        files = tuple((kind, f"diagrams/{diagram.name}.{kind.lower()}") for kind in ("SVG", "CSV"))
        drawing = Markup(canvas.svg(alt))
        found.append(Card(diagram.title, label_of(shown), diagram.source, alt, drawing, part, home, files, " ".join(shown)))
    for name, chart in page.charts.items():
        for key in chart["keys"]:
            page.facts.num(key)
        part, home = placed.get(name, (0, ""))
        files = (("SVG", f"{name}.svg"), ("spec", f"{name}.vl.json"), ("CSV", f"{name}.csv"))
        shape = Markup('<svg role="group" aria-label="{}" {}')
        drawing = shape.format(chart["alt"], Markup(chart["narrow"].partition("<svg ")[2]))
        found.append(
            Card(
                chart["title"],
                Label(chart["label"]),
                chart["source"],
                chart["alt"],
                drawing,
                part,
                home,
                files,
                " ".join(chart["keys"]),
                name,
            )
        )
    return sorted(found, key=lambda card: (card.part or 99, card.home))

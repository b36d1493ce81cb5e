"""Pages and diagrams as files: what the rules call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kvtier.errors import InputError
from kvtier.files import read_json, write_atomically
from kvtier.publish.diagrams import catalogue
from kvtier.publish.drawing import WIDE, framed
from kvtier.publish.facts import Facts, label_of
from kvtier.publish.pages import gallery, lint
from kvtier.publish.pages.appendix import PARTS
from kvtier.publish.pages.markup import plain_text
from kvtier.publish.pages.page import Page, drawing_of, limits_of, render
from kvtier.publish.sources import Given, read


def _over(given: Given, charts: Sequence[str | Path]) -> Page:
    """What a template may show, over the ledger, the claims, and the charts as files in page form."""
    ledger, sources = read(given)
    drawn: dict[str, Mapping[str, Any]] = {}
    for path in charts:
        chart = read_json(path)
        if "name" not in chart:
            raise InputError(path, "name", "nothing", "a chart in page form")
        drawn[chart["name"]] = chart
    return Page(Facts(ledger, sources.claims), sources, drawn, catalogue.read())


def page(template: str, path: str | Path, given: Given, charts: Sequence[str | Path], allowed: Sequence[str | Path]) -> None:
    """Fill a page's template, hold the page against the rules for its words, and write it whole.

    Parameters
    ----------
    template : str
        Name in the folder of page templates.
    path : str or Path
        The page to write.
    given : Given
        Ledger, claims, findings, retractions, survivals.
    charts : sequence of path
        Charts in page form.
    allowed : sequence of path
        Files of patterns of numbers that may be typed, with reasons.
    """
    made = _over(given, charts)
    text = render(made, template, parts=PARTS, cards=lambda: gallery.cards(made))
    lint.check(path, text, allowed, made)
    write_atomically(path, text)


def diagrams(folder: str | Path, given: Given) -> None:
    """Write each diagram as ``<name>.svg`` for print, with its values as ``<name>.csv``.

    Parameters
    ----------
    folder : str or Path
    given : Given
    """
    made = _over(given, ())
    for diagram in made.diagrams.values():
        with made.facts.collecting() as shown:
            canvas = drawing_of(diagram, made.facts, WIDE, page=False)
            where = f"diagram {diagram.number}"
            alt, caption = (plain_text(made.told(text, where)) for text in (diagram.alt, diagram.caption))
        rows = [{"ref": fact.ref, "text": fact.text, "value": fact.value, "label": str(fact.label)} for fact in shown.values()]
        said = {"name": diagram.name, "title": diagram.title, "source": diagram.source, "alt": alt, "caption": caption}
        whole = framed(canvas, label=label_of(shown), limits=limits_of(diagram, shown), **said)
        write_atomically(Path(folder, f"{diagram.name}.svg"), whole)
        write_atomically(Path(folder, f"{diagram.name}.csv"), pl.DataFrame(rows).write_csv())

"""The visual appendix: sixteen parts, every diagram of the technical appendix drawn anew from the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import read_json, write_atomically
from kvtier.publish.diagrams import catalogue
from kvtier.publish.pages import lint
from kvtier.publish.pages.page import Page, render
from kvtier.publish.pages.sources import Given, facts_and_sources


@dataclass(frozen=True)
class Part:
    """One of the sixteen parts."""

    number: int
    title: str


PARTS = tuple(
    Part(number, title)
    for number, title in enumerate(
        (
            "The transformer",
            "Attention",
            "The KV cache",
            "Prefill and decode",
            "The memory wall",
            "Locality of attention",
            "Rotary positions",
            "Kinds of heads",
            "CXL memory",
            "Four tiers",
            "The EMA score",
            "Priority",
            "Scores of heads",
            "Prefetching",
            "Hit rates",
            "What stands",
        ),
        start=1,
    )
)


def page(given: Given, charts: Sequence[str | Path]) -> Page:
    """A page over the ledger, the claims, and the charts as files in page form."""
    facts, sources = facts_and_sources(given)
    drawn: dict[str, Mapping[str, Any]] = {}
    for path in charts:
        chart = read_json(path)
        if "name" not in chart:
            raise InputError(path, "name", "nothing", "a chart in page form")
        drawn[chart["name"]] = chart
    return Page(facts, sources, drawn, catalogue.read())


def write(template: str, path: str | Path, given: Given, charts: Sequence[str | Path], allowed: Sequence[str | Path]) -> None:
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
    made = page(given, charts)
    text = render(made, template, parts=PARTS)
    lint.check(path, text, allowed, made.sources.retractions)
    write_atomically(path, text)

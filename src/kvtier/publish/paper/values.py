"""What the paper's source may print: each number, claim and figure as text, with its evidence class."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label
from kvtier.evidence.retractions import is_withdrawn, printed_values
from kvtier.files import read_json
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.palette import LIGHT, badge
from kvtier.publish.sources import Sources
from kvtier.publish.verdicts import MARKS, ORDER, Claims

NO_BREAK = "\u00a0"


def _joined(text: str) -> str:
    """A value that no line end parts from its unit, nor the ends of its interval from each other."""
    head, bracket, tail = text.partition(" [")
    return f"{head} [{tail.replace(' ', NO_BREAK)}" if bracket else text.replace(" ", NO_BREAK)


def number(quote: Quote) -> dict[str, Any]:
    """The forms in which a number may be printed, and its class."""
    return {
        "text": _joined(quote.text),
        "bare": quote.bare,
        "signed": _joined(quote.signed),
        "interval": (quote.interval or "").replace(" ", NO_BREAK),
        "plus_minus": _joined(quote.plus_minus),
        "label": str(quote.label),
    }


def claim(claims: Claims, name: str) -> dict[str, Any]:
    """A published claim: as printed, each of its numbers apart, and its verdict."""
    record = claims[name]
    positions = range(len(printed_values(record["printed"])))
    return {
        "text": _joined(claims.printed(name).translate(MARKS)),
        "parts": [_joined(claims.printed(name, position).translate(MARKS)) for position in positions],
        "verdict": str(record["verdict"]),
        "withdrawn": is_withdrawn(record["status"]),
    }


def _verdicts(claims: Claims) -> list[dict[str, Any]]:
    """Each verdict and how many claims have it, by document and in all."""
    documents = claims.document_names()
    found = [(record["verdict"], record["document"]) for record in claims.records.values()]
    return [
        {
            "verdict": str(verdict),
            "counts": [f"{found.count((verdict, document)):,}" for document in documents],
            "all": f"{sum(one == verdict for one, _ in found):,}",
        }
        for verdict in ORDER
    ]


def _look(label: Label) -> dict[str, Any]:
    style = badge(label)
    colours = {"fill": style.fill, "stroke": style.stroke, "words": style.words}
    return {"label": str(label), "means": MEANING[label], "dashed": bool(style.dash)} | {
        part: LIGHT[name] for part, name in colours.items()
    }


def read_figures(pages: Sequence[str | Path]) -> dict[str, dict[str, Any]]:
    """Class, description and width of each figure, from what its rule wrote.

    Parameters
    ----------
    pages : sequence of path
        ``<name>.page.json``, beside ``<name>.svg``.

    Raises
    ------
    InputError
        If a picture does not say how wide it is.
    """
    found = {}
    for path in pages:
        page, picture = read_json(path), Path(str(path).removesuffix(".page.json") + ".svg")
        width = re.search(r'<svg[^>]* width="(\d+)"', picture.read_text(encoding="utf-8"))
        if not width:
            raise InputError(picture, "svg", "no width", "its width in pixels")
        found[page["name"]] = {"label": page["label"], "alt": page["alt"], "width_px": int(width[1])}
    return found


def printable(ledger: Ledger, sources: Sources, figures: Mapping[str, Mapping[str, Any]], version: str) -> dict[str, Any]:
    """All that the source may print.

    Parameters
    ----------
    ledger : Ledger
    sources : Sources
        With claims, findings and survivals.
    figures : mapping
        As :func:`read_figures` gives them.
    version : str
        Of the project.

    Returns
    -------
    dict
        For ``json()`` of Typst. Digits stand here as text: nothing in the source rounds, adds or formats.
    """
    if sources.claims is None:
        raise InputError("paper", "claims", "none", "claims.json, among the rule's inputs")
    claims = sources.claims
    return {
        "numbers": {key: number(ledger[key]) for key in ledger},
        "claims": {name: claim(claims, name) for name in claims.records},
        "verdicts": _verdicts(claims),
        "documents": claims.document_names(),
        "counts": {
            "claims": f"{len(claims.records):,}",
            "findings": f"{len(sources.findings):,}",
            "numbers": f"{len(ledger):,}",
            "results": f"{len(sources.survivals):,}",
        },
        "fates": {result.id: {"result": result.result, "fate": str(fate)} for result, fate in sources.survivals},
        "figures": {name: dict(figure) for name, figure in figures.items()},
        "labels": [_look(label) for label in Label],
        "caveat": SIMULATION_CAVEAT,
        "version": version,
    }

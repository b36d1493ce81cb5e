"""The spread of numbers on charts: its ends to draw, and how a number is written beside it, without its unit, for the axis has that."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kvtier.publish.ledger import Quote

COLUMNS = {"lower": pl.Float64(), "upper": pl.Float64()}
"""Columns of :func:`ends` in a table that is drawn."""


def ends(quote: Quote) -> dict[str, float | None]:
    """What the ledger has of the spread, in the unit of the number: interval, else range of the seeds, else nothing."""
    for low, high in (("interval_low", "interval_high"), ("lowest_seed", "highest_seed")):
        if low in quote.uncertainty:
            return {"lower": quote.uncertainty[low], "upper": quote.uncertainty[high]}
    return {"lower": None, "upper": None}


def said(mark: str, quotes: Sequence[Quote], seeds: str, more: str = "") -> str:
    """What a `mark` of a caption spans: the level of the intervals and over how many seeds they are; that there is none, where none is."""
    level = next((quote.uncertainty["interval_level"] for quote in quotes if "interval_level" in quote.uncertainty), None)
    return f"{mark} {100 * level:g} % intervals of the mean over {seeds}{more}" if level else f"{seeds}, no interval"


def signed(quote: Quote) -> str:
    """A difference with its sign."""
    return quote.signed.removesuffix(quote.unit).rstrip()


def _interval(quote: Quote) -> str:
    return (quote.interval or "").removesuffix(quote.unit).rstrip() if "interval_low" in quote.uncertainty else ""


def signed_with_interval(quote: Quote) -> str:
    """A difference with its sign, and its interval where it has one."""
    return f"{signed(quote)} {_interval(quote)}".rstrip()


def with_interval(quote: Quote) -> str:
    """A number, and its interval where it has one."""
    return f"{quote.bare} {_interval(quote)}".rstrip()

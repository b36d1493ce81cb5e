"""How much of the way from LRU to the optimum each policy goes on public traces, at one capacity: a table of cells."""

from __future__ import annotations

import polars as pl

from kvtier.publish import series, theme
from kvtier.publish.cells import FILLS, cells
from kvtier.publish.charts.traces_by_capacity import TRACES
from kvtier.publish.ledger import Ledger, Quote

CAPACITY = "1m"
KEY = "sim.traces.{}.{}.{}.closed"
WIDTHS = {theme.WIDE: 540, theme.NARROW: 190}
LEFTS = {theme.WIDE: -126, theme.NARROW: -118}
ROW = 26


def fill(quote: Quote) -> str:
    """Green where the interval is above zero, rose where it is below."""
    if quote.uncertainty.get("interval_low", 0) > 0:
        return FILLS["for"]
    return FILLS["against"] if quote.uncertainty.get("interval_high", 0) < 0 else FILLS["neither"]


def drawn(ledger: Ledger, layout: theme.Layout) -> pl.DataFrame:
    """One row a policy and trace; the one that loses least at worst first."""
    policies = [found["policy"] for found in ledger.matches(KEY.format(TRACES[0], CAPACITY, "<policy>"))]
    shares = {policy: [ledger[KEY.format(trace, CAPACITY, policy)] for trace in TRACES] for policy in policies}
    # By what a policy loses at worst: one that is good on two traces and very bad on the third is no default.
    ranked = sorted(policies, key=lambda policy: (-min(quote.value for quote in shares[policy]), policy))
    rows = []
    for policy in ranked:
        for trace, quote in zip(TRACES, shares[policy], strict=True):
            text = quote.bare if layout.narrow or not quote.interval else f"{quote.bare} {quote.interval}"
            rows.append({"key": quote.key, "row": series.title(policy), "column": trace.capitalize(), "fill": fill(quote), "text": text})
            rows[-1]["closed"] = quote.value
    return pl.DataFrame(rows)


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of shares of the way to the optimum.

    Parameters
    ----------
    ledger : Ledger
        Holds the shares with their intervals.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a trace lacks a policy.
    """
    points = drawn(ledger, layout)
    rows = points["row"].unique(maintain_order=True).to_list()
    told = (f"{row['row']}, {row['column']}: {row['text']}" for row in points.iter_rows(named=True))
    return theme.Figure(
        name="traces_closed",
        title=f"Share of the way from LRU to the optimum, {CAPACITY.upper()} tokens",
        source="Revision 3 on traces",
        limits="",
        caption=(
            "Nothing closed is LRU, all closed is the optimum; below nothing a policy has fewer hits than LRU. "
            "Block hits of all requests, cold start. Sorted by the worst trace. In brackets: intervals of a paired bootstrap, one replay, "
            "over windows of time, or over sessions (agentic). Green: the interval is above zero; rose: below; grey: neither. "
            "Keys: sim.traces.<trace>.<capacity>.<policy>.closed"
        ),
        alt=f"Table of shares. {'. '.join(told)}.",
        quotes=[ledger[key] for key in points["key"]],
        drawn=points,
        layers=cells(rows, [trace.capitalize() for trace in TRACES], layout),
        layout=layout,
        width=WIDTHS[layout],
        height=ROW * len(rows),
        left=LEFTS[layout],
        foot=28,
    )

"""Which half-life serves which trace and capacity best, and what one half-life for all of them costs: a map."""

from __future__ import annotations

import polars as pl

from kvtier.publish import theme
from kvtier.publish.cells import FILLS, cells
from kvtier.publish.charts.traces_by_capacity import TRACES
from kvtier.publish.ledger import Ledger

KEY = "sim.traces.{}.{}.alpha.{}"
MATTERS_POINTS = 0.1
"""A loss that is coloured."""

WIDTHS = {theme.WIDE: 560, theme.NARROW: 236}
ROW, LEFT = 26, -54


def drawn(ledger: Ledger, layout: theme.Layout) -> pl.DataFrame:
    """One row a capacity and trace: best half-life, and what alpha 0.05 loses to it."""
    rows = []
    for word in ledger.swept(KEY.format(TRACES[0], "<context>", "best_half_life"), "context"):
        for trace in TRACES:
            best, loss, worst = (ledger[KEY.format(trace, word, name)] for name in ("best_half_life", "published_loss", "worst_loss"))
            equal = worst.value == 0
            fill = FILLS["neither"] if equal else FILLS["against"] if loss.value >= MATTERS_POINTS else FILLS["for"]
            text = "all equal" if equal else f"{best.bare}; {loss.bare}" if layout.narrow else f"{best.text}; loses {loss.bare}"
            rows.append(
                {"key": loss.key, "row": word.upper(), "column": trace.capitalize(), "fill": fill, "text": text}
                | {"best_half_life_requests": best.value, "published_loss_points": loss.value}
            )
    return pl.DataFrame(rows)


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the best half-life.

    Parameters
    ----------
    ledger : Ledger
        Holds best half-lives and losses.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a number is missing.
    """
    points = drawn(ledger, layout)
    rows = points["row"].unique(maintain_order=True).to_list()
    told = (f"{row['row']} tokens, {row['column']}: {row['text']}" for row in points.iter_rows(named=True))
    quotes = [ledger[key] for key in points["key"]]
    return theme.Figure(
        name="traces_alpha",
        title="Best half-life of EMA by trace and capacity in tokens",
        source="Revision 3 on traces",
        limits="",
        caption=(
            "In a cell: the half-life with most block hits, in requests, and what α = 0.05 (a half-life of "
            f"{ledger['analytic.ema.alpha005.half_life_steps'].bare}) loses to it in points. Green: it loses next to nothing; "
            "rose: it loses; grey: all half-lives that were tried have the same hits. Second half of the requests, warmed by the first; "
            "state dropped at eviction. Keys: sim.traces.<trace>.<capacity>.alpha.best_half_life, .published_loss"
        ),
        alt=f"Table of best half-lives and losses. {'. '.join(told)}.",
        quotes=quotes,
        drawn=points,
        layers=cells(rows, [trace.capitalize() for trace in TRACES], layout),
        layout=layout,
        width=WIDTHS[layout],
        height=ROW * len(rows),
        left=LEFT,
        foot=28,
    )

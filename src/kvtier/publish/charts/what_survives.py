"""Effects that Revision 2 found, and what Revision 3 leaves of them: a hollow dot, a filled dot with its interval, a row each."""

from __future__ import annotations

from itertools import chain

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import dots, intervals, series, theme
from kvtier.publish.ledger import Ledger, Quote

OLD, NEW = 2, 3
GIB = 32
"""HBM budget of the experiments at one budget."""

GRIDS = {
    theme.WIDE: dots.Grid(row=25, dots=12.5, words=-4, width=330, left=-172, first=414, second=430),
    theme.NARROW: dots.Grid(row=38, dots=29, words=14, width=300, left=0, first=196, second=204),
}


def pairs(ledger: Ledger) -> list[list[tuple[str, str, str, str]]]:
    """What is told, by group: words, policy, key in Revision 2, key in Revision 3; budgets are those that both have."""
    margin = "sim.rev{}.e1.{}.{}.margin"
    swept = [{found["gib"] for found in ledger.matches(margin.format(revision, "<gib>", "ema015"))} for revision in (OLD, NEW)]
    budgets = sorted(set.intersection(*swept), key=int)
    gain = "sim.rev{}.e5.gain.{}.hit"
    return [
        [
            (f"Kept state, {series.title(policy)}", policy, gain.format(OLD, policy), gain.format(NEW, policy))
            for policy in ("lfu", "ema001", "ema015")
        ],
        [("LFU over LRU", "lfu", margin.format(OLD, GIB, "lfu"), margin.format(NEW, GIB, "lfu"))],
        [("Best α over LRU", "ema", "sim.rev2.e2.best_margin", f"sim.rev3.e2.{GIB}.reset.best_margin")],
        [
            (f"EMA 0.15 over LRU, {gib} GiB", "ema015", margin.format(OLD, gib, "ema015"), margin.format(NEW, gib, "ema015"))
            for gib in budgets
        ],
    ]


def drawn(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> pl.DataFrame:
    """One row an effect and revision, with its height in the plot."""
    groups, rows = pairs(ledger), []
    heights = dots.heights([len(group) for group in groups], GRIDS[layout])
    for (words, policy, *keys), y in zip(chain.from_iterable(groups), heights, strict=True):
        for revision, key in zip((OLD, NEW), keys, strict=True):
            quote = ledger[key]
            if quote.unit != "points":
                raise InputError(ledger.source, key, quote.unit, "a difference in points")
            told = {"key": key, "effect": words, "policy": policy, "revision": revision, "y_px": y}
            rows.append({**told, "points": quote.value, **intervals.ends(quote)})
    return pl.DataFrame(rows, schema_overrides=intervals.COLUMNS)


def rows_of(points: pl.DataFrame, layout: theme.Layout) -> dots.Dots:
    """The effects as rows of dots, in the colours of their policies."""
    return dots.Dots(
        points,
        GRIDS[layout],
        layout,
        row="effect",
        which="revision",
        value="points",
        pair=(OLD, NEW),
        heads=(f"Revision {OLD}", f"Revision {NEW}"),
        say=(intervals.signed, intervals.signed_with_interval),
        colours={policy: series.style(policy).colour for policy in points["policy"].unique().sort()},
        axis={
            "title": "Difference in warm block hit rate (points)",
            "scale": alt.Scale(domain=list(dots.domain(points, "points")), nice=False),
            "axis": alt.Axis(tickCount=6, labelExpr="format(datum.value, datum.value ? '+d' : 'd')", grid=True),
        },
    )


def in_words(points: pl.DataFrame, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for (effect,), rows in points.group_by("effect", maintain_order=True):
        old, new = (ledger[key] for key in rows.sort("revision")["key"])
        told.append(f"{effect}: {old.signed}, then {intervals.signed_with_interval(new)}")
    return f"Dot chart: differences in warm block hit rate, in points, in Revision {OLD} and in Revision {NEW}. {'. '.join(told)}."


def caption(quotes: list[Quote], alphas: list[Quote], ledger: Ledger) -> str:
    """What dots and bars are, and on what."""
    few, many = (ledger[f"sim.rev{revision}.e1.seeds"].text for revision in (OLD, NEW))
    bars = intervals.said("bars, where wider than the dot,", quotes, many, ", paired")
    return (
        f"HBM {GIB} GiB where none is said; zipf, warm turns. "
        "Kept state: hit rate with state kept at eviction minus with state dropped; elsewhere it is dropped. "
        f"Hollow, Revision {OLD}: LFU and EMA 0.15 over LRU, mean of {few}, thin bar lowest to highest; kept state and best α, one seed. "
        f"Filled, Revision {NEW}: {bars}. "
        f"Best α: {alphas[0].value:g} in Revision {OLD}, {alphas[1].value:g} in Revision {NEW}, chosen on the runs that it is measured on. "
        f"Revision {OLD} may evict what the turn is reading; Revision {NEW} keeps it. Verdicts and their conditions: RETRACTIONS.md. "
        "Keys: sim.rev<n>.e5.gain.<policy>.hit, sim.rev<n>.e1.<GiB>.<policy>.margin, sim.rev<n>.e2.<…>.best_margin"
    )


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of effects in two revisions.

    Parameters
    ----------
    ledger : Ledger
        Holds the differences, with intervals for Revision 3.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If an effect is missing or no difference in points.
    """
    points = drawn(ledger, layout)
    quotes, rows = [ledger[key] for key in points["key"]], rows_of(points, layout)
    zero = alt.Chart(alt.InlineData(values=[{"points": 0}])).mark_rule(color=series.INK, strokeWidth=1).encode(x=rows.x("points"))
    alphas = [ledger["sim.rev2.e2.best_alpha"], ledger[f"sim.rev3.e2.{GIB}.reset.best_alpha"]]
    return theme.Figure(
        name="what_survives",
        title=f"Effects of Revision {OLD}, and what Revision {NEW} leaves of them",
        source=f"Revision {OLD} and Revision {NEW}",
        limits="",
        caption=caption(quotes, alphas, ledger),
        alt=in_words(points, ledger),
        quotes=[*quotes, *alphas],
        drawn=points,
        layers=[zero, *rows.marks(), *rows.written(ledger)],
        layout=layout,
        width=rows.grid.width,
        height=rows.height,
        left=rows.grid.left,
    )

"""What each of six mechanisms adds alone and last, and that what they add alone does not sum to what they add together: rows of dots."""

from __future__ import annotations

import altair as alt
import polars as pl

from kvtier.publish import dots, intervals, series, theme
from kvtier.publish.ledger import Ledger

PREFIX = "sim.rev3.ablation"
FIRST, LAST = "alone", "last"

NAMES = {
    "prefetch": "Prefetch of the next session",
    "ema": "EMA in place of LRU",
    "exclusive": "Exclusive tiers",
    "persistence": "Kept state",
    "suffix_first": "Suffix evicted first",
    "anchors": "Anchors pinned",
}

GRIDS = {
    theme.WIDE: dots.Grid(row=25, dots=12.5, words=-4, width=262, left=-172, first=402, second=414),
    theme.NARROW: dots.Grid(row=38, dots=29, words=14, width=300, left=0, first=196, second=204),
}


def drawn(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> pl.DataFrame:
    """One row a mechanism and place, the largest first, then the sum of the single gains and the joint gain, with heights in the plot."""
    found = {match["name"] for match in ledger.matches(f"{PREFIX}.<name>.{FIRST}")} & set(NAMES)
    ranked = sorted(found, key=lambda name: (-ledger[f"{PREFIX}.{name}.{FIRST}"].value, list(NAMES).index(name)))
    told = [(NAMES[name], "mechanism", [(FIRST, f"{PREFIX}.{name}.{FIRST}"), (LAST, f"{PREFIX}.{name}.{LAST}")]) for name in ranked]
    told += [("All, summed and joint", "total", [(FIRST, f"{PREFIX}.additivity.sum"), (LAST, f"{PREFIX}.additivity.joint")])]
    rows = []
    for (words, kind, keys), y in zip(told, dots.heights([len(ranked), 1], GRIDS[layout]), strict=True):
        for place, key in keys:
            quote = ledger[key]
            rows.append(
                {"key": key, "mechanism": words, "policy": kind, "place": place, "y_px": y, "points": quote.value, **intervals.ends(quote)}
            )
    return pl.DataFrame(rows, schema_overrides=intervals.COLUMNS)


def rows_of(points: pl.DataFrame, layout: theme.Layout) -> dots.Dots:
    """The mechanisms as rows of dots."""
    return dots.Dots(
        points,
        GRIDS[layout],
        layout,
        row="mechanism",
        which="place",
        value="points",
        pair=(FIRST, LAST),
        heads=("Added alone", "Added last"),
        say=((intervals.signed if layout.narrow else intervals.signed_with_interval), intervals.signed_with_interval),
        colours={"mechanism": series.STYLES["ema"].colour, "total": series.INK},
        axis={
            "title": "Gain in warm block hit rate (points)",
            "scale": alt.Scale(domain=list(dots.domain(points, "points")), nice=False),
            "axis": alt.Axis(tickCount=6, labelExpr="format(datum.value, datum.value ? '+d' : 'd')", grid=True),
        },
    )


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of single and joint gains.

    Parameters
    ----------
    ledger : Ledger
        Holds the gains with their intervals.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a gain is missing.
    """
    points, gap = drawn(ledger, layout), ledger[f"{PREFIX}.additivity.gap"]
    rows, quotes = rows_of(points, layout), [ledger[key] for key in points["key"]]
    zero = alt.Chart(alt.InlineData(values=[{"points": 0}])).mark_rule(color=series.INK, strokeWidth=1).encode(x=rows.x("points"))
    bars = intervals.said("bars, where wider than the dot,", quotes, ledger[f"{PREFIX}.seeds"].text, ", paired")
    lines = (
        f"{words}: {', then '.join(intervals.signed_with_interval(ledger[key]) for key in found['key'])}"
        for (words,), found in points.group_by("mechanism", maintain_order=True)
    )
    missing = f"Missing from the sum: {intervals.with_interval(gap)}"
    total = points.filter(pl.col("policy") == "total")["y_px"][0]
    if layout.narrow:
        note = theme.said(missing, 0, rows.height + 58, layout.text, series.INK, 600, gap.key)
    else:
        note = theme.said(missing, rows.grid.first - 110, total + 26, layout.text, series.INK, 600, gap.key)
    return theme.Figure(
        name="ablation",
        title="Six mechanisms: what each adds alone, what it adds last, and what all add together",
        source="Revision 3",
        limits="",
        caption=(
            f"Hollow: gain of a mechanism when none of the others is on; filled: when all the others are; {bars}. "
            "Last row: hollow, the gains alone added up; filled, the gain of all together. "
            "Prefetch knows which session comes next: it bounds what a rule can do. "
            "Kept state alone is nothing by definition: LRU has no score to keep. "
            f"Keys: {PREFIX}.<mechanism>.{FIRST}, .{LAST}, {PREFIX}.additivity.<what>"
        ),
        alt=f"Dot chart, gain in warm block hit rate in points, alone, then last. {'. '.join(lines)}. {missing} points.",
        quotes=[*quotes, gap],
        drawn=points,
        layers=[zero, *rows.marks(), *rows.written(ledger), note],
        layout=layout,
        width=rows.grid.width,
        height=rows.height,
        left=rows.grid.left,
    )

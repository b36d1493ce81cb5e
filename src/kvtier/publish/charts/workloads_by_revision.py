"""Warm hit rate of four policies on three workloads, Revision 2 beside Revision 3 and its optimum: rows of dots, a panel a workload."""

from __future__ import annotations

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import dots, intervals, series, theme
from kvtier.publish.ledger import Ledger

OLD, NEW = 2, 3
OPTIMUM = "min"
KEY = "sim.rev{}.e3.{}.{}.hit"

GRIDS = {
    theme.WIDE: dots.Grid(row=25, dots=12.5, words=-4, width=390, left=-84, first=448, second=464),
    theme.NARROW: dots.Grid(row=24, dots=12, words=-4, width=146, left=-58, first=196, second=206),
}
HEAD = 24
"""Over the rows of a workload, for its name [px]."""


def swept(ledger: Ledger) -> tuple[list[str], list[str]]:
    """Workloads and policies that both revisions have.

    Raises
    ------
    InputError
        If there are none.
    """
    pattern = KEY.format("{}", "<workload>", "<policy>")
    both = [{(found["workload"], found["policy"]) for found in ledger.matches(pattern.format(revision))} for revision in (OLD, NEW)]
    workloads, policies = (sorted({run[part] for run in both[0] & both[1]}, key=series.order) for part in (0, 1))
    if not workloads:
        raise InputError(ledger.source, pattern.format("<n>"), "no key in both revisions", "rates of both")
    return workloads, policies


def drawn(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> pl.DataFrame:
    """One row a workload, policy and revision, with its height in the plot."""
    (workloads, policies), rows = swept(ledger), []
    heights = iter(dots.heights([len(policies)] * len(workloads), GRIDS[layout], HEAD))
    for workload in workloads:
        for policy in policies:
            y = next(heights)
            for revision in (OLD, NEW):
                quote = ledger[KEY.format(revision, workload, policy)]
                told = {"key": quote.key, "workload": workload, "policy": policy, "title": series.title(policy), "revision": revision}
                rows.append({**told, "y_px": y, "percent": quote.value, **intervals.ends(quote)})
    return pl.DataFrame(rows, schema_overrides=intervals.COLUMNS)


def rows_of(points: pl.DataFrame, layout: theme.Layout) -> dots.Dots:
    """The policies as rows of dots, in their colours."""
    return dots.Dots(
        points,
        GRIDS[layout],
        layout,
        row="title",
        which="revision",
        value="percent",
        pair=(OLD, NEW),
        heads=(f"Rev. {OLD}", f"Rev. {NEW}") if layout.narrow else (f"Revision {OLD}", f"Revision {NEW}"),
        say=(lambda quote: quote.bare, lambda quote: quote.bare if layout.narrow else intervals.with_interval(quote)),
        colours={policy: series.style(policy).colour for policy in points["policy"].unique(maintain_order=True)},
        axis={
            "title": "Warm block hit rate (% of blocks read)" if layout.narrow else "Warm block hit rate (% of blocks read, served by HBM)",
            "scale": alt.Scale(domain=[0, dots.domain(points, "percent")[1]], nice=False),
            "axis": alt.Axis(tickCount=5, grid=True),
        },
    )


def bounds(points: pl.DataFrame, rows: dots.Dots, ledger: Ledger) -> list[alt.Chart]:
    """Name and optimum of each workload: a line across its rows, its value over those of the policies."""
    grid, layout, green, found = rows.grid, rows.layout, series.STYLES[OPTIMUM].colour, []
    for (workload,), of_workload in points.group_by("workload", maintain_order=True):
        optimum = ledger[KEY.format(NEW, workload, OPTIMUM)]
        top, foot = of_workload["y_px"].min() - grid.row / 2, of_workload["y_px"].max() + grid.row / 2
        name, said = top - 6, optimum.bare if layout.narrow else intervals.with_interval(optimum)
        found += [
            *dots.bound(optimum, top, foot, rows),
            theme.said(workload, grid.left, name, layout.text + 1, series.INK, 600),
            theme.said("Optimum", grid.first, name, layout.text, green, 600, align="right"),
            theme.said(said, grid.second, name, layout.text, green, 600, optimum.key),
        ]
    return found


def in_words(points: pl.DataFrame, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for (workload,), rows in points.group_by("workload", maintain_order=True):
        parts = [f"{workload}: optimum {intervals.with_interval(ledger[KEY.format(NEW, workload, OPTIMUM)])}"]
        for (policy,), pair in rows.group_by("policy", maintain_order=True):
            old, new = (ledger[key] for key in pair.sort("revision")["key"])
            parts.append(f"{series.title(policy)} {old.bare}, then {intervals.with_interval(new)}")
        told.append("; ".join(parts))
    return f"Dot charts: warm block hit rate in % in Revision {OLD} and in Revision {NEW}, by workload. {'. '.join(told)}."


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the workloads (e3) in Revisions 2 and 3.

    Parameters
    ----------
    ledger : Ledger
        Holds the rates, with intervals and the optimum for Revision 3.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If no rate is in both revisions, or a workload has no optimum.
    """
    points = drawn(ledger, layout)
    rows, quotes = rows_of(points, layout), [ledger[key] for key in points["key"]]
    optima = [ledger[KEY.format(NEW, workload, OPTIMUM)] for workload in points["workload"].unique(maintain_order=True)]
    few, many = (ledger[f"sim.rev{revision}.e3.seeds"].text for revision in (OLD, NEW))
    bars = intervals.said("bars, where wider than the dot,", quotes, many)
    return theme.Figure(
        name="workloads_by_revision",
        title=f"Hit rate on three workloads, Revision {OLD} and Revision {NEW}",
        source=f"Revision {OLD} and Revision {NEW}",
        limits="",
        caption=(
            f"Hollow, Revision {OLD}: mean of {few}, thin bar lowest to highest. Filled, Revision {NEW}: {bars}. "
            "State is dropped at eviction. "
            f"Green: the optimum of Revision {NEW}, which knows all turns; it bounds Revision {NEW} alone, for Revision {OLD} may evict "
            "what a turn is reading. "
            "Keys: sim.rev<n>.e3.<workload>.<policy>.hit"
        ),
        alt=in_words(points, ledger),
        quotes=[*quotes, *optima],
        drawn=points,
        layers=[*bounds(points, rows, ledger), *rows.marks(), *rows.written(ledger)],
        layout=layout,
        width=rows.grid.width,
        height=rows.height,
        left=rows.grid.left,
    )

"""Every policy that was run at one budget of Revision 3, plain and with state kept, sorted, under the optimum: rows of dots."""

from __future__ import annotations

import altair as alt
import polars as pl

from kvtier.publish import dots, intervals, series, theme
from kvtier.publish.ledger import Ledger

GIB = 32
"""HBM budget [GiB]."""

KEY = "sim.rev3.family.{}.{}.hit"
OPTIMUM, KEPT = "min", "_persistent"
FORESIGHT = ("farthest", "look")
"""Policies that know turns to come begin so."""

GRIDS = {
    theme.WIDE: dots.Grid(row=21, dots=10.5, words=-4, width=288, left=-168, first=420, second=432),
    theme.NARROW: dots.Grid(row=20, dots=10, words=-4, width=98, left=-136, first=138, second=146),
}


def colour(policy: str) -> str:
    """A policy's own colour, that of the optimum for those that know turns to come, else grey."""
    if policy.startswith(FORESIGHT):
        return series.STYLES[OPTIMUM].colour
    return series.style(policy).colour if policy in series.STYLES or policy.startswith("ema") else series.MUTED


def drawn(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> pl.DataFrame:
    """One row a run with its height in the plot: policies that know no turn to come, the best first, then those that do."""
    rates: dict[str, dict[bool, str]] = {}
    for found in ledger.matches(KEY.format(GIB, "<policy>")):
        policy = found["policy"].removesuffix(KEPT)
        if policy != OPTIMUM:
            rates.setdefault(policy, {})[found["policy"].endswith(KEPT)] = KEY.format(GIB, found["policy"])
    best = {policy: max(ledger[key].value for key in keys.values()) for policy, keys in rates.items()}
    ranked = sorted(rates, key=lambda policy: (policy.startswith(FORESIGHT), -best[policy], policy))
    ahead = sum(policy.startswith(FORESIGHT) for policy in ranked)
    heights = dots.heights([len(ranked) - ahead, ahead], GRIDS[layout])
    rows = []
    for policy, y in zip(ranked, heights, strict=True):
        for kept, key in sorted(rates[policy].items()):
            quote = ledger[key]
            told = {"key": key, "title": series.title(policy), "policy": policy, "state": "kept" if kept else "plain", "y_px": y}
            rows.append({**told, "percent": quote.value, **intervals.ends(quote)})
    return pl.DataFrame(rows, schema_overrides=intervals.COLUMNS)


def rows_of(points: pl.DataFrame, layout: theme.Layout) -> dots.Dots:
    """The policies as rows of dots."""
    say = (lambda quote: quote.bare) if layout.narrow else intervals.with_interval
    return dots.Dots(
        points,
        GRIDS[layout],
        layout,
        row="title",
        which="state",
        value="percent",
        pair=("plain", "kept"),
        heads=("plain", "kept") if layout.narrow else ("Plain", "State kept"),
        say=(say, say),
        colours={policy: colour(policy) for policy in points["policy"].unique(maintain_order=True)},
        axis={
            "title": "Warm hit rate (%)" if layout.narrow else "Warm block hit rate (% of blocks read, served by HBM)",
            "scale": alt.Scale(domain=list(dots.domain(points, "percent")), nice=False),
            "axis": alt.Axis(tickCount=5, grid=True),
        },
    )


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the policy family at one budget.

    Parameters
    ----------
    ledger : Ledger
        Holds the rates with their intervals, and the optimum.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If the optimum is missing.
    """
    points, optimum = drawn(ledger, layout), ledger[KEY.format(GIB, OPTIMUM)]
    rows, quotes = rows_of(points, layout), [ledger[key] for key in points["key"]]
    green = series.STYLES[OPTIMUM].colour
    lines = []
    for (title,), found in points.group_by("title", maintain_order=True):
        rates = (f"{state} {intervals.with_interval(ledger[key])}" for state, key in found.select("state", "key").iter_rows())
        lines.append(f"{title}: {'; '.join(rates)}")
    bars = intervals.said("bars, where wider than the dot,", quotes, ledger["sim.rev3.family.seeds"].text)
    head = theme.said(
        f"Optimum {optimum.bare if layout.narrow else intervals.with_interval(optimum)}",
        0,
        -10,
        layout.text,
        green,
        600,
        optimum.key,
    )
    return theme.Figure(
        name="policies_at_budget",
        title=f"Hit rate of every policy that was run, HBM {GIB} GiB",
        source="Revision 3",
        limits="",
        caption=(
            f"Hollow: the plain policy, which drops a session's score at eviction; filled: the score is kept; {bars}. "
            "Dash-dotted: the optimum and its interval. "
            "Policies know the past, sorted by the better of the two; below them, green, those that know turns to come. "
            "Scores are kept for each session, not for each block, so LFU and EMA differ a little from the budget sweep. "
            "Zipf workload, warm turns. Keys: sim.rev3.family.<GiB>.<policy>.hit"
        ),
        alt=f"Dot chart, warm block hit rate in %: optimum {intervals.with_interval(optimum)}. {'. '.join(lines)}.",
        quotes=[*quotes, optimum],
        drawn=points,
        layers=[*dots.bound(optimum, 0, rows.height, rows), *rows.marks(), *rows.written(ledger), head],
        layout=layout,
        width=rows.grid.width,
        height=rows.height,
        left=rows.grid.left,
    )

"""Effects that Revision 2 found, and what Revision 3 leaves of them: a hollow dot, a filled dot with its interval, a row each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import series, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

OLD, NEW = 2, 3
GIB = 32
"""HBM budget of the experiments at one budget."""


@dataclass(frozen=True)
class Rows:
    """Where rows and words stand [px]: height of a row, of its dots in it, of its words above the dots; from the plot's left edge, its
    width, the effect, the right edge of the old value and the left edge of the new one."""

    row: int
    dots: float
    words: float
    width: int
    left: int
    old: int
    new: int


ROWS = {
    theme.WIDE: Rows(row=25, dots=12.5, words=-4, width=330, left=-172, old=414, new=430),
    theme.NARROW: Rows(row=38, dots=29, words=14, width=300, left=0, old=196, new=204),
}
"""Words beside the dots, or above them where it is narrow."""

GAP = 12
"""More between two groups [px]."""

HOLLOW = {"size": 84, "filled": False, "fill": series.PAPER, "strokeWidth": 1.5}
FILLED = {"size": 34, "filled": True}


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


def ends(quote: Quote) -> tuple[float | None, float | None]:
    """What the ledger has of the spread: interval, else range of the seeds, else nothing."""
    for low, high in (("interval_low", "interval_high"), ("lowest_seed", "highest_seed")):
        if low in quote.uncertainty:
            return quote.uncertainty[low], quote.uncertainty[high]
    return None, None


def drawn(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> pl.DataFrame:
    """One row an effect and revision, with its height in the plot."""
    rows, y = [], 0.0
    for group in pairs(ledger):
        for words, policy, *keys in group:
            for revision, key in zip((OLD, NEW), keys, strict=True):
                quote = ledger[key]
                if quote.unit != "points":
                    raise InputError(ledger.source, key, quote.unit, "a difference in points")
                low, high = ends(quote)
                told = {"key": key, "effect": words, "policy": policy, "revision": revision, "y_px": y + ROWS[layout].dots}
                rows.append({**told, "points": quote.value, "lower": low, "upper": high})
            y += ROWS[layout].row
        y += GAP
    return pl.DataFrame(rows, schema_overrides={"lower": pl.Float64, "upper": pl.Float64})


def height_of(points: pl.DataFrame) -> int:
    """Height of the plot [px]."""
    return math.ceil(points["y_px"].max() + ROWS[theme.WIDE].dots)


def domain(points: pl.DataFrame) -> tuple[float, float]:
    """Whole tens around all that is drawn [points]."""
    ten = 10
    values = pl.concat([points[name].drop_nulls() for name in ("points", "lower", "upper")])
    return float(ten * (values.min() // ten)), float(-ten * (-values.max() // ten))


def of(revision: int, y: alt.Y, policies: list[str]) -> alt.Chart:
    """The rows of one revision, in the colours of their policies."""
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.revision == revision).encode(y=y)
    colours = [series.style(policy).colour for policy in policies]
    return base.encode(color=alt.Color("policy:N", scale=alt.Scale(domain=policies, range=colours), legend=None))


def marks(points: pl.DataFrame) -> list[alt.Chart]:
    """Zero line, a faint path from old to new, range and interval, dots."""
    policies, height = points["policy"].unique().sort().to_list(), height_of(points)
    across = {
        "title": "Difference in warm block hit rate (points)",
        "scale": alt.Scale(domain=list(domain(points)), nice=False),
        "axis": alt.Axis(tickCount=6, labelExpr="format(datum.value, datum.value ? '+d' : 'd')", grid=True),
    }
    x, lower = alt.X("points:Q", **across), alt.X("lower:Q", **across)
    y = alt.Y("y_px:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    zero = alt.Chart(alt.InlineData(values=[{"points": 0}])).mark_rule(color=series.INK, strokeWidth=1).encode(x=x)
    paths = [
        {"y_px": row["y_px"], "points": row["points"], "new": row["points_new"]}
        for row in points.filter(pl.col("revision") == OLD)
        .join(points.filter(pl.col("revision") == NEW).select("y_px", points_new="points"), on="y_px")
        .iter_rows(named=True)
    ]
    path = alt.Chart(alt.InlineData(values=paths)).mark_rule(color=series.FAINT, strokeWidth=3).encode(x=x, x2="new:Q", y=y)
    old, new = of(OLD, y, policies), of(NEW, y, policies)
    return [
        zero,
        path,
        old.mark_rule(strokeWidth=1.25).encode(x=lower, x2="upper:Q"),
        old.mark_point(shape="circle", opacity=1, **HOLLOW).encode(x=x),
        new.mark_rule(strokeWidth=3.5).encode(x=lower, x2="upper:Q"),
        new.mark_point(shape="circle", opacity=1, **FILLED).encode(x=x),
    ]


def signed(quote: Quote) -> str:
    """A difference with its sign, without its unit."""
    return quote.signed.removesuffix(quote.unit).rstrip()


def with_interval(quote: Quote) -> str:
    """The same, with the interval behind it where there is one."""
    return f"{signed(quote)} {(quote.interval or '').removesuffix(quote.unit)}".rstrip()


def head(x: float, y: float, colour: str, look: dict) -> alt.Chart:
    """The dot of a revision, beside its name."""
    return (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_point(shape="circle", color=colour, opacity=1, **look)
        .encode(x=alt.value(x), y=alt.value(y))
    )


def beside(text: str, x: float, y: float, layout: theme.Layout, key: str | None = None, **look: Any) -> list[alt.Chart]:
    """Words of a row; inside the plot, where it is narrow, with a rim that keeps the grid off."""
    place = alt.Chart(alt.InlineData(values=[{}])).encode(x=alt.value(x), y=alt.value(y))
    found = theme.over_grid(place, text, key, fontSize=layout.text, **{"align": "left", "baseline": "alphabetic", **look})
    return found if layout.narrow else found[1:]


def written(points: pl.DataFrame, ledger: Ledger, layout: theme.Layout) -> list[alt.Chart]:
    """Effect, old value and new value of each row, heads above them."""
    rows, size = ROWS[layout], layout.text
    found = [
        theme.said(f"Revision {OLD}", rows.old, -10, size, series.MUTED, 600, align="right"),
        theme.said(f"Revision {NEW}", rows.new, -10, size, series.INK, 600),
        head(rows.old - 5.4 * size, -14, series.MUTED, HOLLOW),
        head(rows.new + 5.4 * size, -14, series.INK, FILLED),
    ]
    for row in points.iter_rows(named=True):
        y, quote = row["y_px"] - rows.words, ledger[row["key"]]
        if row["revision"] == NEW:
            found += beside(with_interval(quote), rows.new, y, layout, fontWeight=600, key=quote.key)
        else:
            found += beside(row["effect"], rows.left, y, layout)
            found += beside(signed(quote), rows.old, y, layout, color=series.MUTED, align="right", key=quote.key)
    return found


def in_words(points: pl.DataFrame, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for (effect,), rows in points.group_by("effect", maintain_order=True):
        old, new = (ledger[key] for key in rows.sort("revision")["key"])
        told.append(f"{effect}: {old.signed}, then {with_interval(new)}")
    return f"Dot chart: differences in warm block hit rate, in points, in Revision {OLD} and in Revision {NEW}. {'. '.join(told)}."


def caption(quotes: list[Quote], alphas: list[Quote], ledger: Ledger) -> str:
    """What dots and bars are, and on what."""
    level = next((quote.uncertainty["interval_level"] for quote in quotes if "interval_level" in quote.uncertainty), None)
    few, many = (ledger[f"sim.rev{revision}.e1.seeds"].text for revision in (OLD, NEW))
    bars = f"bar, where wider than the dot, {100 * level:g} % interval of the mean over {many}, paired" if level else f"{many}, no interval"
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
    quotes = [ledger[key] for key in points["key"]]
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
        layers=[*marks(points), *written(points, ledger, layout)],
        layout=layout,
        width=ROWS[layout].width,
        height=height_of(points),
        left=ROWS[layout].left,
    )

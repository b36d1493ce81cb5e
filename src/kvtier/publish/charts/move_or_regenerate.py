"""Moving one KV block over a link against computing its tokens again: two ranges on one logarithmic axis of time, and their ratio."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import series, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

MOVED, MADE = "move", "regenerate"
BLOCK = "analytic.kv.llama3_70b.block_mib"
RATIO = "analytic.regenerate_over_move"
MICRO, MILLI = 1e-6, 1e-3

SIZES = {theme.WIDE: (690, 220), theme.NARROW: (290, 220)}
POWERS = (-5, 0)
"""Powers of ten on the axis, the last left out [s]."""

BAR = 13
PLACES = {MOVED: 24, MADE: 166}
RATIOS = (82, 112)
"""Height of the two bars, and of the two ratios between them [px from the top]."""

COLOURS = {MOVED: series.INK, MADE: series.STYLES["ema001"].colour}


def drawn(ledger: Ledger) -> pl.DataFrame:
    """One row a time, in seconds: moving by rising bandwidth, regenerating by rising MFU.

    Raises
    ------
    InputError
        If the ledger has none of either.
    """
    rows = []
    for what, pattern, unit, second in (
        (MOVED, "analytic.transfer.<at>gbps.us", "GB/s", MICRO),
        (MADE, "analytic.regeneration.mfu<at>.ms", "% MFU", MILLI),
    ):
        found = sorted(ledger.matches(pattern), key=lambda match: float(match["at"]))
        if not found:
            raise InputError(ledger.source, pattern, "no such key", "a time or more")
        for match in found:
            quote = ledger[pattern.replace("<at>", match["at"])]
            rows.append({"key": quote.key, "what": what, "at": f"{match['at']} {unit}", "seconds": quote.value * second})
    return pl.DataFrame(rows)


def place(column: str, layout: theme.Layout) -> alt.X:
    """Time, a tick a decade, each in its own unit."""
    micro, milli = (f"format(datum.value / {unit}, '~g') + ' {name}'" for unit, name in ((MICRO, "µs"), (MILLI, "ms")))
    label = f"datum.value < {MILLI} ? {micro} : {milli}"
    decades = [10.0**power for power in range(*POWERS)]
    return alt.X(
        f"{column}:Q",
        title="Time (log scale)",
        scale=alt.Scale(type="log", domain=[decades[0], decades[-1]], nice=False),
        axis=alt.Axis(values=decades, labelExpr=label, grid=True),
    )


def ends(points: pl.DataFrame, what: str) -> tuple[dict, dict]:
    """The shortest and the longest time of the two bars."""
    rows = points.filter(pl.col("what") == what).sort("seconds")
    return rows.row(0, named=True), rows.row(-1, named=True)


def bar(points: pl.DataFrame, what: str, words: str, ledger: Ledger, layout: theme.Layout) -> list[alt.Chart]:
    """A range with a tick at each assumption, its name above, its ends written below."""
    colour, y = COLOURS[what], PLACES[what]
    low, high = ends(points, what)
    span = alt.Chart(alt.InlineData(values=[{"low": low["seconds"], "high": high["seconds"]}]))
    ticks = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.what == what)
    marks = [
        span.mark_rule(color=colour, strokeWidth=BAR, opacity=0.3).encode(x=place("low", layout), x2="high:Q", y=alt.YValue(y)),
        ticks.mark_tick(orient="vertical", color=colour, thickness=2.5, size=BAR + 6).encode(x=place("seconds", layout), y=alt.YValue(y)),
    ]
    middle = [{"seconds": math.sqrt(low["seconds"] * high["seconds"])}]
    at = alt.Chart(alt.InlineData(values=middle)).encode(x=place("seconds", layout))
    marks += theme.over_grid(at.encode(y=alt.YValue(y - BAR - 3)), words, fontSize=layout.text, fontWeight=600, color=colour)
    for end, align, dx in ((low, "right", -4), (high, "left", 4)):
        text = f"{ledger[end['key']].text}\nat {end['at']}"
        under = at.encode(y=alt.YValue(y + BAR + 11))
        marks += theme.over_grid(under, text, end["key"], fontSize=layout.small, align=align, dx=dx, color=series.INK)
    return marks


def ratio(start: dict, stop: dict, quote: Quote, y: float, layout: theme.Layout) -> list[alt.Chart]:
    """How many times: a line from one time to the other, the number on it."""
    span = [{"seconds": start["seconds"], "stop": stop["seconds"]}]
    middle = [{"seconds": math.sqrt(start["seconds"] * stop["seconds"])}]
    line = alt.Chart(alt.InlineData(values=span)).mark_rule(color=series.MUTED, strokeWidth=1)
    tips = alt.Chart(alt.InlineData(values=[{"seconds": end["seconds"]} for end in (start, stop)]))
    at = alt.Chart(alt.InlineData(values=middle)).encode(x=place("seconds", layout), y=alt.YValue(y))
    return [
        line.encode(x=place("seconds", layout), x2="stop:Q", y=alt.YValue(y)),
        tips.mark_tick(orient="vertical", color=series.MUTED, thickness=1, size=9).encode(x=place("seconds", layout), y=alt.YValue(y)),
        *theme.over_grid(at, f"×{quote.bare}", quote.key, fontSize=layout.text, fontWeight=600, color=series.INK),
    ]


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of moving against regenerating a block.

    Parameters
    ----------
    ledger : Ledger
        Holds the times by bandwidth and by MFU, the least and the largest ratio, and the size of the block.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a number is missing, or a ratio is not that of the ends drawn.
    """
    points, block = drawn(ledger), ledger[BLOCK]
    words = {MOVED: f"Move one block, {block.text}", MADE: "Regenerate its tokens"}
    (fast, slow), (quick, long) = ends(points, MOVED), ends(points, MADE)
    least, most = (
        ledger.drawn(f"{RATIO}.{end}", stop["seconds"] / start["seconds"])
        for end, start, stop in (("min", slow, quick), ("max", fast, long))
    )
    width, height = SIZES[layout]
    said = "; ".join(f"{words[row['what']]} at {row['at']}: {ledger[row['key']].text}" for row in points.iter_rows(named=True))
    return theme.Figure(
        name="move_or_regenerate",
        title="Moving a KV block against regenerating it",
        source="model of stated inputs",
        limits="Bandwidths, peak rate and MFU are assumed; the link is unloaded, the kernel alone.",
        caption=(
            "Ticks: assumed bandwidths, and MFU (share of an assumed peak that is reached). "
            "Block of Llama-3 70B. Moving: bytes over bandwidth. Regenerating: two operations a parameter and token over the rate reached. "
            "Lines between: regenerating over moving, at the nearest ends and at the farthest. "
            f"Keys: analytic.transfer.<GB/s>.us, analytic.regeneration.<MFU>.ms, {RATIO}.min, .max"
        ),
        alt=f"Bar chart on a logarithmic axis of time. {said}. Regenerating over moving: {least.bare} to {most.bare} times.",
        quotes=[*(ledger[key] for key in points["key"]), least, most, block],
        drawn=points,
        layers=[
            *ratio(slow, quick, least, RATIOS[0], layout),
            *ratio(fast, long, most, RATIOS[1], layout),
            *(mark for what in (MOVED, MADE) for mark in bar(points, what, words[what], ledger, layout)),
        ],
        layout=layout,
        width=width,
        height=height,
        left=-12,
    )

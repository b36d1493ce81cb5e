"""Block hit rate on public traces against capacity: one panel a trace, the optimum on top."""

from __future__ import annotations

import altair as alt
import polars as pl

from kvtier.publish import series, theme
from kvtier.publish.ledger import Ledger
from kvtier.publish.palette import LIGHT
from kvtier.publish.render import DATA
from kvtier.publish.series import Style

KEY = "sim.traces.{}.{}.{}.hit"
TRACES = ("conversation", "synthetic", "agentic")
OPTIMUM = "min"
STYLES = {
    **{policy: series.style(policy) for policy in ("lru", "lfu", "ema005", OPTIMUM)},
    "s3fifo": Style(LIGHT["rose"], (6, 3), "triangle-up"),
}
"""Policies drawn; the last one with the colour and marker that EMA 0.01 has elsewhere."""

DOMAIN = (0.0, 100.0)
SIZES = {theme.WIDE: (208, 190), theme.NARROW: (186, 150)}
"""Width and height of a panel [px]."""

GAPS = {theme.WIDE: (66, 164), theme.NARROW: (58, 0)}
KI = 2**10


def title(policy: str) -> str:
    """Name of a line."""
    return "Optimum" if policy == OPTIMUM else series.title(policy)


def tokens_of(word: str) -> int:
    """A capacity in a key, in tokens."""
    return int(word[:-1]) * {"k": KI, "m": KI**2}[word[-1]]


def drawn(ledger: Ledger) -> pl.DataFrame:
    """One row a trace, policy and capacity."""
    rows = []
    for trace in TRACES:
        for policy in STYLES:
            for word in ledger.swept(KEY.format(trace, "<context>", policy), "context"):
                quote = ledger[KEY.format(trace, word, policy)]
                rows.append({"key": quote.key, "trace": trace, "policy": policy, "tokens": tokens_of(word), "percent": quote.value})
    return pl.DataFrame(rows).sort("trace", "policy", "tokens", maintain_order=True)


def panel(trace: str, points: pl.DataFrame, ledger: Ledger, layout: theme.Layout, *, first: bool) -> list[alt.Chart]:
    """Lines of one trace, each named at its end."""
    sizes = points["tokens"].unique().sort().to_list()
    ticks = sizes[:: 4 if layout.narrow else 2]
    names = " : ".join(
        f"datum.value == {size} ? '{size // KI}K'" if size < KI**2 else f"datum.value == {size} ? '{size // KI**2}M'" for size in ticks
    )
    x = alt.X(
        "tokens:Q",
        title="Capacity (tokens, log scale)",
        scale=alt.Scale(type="log", base=2, domain=[sizes[0], sizes[-1]], nice=False, padding=8),
        axis=alt.Axis(values=ticks, labelExpr=f"{names} : ''"),
    )
    y = alt.Y(
        "percent:Q",
        title="Block hit rate (% of blocks read)" if first else None,
        scale=alt.Scale(domain=list(DOMAIN)),
        axis=alt.Axis(tickCount=5),
    )
    marks, ends = [], []
    for policy, style in STYLES.items():
        base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.trace == trace) & (alt.datum.policy == policy))
        marks.append(base.mark_line(color=style.colour, strokeDash=list(style.dash)).encode(x=x, y=y))
        marks.append(base.mark_point(color=style.colour, shape=style.shape, size=30, filled=True, opacity=1).encode(x=x, y=y))
        last = points.filter((pl.col("trace") == trace) & (pl.col("policy") == policy)).row(-1, named=True)
        ends.append((layout.label(title(policy), ledger[last["key"]]), last["percent"], style.colour, last["key"]))
    texts, values, colours, keys = zip(*ends, strict=True)
    head = theme.said(trace.capitalize(), 10, 12 if trace != "agentic" else SIZES[layout][1] - 10, layout.text + 2, series.INK, 600)
    return [*marks, head, *theme.end_labels(texts, values, colours, DOMAIN, SIZES[layout], layout=layout, keys=keys)]


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of hit rates on traces.

    Parameters
    ----------
    ledger : Ledger
        Holds the rates.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a trace or policy is missing.
    """
    points = drawn(ledger)
    panels = [panel(trace, points, ledger, layout, first=index == 0) for index, trace in enumerate(TRACES)]
    told = []
    for (trace, policy), rows in points.group_by("trace", "policy", maintain_order=True):
        told.append(f"{trace}, {title(policy)}: {', '.join(ledger[key].text for key in rows['key'])}")
    return theme.Figure(
        name="traces_by_capacity",
        title="Hit rate on public traces against capacity",
        source="Revision 3 on traces",
        limits="",
        caption=(
            "All requests from a cold start; lossless residency, deepest blocks first and from leaves alone, so each hit is one of the "
            "contiguous prefix. The optimum knows all requests. Agentic: sessions composed for concurrent users, one seed. Differences "
            "between policies, with intervals, are in the canonical numbers. Keys: sim.traces.<trace>.<capacity>.<policy>.hit"
        ),
        alt=f"Line charts, one a trace: block hit rate by capacity, rising. {'. '.join(told)}.",
        quotes=[ledger[key] for key in points["key"]],
        drawn=points,
        layers=panels[0],
        panels=panels[1:],
        columns=1 if layout.narrow else 2,
        gaps=GAPS[layout],
        layout=layout,
        width=SIZES[layout][0],
        height=SIZES[layout][1],
    )

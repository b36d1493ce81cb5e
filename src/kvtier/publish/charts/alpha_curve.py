"""Hit rate against EMA alpha at one budget, its highest value marked, LRU and LFU as reference lines."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import series, tables, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

EXPERIMENT = "sim.rev2.e2"
COMPARED = ("ema015", "ema001")
"""Alphas of the budget sweep: marked, so that the two figures can be read together."""


def drawn(runs: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """One row a run with its key: the reference policies, then alpha rising."""
    rows = []
    for policy, alpha, rate in runs.select("policy", "alpha", "hit_rate").iter_rows():
        slug = series.slug(policy, alpha)
        key = f"{EXPERIMENT}.{slug}.hit"
        rows.append({"key": key, "policy": slug, "alpha": alpha, "hit_rate_percent": ledger.drawn(key, rate).value})
    columns = {"key": pl.String(), "policy": pl.String(), "alpha": pl.Float64(), "hit_rate_percent": pl.Float64()}
    return pl.DataFrame(rows, schema=columns).sort("alpha", "key", nulls_last=False)


def domain(points: pl.DataFrame, layout: theme.Layout = theme.WIDE) -> tuple[float, float]:
    """From zero to ten or more above the highest rate, where the words on the optimum stand [%]."""
    ten = 10
    return 0.0, float(min(10 * ten, ten * (points["hit_rate_percent"].max() // ten + (3 if layout.narrow else 2))))


def reference(policy: str, y: alt.Y) -> alt.Chart:
    """A policy without alpha, as a line across."""
    style = series.style(policy)
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.policy == policy)
    return base.mark_rule(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.5).encode(y=y)


def curve(points: pl.DataFrame, y: alt.Y, layout: theme.Layout) -> list[alt.Chart]:
    """Line over alpha; the alphas of the budget sweep keep their colour and marker, the others are hollow."""
    alphas = points["alpha"].drop_nulls().to_list()
    x = alt.X(
        "alpha:Q",
        title="EMA weight α of the newest touch (log scale)" if not layout.narrow else "EMA α (log scale)",
        scale=alt.Scale(type="log", domain=[alphas[0], alphas[-1]], nice=False, padding=14),
        axis=alt.Axis(values=alphas, format="~g", labelOverlap="greedy", labelSeparation=5),
    )
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter("datum.alpha !== null").encode(x=x, y=y)
    style = series.STYLES["ema"]
    named = [policy for policy in COMPARED if policy in points["policy"]]
    return [
        base.mark_line(color=style.colour),
        base.transform_filter(alt.FieldOneOfPredicate("policy", [policy for policy in points["policy"] if policy not in named])).mark_point(
            color=style.colour, shape=style.shape, size=56, filled=False, fill=series.PAPER, strokeWidth=1.75, opacity=1
        ),
        *(
            base.transform_filter(alt.datum.policy == policy).mark_point(
                color=series.style(policy).colour, shape=series.style(policy).shape, size=64, filled=True, opacity=1
            )
            for policy in named
        ),
    ]


def at(point: dict, y: alt.Y) -> alt.Chart:
    """A place on the curve, for words and rings."""
    return alt.Chart(alt.InlineData(values=[{name: point[name] for name in ("alpha", "hit_rate_percent")}])).encode(x="alpha:Q", y=y)


def rates(points: pl.DataFrame, ledger: Ledger, y: alt.Y) -> list[alt.Chart]:
    """The displayed rate under a rising curve, over a falling one; the best and the last point have words of their own."""
    swept = points.filter(pl.col("alpha").is_not_null()).to_dicts()
    best = max(swept, key=lambda point: point["hit_rate_percent"])
    marks = []
    for point, following in pairwise(swept):
        if point == best:
            continue
        rising = following["hit_rate_percent"] > point["hit_rate_percent"]
        color = series.style(point["policy"]).colour if point["policy"] in COMPARED else series.MUTED
        place = {"dx": 4, "dy": 17} if rising else {"dx": 10, "dy": -12}
        marks += theme.over_grid(at(point, y), ledger[point["key"]].bare, point["key"], fontSize=11, color=color, fontWeight=600, **place)
    return marks


def optimum(points: pl.DataFrame, ledger: Ledger, y: alt.Y, layout: theme.Layout) -> tuple[list[alt.Chart], list[Quote], str]:
    """Mark, numbers and words of the highest rate; says whether it lies inside the swept range."""
    best, margin = ledger[f"{EXPERIMENT}.best_alpha"], ledger[f"{EXPERIMENT}.best_margin"]
    swept = points.filter(pl.col("alpha").is_not_null())
    rows = swept.filter(pl.col("alpha") == best.value).to_dicts()
    if not rows:
        raise InputError(ledger.source, best.key, best.value, "an alpha of the table")
    row, alphas = rows[0], swept["alpha"]
    place = "interior optimum of the α swept" if alphas.min() < best.value < alphas.max() else "highest at the edge of the swept range"
    hit = ledger[row["key"]]
    parts = [f"{place}:", f"α {series.alpha_of(row['policy'])}, {hit.text},", f"{margin.signed} over LRU"]
    words, lines = " ".join(parts), len(parts) if layout.narrow else 1
    written = "\n".join(parts) if layout.narrow else words
    spot = at(row, y)
    marks = [
        spot.mark_point(size=240, color=series.INK, strokeWidth=1.5, filled=False, opacity=1),
        *theme.over_grid(spot, written[0].upper() + written[1:], margin.key, dy=-7 - 15 * lines, color=series.INK, fontWeight=600),
    ]
    return marks, [best, margin, hit], words


def draw(table: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of an alpha sweep (e2).

    Parameters
    ----------
    table : str or Path
        Parquet file of runs, columns ``tables.HIT_RATES``.
    ledger : Ledger
        Holds the rates, the best alpha and its margin.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If the table does not give the rates that the ledger has.
    """
    runs = tables.read(table, tables.HIT_RATES)
    points = drawn(runs, ledger)
    span = domain(points, layout)
    y = alt.Y(
        "hit_rate_percent:Q",
        title="Block hit rate (% of blocks read, served by HBM)",
        scale=alt.Scale(domain=list(span)),
        axis=alt.Axis(tickCount=6),
    )
    references = [policy for policy, alpha in points.select("policy", "alpha").iter_rows() if alpha is None]
    marks, best_quotes, words = optimum(points, ledger, y, layout)
    quotes = {policy: ledger[key] for key, policy in points.select("key", "policy").iter_rows()}
    last = points["policy"].to_list()[-1]
    ends = [*references, last]
    first, turns = tables.only(runs, "counted_from", table), tables.only(runs, "turns", table)
    gib, seed = tables.only(runs, "hbm_gib", table), tables.only(runs, "seed", table)
    source = f"Revision {tables.only(runs, 'revision', table)}"
    swept = "; ".join(f"{series.title(policy)}: {quote.text}" for policy, quote in quotes.items())
    return theme.Figure(
        name="alpha_curve",
        title=f"Hit rate against EMA α, HBM {gib:g} GiB",
        source=source,
        limits="",
        caption=(
            f"Seed {seed} alone: no interval. Counted: turns {first:,} to {first + turns - 1:,} of the "
            f"{tables.only(runs, 'workload', table)} workload; CXL tier {tables.only(runs, 'cxl_gib', table):g} GiB, LRU; "
            "state dropped at eviction. An audit holds each run under an optimal bound; "
            "the optimum of Revision 3 is drawn in revisions_by_budget. "
            f"Keys: {EXPERIMENT}.<policy>.hit"
        ),
        alt=(
            f"Line chart, {source}: block hit rate against EMA alpha at {gib:g} GiB of HBM, with LRU and LFU as lines. {swept}. "
            f"{words[0].upper() + words[1:]}."
        ),
        quotes=[*quotes.values(), *best_quotes],
        drawn=points,
        layers=[
            *(reference(policy, y) for policy in references),
            *curve(points, y, layout),
            *rates(points, ledger, y),
            *marks,
            *theme.end_labels(
                [layout.label(series.title(policy), quotes[policy]) for policy in ends],
                [quotes[policy].value for policy in ends],
                [series.style(policy).colour for policy in ends],
                span,
                layout=layout,
                keys=[quotes[policy].key for policy in ends],
            ),
        ],
        layout=layout,
    )

"""Bound on a rotary inner product by distance, at two bases: lines of the model, points of the ledger."""

from __future__ import annotations

import math
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import series, tables, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

KEY = "analytic.rope.base{}.envelope.{}"
STYLES = (series.Style(series.MUTED, (6, 3), "square"), series.Style(series.INK, (1, 0), "circle"))
"""By rising base, in greys: colour belongs to eviction policies."""

DOMAIN = (0.0, 1.0)
SLACK = 1e-9
WIDTHS = {theme.WIDE: 540, theme.NARROW: 182}
"""Of the plot [px]: the labels are long."""


def told(base: float, longest: int, ledger: Ledger) -> list[Quote]:
    """Numbers of a base at distances from 1 to the end of the curve, nearest first.

    Raises
    ------
    InputError
        If there are none.
    """
    pattern = KEY.format(f"{base:.0f}", "<distance>")
    distances = sorted(int(found["distance"]) for found in ledger.matches(pattern))
    quotes = [ledger[KEY.format(f"{base:.0f}", distance)] for distance in distances if 1 <= distance <= longest]
    if not quotes:
        raise InputError(ledger.source, pattern, "no such key on the curve", "one or more")
    return quotes


def drawn(curve: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Runs of distances of each base without keys, then the points that the ledger has on it.

    Raises
    ------
    InputError
        If a point lies outside the run of its distance: one of the two is of another build.
    """
    longest, rows = curve["last_tokens"].max(), []
    for (base,), runs in curve.sort("base", "first_tokens").group_by("base", maintain_order=True):
        for run in runs.iter_rows(named=True):
            middle = math.sqrt(run["first_tokens"] * run["last_tokens"])
            told_of = {"key": None, "mark": "curve", "base": base, "distance_tokens": middle, "share": run["mean"]}
            rows.append({**told_of, "lowest": run["lowest"], "highest": run["highest"]})
        for quote in told(base, longest, ledger):
            distance = int(quote.key.rpartition(".")[2])
            run = runs.row(by_predicate=(pl.col("first_tokens") <= distance) & (pl.col("last_tokens") >= distance), named=True)
            if not run["lowest"] - SLACK <= quote.value <= run["highest"] + SLACK:
                raise InputError(ledger.source, quote.key, quote.value, f"{run['lowest']} to {run['highest']}, as the table has it")
            point = {"key": quote.key, "mark": "point", "base": base, "distance_tokens": float(distance), "share": quote.value}
            rows.append({**point, "lowest": None, "highest": None})
    numbers = dict.fromkeys(("base", "distance_tokens", "share", "lowest", "highest"), pl.Float64())
    return pl.DataFrame(rows, schema={"key": pl.String(), "mark": pl.String(), **numbers})


def axes(points: pl.DataFrame) -> dict[str, alt.X | alt.Y]:
    """Distance on a logarithmic axis, the bound from zero."""
    longest = points["distance_tokens"].max()
    decades = [10**power for power in range(math.floor(math.log10(longest)) + 1)]
    x = alt.X(
        "distance_tokens:Q",
        title="Distance |m − n| (tokens, log scale)",
        scale=alt.Scale(type="log", domain=[1, longest], nice=False, padding=10),
        axis=alt.Axis(values=decades, format=",d"),
    )
    y = {"title": "Bound, as a share of its value at no distance", "scale": alt.Scale(domain=list(DOMAIN)), "axis": alt.Axis(tickCount=6)}
    return {"x": x, "y": alt.Y("share:Q", **y), "lowest": alt.Y("lowest:Q", **y)}


def line(base: float, style: series.Style, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Band, line and points of one base."""
    rows = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.base == base).encode(x=placed["x"])
    curve, points = (rows.transform_filter(alt.datum.mark == mark) for mark in ("curve", "point"))
    point = {"filled": True} if style.dash == (1, 0) else series.HOLLOW
    return [
        curve.mark_area(color=style.colour, opacity=0.2).encode(y=placed["lowest"], y2="highest:Q"),
        curve.mark_line(color=style.colour, strokeDash=list(style.dash)).encode(y=placed["y"]),
        points.mark_point(color=style.colour, shape=style.shape, size=46, opacity=1, **point).encode(y=placed["y"]),
    ]


def notes(
    base: float, rank: int, points: pl.DataFrame, ledger: Ledger, placed: dict[str, alt.X | alt.Y], layout: theme.Layout
) -> list[alt.Chart]:
    """Values at the points between the ends: of the lowest base below its line, of the others above."""
    rows = points.filter((pl.col("mark") == "point") & (pl.col("base") == base)).sort("distance_tokens")
    found = []
    for row in rows[1:-1].iter_rows(named=True):
        at = alt.Chart(alt.InlineData(values=[{name: row[name] for name in ("distance_tokens", "share")}]))
        at = at.encode(x=placed["x"], y=placed["y"])
        place = {"dx": 12, "dy": -12} if rank else {"dx": -12, "dy": 13}
        look = {"fontSize": layout.small, "color": STYLES[rank].colour, "fontWeight": 600}
        found += theme.over_grid(at, ledger[row["key"]].bare, row["key"], **look, **place)
    return found


def draw(table: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the rotary bound by distance.

    Parameters
    ----------
    table : str or Path
        CSV file, columns ``tables.ROPE_CURVE``.
    ledger : Ledger
        Holds the bound at some of the distances.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If table and ledger differ, or there are more bases than styles.
    """
    points = drawn(tables.read(table, tables.ROPE_CURVE), ledger)
    bases = points["base"].unique().sort().to_list()
    if len(bases) > len(STYLES):
        raise InputError(table, "column base", f"{len(bases)} bases", f"{len(STYLES)} at most")
    placed = axes(points)
    quoted = points.filter(pl.col("key").is_not_null())
    ends = [quoted.filter(pl.col("base") == base).row(-1, named=True)["key"] for base in bases]
    names = [f"Base {base:,.0f}" for base in bases]
    said = (
        f"Base {base:,.0f}, "
        + "; ".join(f"{distance:,.0f}: {ledger[key].bare}" for key, distance in rows.select("key", "distance_tokens").iter_rows())
        for (base,), rows in quoted.group_by("base", maintain_order=True)
    )
    return theme.Figure(
        name="rope_bound",
        title="What distance leaves of the bound on a rotary inner product",
        source="rotary position embedding",
        limits="A bound on what a score can be, given the content; it says nothing of what a score is.",
        caption=(
            "Mean length of the partial sums of the rotary phases, B(|m − n|) of Su et al. but for the factor that the content gives, "
            "over its value at no distance. Lines: mean over runs of neighbouring distances; bands: lowest to highest, for it "
            "jumps from one distance to the next. It neither falls all the way nor reaches zero. Dots: single distances. "
            "Dashed: the base that the package prints; full: that of the model. "
            "Keys: analytic.rope.base<base>.envelope.<distance>"
        ),
        alt=f"Line chart with a logarithmic axis: bound on the rotary inner product by distance in tokens. {'. '.join(said)}.",
        quotes=[ledger[key] for key in quoted["key"]],
        drawn=points,
        layers=[
            *(mark for base, style in zip(bases, STYLES, strict=False) for mark in line(base, style, placed)),
            *(mark for rank, base in enumerate(bases) for mark in notes(base, rank, points, ledger, placed, layout)),
            *theme.end_labels(
                [layout.label(name, ledger[key]) for name, key in zip(names, ends, strict=True)],
                [ledger[key].value for key in ends],
                [style.colour for style in STYLES[: len(bases)]],
                DOMAIN,
                (WIDTHS[layout], layout.height),
                layout=layout,
                keys=ends,
            ),
        ],
        layout=layout,
        width=WIDTHS[layout],
    )

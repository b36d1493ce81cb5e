"""The report of one replay: a page in one file, with the tables, the charts and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
import polars as pl
from markupsafe import Markup

from kvtier.evidence.labels import Label, Status
from kvtier.files import write_atomically
from kvtier.frames import Table
from kvtier.publish import font, render, series, theme
from kvtier.publish.ledger import Quote
from kvtier.publish.pages import fonts
from kvtier.publish.pages.markup import badge
from kvtier.publish.palette import DARK, LIGHT
from kvtier.publish.render import DATA
from kvtier.publish.series import FAINT, INK, MUTED, PAPER

TEMPLATES = Path(__file__).with_name("templates")

PAGE_PX = 1040
"""Width of the column of text, tables and charts."""

REPLAYS = Table(
    "replays",
    {
        "policy": pl.String(),
        "capacity_bytes": pl.Int64(),
        "capacity": pl.String(),
        "hit_percent": pl.Float64(),
        "optimum_percent": pl.Float64(),
        "regret_points": pl.Float64(),
        "tier_percents": pl.List(pl.Float64()),
        "recomputed_percent": pl.Float64(),
        "new_percent": pl.Float64(),
        "stall_ms_mean": pl.Float64(),
    },
    nullable=frozenset({"hit_percent", "optimum_percent", "regret_points", "recomputed_percent", "new_percent", "stall_ms_mean"}),
)
"""One row a policy and capacity; shares of the blocks that counted requests read. Null where nothing is counted, or not timed."""

COLOURS = tuple(LIGHT[name] for name in ("ink", "ochre", "blue", "rose"))
"""Of the first four policies; the others are grey. The optimum has the fifth."""

OPTIMUM = "optimum"


@dataclass(frozen=True)
class Sheet:
    """A table in words: heads, rows, and which columns hold numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Chart:
    """A picture with the words around it."""

    id: str
    title: str
    limits: str
    caption: str
    alt: str
    picture: Markup


def palette(policies: Sequence[str]) -> dict[str, str]:
    """Colour of each policy: its own where the published figures have one, else the next that is free, else grey."""
    found = {slug: series.STYLES[slug].colour for slug in policies if slug in series.STYLES}
    found = dict(list(found.items())[: len(COLOURS)])
    free = [colour for colour in COLOURS if colour not in found.values()]
    for slug in policies:
        if slug not in found:
            found[slug] = free.pop(0) if free else MUTED
    return found


def _quote(row: Mapping[str, Any], column: str, unit: str) -> Quote:
    key = f"replay.{row['capacity_bytes']}.{row['policy']}.{column}"
    return Quote(key, row[column], f"{row[column]:,.2f}", unit, Label.SIMULATED, Status.PROVISIONAL, column, "simulate", {}, {})


def _picture(
    name: str, rows: pl.DataFrame, column: str, unit: str, words: str, layers: Sequence[alt.Chart], size: tuple[int, int]
) -> Markup:
    """The marks alone, in the colours of the page."""
    quotes = [_quote(row, column, unit) for row in rows.iter_rows(named=True)]
    width, height = size
    figure = theme.Figure(
        name=name,
        title=name,
        source="replay",
        limits=words,
        caption=words,
        alt=words,
        quotes=quotes,
        drawn=rows.drop("tier_percents"),
        layers=layers,
        width=width,
        height=height,
    )
    return Markup(render.page_form(figure, figure)[theme.WIDE.name])


def _top(values: Sequence[float]) -> float:
    """A round number above all of some values."""
    most = max(values, default=0.0) or 1.0
    scale = 10.0 ** math.floor(math.log10(most))
    return next(scale * step for step in (1, 2, 2.5, 5, 10) if scale * step >= most)


def lines(rows: pl.DataFrame, column: str, title: str, unit: str, *, bounded: bool) -> tuple[list[alt.Chart], tuple[int, int]]:
    """A line a policy over capacities, the optimum with them where there is one, names and last values at their ends."""
    policies = rows["policy"].unique(maintain_order=True).to_list()
    colours = palette(policies)
    last = rows.filter(pl.col("capacity_bytes") == rows["capacity_bytes"].max())
    ends = {row["policy"]: row[column] for row in last.iter_rows(named=True)}
    if bounded:
        ends[OPTIMUM] = last["optimum_percent"][0]
    texts = [f"{OPTIMUM if slug == OPTIMUM else series.title(slug)}: {value:,.1f}" for slug, value in ends.items()]
    # Names at the ends of the lines take what they need of the picture's width.
    width = int(theme.WIDE.limit + theme.WIDE.left - 40 - max(font.measure(text, theme.WIDE.text, 600) for text in texts))
    height = max(theme.WIDE.height, int((theme.WIDE.text + 4) * len(texts)))
    sizes = rows.select("capacity_bytes", "capacity").unique(maintain_order=True).sort("capacity_bytes")
    top = 100.0 if unit == "%" else _top(rows[column].to_list())
    names = {str(size): name for size, name in sizes.iter_rows()}
    x = alt.X(
        "capacity_bytes:Q",
        title="Room for KV in HBM (log scale)",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[sizes["capacity_bytes"][0], sizes["capacity_bytes"][-1]], padding=10),
        axis=alt.Axis(values=sizes["capacity_bytes"].to_list(), labelExpr=f"{names}[datum.value]"),
    )
    scale = alt.Scale(domain=[0, top])
    data = alt.Chart(alt.NamedData(name=DATA))
    marks: list[alt.Chart] = []
    # Grey ones behind.
    for slug in sorted(policies, key=lambda slug: colours[slug] != MUTED):
        of_one = data.transform_filter(alt.datum.policy == slug)
        y = alt.Y(f"{column}:Q", title=title, scale=scale)
        grey = colours[slug] == MUTED
        dash = series.STYLES[slug].dash if slug in series.STYLES else (1, 0)
        marks.append(of_one.mark_line(color=colours[slug], strokeWidth=1 if grey else 2, strokeDash=list(dash)).encode(x=x, y=y))
        if not grey:
            marks.append(of_one.mark_point(color=colours[slug], size=36, filled=True, opacity=1).encode(x=x, y=y))
    if bounded:
        best = data.transform_filter(alt.datum.policy == policies[0])
        style = series.STYLES["min"]
        y = alt.Y("optimum_percent:Q", title=title, scale=scale)
        marks.append(best.mark_line(color=style.colour, strokeDash=list(style.dash)).encode(x=x, y=y))
    shown = [series.STYLES["min"].colour if slug == OPTIMUM else colours[slug] for slug in ends]
    marks += theme.end_labels(texts, list(ends.values()), shown, (0.0, top), (width, height))
    return marks, (width, height)


def dots(rows: pl.DataFrame, column: str, title: str, unit: str, *, bounded: bool) -> tuple[list[alt.Chart], tuple[int, int]]:
    """One capacity: a dot a policy, the best on top, and the optimum as a line."""
    ranked = rows.sort(column, descending=unit == "%", maintain_order=True)
    policies = ranked["policy"].to_list()
    top = 100.0 if unit == "%" else _top(rows[column].to_list())
    titles = {slug: series.title(slug) for slug in policies}
    left = max(font.measure(text, theme.WIDE.text) for text in titles.values())
    width, height = int(theme.WIDE.limit - left - 110), 26 * len(policies) + 10
    y = alt.Y("policy:N", sort=policies, title=None, axis=alt.Axis(labelExpr=f"{titles}[datum.value]", grid=False, labelLimit=0))
    x = alt.X(f"{column}:Q", title=title, scale=alt.Scale(domain=[0, top]))
    data = alt.Chart(alt.NamedData(name=DATA))
    marks = [data.mark_bar(height=3, color=FAINT).encode(x=x, y=y)]
    if bounded:
        best = data.transform_filter(alt.datum.policy == policies[0])
        style = series.STYLES["min"]
        marks.append(best.mark_rule(color=style.colour, strokeWidth=2, strokeDash=list(style.dash)).encode(x="optimum_percent:Q"))
        value = rows["optimum_percent"][0]
        at_line = {"color": style.colour, "weight": 600, "align": "center", "baseline": "bottom"}
        marks.append(theme.said(f"{OPTIMUM} {value:,.2f}", width * value / top, -8, **at_line))
    marks.append(data.mark_point(color=INK, size=60, filled=True, opacity=1).encode(x=x, y=y))
    at = data.encode(x=x, y=y)
    for slug, value in zip(policies, ranked[column].to_list(), strict=True):
        one = at.transform_filter(alt.datum.policy == slug)
        marks += theme.over_grid(one, f"{value:,.2f}", align="left", dx=9, color=INK)
    return marks, (width, height)


def shares(rows: pl.DataFrame, tiers: Sequence[str]) -> tuple[list[alt.Chart], tuple[int, int]]:
    """One capacity: of each policy, which share of the blocks comes from where."""
    policies = rows["policy"].to_list()
    titles = {slug: series.title(slug) for slug in policies}
    left = max(font.measure(text, theme.WIDE.text) for text in titles.values())
    width, height = int(theme.WIDE.limit - left - 60), 26 * len(policies)
    tier_colours = [LIGHT[name] for name in ("blue", "ochre", "blue-tint", "ochre-tint")]
    colours = [INK, *(tier_colours[min(index, 3)] for index in range(len(tiers))), LIGHT["rose"], FAINT]
    names = ["HBM", *tiers, "computed again", "computed first"]
    y = alt.Y("policy:N", sort=policies, title=None, axis=alt.Axis(labelExpr=f"{titles}[datum.value]", grid=False, labelLimit=0))
    data = alt.Chart(alt.NamedData(name=DATA))
    marks: list[alt.Chart] = []
    for index, colour in enumerate(colours):
        x = alt.X(f"share_{index}_from:Q", title="Share of the blocks read (%)", scale=alt.Scale(domain=[0, 100]))
        bar = data.mark_bar(height=16, color=colour, stroke=PAPER, strokeWidth=1)
        marks.append(bar.encode(x=x, x2=f"share_{index}_to:Q", y=y))
    place = 0.0
    for name, colour in zip(names, colours, strict=True):
        key = alt.Chart(alt.InlineData(values=[{}])).mark_rect(color=colour, stroke=MUTED, strokeWidth=0.5)
        marks.append(key.encode(x=alt.XValue(place), x2=alt.X2Value(place + 11), y=alt.YValue(-19), y2=alt.Y2Value(-8)))
        marks.append(theme.said(name, place + 16, -9))
        place += 16 + font.measure(name, theme.WIDE.text) + 18
    return marks, (width, height)


def stacked(rows: pl.DataFrame, tiers: int) -> pl.DataFrame:
    """Where each part of a bar of :func:`shares` starts and ends."""
    bounds = []
    for row in rows.iter_rows(named=True):
        parts = [row["hit_percent"], *row["tier_percents"], row["recomputed_percent"], row["new_percent"]]
        ends = [math.fsum(parts[: index + 1]) for index in range(len(parts))]
        bounds.append(
            {f"share_{index}_from": start for index, start in enumerate([0.0, *ends[:-1]])}
            | {f"share_{index}_to": end for index, end in enumerate(ends)}
        )
    return pl.concat([rows, pl.DataFrame(bounds)], how="horizontal")


def charts(rows: pl.DataFrame, tiers: Sequence[str], limits: str) -> list[Chart]:
    """Hits, sources and stall; those of which there is something to draw."""
    found: list[Chart] = []
    many = rows["capacity_bytes"].n_unique() > 1

    def compared(name: str, column: str, title: str, axis: str, unit: str, caption: str, *, bounded: bool) -> None:
        marks, size = (lines if many else dots)(rows, column, axis, unit, bounded=bounded)
        points = rows.select("policy", "capacity", column).iter_rows()
        values = "; ".join(f"{series.title(policy)} at {capacity}: {value:,.2f}" for policy, capacity, value in points)
        words = f"{axis}, {'by capacity and policy' if many else 'by policy'}. {values}."
        found.append(Chart(name, title, limits, caption, words, _picture(name, rows, column, unit, limits, marks, size)))

    if rows["hit_percent"].null_count() == 0:
        compared(
            "hits", "hit_percent", "Block hits", "Block hits in HBM (% of blocks read)", "%",
            "Blocks that were resident as their request came, of all blocks that counted requests read. Optimum: the most that any policy "
            "could have under the same semantics.", bounded=True,
        )  # fmt: skip
        sizes = rows.select("capacity_bytes", "capacity").unique(maintain_order=True).sort("capacity_bytes").rows()
        # Smallest, middle and largest; the table has all.
        for size, name in list(dict.fromkeys([sizes[0], sizes[len(sizes) // 2], sizes[-1]])):
            of_one = stacked(rows.filter(pl.col("capacity_bytes") == size), len(tiers))
            marks, shape = shares(of_one, tiers)
            words = "; ".join(
                f"{series.title(row['policy'])}: HBM {row['hit_percent']:.2f}%, "
                + "".join(f"{tier} {share:.2f}%, " for tier, share in zip(tiers, row["tier_percents"], strict=True))
                + f"computed again {row['recomputed_percent']:.2f}%, computed first {row['new_percent']:.2f}%"
                for row in of_one.iter_rows(named=True)
            )
            ident = f"sources-{len(found)}"
            found.append(
                Chart(
                    ident,
                    f"Where blocks come from, HBM {name}",
                    limits,
                    "Computed first: no earlier request read them. Computed again: dropped from every tier in between.",
                    f"Shares of the blocks read. {words}.",
                    _picture(ident, of_one, "hit_percent", "%", limits, marks, shape),
                )
            )
    if rows["stall_ms_mean"].null_count() == 0:
        compared(
            "stall", "stall_ms_mean", "Stall", "Mean stall of a request (ms)", "ms",
            "From the start of a request's prefill to its end: fetch, then computing. No bound is defined for it.", bounded=False,
        )  # fmt: skip
    return found


def write(
    path: str | Path,
    *,
    source: str,
    facts: Sequence[tuple[str, str]],
    assumed: Sequence[str],
    notes: Sequence[str],
    sheets: Sequence[Sheet],
    rows: pl.DataFrame,
    tiers: Sequence[str],
) -> None:
    """Write the report; it is complete or absent, and needs no network.

    Parameters
    ----------
    path : str or Path
    source : str
        What was replayed.
    facts : sequence of (name, text)
    assumed : sequence of str
        What the numbers rest on, the caveat that every chart carries first.
    notes : sequence of str
        What a reader should know of this replay.
    sheets : sequence of Sheet
    rows : polars.DataFrame
        Columns ``REPLAYS``.
    tiers : sequence of str
        Names, from the top down.

    Raises
    ------
    InputError
        If the rows do not have these columns, or the caveat is missing.
    """
    rows = REPLAYS.check(rows)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("replay/report.html.j2").render(
        source=source,
        label=Label.SIMULATED,
        facts=facts,
        assumed=assumed,
        notes=notes,
        sheets=sheets,
        charts=charts(rows, tiers, assumed[0]),
        badge=badge,
        page_px=PAGE_PX,
        font_faces=fonts.faces,
        palettes=lambda: {"light": LIGHT, "dark": DARK},
        style=lambda: Markup((TEMPLATES / "pages/style.css").read_text(encoding="utf-8")),
    )
    write_atomically(path, page)

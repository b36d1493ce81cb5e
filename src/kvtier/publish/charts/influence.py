"""Slope, and fixed path over KV path, with each row left out in turn: rows of dots with intervals, the decisive row marked (D3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.files import read_yaml
from kvtier.publish import intervals, series, theme
from kvtier.publish.charts.decode_fit import SOLID, STYLES, decisive
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

KEY = "measured.gb10.{}.{}x{}.{}"
ALL = "measured.gb10.{}.{}_95"
COOKS = "cooks"
ROW, FIT = "row", "fit"
HEAD, FOOT = 24, 8
"""Over the rows of a run, for its name; under them [px]."""


@dataclass(frozen=True)
class Panel:
    """One of the two quantities.

    Parameters
    ----------
    field, without : str
        Last word of the keys: of all rows, and without one.
    title : str
        Of the axis.
    step : float
        The axis ends at multiples of it.
    """

    field: str
    without: str
    title: str
    step: float


PANELS = (
    Panel("slope", "without_slope", "Slope b (ms/GiB)", 2),
    Panel("fixed_over_kv", "without_fixed_over_kv", "Fixed path over KV path", 1),
)


@dataclass(frozen=True)
class Grid:
    """Height of a row, width of a plot, left edge of the words, gaps between plots [px]."""

    row: int
    width: int
    left: int
    gaps: tuple[int, int]


GRIDS = {
    theme.WIDE: Grid(row=18, width=282, left=-92, gaps=(0, 34)),
    theme.NARROW: Grid(row=17, width=212, left=-80, gaps=(72, 0)),
}


def timed(run: str, ledger: Ledger) -> list[tuple[int, int]]:
    """Batch and context of the rows of a run, by batch.

    Raises
    ------
    InputError
        If the ledger has none.
    """
    pattern = KEY.format(run, "<batch>", "<tokens>", PANELS[0].without)
    rows = sorted((int(match["batch"]), int(match["tokens"])) for match in ledger.matches(pattern))
    if not rows:
        raise InputError(ledger.source, pattern, "no such key", "a fit without a row")
    return rows


def drawn(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> pl.DataFrame:
    """One row a dot or line: the fits without a row and, over the rows of a run, the fit of all, with heights in the plot."""
    rows, y = [], 0.0
    for run in STYLES:
        points, marked = timed(run, ledger), decisive(run, ledger)
        top = y + HEAD
        y = top + GRIDS[layout].row * len(points) + FOOT
        for panel in PANELS:
            key = ALL.format(run, panel.field)
            told = {"run": run, "quantity": panel.field}
            rows.append(_record(ledger[key], told, mark=FIT, y_px=top, foot_px=y - FOOT, decisive=False))
            for rank, (batch, tokens) in enumerate(points):
                quote = ledger[KEY.format(run, batch, tokens, panel.without)]
                place = top + GRIDS[layout].row * (rank + 0.5)
                about = {**told, "batch": batch, "context_tokens": tokens}
                rows.append(_record(quote, about, mark=ROW, y_px=place, foot_px=place, decisive=(batch, tokens) == marked))
    columns = ["key", "run", "quantity", "mark", "batch", "context_tokens", "value", "lower", "upper", "decisive", "y_px", "foot_px"]
    return pl.DataFrame(rows, schema_overrides=intervals.COLUMNS, infer_schema_length=None).select(columns)


def _record(quote: Quote, told: dict, **placed: object) -> dict:
    return {"key": quote.key, "batch": None, "context_tokens": None, **told, "value": quote.value, **intervals.ends(quote), **placed}


def scale(points: pl.DataFrame, panel: Panel) -> alt.Scale:
    """From and to multiples of the panel's step, around all dots and intervals."""
    own = points.filter(pl.col("quantity") == panel.field)
    low, high = own["lower"].min(), own["upper"].max()
    return alt.Scale(domain=[panel.step * math.floor(low / panel.step), panel.step * math.ceil(high / panel.step)], nice=False)


def marks(points: pl.DataFrame, panel: Panel) -> list[alt.Chart]:
    """Band and line of the fit of all rows; interval, dot and, for the decisive row, a ring for each fit without a row."""
    height = plot_height(points)
    y = alt.Y("y_px:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    axis = {
        "title": panel.title,
        "scale": scale(points, panel),
        "axis": alt.Axis(tickCount=6, grid=True),
    }
    value, low = alt.X("value:Q", **axis), alt.X("lower:Q", **axis)
    found = []
    for run, style in STYLES.items():
        base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.run == run) & (alt.datum.quantity == panel.field))
        line, dots = base.transform_filter(alt.datum.mark == FIT), base.transform_filter(alt.datum.mark == ROW)
        look = {"filled": True} if style.dash == SOLID else series.HOLLOW
        point = {"color": style.colour, "shape": style.shape, "size": 42, "opacity": 1, **look}
        found += [
            line.mark_rect(color=style.colour, opacity=0.1).encode(x=low, x2="upper:Q", y=y, y2="foot_px:Q"),
            line.mark_rule(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.5).encode(x=value, y=y, y2="foot_px:Q"),
            dots.mark_rule(color=style.colour, strokeWidth=1.25).encode(x=low, x2="upper:Q", y=y),
            dots.mark_point(**point).encode(x=value, y=y),
            dots.transform_filter(alt.datum.decisive)
            .mark_point(size=190, color=series.INK, strokeWidth=1.5, filled=False, opacity=1)
            .encode(x=value, y=y),
        ]
    return found


def plot_height(points: pl.DataFrame) -> int:
    """Of a plot [px]."""
    return round(points["foot_px"].max()) + FOOT


def written(points: pl.DataFrame, panel: Panel, names: dict[str, str], ledger: Ledger, layout: theme.Layout) -> list[alt.Chart]:
    """The fit of all rows over each run, its rows at the left of a plot that has room there, and the value of the decisive row."""
    grid, found = GRIDS[layout], []
    beside = layout.narrow or panel is PANELS[0]
    axis = {"scale": scale(points, panel)}
    for row in points.filter(pl.col("quantity") == panel.field).iter_rows(named=True):
        quote, colour = ledger[row["key"]], STYLES[row["run"]].colour
        if row["mark"] == FIT:
            at = alt.Chart(alt.InlineData(values=[{}])).encode(x=alt.XValue(3), y=alt.YValue(row["y_px"] - 7))
            look = {"fontSize": layout.text, "fontWeight": 600, "align": "left", "baseline": "alphabetic", "color": colour}
            found += theme.over_grid(at, f"All rows {intervals.with_interval(quote)}", quote.key, **look)
            if beside:
                found.append(theme.said(names[row["run"]].split()[0], grid.left, row["y_px"] - 7, layout.text + 1, series.INK, 600))
            continue
        if beside:
            words, weight = f"{row['batch']} × {row['context_tokens']:,}", 600 if row["decisive"] else 400
            found.append(theme.said(words, grid.left, row["y_px"] + 4, layout.text, series.INK, weight))
        if row["decisive"]:
            at = alt.Chart(alt.InlineData(values=[{"upper": row["upper"]}])).encode(x=alt.X("upper:Q", **axis), y=alt.YValue(row["y_px"]))
            look = {"fontSize": layout.text, "fontWeight": 600, "align": "left", "baseline": "middle", "dx": 5, "color": series.INK}
            found += theme.over_grid(at, quote.bare, quote.key, **look)
    return found


def in_words(points: pl.DataFrame, names: dict[str, str], ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for run, name in names.items():
        for panel in PANELS:
            own = points.filter((pl.col("run") == run) & (pl.col("quantity") == panel.field))
            whole = ledger[own.filter(pl.col("mark") == FIT)["key"][0]]
            rows = [
                f"{batch} × {tokens:,}: {intervals.with_interval(ledger[key])}"
                for batch, tokens, key in own.filter(pl.col("mark") == ROW).select("batch", "context_tokens", "key").iter_rows()
            ]
            told.append(f"{name}, {panel.title}, all rows {intervals.with_interval(whole)}; without {'; '.join(rows)}")
        batch, tokens = decisive(run, ledger)
        told.append(f"The row that decides is {batch} × {tokens:,}, Cook's distance {ledger[KEY.format(run, batch, tokens, COOKS)].bare}")
    return f"Dot charts of two decode fits with each row left out in turn. {'. '.join(told)}."


def draw(platform: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the fits with each row left out.

    Parameters
    ----------
    platform : str or Path
        YAML file that names machine, model, date and runs.
    ledger : Ledger
        Holds slope and ratio of all rows and without each row, with intervals, and Cook's distances.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a number is missing, or the platform file does not name a run.
    """
    about, points, grid = read_yaml(platform), drawn(ledger, layout), GRIDS[layout]
    for run in STYLES:
        if run not in about.get("decode", {}):
            raise InputError(platform, f"decode.{run}", "no such run", "a run with a name")
    names = {run: about["decode"][run]["name"] for run in STYLES}
    deciding = [ledger[KEY.format(run, *decisive(run, ledger), COOKS)] for run in STYLES]
    quotes = [ledger[key] for key in points["key"]]
    head = theme.said("Without row", grid.left, -8, layout.text, series.MUTED)
    plots = [[*marks(points, panel), *written(points, panel, names, ledger, layout)] for panel in PANELS]
    level = next(quote.uncertainty["interval_level"] for quote in quotes if "interval_level" in quote.uncertainty)
    cooks = ", ".join(f"{quote.bare} for {names[run].split()[0]}" for run, quote in zip(STYLES, deciding, strict=True))
    return theme.Figure(
        name="influence",
        title=f"What single rows decide: both decode fits, {about['model']['name']}, each row left out in turn",
        source=f"{about['machine']}, {about['date']}",
        limits="Intervals suppose that rows deviate independently and normally from the line; one model, one machine.",
        caption=(
            "Row: batch × tokens of context of each sequence. Dot: the fit of the other rows; line over a band: the fit of all rows; "
            f"bars and bands: {100 * level:g} % intervals, Student's of the slope, Fieller's of the ratio. "
            f"Ring: the row whose omission moves the slope most; its Cook's distance is the largest of its run ({cooks}). "
            "Keys: measured.gb10.<run>.slope_95, .fixed_over_kv_95, .<batch>x<tokens>.without_slope, .without_fixed_over_kv, .cooks"
        ),
        alt=in_words(points, names, ledger),
        quotes=[*quotes, *deciding],
        drawn=points,
        layers=[head, *plots[0]],
        panels=[plots[1]],
        columns=1 if layout.narrow else len(PANELS),
        gaps=grid.gaps,
        layout=layout,
        width=grid.width,
        height=plot_height(points),
        left=grid.left,
    )

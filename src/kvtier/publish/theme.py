"""One look for every figure: font, axes, and the frame that draws evidence label, title, caveat and caption.

A chart gives marks and the numbers it quotes; its class of evidence, and the caveat that the class carries, follow from those numbers.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.evidence.labels import SIMULATION_LIMITS, Label
from kvtier.publish.facts import class_of
from kvtier.publish.font import FAMILIES
from kvtier.publish.ledger import Quote, labels
from kvtier.publish.palette import LIGHT, badge
from kvtier.publish.series import FAINT, INK, MUTED, PAPER

CAVEAT = f"Provisional: {SIMULATION_LIMITS}."
"""Stands under the title of every figure with a simulated number in it."""

CAPTION_CHARACTERS = 155

LINK = "#n/"
"""Before a key: the address of a number on a page."""


@dataclass(frozen=True)
class Layout:
    """Room for a picture.

    Parameters
    ----------
    name : str
        In ids and messages.
    limit : int
        Widest whole picture, axis titles and end labels included [px].
    width, height : int
        Size of a plot that has the picture to itself, end labels on its right [px].
    left : int
        Left edge of axis titles and words, from the plot's left edge [px].
    text, small : float
        Size of axes and end labels; of notes inside the plot [px].
    smallest : float
        No text is smaller [px].
    """

    name: str
    limit: int
    width: int
    height: int
    left: int
    text: float
    small: float
    smallest: float

    @property
    def narrow(self) -> bool:
        """Whether there is room for one short column alone."""
        return self.name == "narrow"

    def label(self, words: str, quote: Quote) -> str:
        """Words at the end of a line, with the number there; where it is narrow, the axis alone says the unit."""
        return f"{words}: {quote.bare if self.narrow else quote.text}"


WIDE = Layout("wide", limit=760, width=560, height=320, left=-54, text=12, small=11, smallest=11)
"""A page on a desktop, and the published files."""

NARROW = Layout("narrow", limit=328, width=196, height=240, left=-34, text=11, small=10.5, smallest=10.5)
"""A page on a telephone."""


@dataclass(frozen=True)
class Figure:
    """A chart with everything that must be said about it.

    Parameters
    ----------
    name : str
        File stem.
    title : str
        One line; says what is drawn against what, never a result typed by hand.
    source : str
        Revision or platform, drawn beside the evidence label.
    limits : str
        One line under the title where no standing caveat applies.
    caption : str
        Under the plot: what is counted, what bands are, what is missing.
    alt : str
        The figure in words, with its numbers.
    quotes : sequence of Quote
        Every number drawn or written on the chart.
    drawn : polars.DataFrame
        Exactly the data drawn; the layers find it as the data set ``drawn``.
    layers : sequence of altair.Chart
        Marks, back to front.
    panels : sequence of sequence of altair.Chart
        Marks of more plots of the same size; `layers` is the first, at the top left.
    columns : int
        Plots in a row.
    gaps : tuple of int
        From one plot to the next: down, across [px].
    layout : Layout
        For which room it is drawn.
    width, height, left : int
        Size of a plot; left edge of badge, title and caption, from the left edge of the first plot [px]. Zero: the layout's.
    foot : int
        From the lowest plot to the caption: room for ticks and title of its axis [px].
    """

    name: str
    title: str
    source: str
    limits: str
    caption: str
    alt: str
    quotes: Sequence[Quote]
    drawn: pl.DataFrame
    layers: Sequence[alt.Chart]
    panels: Sequence[Sequence[alt.Chart]] = ()
    columns: int = 1
    gaps: tuple[int, int] = (0, 0)
    layout: Layout = WIDE
    width: int = 0
    height: int = 0
    left: int = 0
    foot: int = 62

    def __post_init__(self) -> None:
        for field in ("width", "height", "left"):
            object.__setattr__(self, field, getattr(self, field) or getattr(self.layout, field))
        if not self.quotes:
            raise InputError(self.name, "quotes", "none", "the numbers drawn: they carry the evidence label")
        if not self.caveat:
            raise InputError(self.name, "limits", "nothing", "one line that limits what the figure shows")

    @property
    def label(self) -> Label:
        """Evidence class, see :func:`kvtier.publish.facts.class_of`."""
        return class_of(quote.label for quote in self.quotes)

    @property
    def badge(self) -> str:
        """Label and source, as drawn top left."""
        return f"{self.label} · {self.source}"

    @property
    def caveat(self) -> str:
        """The line under the title: the standing caveat wherever a number is simulated, else the figure's own limits."""
        return CAVEAT if Label.SIMULATED in labels(self.quotes) else self.limits

    @property
    def depth(self) -> int:
        """From the top of the first plot to the bottom of the last [px]."""
        rows = math.ceil((1 + len(self.panels)) / self.columns)
        return rows * self.height + (rows - 1) * self.gaps[0]


def config(layout: Layout) -> dict[str, Any]:
    """Vega-Lite configuration: axes and marks, light background."""
    axis = {"labelFontSize": layout.text, "titleFontSize": layout.text}
    return {
        "font": FAMILIES,
        "background": PAPER,
        "padding": {"left": 12, "right": 12, "top": 12, "bottom": 12},
        "view": {"stroke": None, "continuousWidth": layout.width, "continuousHeight": layout.height},
        "axis": {
            **axis,
            "labelColor": MUTED,
            "titleFontWeight": 600,
            "titleColor": INK,
            "titlePadding": 8,
            "domainColor": MUTED,
            "tickColor": MUTED,
            "tickSize": 4,
            "gridColor": FAINT,
            "gridOpacity": 0.7,
        },
        "axisX": {"grid": False, "labelFlush": False},
        "axisY": {
            "domain": False,
            "ticks": False,
            "labelPadding": 8,
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "start",
            "titleY": -14,
            "titleX": layout.left,
        },
        "line": {"strokeWidth": 2},
        "text": {"fontSize": layout.text, "color": INK},
    }


def words(text: str, key: str | None = None) -> dict[str, Any]:
    """Encodings of fixed words; with a key they lead to its number, where a page has it."""
    return {"text": alt.TextValue(text)} | ({"href": alt.HrefValue(LINK + key)} if key else {})


def said(
    text: str, x: float, y: float, size: float = 12, color: str = INK, weight: int = 400, key: str | None = None, **mark: Any
) -> alt.Chart:
    """Words at a place of the frame [px from the plot's top left corner]; `key`: the number that they print."""
    return (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_text(fontSize=size, color=color, fontWeight=weight, lineBreak="\n", **{"align": "left", "baseline": "alphabetic", **mark})
        .encode(x=alt.XValue(x), y=alt.YValue(y), **words(text, key))
    )


def _badge(figure: Figure, y: float) -> list[alt.Chart]:
    size, height = 11.5, 20
    width = 18 + 0.47 * size * len(figure.badge)
    look = badge(figure.label)
    dash = {"strokeDash": list(look.dash)} if look.dash else {}
    box = (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_rect(cornerRadius=3, strokeWidth=1, fill=LIGHT[look.fill], stroke=LIGHT[look.stroke], **dash)
        .encode(x=alt.XValue(figure.left), x2=alt.X2Value(figure.left + width), y=alt.YValue(y), y2=alt.Y2Value(y + height))
    )
    color = LIGHT[look.words]
    return [box, said(figure.badge, figure.left + width / 2, y + height / 2, size, color, 600, align="center", baseline="middle")]


def _arranged(figure: Figure, layers: Sequence[alt.Chart]) -> alt.LayerChart | alt.ConcatChart:
    first, *others = (alt.layer(*marks).properties(width=figure.width, height=figure.height) for marks in (layers, *figure.panels))
    if not others:
        return first
    # Flush: the words around a plot would else push the other plots away.
    spacing = alt.RowColnumber(row=figure.gaps[0], column=figure.gaps[1])
    return alt.concat(first, *others, columns=figure.columns, bounds="flush", spacing=spacing)


def plot(figure: Figure) -> alt.LayerChart | alt.ConcatChart:
    """The figure's marks alone: a page has its own words around them."""
    return _arranged(figure, figure.layers)


def frame(figure: Figure) -> alt.LayerChart | alt.ConcatChart:
    """The figure's marks with badge, title, caveat and caption around them."""
    caption = textwrap.fill(figure.caption, CAPTION_CHARACTERS)
    around = [
        *_badge(figure, -104),
        said(figure.title, figure.left, -60, 17, weight=600),
        said(figure.caveat, figure.left, -40, color=MUTED),
        said(caption, figure.left, figure.depth + figure.foot, 11, MUTED, lineHeight=15),
    ]
    return _arranged(figure, [*figure.layers, *around]).properties(description=figure.alt)


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels at `positions`: in the same order, `gap` or more apart, inside [low, high] where it has the room."""
    ranked = sorted(range(len(positions)), key=lambda index: positions[index])
    # Least squares under a fixed order: without the gaps it is isotonic regression, so neighbours that clash share their mean.
    groups: list[list[float]] = []
    for rank, index in enumerate(ranked):
        groups.append([positions[index] - rank * gap])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    centres = [fmean(group) for group in groups for _ in group]
    room = max(low, high - (len(positions) - 1) * gap)
    found = [0.0] * len(positions)
    for rank, (index, centre) in enumerate(zip(ranked, centres, strict=True)):
        found[index] = min(max(centre, low), room) + rank * gap
    return found


def over_grid(at: alt.Chart, text: str, key: str | None = None, **mark: Any) -> list[alt.Chart]:
    """Words inside the plot, with a rim of paper that keeps grid lines and bands off them; `key`: the number that they print."""
    rim = at.mark_text(lineBreak="\n", lineHeight=15, stroke=PAPER, strokeWidth=4, strokeJoin="round", **{**mark, "color": PAPER})
    return [rim.encode(**words(text)), at.mark_text(lineBreak="\n", lineHeight=15, **mark).encode(**words(text, key))]


def end_labels(
    texts: Sequence[str],
    values: Sequence[float],
    colors: Sequence[str],
    domain: tuple[float, float],
    size: tuple[int, int] | None = None,
    *,
    layout: Layout = WIDE,
    keys: Sequence[str | None] = (),
) -> list[alt.Chart]:
    """Labels right of the plot, beside the last value of each line, pushed apart where they would touch.

    Parameters
    ----------
    texts, values, colors : sequences
        Words, last value on the y axis and colour of each line.
    domain : tuple of float
        Lowest and highest value of a linear y axis.
    size : tuple of int, optional
        Width and height of the plot [px]; the layout's where nothing is said.
    layout : Layout
        For which room.
    keys : sequence of str, optional
        The number that each label prints.
    """
    (low, high), (width, height) = domain, size or (layout.width, layout.height)
    pixels = [height * (high - value) / (high - low) for value in values]
    places = spread(pixels, layout.text + 3, 0, height)
    near, far, edge = (2, 8, 10) if layout.narrow else (4, 13, 16)
    marks = []
    for text, place, pixel, color, key in zip(texts, places, pixels, colors, keys or [None] * len(texts), strict=True):
        if abs(place - pixel) > 3:
            marks.append(
                alt.Chart(alt.InlineData(values=[{}]))
                .mark_rule(color=color, strokeWidth=0.75)
                .encode(x=alt.XValue(width + near), x2=alt.X2Value(width + far), y=alt.YValue(pixel), y2=alt.Y2Value(place))
            )
        marks.append(said(text, width + edge, place + 4, layout.text, color, 600, key))
    return marks

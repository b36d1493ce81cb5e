"""Rows of dots: a hollow and a filled one a row, intervals as bars, words and values beside them, or above where it is narrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from kvtier.publish import intervals, series, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

HOLLOW = {"size": 84, **series.HOLLOW}
FILLED = {"size": 34, "filled": True}
GAP = 12
"""More between two groups of rows [px]."""

TEN = 10


@dataclass(frozen=True)
class Grid:
    """Where things stand [px].

    Parameters
    ----------
    row : int
        Height of a row.
    dots : float
        From the top of a row to its dots.
    words : float
        From the baseline of its words to its dots; negative where they stand beside them.
    width : int
        Of the plot.
    left : int
        Where the words of rows begin, from the plot's left edge.
    first, second : int
        Right edge of the first dots' values, left edge of the second dots'.
    """

    row: int
    dots: float
    words: float
    width: int
    left: int
    first: int
    second: int


@dataclass(frozen=True)
class Dots:
    """Rows of a table as dots.

    Parameters
    ----------
    points : polars.DataFrame
        One row a dot, with the columns ``key``, ``policy``, ``y_px``, ``lower`` and ``upper``, and those that are named below.
    grid : Grid
        Where things stand.
    layout : Layout
        For which room.
    row, which, value : str
        Columns: words of a row; whether its hollow or its filled dot; where the dot is.
    pair : tuple
        Values of `which`: hollow, filled.
    heads : tuple of str
        What the two are, over their values.
    say : callable
        Value of a dot as written.
    colours : mapping
        Of each policy.
    axis : dict
        Title, scale and ticks of the x axis.
    """

    points: pl.DataFrame
    grid: Grid
    layout: theme.Layout
    row: str
    which: str
    value: str
    pair: tuple[Any, Any]
    heads: tuple[str, str]
    say: tuple[Callable[[Quote], str], Callable[[Quote], str]]
    colours: Mapping[str, str]
    axis: Mapping[str, Any]

    @property
    def height(self) -> int:
        """Of the plot [px]."""
        return round(self.points["y_px"].max() + 13)

    @property
    def y(self) -> alt.Y:
        """Rows, downwards."""
        return alt.Y("y_px:Q", scale=alt.Scale(domain=[self.height, 0], nice=False), axis=None)

    def x(self, column: str) -> alt.X:
        """The x axis, of a column."""
        return alt.X(f"{column}:Q", **self.axis)

    def _of(self, which: Any) -> alt.Chart:
        policies = list(self.colours)
        colour = alt.Scale(domain=policies, range=list(self.colours.values()))
        base = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum[self.which] == which)
        return base.encode(y=self.y, color=alt.Color("policy:N", scale=colour, legend=None))

    def paths(self) -> alt.Chart:
        """From the hollow to the filled dot of a row."""
        found = []
        for _, dots in self.points.group_by("y_px", maintain_order=True):
            places = dict(dots.select(self.which, self.value).iter_rows())
            if len(places) == len(self.pair):
                start, end = (places[which] for which in self.pair)
                found.append({"y_px": dots["y_px"][0], self.value: start, "end": end})
        path = alt.Chart(alt.InlineData(values=found)).mark_rule(color=series.FAINT, strokeWidth=3)
        return path.encode(x=self.x(self.value), x2="end:Q", y=self.y)

    def marks(self) -> list[alt.Chart]:
        """Paths, intervals, dots."""
        old, new = (self._of(which) for which in self.pair)
        ends = {"x": self.x("lower"), "x2": "upper:Q"}
        return [
            self.paths(),
            old.mark_rule(strokeWidth=1.25).encode(**ends),
            old.mark_point(shape="circle", opacity=1, **HOLLOW).encode(x=self.x(self.value)),
            new.mark_rule(strokeWidth=3.5).encode(**ends),
            new.mark_point(shape="circle", opacity=1, **FILLED).encode(x=self.x(self.value)),
        ]

    def beside(self, text: str, x: float, y: float, key: str | None = None, **look: Any) -> list[alt.Chart]:
        """Words of a row; with a rim that keeps the grid off where they stand inside the plot."""
        place = alt.Chart(alt.InlineData(values=[{}])).encode(x=alt.XValue(x), y=alt.YValue(y - self.grid.words))
        look = {"fontSize": self.layout.text, "align": "left", "baseline": "alphabetic", **look}
        found = theme.over_grid(place, text, key, **look)
        return found if self.grid.words > 0 else found[1:]

    def _head(self, text: str, x: float, side: int, colour: str, dot: dict[str, Any]) -> list[alt.Chart]:
        size, y = self.layout.text, -10
        place = alt.XValue(x + side * (0.48 * size * len(text) + 10))
        mark = alt.Chart(alt.InlineData(values=[{}])).mark_point(shape="circle", color=colour, opacity=1, **dot)
        said = theme.said(text, x, y, size, colour, 600, align="right" if side < 0 else "left")
        return [mark.encode(x=place, y=alt.YValue(y - 4)), said]

    def written(self, ledger: Ledger) -> list[alt.Chart]:
        """Words and values of each row, heads over the values."""
        grid, (old, new) = self.grid, self.say
        found = [
            *self._head(self.heads[0], grid.first, -1, series.MUTED, HOLLOW),
            *self._head(self.heads[1], grid.second, 1, series.INK, FILLED),
        ]
        for _, dots in self.points.group_by("y_px", maintain_order=True):
            row = dots.row(0, named=True)
            found += self.beside(row[self.row], grid.left, row["y_px"])
            for which, key in dots.select(self.which, "key").iter_rows():
                if which == self.pair[0]:
                    found += self.beside(old(ledger[key]), grid.first, row["y_px"], key, color=series.MUTED, align="right")
                else:
                    found += self.beside(new(ledger[key]), grid.second, row["y_px"], key, fontWeight=600)
        return found


def heights(groups: Sequence[int], grid: Grid, head: float = 0) -> list[float]:
    """Places of the dots of each row [px], `groups` rows together; `head` [px] above each group is free for its name."""
    found, y = [], 0.0
    for rows in groups:
        y += head
        found += [y + grid.row * rank + grid.dots for rank in range(rows)]
        y += grid.row * rows + GAP
    return found


def domain(points: pl.DataFrame, value: str) -> tuple[float, float]:
    """Whole tens around dots and intervals."""
    values = pl.concat([points[name].drop_nulls() for name in (value, "lower", "upper")])
    return float(TEN * (values.min() // TEN)), float(-TEN * (-values.max() // TEN))


def bound(optimum: Quote, top: float, foot: float, dots: Dots) -> list[alt.Chart]:
    """The optimum across the rows between two heights [px]: its line over its interval."""
    style, spread = series.STYLES["min"], intervals.ends(optimum)
    rows = [{dots.value: optimum.value, **spread}]
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=alt.YValue(top), y2=alt.Y2Value(foot))
    line = base.mark_rule(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.5).encode(
        x=dots.x(dots.value), href=alt.HrefValue(theme.LINK + optimum.key)
    )
    if spread["lower"] is None:
        return [line]
    return [base.mark_rect(color=style.colour, opacity=0.2).encode(x=dots.x("lower"), x2="upper:Q"), line]

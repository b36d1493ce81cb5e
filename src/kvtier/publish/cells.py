"""A table of coloured cells as a chart: rows and columns of words, a value written in each cell."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from kvtier.publish import theme
from kvtier.publish.palette import LIGHT
from kvtier.publish.render import DATA

FILLS = {"for": LIGHT["green-tint"], "against": LIGHT["rose-tint"], "neither": LIGHT["grey"], "blue": LIGHT["blue-tint"]}
"""Colour of a cell by what it says; words in it are in ink."""


def cells(rows: Sequence[str], columns: Sequence[str], layout: theme.Layout) -> list[alt.Chart]:
    """Marks of a table; the data set has ``row``, ``column``, ``fill`` (a colour) and ``text``.

    Parameters
    ----------
    rows, columns : sequence of str
        In order.
    layout : Layout
    """
    x = alt.X(
        "column:N",
        sort=list(columns),
        title=None,
        scale=alt.Scale(paddingInner=0.03, paddingOuter=0),
        axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False, labelFontWeight=600, labelLimit=400),
    )
    y = alt.Y(
        "row:N",
        sort=list(rows),
        title=None,
        scale=alt.Scale(paddingInner=0.08, paddingOuter=0),
        axis=alt.Axis(grid=False, labelLimit=400),
    )
    base = alt.Chart(alt.NamedData(name=DATA))
    return [
        base.mark_rect().encode(x=x, y=y, color=alt.Color("fill:N", scale=None)),
        base.mark_text(fontSize=layout.text).encode(x=x, y=y, text="text:N"),
    ]

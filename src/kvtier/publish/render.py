"""A figure as four files: SVG, Vega-Lite spec, CSV of the data drawn, and its form for a page; byte for byte the same in every build."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from kvtier.errors import InputError
from kvtier.files import write_atomically
from kvtier.publish import font, theme
from kvtier.publish.inline import inline

DATA = "drawn"
"""Name of the one data set that layers draw from."""

LINKED = ("point", "bar", "tick", "text", "rule")
"""Marks of which each shows one row: on a page it leads to the row's number."""


@cache
def register_font() -> None:
    """Hand the two faces to vl-convert; others of the family would leave its choice to the order of a directory."""
    folder = tempfile.mkdtemp(prefix="kvtier-font-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for file in map(font.path, font.FACES.values()):
        shutil.copyfile(file, Path(folder, file.name))
    vl_convert.register_font_directory(folder)


def _units(vega_lite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Specifications of single marks, wherever they are nested."""
    if "mark" in vega_lite:
        yield vega_lite
    for part in (*vega_lite.get("layer", ()), *vega_lite.get("concat", ())):
        yield from _units(part)


def _specification(
    chart: alt.LayerChart | alt.ConcatChart, figure: theme.Figure, rows: list[dict[str, Any]], validate: bool = True
) -> dict[str, Any]:
    with alt.theme.enable("none"):
        found = chart.to_dict(validate=validate)
    return found | {"config": theme.config(figure.layout), "datasets": {**found.get("datasets", {}), DATA: rows}}


def spec(figure: theme.Figure) -> dict[str, Any]:
    """Vega-Lite specification with its data inside; without links, for there is no page around it."""
    found = _specification(theme.frame(figure), figure, figure.drawn.to_dicts())
    for unit in _units(found):
        unit.get("encoding", {}).pop("href", None)
    return found


def _page_spec(figure: theme.Figure) -> dict[str, Any]:
    """The same of the marks alone: each that shows a row with a key leads to it; no background, the page has one."""
    linked = "key" in figure.drawn.columns
    rows = [{**row, "link": row["key"] and theme.LINK + row["key"]} if linked else row for row in figure.drawn.iter_rows(named=True)]
    # The published specification has the same marks and is validated.
    found = _specification(theme.plot(figure), figure, rows, validate=False)
    found["config"] |= {"background": None, "padding": 2}
    for unit in _units(found):
        mark = unit["mark"] if isinstance(unit["mark"], str) else unit["mark"]["type"]
        if linked and mark in LINKED and unit.get("data") == {"name": DATA}:
            unit["encoding"]["href"] = {"field": "link"}
    return found


def _converted(vega_lite: dict[str, Any]) -> str:
    register_font()
    return vl_convert.vegalite_to_svg(vega_lite, vl_version=".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2]))


def svg(figure: theme.Figure, vega_lite: dict[str, Any]) -> str:
    """The picture, with title and description for readers who cannot see it.

    Raises
    ------
    InputError
        If evidence label, source or caveat is not in the picture as one piece of text.
    """
    picture = _converted(vega_lite)
    for words in (figure.badge, figure.caveat):
        if f">{escape(words)}</text>" not in picture:
            raise InputError(figure.name, "SVG", "a picture without it", f"the words {words!r}")
    head, tag, rest = picture.partition("<svg ")
    attributes, close, body = rest.partition(">")
    name = figure.name.replace("_", "-")
    words = f'<title id="{name}-title">{escape(figure.title)}</title><desc id="{name}-desc">{escape(figure.alt)}</desc>'
    return f'{head}{tag}role="img" aria-labelledby="{name}-title {name}-desc" {attributes}{close}{words}{body}\n'


def page_form(wide: theme.Figure, narrow: theme.Figure) -> dict[str, Any]:
    """What a page shows of a figure: its words, the numbers behind it, the data drawn, and the plot for two widths.

    Raises
    ------
    InputError
        If a picture is not fit for a page, see :func:`kvtier.publish.inline.inline`.
    """
    keys = list(dict.fromkeys(quote.key for quote in wide.quotes))
    words = {field: str(getattr(wide, field)) for field in ("name", "title", "label", "source", "caveat", "caption", "alt")}
    pictures = {figure.layout.name: inline(_converted(_page_spec(figure)), figure.name, figure.layout, keys) for figure in (wide, narrow)}
    return {**words, "keys": keys, **pictures, "columns": wide.drawn.columns, "rows": wide.drawn.rows()}


def write(
    draw: Callable[[theme.Layout], theme.Figure],
    *,
    picture: str | Path,
    specification: str | Path,
    data: str | Path,
    page: str | Path,
) -> None:
    """Write the four files of a figure; each is complete or absent.

    Parameters
    ----------
    draw : callable
        Gives the figure for a layout.
    picture, specification, data : str or Path
        What is published: SVG, Vega-Lite and CSV.
    page : str or Path
        JSON file of :func:`page_form`.
    """
    # Each specification is validated when it is whole; to validate every part as it is put together takes as long as all the rest.
    with debug_mode(False):
        figure, narrow = draw(theme.WIDE), draw(theme.NARROW)
        vega_lite = spec(figure)
        drawing, shown = svg(figure, vega_lite), page_form(figure, narrow)
    write_atomically(data, figure.drawn.write_csv())
    write_atomically(specification, json.dumps(vega_lite, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    write_atomically(picture, drawing)
    write_atomically(page, json.dumps(shown, indent=1, ensure_ascii=False) + "\n")

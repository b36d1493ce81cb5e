"""A figure as three files: SVG, Vega-Lite spec and the CSV of the data drawn, byte for byte the same in every build."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import altair as alt
import font_source_sans_pro
import vl_convert

from kvtier.errors import InputError
from kvtier.files import write_atomically
from kvtier.publish.theme import Figure, frame

FACES = ("SourceSansPro-Regular.ttf", "SourceSansPro-Semibold.ttf")
DATA = "drawn"
"""Name of the one data set that layers draw from."""


@cache
def register_font() -> None:
    """Hand the two faces to vl-convert; others of the family would leave its choice to the order of a directory."""
    folder = tempfile.mkdtemp(prefix="kvtier-font-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for face in FACES:
        shutil.copyfile(Path(font_source_sans_pro.font_directory, face), Path(folder, face))
    vl_convert.register_font_directory(folder)


def spec(figure: Figure) -> dict[str, Any]:
    """Vega-Lite specification with its data inside."""
    with alt.theme.enable("kvtier"):
        found = frame(figure).to_dict()
    found["datasets"] = {**found.get("datasets", {}), DATA: figure.drawn.to_dicts()}
    return found


def svg(figure: Figure, vega_lite: dict[str, Any]) -> str:
    """The picture, with title and description for readers who cannot see it.

    Raises
    ------
    InputError
        If evidence label, source or caveat is not in the picture as one piece of text.
    """
    register_font()
    picture = vl_convert.vegalite_to_svg(vega_lite, vl_version=".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2]))
    for words in (figure.badge, figure.caveat):
        if f">{escape(words)}</text>" not in picture:
            raise InputError(figure.name, "SVG", "a picture without it", f"the words {words!r}")
    head, tag, rest = picture.partition("<svg ")
    attributes, close, body = rest.partition(">")
    name = figure.name.replace("_", "-")
    words = f'<title id="{name}-title">{escape(figure.title)}</title><desc id="{name}-desc">{escape(figure.alt)}</desc>'
    return f'{head}{tag}role="img" aria-labelledby="{name}-title {name}-desc" {attributes}{close}{words}{body}\n'


def write(figure: Figure, *, picture: str | Path, specification: str | Path, data: str | Path) -> None:
    """Write the three files; each is complete or absent."""
    vega_lite = spec(figure)
    drawing = svg(figure, vega_lite)
    write_atomically(data, figure.drawn.write_csv())
    write_atomically(specification, json.dumps(vega_lite, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    write_atomically(picture, drawing)

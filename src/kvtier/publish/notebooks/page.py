"""A notebook that has been run, as one HTML file that needs no network: prose, code, outputs, and figures that move."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
import vl_convert
from jupyter_core.paths import ENV_JUPYTER_PATH
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from kvtier.errors import InputError
from kvtier.publish.notebooks.charts import PICTURE, SPECIFICATION, WORDS
from kvtier.publish.pages import fonts
from kvtier.publish.palette import LIGHT

TEMPLATES = Path(__file__).parents[1] / "templates"

SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL | re.IGNORECASE)

OUTSIDE = re.compile(
    r"""\b(?:src|srcset|href|action|poster|data)\s*=\s*["']?\s*(?:https?:|ftp:)?//[^"'\s>]*|@import\b|url\(\s*["']?\s*(?:https?:)?//[^"')]*""",
    re.IGNORECASE,
)
"""What a browser would fetch, or a reader be sent to: an address in an attribute or a style."""


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the pinned package."""
    return vl_convert.javascript_bundle(vl_version=".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2]))


def _drawn(number: int, data: dict[str, Any]) -> str:
    """A figure: its picture, which a script replaces by what its specification draws."""
    # A script ends at the first "</script", whatever is around it.
    bare = {name: value for name, value in data[SPECIFICATION].items() if name != "$schema"}
    specification = json.dumps(bare, sort_keys=True, ensure_ascii=False).replace("<", "\\u003c")
    return Markup(
        '<div class="drawing scrolls chart" id="chart-{0}" role="img" aria-label="{1}" tabindex="0">{2}</div>'
        '<script type="application/json" class="specification" data-chart="chart-{0}">{3}</script>'
    ).format(number, data[WORDS], Markup(data[PICTURE]), Markup(specification))


def with_places(notebook: NotebookNode) -> tuple[NotebookNode, dict[str, str]]:
    """A copy with a place in HTML for each figure, and what belongs there: nbconvert would write a picture anew."""
    notebook, figures = deepcopy(notebook), {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if SPECIFICATION in output.get("data", {}):
                place = f'<div id="place-{len(figures) + 1}"></div>'
                figures[place] = _drawn(len(figures) + 1, output["data"])
                output["data"] = NotebookNode({"text/html": place})
    return notebook, figures


def body(notebook: NotebookNode) -> str:
    """Cells and outputs, as nbconvert has them, with figures; templates of the user's own are passed over."""
    placed, figures = with_places(notebook)
    exporter = HTMLExporter(
        template_name="basic",
        template_data_paths=[str(Path(folder, "nbconvert", "templates")) for folder in ENV_JUPYTER_PATH],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    html = exporter.from_notebook_node(placed)[0]
    for place, figure in figures.items():
        html = html.replace(place, figure)
    return html


def title(path: str | Path, notebook: NotebookNode) -> str:
    """The first heading.

    Raises
    ------
    InputError
        If the first cell does not begin with one.
    """
    first = notebook.cells[0]
    match = re.match(r"# (.+)", first.source) if first.cell_type == "markdown" else None
    if not match:
        raise InputError(path, "cell 1", first.source[:40] or "nothing", "prose that begins with a heading")
    return match[1].strip()


def check_inside(path: str | Path, html: str) -> None:
    """Pass if a browser that opens the page asks no other place for anything.

    Raises
    ------
    InputError
        With the first address.
    """
    markup = SCRIPT.sub(r"\1</script>", html)
    if match := OUTSIDE.search(markup):
        raise InputError(path, f"page, line {markup.count(chr(10), 0, match.start()) + 1}", match[0], "nothing from outside the file")


def render(path: str | Path, notebook: NotebookNode) -> str:
    """The page.

    Parameters
    ----------
    path : str or Path
        The notebook's file, from the top of the checkout.
    notebook : NotebookNode
        As it has been run.

    Raises
    ------
    InputError
        If it has no title, or the page would ask another place for something.
    """
    cells = body(notebook)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    html = environment.get_template("notebooks/page.html.j2").render(
        title=title(path, notebook),
        source=str(path),
        body=Markup(cells),
        bundle=Markup(bundle()) if 'class="specification"' in cells else None,
        font_faces=fonts.faces,
        palette=LIGHT,
        style=Markup((TEMPLATES / "pages/style.css").read_text(encoding="utf-8")),
    )
    check_inside(path, html)
    return html

"""What a cell ends with, where it is no figure: named values, a table, the caveat of simulated values. HTML, and plain text beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kvtier.evidence.labels import SIMULATION_CAVEAT

QUANTITY = re.compile(r"[-−+]?[\d,.]+(?: ?%| [A-Za-zµ/]+)?")
"""A number, with its unit or without."""


@dataclass(frozen=True)
class Block:
    """Something to be seen.

    Parameters
    ----------
    html : Markup
    text : str
        The same where there is no HTML.
    """

    html: Markup
    text: str

    def _repr_html_(self) -> str:
        return str(self.html)

    def __repr__(self) -> str:
        return self.text


def caveat() -> Block:
    """The standing caveat of simulated values: to be shown before the first of them."""
    return Block(Markup('<p class="standing-caveat">{}</p>').format(SIMULATION_CAVEAT), SIMULATION_CAVEAT)


def fields(values: Mapping[str, object]) -> Block:
    """Values by name; what is empty is left out."""
    shown = {name: str(value) for name, value in values.items() if str(value)}
    html = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(*pair) for pair in shown.items())
    return Block(Markup("<dl>{}</dl>").format(html), "\n".join(f"{name}: {value}" for name, value in shown.items()))


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> Block:
    """Rows under heads; the first cell of a row is its head, and columns of quantities stand to the right.

    Parameters
    ----------
    heads : sequence of str
    rows : sequence of sequences
        Cells as they are to be printed; integers get commas.
    caption : str
        Above the table: what the values are, and their class of evidence.
    """
    cells = [[f"{cell:,}" if type(cell) is int else str(cell) for cell in row] for row in rows]
    right = [all(QUANTITY.fullmatch(row[column]) for row in cells if row[column]) for column in range(len(heads))]

    def line(tag: str, row: Sequence[str]) -> Markup:
        shown = []
        for column, cell in enumerate(row):
            name = "th" if tag == "col" or not column else "td"
            scope = Markup(' scope="{}"').format("col" if tag == "col" else "row") if name == "th" else ""
            to_right = Markup(' class="right"') if right[column] and column else ""
            shown.append(Markup("<{0}{1}{2}>{3}</{0}>").format(Markup(name), scope, to_right, cell))
        return Markup("<tr>{}</tr>").format(Markup("").join(shown))

    said = Markup("<caption>{}</caption>").format(caption) if caption else ""
    body = Markup("").join(line("row", row) for row in cells)
    html = Markup('<div class="scrolls"><table class="sheet">{}<thead>{}</thead><tbody>{}</tbody></table></div>')
    text = "\n".join(" | ".join(row) for row in [list(heads), *cells])
    return Block(html.format(said, line("col", heads), body), f"{caption}\n{text}".strip())

"""Tables and fields on a terminal: in colour and wrapped there, plain and aligned where the output is read by another program."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.text import Text

COLOURS = {
    "contradicted": "red",
    "retracted": "red",
    "withdrawn": "red",
    "reversed": "red",
    "FAILS": "bold red",
    "nothing checked": "bold red",
    "changed since": "bold red",
    "not here": "yellow",
    "challenged": "yellow",
    "untraceable": "yellow",
    "pending": "yellow",
    "provisional": "yellow",
    "known failure": "yellow",
    "reproduced": "green",
    "reproduced exactly": "green",
    "holds": "green",
    "stands": "green",
    "as recorded": "green",
}
"""Words that carry a judgement."""


@dataclass(frozen=True)
class Table:
    """Rows under heads; columns named in `right` are aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: frozenset[str] = frozenset()
    title: str = ""


@dataclass(frozen=True)
class Fields:
    """Names with their texts; a text may have several lines, an empty one is left out."""

    pairs: Sequence[tuple[str, str]]
    title: str = ""


Block = Table | Fields | str


def plain(block: Block) -> str:
    """A block as text: columns apart by two spaces, nothing wrapped or cut, no colour."""
    if isinstance(block, str):
        return block
    title = f"{block.title}\n" if block.title else ""
    if isinstance(block, Fields):
        shown = [(name, text) for name, text in block.pairs if text]
        width = max((len(name) for name, _ in shown), default=0)
        return title + "\n".join(f"{name if first else '':<{width}}  {line}" for name, text in shown for first, line in _lines(text))
    rows = [list(map(str, block.columns)), *([str(cell) for cell in row] for row in block.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [
        [
            f"{cell:>{width}}" if head in block.right else f"{cell:<{width}}"
            for head, cell, width in zip(block.columns, row, widths, strict=True)
        ]
        for row in rows
    ]
    return title + "\n".join("  ".join(row).rstrip() for row in aligned)


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Lines of a text; the first of them carries the name."""
    return ((position == 0, line) for position, line in enumerate(text.splitlines()))


def _title(words: str) -> Text | None:
    """A title in which brackets are brackets."""
    from rich.text import Text

    return Text(words) if words else None


def _rich(block: Block) -> object:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    if isinstance(block, str):
        return Text(block)
    if isinstance(block, Fields):
        grid = RichTable.grid(padding=(0, 2))
        grid.title, grid.title_justify, grid.title_style = _title(block.title), "left", "bold"
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, text in block.pairs:
            if text:
                grid.add_row(name, Text(text, style=COLOURS.get(text, "")))
        return grid
    table = RichTable(title=_title(block.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in block.columns:
        table.add_column(head, justify="right" if head in block.right else "left", overflow="fold")
    for row in block.rows:
        table.add_row(*(Text(str(cell), style=COLOURS.get(str(cell), "")) for cell in row))
    return table


def show(blocks: Sequence[Block], stream: TextIO | None = None) -> None:
    """Print blocks, an empty line between them; with rich on a terminal, plain elsewhere."""
    stream = stream or sys.stdout
    if not stream.isatty():
        stream.write("\n\n".join(map(plain, blocks)) + "\n")
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    for position, block in enumerate(blocks):
        if position:
            console.print()
        console.print(_rich(block))

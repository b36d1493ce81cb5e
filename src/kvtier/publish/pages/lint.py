"""What a finished page may not hold: a number that is not shown as a value, a retracted value outside its box."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

from kvtier.errors import InputError
from kvtier.evidence.retractions import Retraction
from kvtier.files import read_yaml

VOID = frozenset({"meta", "link", "br", "img", "input", "hr", "rect", "path", "wbr", "col", "line", "circle"})
SILENT = frozenset({"script", "style", "code", "title"})
NUMBER = re.compile(r"[-+−±~≈]?\d[\d.,]*")
BLOCKS = frozenset({"p", "li", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4", "text", "figcaption", "caption", "summary", "label"})


class _Reader(HTMLParser):
    """Text by block, split into what is shown as a value and what is typed; and the text outside retraction boxes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str]]] = []
        self.typed: list[tuple[str, str]] = []
        self.outside: list[str] = []
        self._block = ""
        self._line = ""

    def _is(self, name: str) -> bool:
        return any(name in attributes.get("class", "").split() for _, attributes in self.open)

    def _made(self) -> bool:
        """Whether the words come from a chart's own code, from its table and the ledger."""
        return any("data-made-by" in attributes for _, attributes in self.open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in BLOCKS:
            self._flush()
        for name in ("alt", "aria-label", "title", "placeholder"):
            if attributes.get(name) and tag != "svg" and not self._made():
                self.typed.append((self._where(), attributes[name]))
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self._flush()
        for index in range(len(self.open) - 1, -1, -1):
            if self.open[index][0] == tag:
                del self.open[index:]
                break

    def handle_data(self, data: str) -> None:
        if any(tag in SILENT for tag, _ in self.open):
            return
        if not self._is("retraction"):
            self._line += data
        if self._is("n") or self._is("anchor"):
            return
        if self._is("num") or self._made():
            # A value stands between words: what touches it must not join into another number.
            self._block += " \ue000 "
        else:
            self._block += data

    def _where(self) -> str:
        return next((attributes["id"] for _, attributes in reversed(self.open) if "id" in attributes), "page")

    def _flush(self) -> None:
        if self._block.strip():
            self.typed.append((self._where(), self._block))
        if self._line.strip():
            self.outside.append(self._line)
        self._block = self._line = ""

    def close(self) -> None:
        super().close()
        self._flush()


def read(html: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Typed text of a page as (id of the nearest element, text), and its lines outside retraction boxes."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.typed, reader.outside


def bare_numbers(html: str, allowed: Mapping[str, str]) -> list[tuple[str, str]]:
    """(id of the nearest element, number) of each number that is neither a value nor allowed by a pattern."""
    found = []
    for where, text in read(html)[0]:
        for pattern in allowed:
            text = re.sub(pattern, lambda match: re.sub(r"\d", " ", match[0]), text)
        found += [(where, match[0]) for match in NUMBER.finditer(text)]
    return found


def check(path: str | Path, html: str, allowed: Sequence[str | Path], retractions: Sequence[Retraction]) -> None:
    """Hold a page against both rules.

    Parameters
    ----------
    path : str or Path
        The page, for messages.
    html : str
    allowed : sequence of path
        YAML files: ``pattern: reason``.
    retractions : sequence of Retraction

    Raises
    ------
    InputError
        For the first typed number, or the first retracted value outside its box.
    """
    for where, number in bare_numbers(html, {pattern: reason for file in allowed for pattern, reason in read_yaml(file).items()}):
        raise InputError(path, f"#{where}", f"the typed number {number}", "a value by its key, or an allowed pattern with its reason")
    lines = read(html)[1]
    for entry in retractions:
        for guard in entry.guards:
            for line in lines if guard.text else ():
                if re.search(guard.text, line):
                    raise InputError(path, f"retraction {entry.id}", line.strip()[:80], "a retracted value in its box alone")

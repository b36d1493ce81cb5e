"""What a finished page may not hold: a typed number, a value that is not the ledger's, a retracted or simulated one that stands bare."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.labels import SIMULATION_LIMITS, Label
from kvtier.evidence.retractions import is_withdrawn, printed_values
from kvtier.files import read_yaml
from kvtier.publish import series
from kvtier.publish.facts import SHOWN, class_of
from kvtier.publish.pages.page import Page, plain_text
from kvtier.publish.verdicts import MARKS, slug

VOID = frozenset(
    {"area", "base", "br", "col", "hr", "input", "link", "meta", "source", "track", "wbr", "circle", "ellipse", "line", "path", "rect"}
)
UNREADABLE = frozenset(
    {"audio", "canvas", "embed", "iframe", "image", "img", "foreignobject", "meter", "object", "picture", "progress", "use", "video"}
)
"""Elements that show what is not in the text of the page."""

SPOKEN = ("alt", "aria-description", "aria-label", "aria-roledescription", "aria-valuetext", "label", "placeholder", "start", "title")
"""Attributes that a reader sees or hears; `value` and `content` of some elements besides."""

NUMBER = re.compile(r"[-+−±~≈]?[\d¼-¾⅐-⅟①-⒛⁴-⁹⁰₀-₉](?:[\d.,]*\d)?")
BLOCKS = frozenset(
    {"p", "li", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4", "text", "figcaption", "caption", "summary", "label", "option", "title"}
)
ROOMS = ("section", "main", "footer", "header")
"""Elements of which each has to say itself that its values are simulated; as has a figure with a label."""

RANK = re.compile(r"\s*(?:\d{1,2}|←)\s*")
CALLED = re.compile(r"(?:Diagram|Figure)(?: \d+(?:\.\d+)?)?")
NAME = re.compile(r"[A-Za-z_<][\w.<>/-]*")
GENERATED = re.compile(r"content\s*:\s*(?!counter\(pages?\))[^;}]*(?:[\d\\]|attr\(|counters?\()", re.IGNORECASE)
"""Text from a style sheet that may hold a number; a page of print has its own."""


@dataclass(frozen=True)
class Shown:
    """A value on the page.

    Parameters
    ----------
    where : str
        Id of the nearest element.
    ref, text : str
        What it leads to, and how it is printed.
    maker : str
        Chart that has made the words around it.
    box : str
        Id of the retraction box around it.
    room : int
        Rank of its room.
    """

    where: str
    ref: str
    text: str
    maker: str
    box: str
    room: int


@dataclass
class Room:
    """A part of the page that says itself what its values are."""

    where: str
    label: str = ""
    text: str = ""
    badges: list[str] = field(default_factory=list)


@dataclass
class _Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""

    @cached_property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @cached_property
    def ref(self) -> str:
        """``n/<key>`` or ``c/<claim>`` of a link to papers."""
        found = re.fullmatch(r"#([nc]/.+)", self.attributes.get("href", "")) if self.tag == "a" else None
        return found[1] if found else ""


class _Reader(HTMLParser):
    """What a page says, split into what is typed, what is shown as a value, and what a chart's code has made.

    Attributes
    ----------
    typed : list of (str, str)
        Id of the nearest element, and text.
    made : list of (str, str, str)
        Id, name of the maker, and text.
    named : list of (str, str)
        Id, and the words of a drawing that is no chart.
    shown : list of Shown
    rooms : list of Room
    outside : list of (str, str)
        Box around it, and text.
    wrong : list of (str, str)
        Id, and what cannot be read.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[_Element] = []
        self.typed: list[tuple[str, str]] = []
        self.made: list[tuple[str, str, str]] = []
        self.named: list[tuple[str, str]] = []
        self.shown: list[Shown] = []
        self.rooms = [Room("page")]
        self.outside: list[tuple[str, str]] = []
        self.wrong: list[tuple[str, str]] = []
        self._inside: list[tuple[_Element, int]] = []
        self._block = ""
        self._line = ""

    # Where the reader is

    def _where(self) -> str:
        return next((element.attributes["id"] for element in reversed(self.open) if "id" in element.attributes), "page")

    def _maker(self) -> str:
        return next((found for element in reversed(self.open) if (found := element.attributes.get("data-made-by"))), "")

    def _box(self) -> str:
        return next((element.attributes.get("id", "?") for element in reversed(self.open) if "retraction" in element.classes), "")

    def _room(self) -> int:
        return self._inside[-1][1] if self._inside else 0

    # Elements

    def _told(self, element: _Element) -> None:
        """Words in attributes."""
        if element.tag in UNREADABLE:
            self.wrong.append((self._where(), f"<{element.tag}>"))
        told = {name: element.attributes[name] for name in SPOKEN if element.attributes.get(name)}
        if element.tag == "meta" and "http-equiv" not in element.attributes and element.attributes.get("name") == "description":
            told["content"] = element.attributes.get("content", "")
        if element.tag in ("li", "button") or (
            element.tag == "input" and element.attributes.get("type", "text") in ("text", "button", "submit")
        ):
            told["value"] = element.attributes.get("value", "")
        for name, text in told.items():
            maker = element.attributes.get("data-made-by") or self._maker()
            if maker:
                self.made.append((self._where(), maker, text))
            elif element.tag == "svg" and name == "aria-label":
                self.named.append((self._where(), text))
            else:
                self.typed.append((self._where(), text))
            self.outside.append((self._box(), text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = _Element(tag, {name: value or "" for name, value in attrs})
        if tag in BLOCKS:
            self._flush()
        self._told(element)
        if tag in VOID:
            return
        self.open.append(element)
        if tag in ROOMS or (tag == "figure" and "data-label" in element.attributes):
            self.rooms.append(Room(element.attributes.get("id", tag), element.attributes.get("data-label", "")))
            self._inside.append((element, len(self.rooms) - 1))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # What HTML has no such form for stays open in a browser; in a drawing it is closed.
        if any(element.tag == "svg" for element in self.open):
            self._told(_Element(tag, {name: value or "" for name, value in attrs}))
        else:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self._flush()
        if not any(element.tag == tag for element in self.open):
            return
        while True:
            element = self.open.pop()
            self._closed(element)
            if element.tag == tag:
                return

    def _closed(self, element: _Element) -> None:
        text = re.sub(r"\s+", " ", element.text).strip()
        if element.ref:
            self.shown.append(Shown(self._where(), element.ref, text, self._maker(), self._box(), self._room()))
        if "badge" in element.classes:
            self.rooms[self._room()].badges.append(text)
        if element.tag == "code":
            self._block += NAME.sub(lambda name: re.sub(r"\d", " ", name[0]), element.text)
        if element.tag == "style" and (found := GENERATED.search(re.sub(r"@font-face\{[^}]*\}", "", element.text))):
            self.wrong.append((self._where(), f"in a style sheet, {found[0]}"))
        if self._inside and self._inside[-1][0] is element:
            self._inside.pop()

    # Words

    def handle_data(self, data: str) -> None:
        for element in self.open:
            # Not the page's own elements around them, whose text is all of it.
            if element.ref or element.tag in ("code", "style") or "badge" in element.classes:
                element.text += data
        tags = [element.tag for element in self.open]
        if "script" in tags or "style" in tags:
            return
        self.rooms[self._room()].text += data
        self._line += data
        innermost = self.open[-1] if self.open else _Element("", {})
        if "n" in innermost.classes and ("nav" in tags or "h2" in tags) and RANK.fullmatch(data):
            return
        if "anchor" in innermost.classes and innermost.tag == "a" and CALLED.fullmatch(data):
            return
        if any(element.ref for element in self.open):
            # A value stands between words: what touches it must not join into another number.
            self._block += " \ue000 "
        elif self._maker():
            self.made.append((self._where(), self._maker(), data))
            self._block += " \ue000 "
        elif "code" not in tags:
            self._block += data

    def unknown_decl(self, data: str) -> None:
        self.wrong.append((self._where(), f"<![{data[:40]}"))

    def _flush(self) -> None:
        if self._block.strip():
            self.typed.append((self._where(), self._block))
        if self._line.strip():
            self.outside.append((self._box(), self._line))
        self._block = self._line = ""

    def close(self) -> None:
        super().close()
        self._flush()
        while self.open:
            self._closed(self.open.pop())


def read(html: str) -> _Reader:
    """What a page says."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader


def _numbers(text: str, allowed: Mapping[str, str]) -> list[str]:
    for pattern in allowed if NUMBER.search(text) else ():
        text = re.sub(pattern, lambda match: re.sub(r"\d|[½]", " ", match[0]), text)
    return NUMBER.findall(text)


def bare_numbers(html: str, allowed: Mapping[str, str]) -> list[tuple[str, str]]:
    """(id of the nearest element, number) of each number that is neither a value nor allowed by a pattern."""
    return [(where, number) for where, text in read(html).typed for number in _numbers(text, allowed)]


def _digits(text: str) -> set[str]:
    """Numbers of a text without their signs."""
    return {number.lstrip("-+−±~≈") for number in NUMBER.findall(text)}


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def forms(page: Page, ref: str) -> set[str]:
    """Texts that a value may have: a number printed in every way, alone and above its interval; a claim, whole or one number of it.

    Raises
    ------
    InputError
        If there is no such number or claim.
    """
    kind, name = ref[:1], ref[2:]
    if kind == "n":
        quote = page.facts.ledger[name]
        found = {shown(quote) for shown in SHOWN.values()} | {quote.interval or ""}
        found |= {f"{text} {quote.interval}" for text in (quote.text, quote.signed) if quote.interval}
    else:
        claims = page.facts.claims
        places = range(len(printed_values(claims[name]["printed"])))
        found = {claims.printed(name, place).translate(MARKS) for place in (None, *places)}
    return {_flat(text) for text in found if text}


def _chart_numbers(chart: Mapping[str, Any]) -> set[str]:
    """Every number in what the chart's code has made: its words, its two drawings, its rows."""
    words = [chart[name] for name in ("title", "source", "caveat", "caption", "alt", "wide", "narrow")]
    texts = [re.sub(r"<[^>]*>", " ", words[-2]), re.sub(r"<[^>]*>", " ", words[-1]), *map(str, words[:-2])]
    cells = [f"{value:g}" if isinstance(value, float) else str(value) for row in chart["rows"] for value in row if value is not None]
    cells += [series.title(value) for row in chart["rows"] for value in row if value in series.STYLES or series.alpha_of(str(value))]
    return set().union(*map(_digits, (*texts, *cells, *chart["columns"])))


def makers(page: Page) -> dict[str, set[str]]:
    """Each ``data-made-by`` and the numbers it has made: charts, counts of verdicts, words of figures, choices of what a reader moves."""
    alts = [*map(plain_text, told_of_diagrams(page).values()), *(chart["alt"] for chart in page.charts.values())]
    choices = [fact.text for fact in page.facts.used.values()]
    choices += [series.title(match["policy"]) for match in page.facts.ledger.matches("sim.rev2.grid.<budget>.<policy>.reset.hit")]
    choices += [series.title(match["policy"]) for match in page.facts.ledger.matches("sim.rev3.family.<budget>.<policy>.hit")]
    chosen = set().union(*map(_digits, choices))
    return {
        **{name: _chart_numbers(chart) for name, chart in page.charts.items()},
        "claims.json": {plain_text(count) for *_, count in page.verdict_counts()},
        "alt": set().union(*map(_digits, alts)),
        **dict.fromkeys(("capacity", "transfer", "policies"), chosen),
    }


def told_of_diagrams(page: Page) -> dict[str, str]:
    """Each diagram in words, its values as links, by its number."""
    return {number: page.told(diagram.alt, f"diagram {number}") for number, diagram in page.diagrams.items()}


def _check_typed(path: str | Path, reader: _Reader, patterns: Mapping[str, str], page: Page) -> None:
    expected = "a value by its key, or an allowed pattern with its reason"
    for where, found in reader.wrong:
        raise InputError(path, f"#{where}", found, "text, which can be read here")
    for where, text in reader.typed:
        for number in _numbers(text, patterns):
            raise InputError(path, f"#{where}", f"the typed number {number}", expected)
    words = told_of_diagrams(page)
    for name, told in words.items():
        for _, number in bare_numbers(told, patterns):
            raise InputError(path, f"diagram {name}, in words", f"the typed number {number}", expected)
    known = {plain_text(told) for told in words.values()}
    for where, text in reader.named:
        if _flat(text) not in known and (number := next(iter(_numbers(text, patterns)), "")):
            raise InputError(path, f"#{where}", f"the typed number {number} in the words of a drawing", expected)


def _check_made(path: str | Path, reader: _Reader, patterns: Mapping[str, str], page: Page) -> None:
    known = makers(page)
    for where, maker, text in reader.made:
        if maker not in known:
            raise InputError(path, f"#{where}", f"words made by {maker}", f"one of {', '.join(known)}")
        for number in _numbers(text, patterns):
            if number.lstrip("-+−±~≈") not in known[maker]:
                raise InputError(path, f"#{where}", f"the number {number}, said to be made by {maker}", "a number that it has made")
    for shown in reader.shown:
        printed = forms(page, shown.ref)
        if not NUMBER.search(shown.text) or shown.text in printed:
            continue
        # On the marks of a chart stands what its code wrote there, of several keys.
        if not _digits(shown.text) <= known.get(shown.maker, set()):
            raise InputError(path, f"#{shown.where}", f"{shown.text!r} as the value of {shown.ref[2:]}", " or ".join(sorted(printed)))


def _check_rooms(path: str | Path, reader: _Reader, page: Page) -> None:
    """The caveat beside simulated values, and no badge that is stronger than the weakest result beneath it."""
    labels: dict[int, set[Label]] = {}
    for shown in reader.shown:
        kind, name = shown.ref[:1], shown.ref[2:]
        label = page.facts.ledger[name].label if kind == "n" else Label(page.facts.claims[name]["label"])
        room = reader.rooms[shown.room]
        if shown.text and not NUMBER.search(shown.text):
            continue
        labels.setdefault(shown.room, set()).add(label)
        # The badge of a simulated figure says as much; one of a weaker class does not.
        said = slug(room.label) == slug(Label.SIMULATED) or SIMULATION_LIMITS in room.text
        if label is Label.SIMULATED and not said:
            raise InputError(path, f"#{room.where}", f"{shown.text} of {name}, simulated", "the standing caveat beside it")
    for place, found in labels.items():
        room = reader.rooms[place]
        if not room.label:
            continue
        result = class_of(found)
        told = next((label for label in Label if slug(label) == slug(room.label)), None)
        if told is None or told.rank < result.rank:
            raise InputError(path, f"#{room.where}", f"the label {room.label}", f"{result}, or a weaker one")
        if not any(badge == told or badge.startswith(f"{told} · ") for badge in room.badges):
            raise InputError(path, f"#{room.where}", f"badges {', '.join(room.badges) or 'none'}", f"one of {told}")


def _check_retracted(path: str | Path, reader: _Reader, page: Page) -> None:
    boxes = {f"retraction-{slug(entry.id)}": entry for entry in page.sources.retractions}
    for shown in reader.shown:
        kind, name = shown.ref[:1], shown.ref[2:]
        status = page.facts.ledger[name].status if kind == "n" else page.facts.claims[name]["status"]
        if is_withdrawn(status) and NUMBER.search(shown.text):
            entry = boxes.get(shown.box)
            if kind == "n" or entry is None or name not in (*entry.shown, *entry.claims):
                raise InputError(path, f"#{shown.where}", f"{shown.text} of {name}, {status}", "it in its retraction box alone")
    for box, line in reader.outside:
        for entry in page.sources.retractions if box not in boxes else ():
            for guard in entry.guards:
                if guard.text and re.search(guard.text, line):
                    raise InputError(path, f"retraction {entry.id}", _flat(line)[:80], "a retracted value in its box alone")


def check(path: str | Path, html: str, allowed: Sequence[str | Path], page: Page) -> None:
    """Hold a page against the rules for its numbers.

    Parameters
    ----------
    path : str or Path
        The page, for messages.
    html : str
    allowed : sequence of path
        YAML files: ``pattern: reason``.
    page : Page
        What the page was made from: the ledger, the claims, charts, diagrams and retractions.

    Raises
    ------
    InputError
        For the first number that is typed, or is not what the ledger, the claim or the chart has; the first simulated value without its
        caveat; the first badge that is too strong; the first retracted value outside its box.
    """
    reader = read(html)
    patterns = {pattern: reason for file in allowed for pattern, reason in read_yaml(file).items()}
    _check_typed(path, reader, patterns, page)
    _check_made(path, reader, patterns, page)
    _check_rooms(path, reader, page)
    _check_retracted(path, reader, page)

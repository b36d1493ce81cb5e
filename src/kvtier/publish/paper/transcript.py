"""The paper as it will be read: its text in order, with what was typed apart from what was bound to a key, and what may not stand in it.

Typst hands over the tree of the document before it is laid out (``transcript`` in ``paper/style.typ``). So a number counts as typed if it
is printed without a key, however the source brought it about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.arithmetic import Values, evaluate
from kvtier.evidence.labels import Label
from kvtier.evidence.lint import bare_numbers
from kvtier.evidence.retractions import RETRACTION_WORDS, Retraction, is_withdrawn, reprinted
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.verdicts import Claims

PUBLISHED_WORDS = ("published", "claim", *RETRACTION_WORDS)
"""One of these stands in each heading under which a value may be quoted as the package printed it."""

BOUND = "□"
"""Stands for a bound value where typed text is searched."""

PRIVATE = ("aside", "badge", "bound", "classes-in", "data", "missing", "pile", "shown", "transcript", "with-badges")
"""Names of ``paper/style.typ`` that a source may not take: with them it could print a value without a key, or draw a badge of its own."""

RESERVED = re.compile(rf"(?<![\w-])(?:metadata|image|json|read|yaml|toml|csv|xml|cbor|eval|plugin|query|{'|'.join(PRIVATE)})\s*\(|\bsys\.")
"""Calls that only ``paper/style.typ`` may make."""

SWALLOWED = re.compile(r"[)\]];")
"""A semicolon that ends a call: Typst takes it for the end of the expression, and a reader would miss it."""

IMPORTS = re.compile(r"#(?:import|include)\b[^\n(]*(?:\([^)]*\))?")
TAKEN = re.compile(r'#import "style\.typ": \(?(?P<names>[\w,\s-]+)\)?')
"""The one form of import that is let through: functions of the style, by name."""


@dataclass
class Passage:
    """What stands under one heading.

    Parameters
    ----------
    section : int
        Number of the heading of the first level above it, from 0 for what precedes them all.
    level : int
    heading : str
    text : str
        As read.
    typed : str
        The same, with :data:`BOUND` for each bound value.
    quoted : list of dict
        Bound values: ``what`` (``num``, ``withdrawn``, ``claim``, ``figure``, ``condition``, ...) and ``key``.
    """

    section: int
    level: int
    heading: str
    text: str = ""
    typed: str = ""
    quoted: list[dict[str, Any]] = field(default_factory=list)


def passages(items: Sequence[Mapping[str, Any]]) -> list[Passage]:
    """Cut the transcript at its headings.

    Parameters
    ----------
    items : sequence of dict
        In reading order; ``kind`` is ``text``, ``code``, ``break``, ``heading``, ``open`` or ``close`` of a bound value, or ``opaque``.

    Raises
    ------
    InputError
        Naming the heading, for what Typst cannot read before layout.
    """
    found = [Passage(0, 0, "front matter")]
    bound = 0
    for item in items:
        kind, here = item["kind"], found[-1]
        if kind == "heading":
            found.append(Passage(here.section + (item["level"] == 1), item["level"], item["text"]))
            found[-1].typed = f"{item['text']}\n"
        elif kind == "open":
            bound += 1
            here.quoted.append(dict(item))
            here.typed += BOUND
        elif kind == "close":
            bound -= 1
        elif kind == "opaque":
            raise InputError("paper", here.heading, f"a {item['text']} that cannot be read before layout", "plain content")
        else:
            # Code is read like any words: no number of a result hides in it.
            written = "\n" if kind == "break" else item.get("text", "")
            here.text += written
            here.typed += "" if bound else written.replace("\u00a0", " ")
    return found


def check(
    source: str | Path,
    items: Sequence[Mapping[str, Any]],
    ledger: Ledger,
    claims: Claims,
    retractions: Sequence[Retraction],
    allowed: Mapping[str, str],
) -> list[Passage]:
    """Hold the paper against ledger, claims and retractions; return its passages.

    Parameters
    ----------
    source : path
        The paper's source, for messages.
    items : sequence of dict
        Transcript.
    ledger : Ledger
    claims : Claims
    retractions : sequence of Retraction
    allowed : mapping of str to str
        Patterns of numbers that may be typed, each with its reason.

    Raises
    ------
    InputError
        Naming the source, and the key or the heading: for a condition that does not hold, an unknown key, a number that does not stand, one
        without the uncertainty that is asked for, a simulated one in a section without the standing caveat, a retracted value outside a
        passage on retractions, a published one outside a passage on claims, a typed number.
    """
    found = passages(items)
    caveats = {passage.section for passage in found if any(quote["what"] == "caveat" for quote in passage.quoted)}
    values = claims.values()
    for passage in found:
        for quote in passage.quoted:
            for at, seen, expected in _faults(quote, passage, ledger, claims, values, caveats):
                raise InputError(_place(source, quote), at, seen, expected)
        for _, number in bare_numbers(passage.typed, allowed):
            raise InputError(source, passage.heading, f"the bare number {number}", "num() of a key, or an allowed pattern with its reason")
    read = "\n".join(f"{'#' * max(passage.level, 1)} {passage.heading}\n{passage.text}" for passage in found)
    if returned := reprinted(retractions, read):
        raise InputError(source, returned[0], "a retracted value", "it under a heading about retractions, or nowhere")
    return found


def _place(source: str | Path, quote: Mapping[str, Any]) -> str:
    """The source, with the line where the key is written out, if it is."""
    lines = Path(source).read_text(encoding="utf-8").splitlines() if Path(source).is_file() else []
    line = next((number for number, text in enumerate(lines, 1) if f'"{quote["key"]}"' in text or f"`{quote['key']}`" in text), None)
    return f"{source}, line {line}" if line else str(source)


Fault = tuple[str, object, str]
"""Field, what was found and what was expected."""


def _says(heading: str, words: Sequence[str]) -> bool:
    return any(word in heading.lower() for word in words)


def _faults(
    quote: Mapping[str, Any], passage: Passage, ledger: Ledger, claims: Claims, values: Values, caveats: set[int]
) -> Iterator[Fault]:
    """What is wrong with a bound value where it stands."""
    what, key = quote["what"], quote["key"]
    unknown = {"num": key not in ledger, "withdrawn": key not in ledger, "claim": key not in claims}.get(what, quote.get("missing", False))
    if unknown:
        yield key, f"no such {'key' if what in ('num', 'withdrawn') else what}", "one of this build"
        return
    label, retracted = None, False
    match what:
        case "condition":
            if evaluate(key, values, f"condition under {passage.heading!r}") is not True:
                yield passage.heading, f"{key}, which is not so", "a sentence that its condition bears out"
        case "num" | "withdrawn":
            label, retracted = ledger[key].label, what == "withdrawn"
            yield from _number_faults(ledger[key], what, quote["form"])
        case "claim":
            label, retracted = Label(claims[key]["label"]), claims.withdrawn(key)
            if not retracted and not _says(passage.heading, PUBLISHED_WORDS):
                yield passage.heading, "published values", f"a heading with one of {', '.join(PUBLISHED_WORDS)}"
        case "figure":
            label = Label(quote["label"])
    if retracted and not _says(passage.heading, RETRACTION_WORDS):
        yield passage.heading, "retracted values", f"a heading with one of {', '.join(RETRACTION_WORDS)}"
    if label is Label.SIMULATED and passage.section not in caveats:
        yield passage.heading, f"simulated numbers ({key}) without the standing caveat", "caveat() in the same section"


def _number_faults(number: Quote, what: str, form: str) -> Iterator[Fault]:
    """What is wrong with a number in itself: its status, or an uncertainty that it does not have."""
    if what == "num" and is_withdrawn(number.status):
        yield number.key, f"a number that is {number.status}", "one that is not"
    if what == "withdrawn" and not is_withdrawn(number.status):
        yield number.key, f"a number that is {number.status}", "a withdrawn one, or num()"
    if form in ("interval", "plus_minus") and number.interval is None:
        yield number.key, "no uncertainty", "a number that has one"


def check_source(path: str | Path) -> None:
    """Search a source for what would print a number or a badge past the ledger.

    Raises
    ------
    InputError
        Naming the file, the line and the call.
    """
    text = Path(path).read_text(encoding="utf-8")

    def refuse(start: int, found: str) -> InputError:
        line = text.count("\n", 0, start) + 1
        return InputError(path, f"line {line}", found, "the public functions of style.typ: num(), printed(), chart() and their like")

    if match := RESERVED.search(text):
        raise refuse(match.start(), match[0].strip())
    if match := SWALLOWED.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise InputError(path, f"line {line}", "a semicolon after a call, which Typst does not print", r"\;")
    for match in IMPORTS.finditer(text):
        taken = TAKEN.fullmatch(match[0].strip())
        names = re.findall(r"[\w-]+", taken["names"]) if taken else [match[0].strip()]
        if private := [name for name in names if not taken or name in PRIVATE]:
            raise refuse(match.start(), private[0])

"""Documents from templates that can print a number in one way only: by its key.

Three things fail the build, naming template, line and key: to print a number that the ledger lacks or that does not stand, to print it in a
section of a stronger class than its own, and to print a simulated number in a passage without the standing caveat.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from kvtier.errors import InputError
from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label, Status
from kvtier.files import write_atomically
from kvtier.publish import series
from kvtier.publish.ledger import Ledger, Quote

SECTIONS: dict[str, tuple[Label, ...]] = {
    "Measured": (Label.MEASURED,),
    "Simulated (provisional)": (Label.SIMULATED,),
    "Analytical model": (Label.ANALYTICAL,),
    "Vendor specification and stated inputs": (Label.VENDOR, Label.LITERATURE, Label.TARGET),
    "Illustrative": (Label.ILLUSTRATIVE,),
}
"""Heading of a section and the classes it is for, strongest first. A number may stand in a section of its own class or of a weaker one."""

SIMULATED_MARK = "\ue000"
"""Stands before each simulated value until the finished document has been searched for the caveat."""

NAMES: dict[str, Callable[[str], str]] = {
    "policy": series.title,
    "alpha": lambda word: series.alpha_of(word) or word,
    "gib": lambda word: f"{word} GiB",
    "gbps": lambda word: f"{word.removesuffix('gbps')} GB/s",
    "mfu": lambda word: f"{word.removeprefix('mfu')}% MFU",
    "context": lambda word: f"{word.upper()} tokens",
    "base": lambda word: f"base {int(word.removeprefix('base')):,}",
    "distance": lambda word: f"{int(word):,}",
    "pair": lambda word: f"pair {word}",
    "step": lambda word: word.replace("step", "step "),
    "users": lambda word: word,
    "block": lambda word: f"block {int(word):,}",
    "batch": lambda word: "batch {} × {:,} tokens".format(*map(int, word.split("x"))),
}
"""How a swept value inside a key is written out, by its name in the pattern; others are written as words."""


def written(name: str, word: str, names: dict[str, str] | None = None) -> str:
    """A swept value for the head of a row or column; `names` spells words that the rules for its kind do not."""
    if names and word in names:
        return names[word]
    return NAMES.get(name, lambda word: word.replace("_", " "))(word)


class Quoting:
    """The functions that a template may call, over one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.classes: tuple[Label, ...] = ()
        self.superseded = False

    def functions(self) -> dict[str, Any]:
        """Name in the template to function."""
        quoting = (self.num, self.unc, self.plus_minus, self.signed, self.definition, self.like, self.label, self.param)
        building = (self.swept, self.has, self.section, self.kept_for_audit, self.caveat, self.grid, self.records, self.listing, self.keys)
        return {function.__name__: function for function in (*quoting, *building)}

    def quote(self, key: str) -> Quote:
        """A number that may be printed here."""
        quote = self.ledger[key]
        if quote.status is Status.RETRACTED or (quote.status is Status.WITHDRAWN and not self.superseded):
            raise InputError(self.ledger.source, key, f"a number that is {quote.status}", "one that is not")
        if self.classes and quote.label.rank > max(label.rank for label in self.classes):
            raise InputError(
                self.ledger.source, key, f"label {quote.label}", f"{' or '.join(self.classes)} or stronger: the section's class"
            )
        return quote

    def _printed(self, key: str, field: Callable[[Quote], str]) -> str:
        quote = self.quote(key)
        return f"{SIMULATED_MARK if quote.label is Label.SIMULATED else ''}{field(quote)}"

    def num(self, key: str) -> str:
        """Display and unit."""
        return self._printed(key, lambda quote: quote.text)

    def signed(self, key: str) -> str:
        """Display and unit of a difference, its sign always written."""
        return self._printed(key, lambda quote: quote.signed)

    def _interval(self, quote: Quote) -> str:
        if quote.interval is None:
            raise InputError(self.ledger.source, quote.key, "no uncertainty", "a number that has one")
        return quote.interval

    def unc(self, key: str) -> str:
        """Standard error, or lowest to highest seed."""
        return self._printed(key, self._interval)

    def plus_minus(self, key: str) -> str:
        """Display and standard error, the unit once."""
        return self._printed(key, lambda quote: f"{quote.bare} {self._interval(quote)}")

    def definition(self, key: str) -> str:
        """What the number is, safe inside a table cell."""
        return self.quote(key).definition.rstrip(".").replace("|", r"\|")

    def like(self, key: str) -> str:
        """The definition of one number, as the example for a table of its kind."""
        return f"Each value is defined like `{key}`: {self.definition(key)}."

    def label(self, key: str) -> str:
        """Evidence class."""
        return str(self.quote(key).label)

    def param(self, key: str, name: str) -> Any:
        """A setting of the rule that made the number."""
        params = self.quote(key).params
        if name not in params:
            raise InputError(self.ledger.source, key, f"settings {', '.join(params) or 'none'}", f"the setting {name}")
        return params[name]

    def has(self, key: str) -> bool:
        """Whether the ledger has the key: for values that are undefined in some builds."""
        return key in self.ledger

    def swept(self, pattern: str, name: str) -> list[str]:
        """Values that a ``<name>`` of a key pattern takes, in reading order.

        Raises
        ------
        InputError
            If no key matches.
        """
        found = sorted({match[name] for match in self.ledger.matches(pattern)}, key=series.order)
        if not found:
            raise InputError(self.ledger.source, pattern, "no key that matches", "one or more")
        return found

    def section(self, heading: str) -> str:
        """Open a section: its heading and what its class means. Holds until the next one opens."""
        if heading not in SECTIONS:
            raise InputError("section", heading, "an unknown heading", f"one of {', '.join(SECTIONS)}")
        self.classes, self.superseded = SECTIONS[heading], False
        if len(self.classes) == 1:
            return f"## {heading}\n\nThe class means: {MEANING[self.classes[0]]}."
        return f"## {heading}\n\nThe classes mean:\n\n" + "\n".join(f"- {label}: {MEANING[label]}." for label in self.classes)

    def kept_for_audit(self, heading: str) -> str:
        """Open a passage in which withdrawn numbers may be shown, under a heading that says so; until the next section."""
        self.superseded = True
        return f"### {heading}: superseded, kept for audit"

    def caveat(self) -> str:
        """The standing caveat, as a quotation."""
        return f"> {SIMULATION_CAVEAT}"

    def grid(
        self,
        pattern: str,
        rows: str,
        columns: str,
        *,
        corner: str,
        show: str = "num",
        absent: str = "",
        names: dict[str, str] | None = None,
    ) -> str:
        """A table over two swept values, and the pattern of its keys.

        Parameters
        ----------
        pattern : str
            Key with ``<rows>`` and ``<columns>`` names in it.
        rows, columns : str
            Which name runs down and which across.
        corner : str
            Head of the first column.
        show : {'num', 'signed', 'unc'}
            What a cell holds.
        absent : str
            What a cell holds if the ledger lacks its key; without it, that is an error.
        names : dict, optional
            Words for swept values.
        """
        across = self.swept(pattern, columns)
        lines = [f"| {corner} | {' | '.join(written(columns, word, names) for word in across)} |", f"|---|{'---|' * len(across)}"]
        for row in self.swept(pattern, rows):
            keys = [pattern.replace(f"<{rows}>", row).replace(f"<{columns}>", column) for column in across]
            cells = (absent if absent and key not in self.ledger else getattr(self, show)(key) for key in keys)
            lines.append(f"| {written(rows, row, names)} | {' | '.join(cells)} |")
        return "\n".join([*lines, "", self.keys(pattern)])

    def records(self, pattern: str, *, corner: str, columns: dict[str, str], absent: str = "", names: dict[str, str] | None = None) -> str:
        """A table with one row for each value of the one ``<name>`` in the pattern.

        Parameters
        ----------
        pattern : str
            Key without its last word.
        corner : str
            Head of the first column.
        columns : dict of str to str
            Head of a column to the last word of its keys; ``signed:``, ``unc:`` or ``plus_minus:`` before the word shows the number so.
        absent, names
            As for `grid`.
        """
        (name,) = re.findall(r"<(\w+)>", pattern)
        shown = {head: field.rpartition(":")[::2] for head, field in columns.items()}
        lines = [f"| {corner} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for row in self.swept(f"{pattern}.{next(iter(shown.values()))[1]}", name):
            cells = []
            for show, field in shown.values():
                key = f"{pattern.replace(f'<{name}>', row)}.{field}"
                cells.append(absent if absent and key not in self.ledger else getattr(self, show or "num")(key))
            lines.append(f"| {written(name, row, names)} | {' | '.join(cells)} |")
        fields = list(dict.fromkeys(field for _, field in shown.values()))
        return "\n".join([*lines, "", self.keys(*(f"{pattern}.{field}" for field in fields))])

    def listing(self, *keys: str) -> str:
        """A table with one row a number: value, what it is, key. The class is added where the section is for more than one."""
        mixed = len(self.classes) > 1
        lines = (
            ["| Value | What it is | Class | Key |", "|---|---|---|---|"] if mixed else ["| Value | What it is | Key |", "|---|---|---|"]
        )
        for key in keys:
            about = f"{self.label(key)} | " if mixed else ""
            lines.append(f"| {self.num(key)} | {self.definition(key)} | {about}`{key}` |")
        return "\n".join(lines)

    def keys(self, *patterns: str) -> str:
        """The line under a table that says where its numbers are found."""
        return f"{'Keys' if '<' in patterns[0] or len(patterns) > 1 else 'Key'}: {', '.join(f'`{pattern}`' for pattern in patterns)}"


def _line(error: BaseException, template: Path) -> int:
    """Line of the template at which an error rose; 0 if it rose elsewhere."""
    return next((frame.lineno or 0 for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == str(template)), 0)


def passages(text: str) -> list[str]:
    """The document cut at its headings."""
    return re.split(r"(?m)^(?=#{1,6} )", text)


def render(template: str | Path, ledger: Ledger) -> str:
    """Fill a template.

    Parameters
    ----------
    template : str or Path
        Jinja2 template; undefined names are errors.
    ledger : Ledger
        The numbers that it may print.

    Raises
    ------
    InputError
        Naming the template, the line, and the key or name at fault.
    """
    template = Path(template)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.globals.update(Quoting(ledger).functions())
    try:
        loaded = environment.get_template(template.name)
        text = loaded.render()
    except InputError as error:
        raise InputError(f"{template}, line {_line(error, template)}", error.field, error.found, error.expected) from None
    except jinja2.TemplateSyntaxError as error:
        raise InputError(template, f"line {error.lineno}", error.message, "a template that parses") from None
    except jinja2.TemplateNotFound:
        raise InputError(template, "file", "nothing", "a readable template") from None
    except jinja2.UndefinedError as error:
        raise InputError(f"{template}, line {_line(error, template)}", "name", error.message, "one that the environment defines") from None
    for passage in passages(text):
        if SIMULATED_MARK in passage and SIMULATION_CAVEAT not in passage:
            heading = passage.splitlines()[0]
            raise InputError(template, heading, "simulated numbers without the standing caveat", "caveat() under the same heading")
    return text.replace(SIMULATED_MARK, "")


def write(template: str | Path, numbers: str | Path, path: str | Path) -> None:
    """Render a template with the numbers of a ledger file, and write it whole."""
    write_atomically(path, render(template, Ledger.read(numbers)))

"""Documents from templates that can print a number in one way only: by its key.

What fails the build, naming the template and the line or heading: to print a number that the ledger lacks or that does not stand, to print
it in a section of a stronger class than its own, to print a simulated number in a passage without the standing caveat, and to print a
published value outside a passage about claims, or a retracted one outside a passage about retractions.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2

from kvtier.errors import InputError
from kvtier.evidence import retractions
from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label, Status
from kvtier.evidence.retractions import on_retractions, passages
from kvtier.files import read_json, sha256, write_atomically
from kvtier.publish import kept_runs, series
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.sources import Given, Sources, read
from kvtier.publish.verdicts import MARKS, PUBLISHED_HEADING, PUBLISHED_MARK, RETRACTED_MARK, SIMULATED_MARK, Claims, cell

SECTIONS: dict[str, tuple[Label, ...]] = {
    "Measured": (Label.MEASURED,),
    "Simulated (provisional)": (Label.SIMULATED,),
    "Analytical model": (Label.ANALYTICAL,),
    "Vendor specification and stated inputs": (Label.VENDOR, Label.LITERATURE, Label.TARGET),
    "Illustrative": (Label.ILLUSTRATIVE,),
}
"""Heading of a section and the classes it is for, strongest first. A number may stand in a section of its own class or of a weaker one."""

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
    "run": lambda word: kept_runs.name(word),
    "size": lambda word: kept_runs.size(int(word)),
    "blocks": lambda word: f"{int(word):,} blocks",
    "threads": lambda word: f"{word.removesuffix('t')} thread{'' if word == '1t' else 's'}",
    "streams": lambda word: "{:,} streams × {:,} blocks".format(*map(int, word.split("x"))),
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
        quoting = (self.num, self.unc, self.interval, self.plus_minus, self.signed, self.definition, self.like, self.label, self.param)
        opening = (self.section, self.kept_for_audit, self.caveat)
        tables = (self.ledger.swept, self.has, self.grid, self.records, self.listing, self.keys)
        return {function.__name__: function for function in (*quoting, *opening, *tables, self.withdrawn)} | {
            "policy_name": series.title,
            "written": written,
            "cell": cell,
        }

    def quote(self, key: str) -> Quote:
        """A number that may be printed here."""
        quote = self.ledger[key]
        kept = self.superseded and quote.status is Status.WITHDRAWN
        if retractions.is_withdrawn(quote.status) and not kept:
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

    def withdrawn(self, key: str) -> str:
        """Display and unit of a number that is withdrawn or retracted, for passages about retractions alone."""
        quote = self.ledger[key]
        if not retractions.is_withdrawn(quote.status):
            raise InputError(self.ledger.source, key, f"a number that is {quote.status}", "a withdrawn one, or num()")
        return f"{SIMULATED_MARK if quote.label is Label.SIMULATED else ''}{RETRACTED_MARK}{quote.text}"

    def signed(self, key: str) -> str:
        """Display and unit of a difference, its sign always written."""
        return self._printed(key, lambda quote: quote.signed)

    def _interval(self, quote: Quote) -> str:
        if quote.interval is None:
            raise InputError(self.ledger.source, quote.key, "no uncertainty", "a number that has one")
        return quote.interval

    def unc(self, key: str) -> str:
        """Interval, standard error, or lowest to highest seed."""
        return self._printed(key, self._interval)

    def interval(self, key: str) -> bool:
        """Whether the number has an interval or standard error."""
        return self.quote(key).interval is not None

    def plus_minus(self, key: str) -> str:
        """Display and interval or standard error, the unit once."""
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
        """Whether the ledger has the key, or one that the pattern matches: for values that are undefined in some builds."""
        return bool(self.ledger.matches(key))

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
        across = self.ledger.swept(pattern, columns)
        cells = {
            row: [pattern.replace(f"<{rows}>", row).replace(f"<{columns}>", column) for column in across]
            for row in self.ledger.swept(pattern, rows)
        }
        self.ledger.one_experiment(key for keys in cells.values() for key in keys)
        lines = [f"| {corner} | {' | '.join(written(columns, word, names) for word in across)} |", f"|---|{'---|' * len(across)}"]
        for row, keys in cells.items():
            shown = (absent if absent and key not in self.ledger else getattr(self, show)(key) for key in keys)
            lines.append(f"| {written(rows, row, names)} | {' | '.join(shown)} |")
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
        _, first = next(iter(shown.values()))
        down = self.ledger.swept(f"{pattern}.{first}", name)
        self.ledger.one_experiment(pattern.replace(f"<{name}>", row) for row in down)
        lines = [f"| {corner} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for row in down:
            cells = []
            for show, field in shown.values():
                key = f"{pattern.replace(f'<{name}>', row)}.{field}"
                cells.append(absent if absent and key not in self.ledger else getattr(self, show or "num")(key))
            lines.append(f"| {written(name, row, names)} | {' | '.join(cells)} |")
        fields = list(dict.fromkeys(field for _, field in shown.values()))
        return "\n".join([*lines, "", self.keys(*(f"{pattern}.{field}" for field in fields))])

    def listing(self, *keys: str) -> str:
        """A table with one row a number: value, what it is, key. The class is added where the section is for more than one."""
        self.ledger.one_experiment(keys)
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


def _linked(finding: re.Match[str]) -> str:
    return f"[{finding[0]}](#{finding[0].lower()})"


class Telling:
    """The functions that tell findings, retractions and files; they fill the small templates that these bring along."""

    def __init__(self, environment: jinja2.Environment, sources: Sources) -> None:
        self.environment = environment
        self.sources = sources

    def functions(self) -> dict[str, Any]:
        """Name in the template to function."""
        given = (
            self.findings_table,
            self.finding_count,
            self.survival_table,
            self.retractions_table,
            self.sha256_of,
            self.file_names,
            self.fields_of,
            self.rule_of,
            self.told,
        )
        return {function.__name__: function for function in given}

    def told(self, text: str, where: str) -> str:
        """A text with values by key, filled."""
        try:
            return self.environment.from_string(text).render()
        except jinja2.TemplateError as error:
            raise InputError(where, "text", error, "values by num() and printed()") from None
        except InputError as error:
            raise InputError(where, error.field, error.found, error.expected) from None

    @property
    def claims(self) -> Claims:
        """The published claims."""
        if self.sources.claims is None:
            raise InputError("sources", "claims", "none", "claims.json, among the rule's inputs")
        return self.sources.claims

    def _places(self, claims: Sequence[str]) -> str:
        """Links to where claims stand in the table of verdicts, by document."""
        found: dict[str, dict[str, str]] = {}
        for claim in claims:
            record = self.claims[claim]
            found.setdefault(record["document"], {})[record["section"]] = self.claims.anchor(record["document"], record["section"])
        return "; ".join(
            f"{document} {', '.join(f'[{cell(section)}](CLAIMS.md#{anchor})' for section, anchor in sections.items())}"
            for document, sections in found.items()
        )

    def finding_count(self) -> int:
        """How many findings there are."""
        return len(self.sources.findings)

    def findings_table(self) -> str:
        """One row a finding, with an anchor of its id."""
        lines = ["| | What is wrong | What this build shows | Claims |", "|---|---|---|---|"]
        for finding in self.sources.findings:
            shown = self.told(finding.shows, f"finding {finding.id}")
            waits = f"**Pending**, waits for {finding.pending}. " if finding.pending else ""
            name = f'<a id="{finding.id.lower()}"></a>{finding.id}'
            lines.append(f"| {name} | {cell(finding.title)} | {waits}{cell(shown)} | {self._places(finding.claims)} |")
        return "\n".join(lines)

    def survival_table(self) -> str:
        """One row a result of Revision 2: what it was, what Revision 3 shows, and whether it survives."""
        lines = ["| | Result | Revision 2 | Revision 3 | It |", "|---|---|---|---|---|"]
        for survival, fate in self.sources.survivals:
            was, now = (cell(self.told(text, f"result {survival.id}")) for text in (survival.was, survival.now))
            name = f'<a id="{survival.id.lower()}"></a>{survival.id}'
            lines.append(f"| {name} | {cell(survival.result)} | {was} | {now} | **{fate}** |")
        return "\n".join(lines)

    def retractions_table(self) -> str:
        """One row a retracted quantity: its values, what they rested on with the old arithmetic, and what is said instead."""
        heads = ("Quantity", "Values", "Rested on", "Old derivation", "Contradicted by", "Instead", "Printed in")
        lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        for entry in self.sources.retractions:
            where = f"retraction {entry.id}"
            values = "<br>".join(f"~~{self.claims.printed(claim)}~~" for claim in entry.shown)
            derived = "<br>".join(self.claims.derivation(claim) for claim in entry.shown if self.claims[claim]["arithmetic"]) or "none"
            told = (cell(self.told(getattr(entry, name), where)) for name in ("rested_on", "contradicted_by", "replaced_by"))
            rested_on, contradicted_by, replaced_by = (re.sub(r"\bD\d+\b", _linked, text) for text in told)
            name = f'<a id="{entry.id.replace("_", "-")}"></a>{cell(entry.quantity)}'
            places = self._places((*entry.shown, *entry.claims))
            lines.append(f"| {name} | {values} | {rested_on} | {derived} | {contradicted_by} | {replaced_by} | {places} |")
        return "\n".join(lines)

    def file_names(self, start: str, *, made: bool = False) -> list[str]:
        """Published names that begin so, of files that a build makes or of those that it reads."""
        found = {name: str(where) != name for name, where in self.sources.files.items() if name.startswith(start)}
        return [name for name, is_made in found.items() if is_made is made]

    def _file(self, name: str) -> Path:
        if name not in self.sources.files:
            raise InputError("sources", name, "no such file", f"one of {', '.join(self.sources.files)}")
        return self.sources.files[name]

    def sha256_of(self, name: str) -> str:
        """Hex digest of a published file as this build has it."""
        return sha256(self._file(name))

    def rule_of(self, name: str) -> str:
        """Rule that makes a published file."""
        if name not in self.sources.rules:
            raise InputError("sources", name, "no rule", "the rule that makes it")
        return self.sources.rules[name]

    def fields_of(self, name: str) -> str:
        """Fields of the records in a JSON file."""
        records = [record for record in read_json(self._file(name)).values() if isinstance(record, dict)]
        return (
            ", ".join(f"`{field}`" for field in dict.fromkeys(field for record in records for field in record)) or "none: one value a key"
        )


def render(template: str | Path, ledger: Ledger, sources: Sources | None = None) -> str:
    """Fill a template.

    Parameters
    ----------
    template : str or Path
        Jinja2 template; undefined names are errors.
    ledger : Ledger
        The numbers that it may print.
    sources : Sources, optional
        What else it draws on.

    Raises
    ------
    InputError
        Naming the template, the line or heading, and the key or name at fault.
    """
    template, sources = Path(template), sources or Sources()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.globals.update(Quoting(ledger).functions())
    environment.globals.update(sources.claims.functions() if sources.claims else {})
    environment.globals.update(Telling(environment, sources).functions())
    try:
        loaded = environment.get_template(template.name)
        text = loaded.render()
    except InputError as error:
        at = f"{template}, line {_line(error, template)}"
        place = at if error.source.startswith((ledger.source, "section")) else f"{at}, {error.source}"
        raise InputError(place, error.field, error.found, error.expected) from None
    except jinja2.TemplateSyntaxError as error:
        raise InputError(template, f"line {error.lineno}", error.message, "a template that parses") from None
    except jinja2.TemplateNotFound:
        raise InputError(template, "file", "nothing", "a readable template") from None
    except jinja2.UndefinedError as error:
        raise InputError(f"{template}, line {_line(error, template)}", "name", error.message, "one that the environment defines") from None
    for passage in passages(text):
        _check_passage(template, passage)
    own = "".join(passage for passage in passages(text) if PUBLISHED_HEADING not in passage)
    if found := retractions.reprinted(sources.retractions, own.translate(MARKS)):
        raise InputError(template, found[0], "a retracted value", "it under a heading about retractions, or nowhere")
    return text.translate(MARKS)


def _check_passage(template: Path, passage: str) -> None:
    heading = passage.partition("\n")[0].translate(MARKS)
    if SIMULATED_MARK in passage and SIMULATION_CAVEAT not in passage:
        raise InputError(template, heading, "simulated numbers without the standing caveat", "caveat() under the same heading")
    if RETRACTED_MARK in passage and not on_retractions(passage):
        raise InputError(template, heading, "retracted values", "as_retracted() as the heading of such a passage")
    if PUBLISHED_MARK in passage and PUBLISHED_HEADING not in passage:
        raise InputError(template, heading, "published values", "as_published() as the heading of a passage about claims")


def write(template: str | Path, numbers: str | Path, path: str | Path, *, retracted: str | Path) -> None:
    """Render a template with the numbers of a ledger file, and write it whole.

    Parameters
    ----------
    template, numbers : str or Path
    path : str or Path
        The document to write.
    retracted : str or Path
        List of retractions: none of their values may stand in the document.
    """
    write_atomically(path, render(template, Ledger.read(numbers), Sources(retractions=retractions.read(retracted))))


def write_on_claims(
    template: str | Path, path: str | Path, given: Given, *, files: Mapping[str, str | Path], rules: Mapping[str, str]
) -> None:
    """Render a template about published claims, findings and retractions, all held against the ledger first, and write it whole.

    Parameters
    ----------
    template : str or Path
    path : str or Path
        The document to write.
    given : Given
        Ledger, claims, findings, retractions, survivals.
    files : mapping of str to path
        Published name of a file to where it is now.
    rules : mapping of str to str
        Published name of a file to the rule that makes it.
    """
    ledger, sources = read(given)
    named = {name: Path(where) for name, where in files.items()}
    write_atomically(path, render(template, ledger, replace(sources, files=named, rules=rules)))

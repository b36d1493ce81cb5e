"""The table of the README: what this reproduction claims, which number bears it, what to expect, and how long its rule takes."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kvtier.certification.steps import with_all_it_needs
from kvtier.errors import InputError
from kvtier.evidence import findings, retractions
from kvtier.evidence.arithmetic import evaluate, references
from kvtier.evidence.labels import SIMULATION_CAVEAT, Label
from kvtier.evidence.retractions import Retraction
from kvtier.files import read_yaml
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.verdicts import Claims, cell

BEGIN, END = '<a id="claims-table"></a>', '<a id="claims-table-end"></a>'
"""Marks around the table: anchors and no comments, so that the lint of bare numbers can tell what lies between them."""
HEADS = ("Claim", "Expect", "Class", "Number", "Shown in", "Rule", "Minutes")


@dataclass(frozen=True)
class Headline:
    """A claim of this reproduction.

    Parameters
    ----------
    claim : str
        One sentence, without the value.
    number : str
        Key of the ledger.
    holds : str
        Condition over the ledger without which the sentence is false.
    shown : str
        Published file, with an anchor where there is one.
    names : tuple of str
        Phrases with digits that name a thing or a condition.
    """

    claim: str
    number: str
    holds: str
    shown: str
    names: tuple[str, ...] = ()


def read(path: str | Path) -> tuple[Headline, ...]:
    """Read ``headline_claims.yaml``.

    Raises
    ------
    InputError
        If a field is missing or unknown, a value is typed into a sentence, or a condition does not rest on the claim's number.
    """
    entries = read_yaml(path).get("claims")
    if not isinstance(entries, list) or not entries:
        raise InputError(path, "claims", entries, "a list of claims")
    known = {item.name for item in fields(Headline)}
    found = []
    for position, entry in enumerate(entries, start=1):
        where = f"claim {position}"
        if not isinstance(entry, Mapping):
            raise InputError(path, where, entry, "named fields")
        for name in sorted(known - {"names"} - entry.keys()):
            raise InputError(path, f"{where}.{name}", "nothing", "the field")
        for name in sorted(entry.keys() - known):
            raise InputError(path, f"{where}.{name}", "an unknown field", f"only {', '.join(sorted(known))}")
        headline = Headline(**{**entry, "names": tuple(entry.get("names", ()))})
        findings.check_text(path, f"{where}.claim", headline.claim, headline.names)
        try:
            rests_on = references(headline.holds)
        except (SyntaxError, TypeError):
            rests_on = []
        if headline.number not in rests_on:
            raise InputError(path, f"{where}.holds", headline.holds, f"a condition over {headline.number}")
        found.append(headline)
    return tuple(found)


def read_times(path: str | Path) -> dict[str, float]:
    """Time of each rule, of ``rule_times.csv`` [s].

    Raises
    ------
    InputError
        If the file is missing, a column is, or a time is no positive number.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a readable CSV file") from None
    times: dict[str, float] = {}
    for position, row in enumerate(rows, start=1):
        try:
            times[row["rule"]] = float(row["seconds"])
        except (KeyError, TypeError, ValueError):
            raise InputError(path, f"row {position}", row, "columns rule and seconds") from None
        if not (0 < times[row["rule"]] < math.inf):
            raise InputError(path, f"column seconds, row {position}", row["seconds"], "a positive number")
    return times


def minutes(rule: str, rules: Mapping[str, Mapping[str, Any]], times: Mapping[str, float], source: str | Path) -> str:
    """Time of a rule and all that it needs, one after the other, rounded up to whole minutes.

    Parameters
    ----------
    rule : str
    rules : mapping
        The map of rules.
    times : mapping of str to float
        By rule [s].
    source : str or Path
        Where the times came from, for messages.

    Returns
    -------
    str
        [min], at least 1.

    Raises
    ------
    InputError
        If the time of one of them is not known, or there is no such rule.
    """
    needed = with_all_it_needs(rules, rule)
    if unknown := sorted(needed - times.keys()):
        raise InputError(source, "column rule", f"no row {unknown[0]}", "one, by benchmarks/rule_times.py")
    return str(max(1, math.ceil(sum(times[name] for name in needed) / 60)))


def expected(quote: Quote) -> str:
    """Value as printed, a difference in points with its sign; then its interval, or its seeds."""
    value = quote.signed if quote.unit == "points" else quote.text
    if quote.interval is None:
        return value
    if "lowest_seed" in quote.uncertainty:
        return f"{value} (seeds: {quote.interval})"
    return f"{value.removesuffix(quote.unit).rstrip()} {quote.interval}"


def table(
    source: str | Path,
    headlines: Sequence[Headline],
    ledger: Ledger,
    retracted: Sequence[Retraction],
    published: Collection[str],
    rules: Mapping[str, Mapping[str, Any]],
    times: Mapping[str, float],
    timed: str | Path,
) -> str:
    """Markdown of the table, with the standing caveat where a simulated number stands in it.

    Parameters
    ----------
    source : str or Path
        Where the claims came from, for messages.
    headlines : sequence of Headline
    ledger : Ledger
    retracted : sequence of Retraction
        None of their values may stand in the table.
    published : collection of str
        Paths of the published copy.
    rules : mapping
        The map of rules.
    times : mapping of str to float
        Seconds by rule.
    timed : str or Path
        Where the times came from.

    Raises
    ------
    InputError
        If a number does not exist or does not stand, a claim does not hold, what it is shown in is not published, or a retracted value
        would be printed.
    """
    # No published claims: a claim of this reproduction rests on its own numbers alone.
    values = Claims(str(source), {}, ledger).values()
    lines, labels = [], set()
    for position, headline in enumerate(headlines, start=1):
        where, quote = f"claim {position}", ledger[headline.number]
        if retractions.is_withdrawn(quote.status):
            raise InputError(source, f"{where}.number", f"{headline.number}, which is {quote.status}", "a number that stands")
        if evaluate(headline.holds, values, f"{source}, {where}.holds") is not True:
            raise InputError(source, f"{where}.holds", f"false: {headline.holds}", "a claim that holds")
        path = headline.shown.partition("#")[0]
        if path not in published:
            raise InputError(source, f"{where}.shown", path, "a file of the published copy")
        labels.add(quote.label)
        cells = (
            cell(headline.claim),
            expected(quote),
            quote.label,
            f"`{quote.key}`",
            f"[{path}]({headline.shown})",
            f"`{quote.rule}`",
            minutes(quote.rule, rules, times, timed),
        )
        lines.append(f"| {' | '.join(cells)} |")
    caveat = [f"> {SIMULATION_CAVEAT}", ""] if Label.SIMULATED in labels else []
    text = "\n".join([*caveat, f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}", *lines])
    if found := retractions.reprinted(retracted, text):
        raise InputError(source, found[0], "a retracted value", "it nowhere in this table")
    return text


def inserted(readme: str, table_text: str, source: str | Path) -> str:
    """The README with the table between its marks.

    Raises
    ------
    InputError
        If the marks are not there once each, in order.
    """
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise InputError(
            source, "marks of the claims table", f"{readme.count(BEGIN)} and {readme.count(END)}", f"one {BEGIN} before one {END}"
        )
    between = re.compile(rf"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n\n{table_text}\n\n{END}", readme)

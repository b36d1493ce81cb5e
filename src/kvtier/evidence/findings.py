"""What this reproduction found: each finding with the condition under which it holds, checked on each build."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from kvtier.errors import InputError
from kvtier.evidence.arithmetic import Values, evaluate, references
from kvtier.files import read_yaml

PRINTED = re.compile(r"\{\{(.*?)\}\}")
FUNCTIONS = ("num", "signed", "unc", "plus_minus", "printed")
NAMES = re.compile(r"\b(?:Revision \d|e[1-6]|D\d+|Llama-\d|EMA 0\.\d+)(?!\w)")
"""Names of revisions, experiments, findings, models and policies: no results."""


@dataclass(frozen=True)
class Finding:
    """One finding about the published package.

    Parameters
    ----------
    id : str
        ``D1`` and on; unique.
    title : str
        What is wrong, in one sentence.
    claims : tuple of str
        Claims that it concerns; empty where the package printed the value outside the documents whose claims are kept.
    shows : str
        What this build shows, a template: values by ``num()``, ``signed()``, ``unc()`` and ``printed()`` alone.
    condition : str
        Expression that is true if the finding holds.
    pending : str
        What it waits for; then there is no condition.
    names : tuple of str
        Phrases with digits in them that name a condition or a thing, and are no results.
    """

    id: str
    title: str
    claims: tuple[str, ...]
    shows: str
    condition: str = ""
    pending: str = ""
    names: tuple[str, ...] = ()


def read(path: str | Path) -> tuple[Finding, ...]:
    """Read the findings.

    Raises
    ------
    InputError
        Naming the finding and the field: one that is missing or unknown, an id twice, both or neither of condition and pending, a value
        that is typed and not printed by its key, or a call of anything else.
    """
    content = read_yaml(path)
    if set(content) != {"findings"}:
        raise InputError(path, "file", f"fields {', '.join(content)}", "the field findings")
    known = {item.name for item in fields(Finding)}
    found: dict[str, Finding] = {}
    for entry in content["findings"]:
        where = str(entry.get("id", "a finding without id"))
        for name in ("id", "title", "claims", "shows"):
            if name not in entry:
                raise InputError(path, f"{where}.{name}", "nothing", "the field")
        for name in entry:
            if name not in known:
                raise InputError(path, f"{where}.{name}", "an unknown field", f"only {', '.join(sorted(known))}")
        if where in found:
            raise InputError(path, where, "the id twice", "one finding an id")
        finding = Finding(**{**entry, "claims": tuple(entry["claims"]), "names": tuple(entry.get("names", ()))})
        if finding.condition and not re.search(r"\b(num|printed)\(", finding.condition):
            raise InputError(path, f"{where}.condition", finding.condition, "a condition over num() or printed()")
        if bool(finding.condition) == bool(finding.pending):
            raise InputError(path, f"{where}.condition", "both or neither of condition and pending", "one of them")
        for name in ("title", "shows"):
            check_text(path, f"{where}.{name}", getattr(finding, name), finding.names)
        found[where] = finding
    return tuple(found.values())


def printed_values(path: str | Path, where: str, text: str) -> Iterator[tuple[str, str]]:
    """(function, key or claim) of each value that a text prints."""
    for expression in PRINTED.findall(text):
        try:
            call = ast.parse(expression.strip(), mode="eval").body
        except SyntaxError:
            call = None
        match call:
            case ast.Call(ast.Name(function), [ast.Constant(value=str() as name), *_], []) if function in FUNCTIONS:
                yield function, name
            case _:
                raise InputError(path, where, expression.strip(), f"one call of {', '.join(FUNCTIONS)}")


def check_text(path: str | Path, where: str, text: str, names: Sequence[str]) -> None:
    """Refuse values that are typed.

    Raises
    ------
    InputError
        Naming the first digits that stand neither in a printed value nor in a name.
    """
    list(printed_values(path, where, text))
    bare = NAMES.sub("", PRINTED.sub("", text))
    for name in sorted(names, key=len, reverse=True):
        bare = bare.replace(name, "")
    if typed := re.search(r"\S*\d\S*", bare):
        raise InputError(path, where, f"{typed[0]!r}, typed", "values by num() or printed(), other digits in names")


def check(path: str | Path, findings: Sequence[Finding], values: Values, claims: Collection[str]) -> None:
    """Hold the findings against the ledger and the claims.

    Parameters
    ----------
    path : str or Path
        Where they came from, for messages.
    findings : sequence of Finding
    values : Values
        Numbers and printed values.
    claims : collection of str
        Ids of the published claims.

    Raises
    ------
    InputError
        Naming the finding: an unknown claim or key, or a condition that is false or not a truth value.
    """
    for finding in findings:
        for claim in finding.claims:
            if claim not in claims:
                raise InputError(path, f"{finding.id}.claims", claim, "the id of a published claim")
        for function, name in printed_values(path, f"{finding.id}.shows", finding.shows):
            if function == "printed" and name not in claims:
                raise InputError(path, f"{finding.id}.shows", name, "the id of a published claim")
            if function != "printed":
                values.num(name, f"{path}, {finding.id}.shows")
        if finding.condition:
            holds = evaluate(finding.condition, values, f"{path}, {finding.id}.condition")
            if not isinstance(holds, bool):
                raise InputError(path, f"{finding.id}.condition", holds, "true or false")
            if not holds:
                raise InputError(path, f"{finding.id}.condition", f"false: {finding.condition}", "a finding that holds")


def numbers_of(finding: Finding) -> list[str]:
    """Keys of the numbers that a finding uses."""
    shown = [name for function, name in printed_values("finding", finding.id, finding.shows) if function != "printed"]
    return list(dict.fromkeys([*(references(finding.condition) if finding.condition else []), *shown]))

"""What the package retracted, and the watch that none of it comes back: not as a number of the ledger, not in a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.claims import NUMBER, Verdict, agrees
from kvtier.evidence.labels import Status
from kvtier.files import read_yaml

WITHDRAWN = frozenset({Status.RETRACTED, Status.WITHDRAWN, Status.REVERSED})
RETRACTION_WORDS = ("retract", "withdrawn", "superseded")
"""One of these stands in each heading under which retracted values may be printed."""


def is_withdrawn(status: str) -> bool:
    """Whether a claim or number of this status may not be used as a result."""
    return Status(status) in WITHDRAWN


def printed_values(printed: str) -> tuple[Decimal, ...]:
    """The numbers in a value as printed."""
    return tuple(Decimal(token.replace(",", "").replace("−", "-")) for token in NUMBER.findall(printed))


@dataclass(frozen=True)
class Guard:
    """How a retracted value would show itself if it came back.

    Parameters
    ----------
    claim : str
        A claim that prints the value, or several of them.
    keys : str
        Pattern of the number keys of the same quantity: none of them may print the value.
    text : str
        Pattern of the value in running text: it may stand in passages about retractions only.
    """

    claim: str
    keys: str = ""
    text: str = ""


@dataclass(frozen=True)
class Retraction:
    """One retracted quantity.

    Parameters
    ----------
    id : str
    quantity : str
        What was claimed.
    shown : tuple of str
        Claims that print its values, one of each, as the record shows them.
    claims : tuple of str
        All other claims that repeat them.
    rested_on, contradicted_by, replaced_by : str
        In this project's words; values by ``num()`` and ``printed()`` alone.
    guards : tuple of Guard
    """

    id: str
    quantity: str
    shown: tuple[str, ...]
    claims: tuple[str, ...]
    rested_on: str
    contradicted_by: str
    replaced_by: str
    guards: tuple[Guard, ...]


def read(path: str | Path) -> tuple[Retraction, ...]:
    """Read the list of retractions.

    Raises
    ------
    InputError
        Naming the entry and the field: one that is missing or unknown, an id twice, no guard, a guard without a pattern or with one that
        does not compile.
    """
    entries: dict[str, Retraction] = {}
    content = read_yaml(path)
    if set(content) != {"retractions"}:
        raise InputError(path, "file", f"fields {', '.join(content)}", "the field retractions")
    known = {item.name for item in fields(Retraction)}
    for entry in content["retractions"]:
        where = str(entry.get("id", "an entry without id"))
        if missing := known - set(entry):
            raise InputError(path, f"{where}.{min(missing)}", "nothing", "the field")
        if unknown := set(entry) - known:
            raise InputError(path, f"{where}.{min(unknown)}", "an unknown field", f"only {', '.join(sorted(known))}")
        if where in entries:
            raise InputError(path, where, "the id twice", "one entry an id")
        guards = tuple(_guard(path, f"{where}.guards", guard) for guard in entry["guards"])
        if not guards:
            raise InputError(path, f"{where}.guards", "none", "one or more")
        lists = {name: tuple(entry[name]) for name in ("shown", "claims")}
        entries[where] = Retraction(**{**entry, **lists, "guards": guards})
    return tuple(entries.values())


def _guard(path: str | Path, where: str, entry: Mapping[str, Any]) -> Guard:
    if unknown := set(entry) - {item.name for item in fields(Guard)}:
        raise InputError(path, f"{where}.{min(unknown)}", "an unknown field", "claim, keys, text")
    if "claim" not in entry or not (entry.get("keys") or entry.get("text")):
        raise InputError(path, where, dict(entry), "a claim, and keys or text or both")
    for name in ("keys", "text"):
        try:
            re.compile(entry.get(name, ""))
        except re.error as error:
            raise InputError(path, f"{where}.{name}", error, "a regular expression") from None
    return Guard(**entry)


def check(
    path: str | Path,
    retractions: Sequence[Retraction],
    claims: Mapping[str, Mapping[str, Any]],
    ledger: Mapping[str, Mapping[str, Any]],
) -> None:
    """Hold the list against claims and ledger.

    Parameters
    ----------
    path : str or Path
        Where the list came from, for messages.
    retractions : sequence of Retraction
    claims : mapping
        ``claims.json``.
    ledger : mapping
        ``numbers.json``.

    Raises
    ------
    InputError
        If an entry names an unknown claim or shows one without a guard, a retracted claim is in no entry, or a retracted value is back in
        the ledger.
    """
    listed: set[str] = set()
    for entry in retractions:
        for claim in (*entry.shown, *entry.claims, *(guard.claim for guard in entry.guards)):
            if claim not in claims:
                raise InputError(path, entry.id, claim, "the id of a published claim")
            listed.add(claim)
        if unguarded := set(entry.shown) - {guard.claim for guard in entry.guards}:
            raise InputError(path, f"{entry.id}.guards", f"none for {min(unguarded)}", "one for each claim that is shown")
    for claim, record in claims.items():
        if record["verdict"] == Verdict.RETRACTED and claim not in listed:
            raise InputError(path, claim, "no entry with this retracted claim", "one")
    if found := returned(retractions, claims, ledger):
        raise InputError(path, found[0], "a retracted value in the ledger", "it nowhere but in what is withdrawn")


def returned(
    retractions: Iterable[Retraction], claims: Mapping[str, Mapping[str, Any]], ledger: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """``entry: key`` of each number that stands and prints a retracted value of the same quantity."""
    return [
        f"{entry.id}: {key}"
        for entry in retractions
        for guard in entry.guards
        if guard.keys
        for key, record in ledger.items()
        if re.search(guard.keys, key)
        and not is_withdrawn(record["status"])
        and any(agrees(value, record["value"]) for value in printed_values(claims[guard.claim]["printed"]))
    ]


def passages(text: str) -> list[str]:
    """A document cut at its headings."""
    return re.split(r"(?m)^(?=#{1,6} )", text)


def on_retractions(passage: str) -> bool:
    """Whether a passage's heading says that what it holds is retracted."""
    heading = passage.partition("\n")[0].lower()
    return heading.startswith("#") and any(word in heading for word in RETRACTION_WORDS)


def reprinted(retractions: Iterable[Retraction], text: str) -> list[str]:
    """``entry: line`` of each retracted value printed outside passages on retractions; what is struck through does not count."""
    open_text = "\n".join(re.sub(r"~~.*", "", passage) for passage in passages(text) if not on_retractions(passage))
    return [
        f"{entry.id}: {line.strip()}"
        for entry in retractions
        for guard in entry.guards
        if guard.text
        for line in open_text.splitlines()
        if re.search(guard.text, line)
    ]

"""Second opinions: functions that compute a number of the ledger by a path of their own, registered by key or pattern of keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RELATIVE = 1e-9
"""Two paths round differently; integers must be equal."""

Value = int | float


class Opinion(NamedTuple):
    """One function, the keys that it answers for, and whether it takes minutes."""

    pattern: str
    function: Callable[[str], Value]
    exhaustive: bool


OPINIONS: list[Opinion] = []


def second_opinion(*patterns: str, exhaustive: bool = False) -> Callable[[Callable[[str], Value]], Callable[[str], Value]]:
    """Register a function of the key; `exhaustive` ones run with ``-m exhaustive`` alone."""

    def register(function: Callable[[str], Value]) -> Callable[[str], Value]:
        OPINIONS.extend(Opinion(pattern, function, exhaustive) for pattern in patterns)
        return function

    return register


def opinion_on(key: str, opinions: list[Opinion] = OPINIONS) -> Opinion | None:
    """Whoever answers for a key, one named in full before a pattern; none if nobody does.

    Raises
    ------
    LookupError
        If two answer alike.
    """
    found = [each for each in opinions if fnmatchcase(key, each.pattern)]
    named = [each for each in found if each.pattern == key] or found
    if len(named) > 1:
        raise LookupError(f"{key}: {', '.join(each.pattern for each in named)} answer for it, expected one")
    return named[0] if named else None


@cache
def ledger() -> Mapping[str, Any]:
    """The published numbers by key."""
    return json.loads((ROOT / "data/numbers.json").read_text(encoding="utf-8"))


LENT = frozenset(
    {
        *(f"sim.rev3.ablation.{name}.alone" for name in ("suffix_first", "ema", "persistence", "anchors", "prefetch", "exclusive")),
        "sim.rev3.ablation.all_hit",
    }
)
"""Taken from the ledger on trust: this folder replays no mechanism. Of what is made from them the arithmetic alone is checked."""


def value(key: str) -> Value:
    """A number of the ledger, where an opinion is arithmetic on numbers that have opinions of their own.

    Raises
    ------
    LookupError
        If it has none and is not among :data:`LENT`.
    """
    if key not in LENT and opinion_on(key) is None:
        raise LookupError(f"{key}: found no opinion of its own, expected one, or its place among what is lent")
    return ledger()[key]["value"]


def disagreement(found: Value, stated: Value) -> str:
    """What is wrong with the ledger's value; empty if nothing is."""
    if isinstance(stated, int):
        same = found == stated
    else:
        # Differences of rates in percent are as exact as the rates; a margin may be 0.
        same = abs(found - stated) <= RELATIVE * max(abs(found), abs(stated)) or abs(found - stated) < 1e-11
    return "" if same else f"second path {found!r}, ledger {stated!r}"

"""What survives of a superseded result under a stronger model: a verdict by condition, checked on each build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from kvtier.errors import InputError
from kvtier.evidence.arithmetic import Values, evaluate
from kvtier.evidence.findings import check_text, printed_values
from kvtier.files import read_yaml


class Fate(StrEnum):
    """What became of a result."""

    SURVIVES = "survives"
    WEAKER = "only the sign survives"
    GONE = "does not survive"


@dataclass(frozen=True)
class Survival:
    """One result and how it fares.

    Parameters
    ----------
    id : str
        ``S1`` and on; unique.
    result : str
        What was found, in this project's words.
    was, now : str
        What the superseded and the stronger model show, templates: values by ``num()``, ``signed()``, ``unc()``, ``plus_minus()`` and
        ``printed()`` alone.
    survives : str
        Condition under which it survives, over ``num()``, ``low()``, ``high()`` and ``printed()``.
    weaker : str
        Condition under which its sign alone survives; never if empty.
    names : tuple of str
        Phrases with digits in them that name a condition or a thing, and are no results.
    """

    id: str
    result: str
    was: str
    now: str
    survives: str
    weaker: str = ""
    names: tuple[str, ...] = ()


def read(path: str | Path) -> tuple[Survival, ...]:
    """Read the list.

    Raises
    ------
    InputError
        Naming the entry and the field: one that is missing or unknown, an id twice, or a value that is typed and not printed by its key.
    """
    content = read_yaml(path)
    if set(content) != {"results"}:
        raise InputError(path, "file", f"fields {', '.join(content)}", "the field results")
    known = {item.name for item in fields(Survival)}
    found: dict[str, Survival] = {}
    for entry in content["results"]:
        where = str(entry.get("id", "an entry without id"))
        for name in ("id", "result", "was", "now", "survives"):
            if name not in entry:
                raise InputError(path, f"{where}.{name}", "nothing", "the field")
        for name in entry:
            if name not in known:
                raise InputError(path, f"{where}.{name}", "an unknown field", f"only {', '.join(sorted(known))}")
        if where in found:
            raise InputError(path, where, "the id twice", "one entry an id")
        survival = Survival(**{**entry, "names": tuple(entry.get("names", ()))})
        for name in ("result", "was", "now"):
            check_text(path, f"{where}.{name}", getattr(survival, name), survival.names)
        found[where] = survival
    return tuple(found.values())


def judge(path: str | Path, listed: Sequence[Survival], values: Values) -> dict[str, Fate]:
    """Fate of each result, by id.

    Parameters
    ----------
    path : str or Path
        Where the list came from, for messages.
    listed : sequence of Survival
    values : Values
        Numbers with their intervals, and printed values.

    Raises
    ------
    InputError
        Naming the entry: an unknown key or claim, or a condition that is no truth value.
    """
    fates = {}
    for survival in listed:
        for name in ("was", "now"):
            for function, key in printed_values(path, f"{survival.id}.{name}", getattr(survival, name)):
                if function == "printed":
                    values.printed(key, 0, f"{path}, {survival.id}.{name}")
                else:
                    values.num(key, f"{path}, {survival.id}.{name}")
        fates[survival.id] = Fate.GONE
        for condition, fate in ((survival.survives, Fate.SURVIVES), (survival.weaker, Fate.WEAKER)):
            if not condition:
                continue
            holds = evaluate(condition, values, f"{path}, {survival.id}")
            if not isinstance(holds, bool):
                raise InputError(path, survival.id, f"{condition!r} is {holds}", "true or false")
            if holds:
                fates[survival.id] = fate
                break
    return fates

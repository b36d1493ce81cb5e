"""What a number rests on, and which numbers and claims print a value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kvtier.evidence.claims import NUMBER, uses
from kvtier.evidence.labels import SIMULATION_CAVEAT, Label, Status
from kvtier.evidence.provenance import command
from kvtier.files import sha256
from kvtier.queries.checkout import Checkout

VALUE = re.compile(rf"\s*[~≈+]?\s*({NUMBER.pattern}|[-−]?\.\d+)\s*(.*?)\s*")
NOT_A_RESULT = frozenset({Status.WITHDRAWN, Status.RETRACTED, Status.REVERSED})


def place(checkout: Checkout, rule: str) -> str:
    """``file:line`` of a rule; empty if no file of the workflow has it."""
    for path in [*sorted(Path(checkout.root, "workflow/rules").glob("*.smk")), Path(checkout.root, "Snakefile")]:
        if path.is_file():
            for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if text == f"rule {rule}:":
                    return f"{path.relative_to(checkout.root).as_posix()}:{line}"
    return ""


def _input(checkout: Checkout, path: str, recorded: str) -> dict[str, str]:
    """One input of a rule: the hash in the ledger, and whether the file still has it."""
    file = Path(checkout.root, path)
    now = "not here" if not file.is_file() else "as recorded" if sha256(file) == recorded else "changed since"
    return {"path": path, "sha256": recorded, "now": now}


def resting_on(checkout: Checkout, keys: Iterable[str]) -> list[str]:
    """Claims whose verdict rests on any of the numbers."""
    wanted = set(keys)
    return [name for name, claim in checkout.claims.by_name.items() if wanted.intersection(uses(claim))]


def of_number(checkout: Checkout, key: str) -> dict[str, Any]:
    """All there is to say about one number of the ledger."""
    record = checkout.numbers.by_name[key]
    published = checkout.published_numbers.get(key, {}).get("display") if checkout.numbers.of_build else None
    caveats = []
    if record["status"] in NOT_A_RESULT:
        caveats.append(f"This number is {record['status']}: kept to be seen, never a result.")
    if record["label"] == Label.SIMULATED:
        caveats.append(SIMULATION_CAVEAT)
    script = f"workflow/scripts/{record['rule']}.py"
    return {
        "key": key,
        **{field: record[field] for field in ("value", "display", "unit", "label", "status", "definition", "uncertainty")},
        "caveats": caveats,
        "claims": [
            {
                "id": name,
                "uses_it_for": uses(claim)[key],
                **{field: claim[field] for field in ("printed", "unit", "verdict", "says", "reason")},
            }
            for name, claim in ((name, checkout.claims.by_name[name]) for name in resting_on(checkout, [key]))
        ],
        "rule": record["rule"],
        "rule_at": place(checkout, record["rule"]),
        "script": script if Path(checkout.root, script).is_file() else "",
        "params": record["params"],
        "inputs": [_input(checkout, path, recorded) for path, recorded in record["inputs"].items()],
        "command": command(record["rule"]),
        "published": published,
        "source": checkout.numbers.said,
    }


@dataclass(frozen=True)
class Found:
    """What a word from a reader may mean.

    Parameters
    ----------
    keys : list of str
        Numbers of the ledger.
    claims : list of str
        Claims that print the value, or the one that has this name.
    how : str
        How they were found, as words for a heading.
    nearest : list of str
        If nothing was found: keys and claims that look alike.
    """

    keys: list[str]
    claims: list[str]
    how: str
    nearest: list[str]


def _digits(text: str) -> str:
    return text.replace(",", "").replace("−", "-").lstrip("+")


def _unit(text: str) -> str:
    """A unit as compared: case and spaces do not count, and a micro is a micro."""
    return text.casefold().replace("μ", "µ").replace("us", "µs").replace(" ", "")


def printing(value: str, unit: str, numbers: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], bool]:
    """Keys of the numbers that print a value, else of those that round to it; and whether they print it.

    Parameters
    ----------
    value : str
        As a document has it, with or without commas.
    unit : str
        Empty for any.
    numbers : mapping
        The ledger.
    """
    wanted = _digits(value)
    of_unit = [key for key, record in numbers.items() if not unit or _unit(record["unit"]) == _unit(unit)]
    exact = [key for key in of_unit if _digits(numbers[key]["display"]) == wanted]
    if exact:
        return exact, True
    printed = Decimal(wanted)
    step = Decimal(1).scaleb(min(0, int(printed.as_tuple().exponent)))
    if step < Decimal("1e-17"):
        # No number is held to that many digits.
        return [], False
    rounded = []
    for key in of_unit:
        full = Decimal(repr(numbers[key]["value"]))
        # A value of 30 digits cannot be held at that precision; nor can it be what was asked for.
        if abs(full) < Decimal(10) ** 20 and any(full.quantize(step, how) == printed for how in (ROUND_HALF_EVEN, ROUND_HALF_UP)):
            rounded.append(key)
    return rounded, False


def find(checkout: Checkout, word: str) -> Found:
    """Numbers and claims that a key, a pattern, the beginning of a key, a claim's name or a printed value stands for."""
    numbers, claims = checkout.numbers.by_name, checkout.claims.by_name
    word = word.strip()
    if word in numbers:
        return Found([word], [], "key", [])
    if word in claims:
        return Found([key for key in claims[word]["keys"] if key in numbers], [word], "claim", [])
    if match := VALUE.fullmatch(word):
        value, unit = match[1], match[2]
        keys, printed = printing(value, unit, numbers)
        claimed = [
            name
            for name, claim in claims.items()
            if _digits(value) in map(_digits, NUMBER.findall(claim["printed"])) and (not unit or _unit(claim["unit"]) == _unit(unit))
        ]
        how = "printed by" if printed else "printed by no number of the ledger; rounded to its precision, this is"
        if keys or claimed:
            return Found(keys, claimed, how, [])
        near = _near_values(float(_digits(value)), numbers)
        return Found([], [], "", near)
    if any(mark in word for mark in "*?["):
        found = [key for key in numbers if fnmatchcase(key, word)]
    else:
        beginning = word.rstrip(".") + "."
        found = [key for key in numbers if key.startswith(beginning)]
    if found:
        return Found(found, [], "keys like", [])
    return Found([], [], "", nearest(word, [*numbers, *claims]))


def _near_values(value: float, numbers: Mapping[str, Mapping[str, Any]], count: int = 3) -> list[str]:
    """Numbers whose values come nearest, with what they print."""
    near = sorted(numbers, key=lambda key: abs(numbers[key]["value"] - value))[:count]
    return [f"{key} ({numbers[key]['display']} {numbers[key]['unit']}".rstrip() + ")" for key in near]


def nearest(word: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Names that look like a word; those that hold it as a part come first."""
    names = list(names)
    holding = sorted((name for name in names if len(word) > 2 and word in name), key=len)
    return list(
        dict.fromkeys([*difflib.get_close_matches(word, names, count, 0.75), *holding, *difflib.get_close_matches(word, names, count)])
    )[:count]

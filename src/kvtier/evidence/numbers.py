"""Numbers with their papers: a stage writes a fragment, the ledger is the union of the fragments."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence import provenance
from kvtier.evidence.labels import Label, Status, weakest
from kvtier.files import read_json, write_atomically

KEY = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")


SOURCES = {
    r"data/measured/": Label.MEASURED,
    r"data/bench/": Label.MEASURED,
    r"data/traces/": Label.SIMULATED,
    r"results(/quick)?/simulate/": Label.SIMULATED,
    r"data/inputs/": Label.ANALYTICAL,
}
"""What a rule reads, by path, and the strongest class that a number made from it may carry. A rule that reads no data simulates."""


def strongest_allowed(inputs: Iterable[str]) -> Label:
    """Strongest class of a number made from these files: that of the weakest of them.

    Raises
    ------
    InputError
        If a file is of no known kind.
    """
    classes = []
    for path in inputs:
        known = [label for pattern, label in SOURCES.items() if re.match(pattern, path)]
        if not known:
            raise InputError(path, "evidence class", "a file of no known kind", f"one under {', '.join(SOURCES)}")
        classes += known
    return weakest(classes) if classes else Label.SIMULATED


@dataclass(frozen=True)
class Number:
    """One value and what it means.

    Parameters
    ----------
    key : str
        Dotted, stable name, such as ``sim.rev2.e1.32.ema015.hit``.
    value : float or int
        Full precision, in `unit`.
    unit : str
        Unit as printed after the value; empty for a pure count or ratio.
    digits : int
        Decimals of the display, rounded here and nowhere else.
    label : Label
        Evidence class.
    definition : str
        Numerator, denominator, what is counted.
    uncertainty : dict, optional
        Such as ``{"standard_error": 1.2}`` in the unit of the value, or that of a :class:`~kvtier.evidence.statistics.Interval`:
        ``{"interval_low": 43.92, "interval_high": 45.18, "interval_level": 0.95}``.
    status : Status
        Whether it stands, rests on an assumption, is provisional, or is withdrawn and kept to be seen.
    """

    key: str
    value: float | int
    unit: str
    digits: int
    label: Label
    definition: str
    uncertainty: Mapping[str, float] = field(default_factory=dict)
    status: Status = Status.STANDS

    def __post_init__(self) -> None:
        if not KEY.fullmatch(self.key):
            raise InputError("number", "key", self.key, "dotted lower-case words")
        if not math.isfinite(self.value):
            raise InputError("number", self.key, self.value, "a finite value")

    @property
    def display(self) -> str:
        """The value as every document prints it, without the unit."""
        return f"{self.value:,.{self.digits}f}"


def write(path: str | Path, numbers: Iterable[Number], job: Any) -> None:
    """Write one rule's numbers with the rule, its parameters and the sha256 of its data inputs.

    Parameters
    ----------
    path : str or Path
        JSON file to write; written whole or not at all.
    numbers : iterable of Number
        In the order in which a reader should meet them.
    job : snakemake script object
        Gives ``rule``, ``params`` and ``input``.

    Raises
    ------
    InputError
        If two numbers share a key, or one claims a stronger class than what the rule read allows, or a simulated one claims to stand.
    """
    papers = provenance.of_job(job)
    allowed = strongest_allowed(papers["inputs"])
    fragment: dict[str, Any] = {}
    for number in numbers:
        if number.key in fragment:
            raise InputError(path, number.key, "the key twice", "one number a key")
        if number.label is Label.SIMULATED and number.status is Status.STANDS:
            raise InputError(path, number.key, "a simulated number that stands", "one that is provisional or weaker")
        if number.label.rank < allowed.rank:
            raise InputError(path, number.key, f"label {number.label}", f"{allowed} or weaker: what rule {job.rule} read allows no more")
        fragment[number.key] = {**asdict(number), "display": number.display, **papers}
        del fragment[number.key]["digits"]
    write_atomically(path, json.dumps(fragment, indent=1, ensure_ascii=False) + "\n")


def collect(fragments: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
    """Union of fragments, sorted by key.

    Raises
    ------
    InputError
        If a fragment is not JSON or two rules make the same key.
    """
    ledger: dict[str, dict[str, Any]] = {}
    for path in fragments:
        fragment = read_json(path)
        if not isinstance(fragment, dict):
            raise InputError(path, "file", f"a {type(fragment).__name__}", "numbers by key")
        for key, record in fragment.items():
            if key in ledger:
                raise InputError(path, key, f"a key that rule {ledger[key]['rule']} also makes", "one rule a number")
            ledger[key] = record
    return dict(sorted(ledger.items()))

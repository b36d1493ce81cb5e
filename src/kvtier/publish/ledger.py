"""The ledger as figures and documents read it: numbers to quote, none to invent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.files import read_json
from kvtier.publish import series

MINUS = "−"
FIELDS = ("value", "display", "unit", "label", "status", "definition", "rule", "params", "uncertainty")


def _with_minus(display: str) -> str:
    """A display with a real minus; what rounds to zero has none."""
    return display.replace("-", MINUS, 1) if display.strip("-0.") else display.removeprefix("-")


@dataclass(frozen=True)
class Quote:
    """One number of the ledger, as it may be printed.

    Parameters
    ----------
    key : str
        Dotted name in the ledger.
    value : float
        Full precision, in `unit`; places a mark, is never printed.
    display : str
        The value as rounded by the stage that made it.
    unit : str
        Unit; empty for a pure count or ratio.
    label : Label
        Evidence class.
    status : Status
        Whether the number stands.
    definition : str
        Numerator, denominator, what is counted.
    rule : str
        Rule that made the number.
    params : dict
        Settings of that rule.
    uncertainty : dict of str to float
        ``interval_low``, ``interval_high`` and ``interval_level``; or ``standard_error``; or ``lowest_seed`` and ``highest_seed``; empty
        where unknown.
    """

    key: str
    value: float
    display: str
    unit: str
    label: Label
    status: Status
    definition: str
    rule: str
    params: dict[str, Any]
    uncertainty: dict[str, float]

    @property
    def bare(self) -> str:
        """Display without unit, with a real minus."""
        return _with_minus(self.display)

    @property
    def text(self) -> str:
        """Display and unit."""
        return f"{self.bare} {self.unit}".rstrip()

    @property
    def signed(self) -> str:
        """Display and unit, with the sign written also where it is a plus; zero has none."""
        return f"+{self.text}" if self.display.strip("-0.") and not self.display.startswith("-") else self.text

    def rounded(self, value: float) -> str:
        """Another value in the same unit, with the decimals of the display."""
        _, _, decimals = self.display.partition(".")
        return _with_minus(f"{value:,.{len(decimals)}f}")

    @property
    def interval(self) -> str | None:
        """``[low, high]``, ``± standard error`` or ``lowest to highest`` seed, with the unit; None where the ledger has none of them."""
        if "interval_low" in self.uncertainty:
            low, high = (self.rounded(self.uncertainty[end]) for end in ("interval_low", "interval_high"))
            return f"[{low}, {high}] {self.unit}".rstrip()
        if "standard_error" in self.uncertainty:
            return f"± {self.rounded(self.uncertainty['standard_error'])} {self.unit}".rstrip()
        if "lowest_seed" in self.uncertainty:
            ends = (self.rounded(self.uncertainty[end]) for end in ("lowest_seed", "highest_seed"))
            return f"{' to '.join(ends)} {self.unit}".rstrip()
        return None

    @property
    def plus_minus(self) -> str:
        """Display and interval, the unit once; display and unit where the ledger has no interval."""
        return f"{self.bare} {self.interval}" if self.interval else self.text


class Ledger:
    """Numbers by key.

    Parameters
    ----------
    source : str or Path
        Where the records came from, for messages.
    records : dict
        Key to record, as ``numbers.json`` holds them.

    Raises
    ------
    InputError
        If a record lacks a field or carries a label that is no evidence class.
    """

    def __init__(self, source: str | Path, records: dict[str, dict[str, Any]]) -> None:
        self.source = str(source)
        self._quotes = {key: self._quote(key, record) for key, record in records.items()}

    @classmethod
    def read(cls, path: str | Path) -> Ledger:
        """Read ``numbers.json``."""
        return cls(path, read_json(path))

    def _quote(self, key: str, record: dict[str, Any]) -> Quote:
        for field in FIELDS:
            if field not in record:
                raise InputError(self.source, key, "a record without it", f"the field {field}")
        known = {}
        for field, words in (("label", Label), ("status", Status)):
            try:
                known[field] = words(record[field])
            except ValueError:
                raise InputError(self.source, f"{key}: {field}", record[field], f"one of {', '.join(words)}") from None
        return Quote(key, **{field: record[field] for field in FIELDS} | known)

    def __getitem__(self, key: str) -> Quote:
        if key not in self._quotes:
            raise InputError(self.source, key, "no such key", "a key of the ledger")
        return self._quotes[key]

    def __contains__(self, key: object) -> bool:
        return key in self._quotes

    def __iter__(self) -> Iterator[str]:
        return iter(self._quotes)

    def __len__(self) -> int:
        return len(self._quotes)

    def drawn(self, key: str, value: float) -> Quote:
        """The number of a value that a table gives for drawing.

        Raises
        ------
        InputError
            If table and ledger differ: one of them is of another build.
        """
        quote = self[key]
        if not math.isclose(quote.value, value, rel_tol=1e-9, abs_tol=1e-9):
            raise InputError(self.source, key, quote.value, f"{value}, as the table has it")
        return quote

    def matches(self, pattern: str) -> list[dict[str, str]]:
        """What the ``<names>`` of a key pattern stand for, one dictionary a key; each name spans letters, digits and underscores."""
        expression = "".join(
            f"(?P<{part[1:-1]}>[a-z0-9_]+)" if part.startswith("<") else re.escape(part) for part in re.split(r"(<\w+>)", pattern)
        )
        return [match.groupdict() for match in (re.fullmatch(expression, key) for key in self._quotes) if match]

    def swept(self, pattern: str, name: str) -> list[str]:
        """Values that a ``<name>`` of a key pattern takes, in reading order.

        Raises
        ------
        InputError
            If no key matches.
        """
        found = sorted({match[name] for match in self.matches(pattern)}, key=series.order)
        if not found:
            raise InputError(self.source, pattern, "no key that matches", "one or more")
        return found

    def one_experiment(self, keys: Iterable[str]) -> None:
        """Refuse a table that sets rows of two experiments side by side: e1 and e2 differ in seeds and so in their LRU (SPEC §6).

        Raises
        ------
        InputError
            If it does.
        """
        experiments = {match[1] for match in (re.match(r"sim\.rev\d\.(e\d)\.", key) for key in keys) if match}
        if len(experiments) > 1:
            raise InputError(self.source, "table", f"rows of {' and '.join(sorted(experiments))}", "one experiment a table")


def labels(quotes: Iterable[Quote]) -> list[Label]:
    """Evidence classes among the quotes, strongest first."""
    return sorted({quote.label for quote in quotes}, key=lambda label: label.rank)

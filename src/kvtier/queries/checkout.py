"""The checkout a question is asked in, and its records: those of the last build if there is one, else the published copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import read_json

MARKS = ("Snakefile", "src/kvtier")
"""What the top folder of a checkout holds."""

NUMBER_FIELDS = ("value", "display", "unit", "label", "status", "definition", "uncertainty", "rule", "params", "inputs")
CLAIM_FIELDS = (
    "document",
    "section",
    "printed",
    "unit",
    "says",
    "label",
    "status",
    "verdict",
    "recomputed",
    "reason",
    "keys",
    "arithmetic",
    "challenge",
)
RULE_FIELDS = ("file", "script", "inputs", "outputs", "settings")


@dataclass(frozen=True)
class Records:
    """Records by name, and the file they came from.

    Parameters
    ----------
    path : str
        File, relative to the checkout.
    of_build : bool
        Whether the last build made it; else it is the published copy.
    by_name : mapping
        In the order of the file.
    """

    path: str
    of_build: bool
    by_name: Mapping[str, dict[str, Any]]

    @property
    def said(self) -> str:
        """The file, and which copy it is."""
        return f"{self.path} ({'last build' if self.of_build else 'published copy; nothing is built'})"


@dataclass(frozen=True)
class RuleMap:
    """What ``results/rules.json`` says: files by rule, and published files by what is built.

    Parameters
    ----------
    rules : mapping
        Rule to its file, script, inputs, outputs and the names of its settings, in the order of the workflow.
    published : mapping of str to str
        Built file to its tracked copy.
    stale : tuple of str
        Files of the workflow that are younger than the map.
    """

    rules: Mapping[str, dict[str, Any]]
    published: Mapping[str, str]
    stale: tuple[str, ...]


@dataclass(frozen=True)
class Checkout:
    """A folder of the project.

    Parameters
    ----------
    root : Path
        Its top.
    """

    root: Path

    @classmethod
    def around(cls, folder: str | Path) -> Checkout:
        """The checkout that a folder lies in.

        Raises
        ------
        InputError
            If it lies in none.
        """
        folder = Path(folder).resolve()
        for candidate in (folder, *folder.parents):
            if all(Path(candidate, mark).exists() for mark in MARKS):
                return cls(candidate)
        raise InputError(folder, "folder", "no checkout of kvtier", f"a folder of one: {' and '.join(MARKS)} at its top")

    def _records(self, name: str, fields: tuple[str, ...]) -> Records:
        built = Path(self.root, "results", name).is_file()
        path = f"{'results' if built else 'data'}/{name}"
        found = self._read(path)
        for key, record in found.items():
            lacking = fields if not isinstance(record, dict) else [field for field in fields if field not in record]
            if lacking:
                raise InputError(path, key, "a record without it", f"the field {lacking[0]}")
        return Records(path, built, found)

    def _read(self, path: str) -> dict[str, Any]:
        try:
            found = read_json(Path(self.root, path))
        except InputError as error:
            raise InputError(path, error.field, error.found, error.expected) from None
        if not isinstance(found, dict):
            raise InputError(path, "file", f"a {type(found).__name__}", "records by name")
        return found

    @cached_property
    def numbers(self) -> Records:
        """The ledger.

        Raises
        ------
        InputError
            If it is missing, broken, or has a record without one of its fields.
        """
        return self._records("numbers.json", NUMBER_FIELDS)

    @cached_property
    def claims(self) -> Records:
        """Verdicts on what v6.0 printed, by claim.

        Raises
        ------
        InputError
            As for the ledger.
        """
        return self._records("claims.json", CLAIM_FIELDS)

    @cached_property
    def published_numbers(self) -> Mapping[str, Any]:
        """The tracked ledger, to hold a built one against; empty if there is none."""
        path = "data/numbers.json"
        return self._read(path) if Path(self.root, path).is_file() else {}

    @cached_property
    def rules(self) -> RuleMap:
        """The map of rules.

        Raises
        ------
        InputError
            If no build has written it, or it is broken.
        """
        path = "results/rules.json"
        if not Path(self.root, path).is_file():
            raise InputError(path, "file", "nothing", f"the map of rules that `snakemake --cores all {path}` writes in seconds")
        found = self._read(path)
        for part in ("rules", "published"):
            if not isinstance(found.get(part), dict):
                raise InputError(path, part, "nothing of the kind", f"a map; delete the file and run `snakemake --cores all {path}`")
        for name, rule in found["rules"].items():
            for field in RULE_FIELDS:
                if field not in rule:
                    raise InputError(path, f"{name}.{field}", "nothing", "the field")
        made = Path(self.root, path).stat().st_mtime
        workflow = [Path(self.root, "Snakefile"), *sorted(Path(self.root, "workflow/rules").glob("*.smk"))]
        younger = [file.relative_to(self.root).as_posix() for file in workflow if file.is_file() and file.stat().st_mtime > made]
        return RuleMap(found["rules"], {built: copy for copy, built in found["published"].items()}, tuple(younger))

    def relative(self, path: str | Path, folder: str | Path) -> str:
        """A path as the rules write it, from the top of the checkout; `folder` is where a relative one starts.

        Raises
        ------
        InputError
            If it lies outside the checkout.
        """
        # Not resolve(): a link inside the checkout is named by its own place.
        for start in (Path(folder).resolve(), self.root):
            full = Path(start, path)
            if full.exists():
                break
        else:
            full = Path(Path(folder).resolve(), path)
        parts: list[str] = []
        for part in full.parts:
            if part == "..":
                parts.pop()
            else:
                parts.append(part)
        full = Path(*parts)
        if not full.is_relative_to(self.root):
            raise InputError(path, "path", "a place outside the checkout", f"a path under {self.root}")
        return full.relative_to(self.root).as_posix()

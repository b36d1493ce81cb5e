"""What the audits of the last build looked at and found."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kvtier.errors import InputError
from kvtier.files import read_json
from kvtier.queries.checkout import Checkout

FOLDER = "results/audit"
COLUMNS = ("audit", "subject", "checked", "failed", "must_hold", "note")


@dataclass(frozen=True)
class Outcome:
    """One audit on one subject, as its file has it."""

    file: str
    audit: str
    subject: str
    checked: int
    failed: int
    must_hold: bool
    note: str

    @property
    def broken(self) -> bool:
        """Whether it fails the build: it must hold and does not, or it looked at nothing."""
        return self.checked == 0 or (self.must_hold and self.failed > 0)

    @property
    def said(self) -> str:
        """The outcome in a word."""
        if self.checked == 0:
            return "nothing checked"
        if not self.failed:
            return "holds"
        return "FAILS" if self.must_hold else "known failure"


def _rows(root: Path, path: Path) -> Iterable[Outcome]:
    name = path.relative_to(root).as_posix()
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if missing := [column for column in COLUMNS if column not in (rows.fieldnames or ())]:
                raise InputError(name, f"column {missing[0]}", f"columns {', '.join(rows.fieldnames or ()) or 'none'}", "the column")
            for line, row in enumerate(rows, start=2):
                if row["must_hold"] not in ("true", "false"):
                    raise InputError(name, f"line {line}, must_hold", row["must_hold"], "true or false")
                try:
                    checked, failed = int(row["checked"]), int(row["failed"])
                except (TypeError, ValueError):
                    raise InputError(name, f"line {line}", f"{row['checked']} and {row['failed']}", "two counts") from None
                yield Outcome(name, row["audit"], row["subject"], checked, failed, row["must_hold"] == "true", row["note"] or "")
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(name, "file", str(error).splitlines()[0], "a CSV table of findings") from None


def _bounds(root: Path, path: Path) -> Iterable[Outcome]:
    name = path.relative_to(root).as_posix()
    content = read_json(path)
    try:
        for subject in content["subjects"]:
            value, bound, unit = subject["value"], subject["bound"], subject["unit"]
            note = f"{value:,.1f} {unit}, bound {bound:,.1f} {unit}"
            yield Outcome(name, content["audit"], subject["subject"], 1, int(value > bound), True, note)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(name, "subjects", f"a fault at {error}", "an audit with subjects, each with value, bound and unit") from None


def read(checkout: Checkout) -> list[Outcome]:
    """Outcomes of all audits of the last build, file by file.

    Raises
    ------
    InputError
        If no build has been made, or a file is not an audit's.
    """
    folder = Path(checkout.root, FOLDER)
    files = sorted(path for path in folder.glob("*") if path.suffix in (".csv", ".json"))
    if not files:
        raise InputError(FOLDER, "folder", "no audits", "those of a build; `kvtier audit --run` makes them, as does `make`")
    outcomes = [outcome for path in files for outcome in (_rows if path.suffix == ".csv" else _bounds)(checkout.root, path)]
    read_files = {outcome.file for outcome in outcomes}
    for path in files:
        if path.relative_to(checkout.root).as_posix() not in read_files:
            raise InputError(path.relative_to(checkout.root), "file", "no outcome", "at least one subject")
    return outcomes


def targets(checkout: Checkout) -> list[str]:
    """Files that the audit rules make."""
    return [built for rule in checkout.rules.rules.values() for built in rule["outputs"] if built.startswith(f"{FOLDER}/")]

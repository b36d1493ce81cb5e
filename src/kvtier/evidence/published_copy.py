"""The published copy: tracked files beside what this build made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtier.files import read_json, write_atomically

SHOWN = 10
"""Differing numbers that the report names."""

ONLY_BUILT, ONLY_PUBLISHED = "built, not published", "published, not built"


@dataclass(frozen=True)
class Published:
    """One file of the published copy.

    Parameters
    ----------
    path : str
        Tracked file.
    built : str
        Where the build makes it.
    rule : str
        The rule that makes it.
    """

    path: str
    built: str
    rule: str

    @property
    def status(self) -> str:
        """``identical``, ``differs`` or ``not published``, byte for byte."""
        if not Path(self.path).is_file():
            return "not published"
        return "identical" if Path(self.path).read_bytes() == Path(self.built).read_bytes() else "differs"


def differing_numbers(published: Mapping[str, Any], built: Mapping[str, Any]) -> list[str]:
    """Keys whose record is not the same in both ledgers, or is in one only; sorted."""
    return sorted(key for key in published.keys() | built.keys() if published.get(key) != built.get(key))


def compare(files: Sequence[Published], rules: Sequence[str], ledger: str) -> tuple[str, bool]:
    """Report on every published file.

    Parameters
    ----------
    files : sequence of Published
        In the order of the DAG.
    rules : sequence of str
        All rules, in the order of the DAG: it says which difference came first.
    ledger : str
        Path of the published numbers among `files`.

    Returns
    -------
    report : str
        A table, and where there is a difference the rule in which it first arises, with the numbers that moved.
    identical : bool

    Raises
    ------
    InputError
        If the published ledger differs and cannot be read.
    """
    status = {file.path: file.status for file in files}
    width = max(map(len, status))
    lines = [f"{file.path:<{width}}  {status[file.path]:<13}  {file.rule}" for file in files]
    different = [file for file in files if status[file.path] != "identical"]
    if not different:
        return "\n".join([*lines, f"{len(files)} published files, all identical to this build."]) + "\n", True

    origins = [file.rule for file in different]
    moved = []
    for file in different:
        if file.path == ledger and status[ledger] == "differs":
            published, built = read_json(file.path), read_json(file.built)
            for key in differing_numbers(published, built):
                record = built.get(key) or published[key]
                origins.append(record["rule"])
                moved.append((record["rule"], key, _moved(published.get(key), built.get(key))))
    order = {rule: position for position, rule in enumerate(rules)}
    first = min(origins, key=lambda rule: order.get(rule, len(order)))
    lines.append(f"{len(different)} of {len(files)} published files differ; the first difference arises in rule {first}.")
    # Moved values before records that differ in their words alone.
    moved.sort(key=lambda entry: (entry[2].split(":")[0] not in ("value", ONLY_BUILT, ONLY_PUBLISHED), order.get(entry[0], len(order))))
    lines += [f"  {rule}: {key}: {what}" for rule, key, what in moved[:SHOWN]]
    if len(moved) > SHOWN:
        lines.append(f"  and {len(moved) - SHOWN} more numbers")
    lines.append("If the change is meant, `snakemake publish` renews the published copy.")
    return "\n".join(lines) + "\n", False


def _moved(published: Mapping[str, Any] | None, built: Mapping[str, Any] | None) -> str:
    """What differs between two records of one key: the first differing field, the value before all others."""
    if published is None or built is None:
        return ONLY_BUILT if published is None else ONLY_PUBLISHED
    fields = ["value", *sorted(published.keys() | built.keys())]
    field = next(name for name in fields if published.get(name) != built.get(name))
    return f"{field}: published {published.get(field)!r}, built {built.get(field)!r}"


def publish(files: Sequence[Published]) -> list[str]:
    """Renew the published copy; return the paths that changed."""
    changed = [file.path for file in files if file.status != "identical"]
    for file in files:
        if file.path in changed:
            write_atomically(file.path, Path(file.built).read_bytes())
    return changed

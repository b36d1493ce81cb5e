"""The artifact as it is cited: title, authors, licence, keywords, from one file."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import read_yaml

ORCID = re.compile(r"https://orcid\.org/\d{4}-\d{4}-\d{4}-\d{3}[\dX]")


@dataclass(frozen=True)
class Author:
    """Who made the artifact.

    Parameters
    ----------
    name : str
        Of a person, or of a group.
    orcid : str
        Address, ``https://orcid.org/...``; empty where there is none.
    """

    name: str
    orcid: str = ""


@dataclass(frozen=True)
class Artifact:
    """What is cited.

    Parameters
    ----------
    title, abstract : str
    authors : tuple of Author
    license : str
        SPDX identifier.
    license_url : str
    date : str
        Day of the version, ISO 8601.
    keywords : tuple of str
    """

    title: str
    abstract: str
    authors: tuple[Author, ...]
    license: str
    license_url: str
    date: str
    keywords: tuple[str, ...]


TEXTS = ("title", "abstract", "license", "license_url")
LISTS = ("authors", "keywords")


def _author(path: str | Path, position: int, given: Any) -> Author:
    field = f"authors.{position}"
    if not isinstance(given, Mapping) or not given.get("name") or set(given) - {"name", "orcid"}:
        raise InputError(path, field, given, "a name, and an orcid if there is one")
    author = Author(str(given["name"]), str(given.get("orcid", "")))
    if author.orcid and not ORCID.fullmatch(author.orcid):
        raise InputError(path, f"{field}.orcid", author.orcid, "https://orcid.org/ and four groups of four digits")
    return author


def read(path: str | Path) -> Artifact:
    """Read ``artifact.yaml``.

    Raises
    ------
    InputError
        If a field is missing, empty, unknown or of another kind, an ORCID malformed, or the date no day.
    """
    given = read_yaml(path)
    if unknown := sorted(given.keys() - {*TEXTS, *LISTS, "date"}):
        raise InputError(path, unknown[0], "an unknown field", f"one of {', '.join([*TEXTS, *LISTS, 'date'])}")
    for field in TEXTS:
        if not isinstance(given.get(field), str) or not given[field].strip():
            raise InputError(path, field, given.get(field), "a text")
    for field in LISTS:
        if not isinstance(given.get(field), list) or not given[field]:
            raise InputError(path, field, given.get(field), "a list that is not empty")
    if not isinstance(given.get("date"), datetime.date):
        raise InputError(path, "date", given.get("date"), "a day, as in 2026-11-30")
    return Artifact(
        **{field: given[field].strip() for field in TEXTS},
        authors=tuple(_author(path, position, author) for position, author in enumerate(given["authors"])),
        date=given["date"].isoformat(),
        keywords=tuple(map(str, given["keywords"])),
    )

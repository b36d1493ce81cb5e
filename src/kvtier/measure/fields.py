"""A mapping read field by field, with errors that name file and field."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from kvtier.errors import InputError


class Fields:
    """A mapping read field by field.

    Parameters
    ----------
    path : path
        The file that it comes from, for errors.
    content : object
        What was parsed.
    prefix : str
        Names of the mappings around it, each with a dot.

    Raises
    ------
    InputError
        If it is no mapping.
    """

    def __init__(self, path: Path, content: Any, prefix: str = "") -> None:
        self.path, self.prefix = path, prefix
        if not isinstance(content, dict):
            raise InputError(path, prefix.rstrip(".") or "document", shown(content), "a mapping of fields")
        self.content = content

    def __getitem__(self, name: str) -> Any:
        if name not in self.content:
            raise InputError(self.path, self.prefix + name, "no such field", "the field to be present")
        return self.content[name]

    def __contains__(self, name: str) -> bool:
        return name in self.content

    def section(self, name: str) -> Fields:
        """A mapping inside this one."""
        return Fields(self.path, self[name], f"{self.prefix}{name}.")

    def text(self, name: str) -> str:
        """Text that is not empty."""
        value = self[name]
        if not isinstance(value, str) or not value:
            raise InputError(self.path, self.prefix + name, shown(value), "text")
        return value

    def count(self, name: str, least: int = 1) -> int:
        """A whole number of `least` or more."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(self.path, self.prefix + name, shown(value), f"a whole number of {least} or more")
        return value

    def positive(self, name: str) -> float:
        """A finite number above 0."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
            raise InputError(self.path, self.prefix + name, shown(value), "a finite number above 0")
        return float(value)


def shown(value: Any) -> str:
    """A value as an error prints it."""
    return repr(value) if value is None or isinstance(value, str) else str(value)

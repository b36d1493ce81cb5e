"""The one error that bad input raises: it says where, what was found and what was expected."""

from __future__ import annotations

from pathlib import Path


class InputError(ValueError):
    """A file or argument that cannot be used, told in one line.

    Parameters
    ----------
    source : str or Path
        The file, or the argument's owner, at fault.
    field : str
        The key, column or row at fault.
    found : object
        What was there.
    expected : str
        What would have been accepted.
    """

    def __init__(self, source: str | Path, field: str, found: object, expected: str) -> None:
        self.source, self.field, self.found, self.expected = str(source), field, found, expected
        super().__init__(f"{source}: {field}: found {found!s}, expected {expected}".replace("\n", " "))

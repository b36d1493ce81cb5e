"""SHA256SUMS: the digest of each published file, as ``sha256sum --check`` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kvtier.errors import InputError
from kvtier.files import sha256


def lines(files: Mapping[str, str | Path]) -> str:
    """One line a file, by path.

    Parameters
    ----------
    files : mapping of str to path
        Published path to where the file is now: a build's result, or the same path for a file that is kept.

    Returns
    -------
    str
        ``digest  path`` lines.

    Raises
    ------
    InputError
        If a path has a character that ``sha256sum`` escapes, or a file is missing.
    """
    found = []
    for path in sorted(files):
        if "\\" in path or "\n" in path:
            raise InputError("SHA256SUMS", "path", repr(path), "one without backslash and line end")
        if not Path(files[path]).is_file():
            raise InputError(files[path], "file", "nothing", "a file to sum")
        found.append(f"{sha256(files[path])}  {path}\n")
    return "".join(found)

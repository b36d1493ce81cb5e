"""Files written whole or not at all, and read with errors that name them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from kvtier.errors import InputError


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write to a temporary name beside `path`, then rename; text is UTF-8 with ``\\n`` line ends."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: str | Path) -> Any:
    """Parse a JSON file.

    Raises
    ------
    InputError
        If the file is missing or not JSON (truncated, say), with the line at fault.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a readable JSON file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", 1)
        raise InputError(path, f"line {line}", getattr(error, "msg", "bytes that are not UTF-8"), "complete JSON") from None


def sha256(path: str | Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()

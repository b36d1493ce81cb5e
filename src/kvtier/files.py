"""Files written whole or not at all, and read with errors that name them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

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


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML in which a key written twice is an error and not the last one's victory."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, f"a key that is a {type(key).__name__}", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Parse a YAML mapping in which no key is given twice.

    Raises
    ------
    InputError
        If the file is missing, not YAML or not a mapping, with the line at fault.
    """
    try:
        document = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a readable YAML file") from None
    except UnicodeDecodeError:
        raise InputError(path, "file", "bytes that are not UTF-8", "a YAML file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "file"
        raise InputError(path, where, getattr(error, "problem", None) or "text that does not parse", "YAML with unique keys") from None
    if not isinstance(document, dict):
        raise InputError(path, "file", f"a {type(document).__name__}", "a mapping of named fields")
    return document


def sha256(path: str | Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()

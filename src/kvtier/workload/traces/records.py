"""Text files of one record a line, plain or gzip, read without ever holding more than one line, with errors that name file and line."""

from __future__ import annotations

import gzip
import json
import math
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kvtier.errors import InputError

LIMIT_BYTES = 16 * 2**20
"""Longest line that is read; a request of a million tokens in blocks of 16 takes about a tenth of it."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some editors put before the first line of a UTF-8 file."""

GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of such files, by which they are known; names do not matter."""


def lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and content of each line, without its end and, in the first, without a byte-order mark.

    Parameters
    ----------
    path : str or Path
        Plain text or gzip.

    Raises
    ------
    InputError
        If the file cannot be opened, is no regular file, is compressed otherwise, ends inside its compressed stream or is damaged there,
        or has a line of more than :data:`LIMIT_BYTES`, which is refused without being read to its end.
    """
    number = 0
    with _opened(path, lambda: f"after line {number}") as text:
        while line := text.readline(LIMIT_BYTES + 1):
            number += 1
            if len(line) > LIMIT_BYTES:
                raise InputError(path, f"line {number}", f"more than {LIMIT_BYTES} bytes", "shorter lines")
            yield number, (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).rstrip(b"\r\n")


def chunks(path: str | Path, most_bytes: int) -> Iterator[bytes]:
    """Content of a file, plain text or gzip, in pieces of at most so many bytes.

    Raises
    ------
    InputError
        As :func:`lines`, but for long lines.
    """
    done = 0
    with _opened(path, lambda: f"after {done} bytes") as content:
        while chunk := content.read(most_bytes):
            done += len(chunk)
            yield chunk


@contextmanager
def _opened(path: str | Path, where: Callable[[], str]) -> Iterator[IO[bytes]]:
    """A file without its compression, whose faults are told in one line."""
    require_regular(path)
    try:
        with Path(path).open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic == ZSTANDARD:
                raise InputError(path, "file", "zstandard", "plain text or gzip: decompress it first")
            with gzip.open(file) if magic[:2] == GZIP else file as content:
                yield content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(path, where(), f"a truncated or damaged gzip stream ({error})", "a complete file") from None
    except OSError as error:
        raise InputError(path, "file", error.strerror or error, "a readable trace") from None


def require_regular(path: str | Path) -> None:
    """Pass if a trace can be read more than once: its format is recognised, and its sha256 taken, in passes of their own.

    Raises
    ------
    InputError
        If there is nothing of that name, or a pipe, device or folder.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a readable trace") from None
    if not stat.S_ISREG(mode):
        found = "a directory" if stat.S_ISDIR(mode) else "a pipe or device, which cannot be read twice"
        raise InputError(path, "file", found, "a readable trace in a regular file")


def objects(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and JSON object of each line.

    Raises
    ------
    InputError
        As :func:`lines`; and where a line is no JSON object in UTF-8, has a key twice, or a number that is not finite.
    """
    for number, line in lines(path):
        try:
            value = _DECODER.decode(line.decode())
        except (ValueError, RecursionError) as error:
            raise InputError(path, f"line {number}", f"{brief(line)} ({brief(error, 60)})", "one JSON object") from None
        if type(value) is not dict:
            raise InputError(path, f"line {number}", brief(line), "one JSON object")
        yield number, value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant}, which is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


def brief(value: object, most: int = 40) -> str:
    """A value in few enough characters for a message; nothing is said in words."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    # What a terminal would obey is shown, not sent.
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[: most + 1])
    return (text or "nothing") if len(text) <= most else text[:most] + "..."


def whole(path: str | Path, where: str, field: str, value: object) -> int:
    """The value, if it is an integer of 64 bits.

    Raises
    ------
    InputError
        If it is anything else, true and 3.0 among them.
    """
    if type(value) is not int:
        raise InputError(path, f"{where}, {field}", brief(repr(value)), "an integer")
    if not -(2**63) <= value < 2**63:
        raise InputError(path, f"{where}, {field}", "one of more than 64 bits", "an integer of at most 64 bits")
    return value


def microseconds(path: str | Path, where: str, field: str, value: object, per_unit: int) -> int:
    """A time in µs, to the nearest, from a number of units of `per_unit` µs.

    Raises
    ------
    InputError
        If it is no number, or not finite.
    """
    # Not isfinite: an integer may be larger than any float.
    if type(value) not in (int, float) or not -math.inf < value < math.inf:
        raise InputError(path, f"{where}, {field}", brief(repr(value)), "a time")
    if abs(value) >= 2**63:
        raise InputError(path, f"{where}, {field}", "one of 2^63 or more", "a time")
    return round(value * per_unit)


def keys(path: str | Path, where: str, record: dict[str, Any], required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    """Pass if a record has all required keys and no unknown one.

    Raises
    ------
    InputError
        Naming the first key at fault.
    """
    for key in required:
        if key not in record:
            raise InputError(path, f"{where}, {key}", "nothing", "the key to be given")
    for key in record:
        if key not in required and key not in optional:
            raise InputError(path, f"{where}, {brief(key)}", "an unknown key", f"only {', '.join(required + optional)}")


def identities(path: str | Path, where: str, field: str, value: object) -> list[int]:
    """The value, if it is a list of integers.

    Raises
    ------
    InputError
        Naming the first item that is none.
    """
    if type(value) is not list:
        raise InputError(path, f"{where}, {field}", brief(repr(value)), "a list of block identities")
    if not set(map(type, value)) <= {int}:
        odd = next(item for item in value if type(item) is not int)
        raise InputError(path, f"{where}, {field}", brief(repr(odd)), "integers")
    return value

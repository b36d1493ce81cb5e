"""Public traces, brought into the build: from a folder, or from their public address where that is allowed.

Nothing is taken on trust: a file counts only if the sha256 of its content, without compression, is the one in ``data/inputs/traces.yaml``,
which also has licence and citation. The network is used only by :func:`download`. What is being written has the suffix ``.part`` until
it is whole and checked; a download that was cut goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from http.client import HTTPException
from pathlib import Path

from kvtier.errors import InputError
from kvtier.files import read_yaml
from kvtier.workload.traces.records import chunks

VARIABLE = "KVTIER_TRACES"
"""Environment variable that names the folder; it goes before the configuration."""

ATTEMPTS = 5
"""Attempts in a row that bring nothing new before a download is given up."""

CHUNK_BYTES = 2**18
"""Most that is read at once."""


@dataclass(frozen=True)
class Source:
    """A public trace.

    Parameters
    ----------
    name : str
    file : str
        Its name in a folder, with or without a further ``.gz``.
    format : str
        As :data:`kvtier.workload.traces.FORMATS` has it.
    sha256 : str
        Of the content without compression.
    bytes : int
        Its size.
    url : str or None
        Where it may be downloaded from; None where there is no such place.
    origin, licence, citation, changes : str
        Whose it is, and what was done to it before it came here.
    """

    name: str
    file: str
    format: str
    sha256: str
    bytes: int
    url: str | None
    origin: str
    licence: str
    citation: str
    changes: str


def read_sources(path: str | Path) -> dict[str, Source]:
    """Sources by name.

    Parameters
    ----------
    path : str or Path
        YAML, a mapping for each source.

    Raises
    ------
    InputError
        If a source lacks a field, has an unknown one, or one of the wrong type.
    """
    sources = {}
    for name, given in read_yaml(path).items():
        expected = {field.name for field in fields(Source)} - {"name"}
        if not isinstance(given, Mapping) or set(given) != expected:
            found = ", ".join(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
            raise InputError(path, name, found, f"exactly the fields {', '.join(sorted(expected))}")
        for field, value in given.items():
            allowed = int if field == "bytes" else (str, type(None)) if field == "url" else str
            if not isinstance(value, allowed):
                raise InputError(path, f"{name}.{field}", repr(value), "a number" if field == "bytes" else "text")
        sources[name] = Source(name=name, **given)
    return sources


def folder(configured: str | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Folder that may have the traces: the one the environment names, else the configured one, else none.

    Raises
    ------
    InputError
        If one is named that is no folder.
    """
    for origin, name in ((VARIABLE, environment.get(VARIABLE)), ("traces.folder", configured)):
        if name:
            if not Path(name).is_dir():
                raise InputError(origin, "folder", name, "an existing folder with the public traces")
            return Path(name)
    return None


def find(source: Source, place: Path | None) -> Path | None:
    """File of a source in a folder, plain or gzip; None if it has neither."""
    if place is None:
        return None
    candidates = (place / source.file, place / f"{source.file}.gz")
    return next((path for path in candidates if path.is_file()), None)


def available(sources: Iterable[Source], place: Path | None, may_download: bool) -> tuple[list[Source], str]:
    """Sources that can be had, and one line on the others; the line is empty if there are none.

    Parameters
    ----------
    sources : iterable of Source
    place : Path or None
    may_download : bool
    """
    have, lack = [], []
    for source in sources:
        (have if find(source, place) or (may_download and source.url) else lack).append(source)
    if not lack:
        return have, ""
    names = ", ".join(source.name for source in lack)
    return have, f"traces skipped: {names} (set {VARIABLE} to a folder that has them, or traces.folder or traces.download; see data/inputs)"


def take(source: Source, found: str | Path, target: str | Path) -> None:
    """Copy a source from a folder, without compression, if its content is the right one.

    Parameters
    ----------
    source : Source
    found : str or Path
        Plain or gzip.
    target : str or Path

    Raises
    ------
    InputError
        If it cannot be read, or is another content; `target` is then as before.
    """
    part = _part(target)
    digest, size = hashlib.sha256(), 0
    try:
        with part.open("wb") as file:
            for chunk in chunks(found, CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                if size > source.bytes:
                    raise InputError(found, "content", f"more than {source.bytes} bytes", f"trace {source.name} of that size")
                file.write(chunk)
        if digest.hexdigest() != source.sha256:
            raise InputError(found, "sha256 of the content", digest.hexdigest(), f"{source.sha256}, trace {source.name}")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def download(source: Source, target: str | Path, *, pause_s: float = 1.0, timeout_s: float = 60.0) -> None:
    """Fetch a source from its address; what an earlier try has left is gone on with, where the server can.

    Parameters
    ----------
    source : Source
    target : str or Path
    pause_s : float
        Wait after the first attempt that brings nothing [s]; twice as long after each further one.
    timeout_s : float
        Longest silence of the server [s].

    Raises
    ------
    InputError
        If there is no address, the server says no or falls silent for :data:`ATTEMPTS` attempts in a row, or the content is another one;
        then nothing is left of it.
    """
    if source.url is None or not source.url.startswith(("https://", "http://")):
        raise InputError(source.name, "url", source.url or "none", "an http address; this trace comes from a folder only")
    part, failures, most, reason, resumed = _part(target), 0, 0, "", False
    while True:
        have = part.stat().st_size if part.exists() else 0
        resumed = resumed or have > 0
        if have < source.bytes:
            try:
                reason = _fetch(source, part, have, timeout_s)
            except (OSError, HTTPException) as error:
                reason = str(getattr(error, "reason", "")) or str(error) or type(error).__name__
                if isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in (408, 416, 429):
                    raise InputError(source.url, "answer", f"{error.code} {error.reason}", f"trace {source.name}") from None
                if isinstance(error, urllib.error.HTTPError) and error.code == 416:
                    part.unlink(missing_ok=True)
        now = part.stat().st_size if part.exists() else 0
        if now < source.bytes:
            # A server that starts over and over brings nothing new until it comes further than before.
            failures, most = (0, now) if now > max(most, have) else (failures + 1, max(most, have))
            if failures == ATTEMPTS:
                raise InputError(source.url, "download", f"{now} of {source.bytes} bytes ({reason})", f"{ATTEMPTS} attempts to bring more")
            if failures:
                time.sleep(pause_s * 2 ** (failures - 1))
            continue
        digest = hashlib.sha256(part.read_bytes()).hexdigest() if now == source.bytes else f"more than {source.bytes} bytes"
        if digest == source.sha256:
            part.replace(target)
            return
        part.unlink()
        # What an earlier try left may have been of another content: once more from the start.
        if not resumed:
            raise InputError(source.url, "sha256 of the content", digest, f"{source.sha256}, trace {source.name}")
        resumed, failures, most = False, 0, 0


def _fetch(source: Source, part: Path, have: int, timeout_s: float) -> str:
    """One request: what it brings is added to `part`; what to say if that was not all."""
    headers = {"Range": f"bytes={have}-"} if have else {}
    with urllib.request.urlopen(urllib.request.Request(source.url, headers=headers), timeout=timeout_s) as answer:
        goes_on = answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")
        size = have if goes_on else 0
        with part.open("ab" if goes_on else "wb") as file:
            while size <= source.bytes and (chunk := answer.read(CHUNK_BYTES)):
                size += file.write(chunk)
    return "the connection was cut"


def _part(target: str | Path) -> Path:
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + ".part")

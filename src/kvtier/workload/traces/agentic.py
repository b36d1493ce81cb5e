"""Coding-agent sessions: one JSON object a session, in a compact form.

``{"id": "s1", "block_size": 64, "requests": [[t, input, output, api_time, think_time, [[start, length], ...]], ...]}``: t, api_time and
think_time in seconds, t from the session's start, the last two null where unknown; lengths in tokens; and the request's blocks as runs of
consecutive identities, which mean something within the session only: no block is shared between sessions. Whole blocks alone have an
identity: there are ⌊input / block_size⌋. Other keys of a session (``tool_tokens``, ``system_tokens``) are ignored.

Requests stand session by session, each from its own time 0: :func:`kvtier.workload.arrivals.compose` makes one stream of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.workload.paths import MOST, NONE, Builder, Trace
from kvtier.workload.traces.records import brief, keys, microseconds, objects, whole

FIELDS = ("t", "input", "output", "api_time", "think_time", "runs of blocks")
"""Items of a request, in order."""


def load(path: str | Path) -> Trace:
    """Read sessions.

    Parameters
    ----------
    path : str or Path
        JSONL, plain or gzip.

    Raises
    ------
    InputError
        Naming file, line, request and field; also where two sessions have one id, or sessions differ in block size.
    """
    builder, seen, offset = None, set(), 0
    for number, record in objects(path):
        where = f"line {number}"
        keys(path, where, record, ("id", "block_size", "requests"), ("tool_tokens", "system_tokens"))
        name, block_tokens, requests = record["id"], whole(path, where, "block_size", record["block_size"]), record["requests"]
        if type(name) is not str or name in seen:
            raise InputError(path, f"{where}, id", brief(repr(name)), "a string that no session before has")
        if type(requests) is not list:
            raise InputError(path, f"{where}, requests", brief(repr(requests)), "a list of requests")
        builder = builder or Builder(path, max(block_tokens, 1), by_session=True)
        if block_tokens != builder.block_tokens:
            raise InputError(path, f"{where}, block_size", block_tokens, f"{builder.block_tokens} as in line 1, at least 1")
        after = offset
        for index, request in enumerate(requests, 1):
            after = max(after, _add(builder, f"{where}, request {index}", request, len(seen), offset))
        seen.add(name)
        offset = after
    return (builder or Builder(path, 1)).trace()


def _add(builder: Builder, where: str, request: Any, session: int, offset: int) -> int:
    """Take one request; one past its largest identity."""
    path = builder.source
    if type(request) is not list or len(request) != len(FIELDS):
        raise InputError(path, where, brief(repr(request)), f"a list of {', '.join(FIELDS)}")
    *_, runs = request
    if type(runs) is not list or not all(type(run) is list and list(map(type, run)) == [int, int] for run in runs):
        raise InputError(path, f"{where}, blocks", brief(repr(runs)), "a list of [start, length]")
    if any(first < 0 for first, _ in runs):
        raise InputError(path, f"{where}, blocks", min(first for first, _ in runs), "identities from 0")
    time_us = microseconds(path, where, "t", request[0], 10**6)
    tokens, generated = whole(path, where, "input", request[1]), whole(path, where, "output", request[2])
    known = [
        NONE if value is None else microseconds(path, where, name, value, 10**6)
        for name, value in zip(FIELDS[3:5], request[3:5], strict=True)
    ]
    if any(not NONE <= value <= MOST or (value == NONE and given is not None) for value, given in zip(known, request[3:5], strict=True)):
        raise InputError(path, f"{where}, api_time, think_time", f"{request[3]}, {request[4]}", "times from 0, or null")
    builder.add(where, time_us, tokens, generated, [(offset + first, length) for first, length in runs], session, *known)
    return max((offset + first + length for first, length in runs), default=offset)

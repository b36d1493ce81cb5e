"""Azure LLM inference traces of 2023 (Patel et al., Splitwise, ISCA 2024): arrivals and lengths, without blocks.

CSV with the header ``TIMESTAMP,ContextTokens,GeneratedTokens`` and times like ``2023-11-16 18:17:03.9799600``, kept to the µs.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from kvtier.errors import InputError
from kvtier.workload.paths import Builder, Trace
from kvtier.workload.traces.records import brief, lines

HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens"
"""First line."""

_ROW = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:\+00:00)?,(\d{1,18}),(\d{1,18})", re.ASCII)


def load(path: str | Path) -> Trace:
    """Read a trace; its times are from the first arrival.

    Parameters
    ----------
    path : str or Path
        CSV, plain or gzip.

    Raises
    ------
    InputError
        Naming file, line and field.
    """
    builder, start_us = Builder(path, 0), None
    for number, line in lines(path):
        if number == 1:
            if line != HEADER:
                raise InputError(path, "line 1", brief(line), HEADER.decode())
            continue
        row = _ROW.fullmatch(line.decode(errors="replace"))
        if row is None:
            raise InputError(path, f"line {number}", brief(line), "a time, as 2023-11-16 18:17:03.9799600, and two numbers of tokens")
        second, fraction, context, generated = row.groups()
        try:
            moment = datetime.fromisoformat(second).replace(tzinfo=UTC)
        except ValueError as error:
            raise InputError(path, f"line {number}, TIMESTAMP", second, f"a time that exists ({error})") from None
        time_us = int(moment.timestamp()) * 10**6 + int((fraction or "0").ljust(6, "0")[:6])
        start_us = time_us if start_us is None else start_us
        builder.add(f"line {number}", time_us - start_us, int(context), int(generated))
    return builder.trace()

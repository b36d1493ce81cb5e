"""Traces of requests in files: public ones, and a format for one's own; each becomes a :class:`kvtier.workload.paths.Trace`.

All are read as a stream, one record at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kvtier.errors import InputError
from kvtier.workload.paths import Trace
from kvtier.workload.traces import agentic, azure, generic, mooncake
from kvtier.workload.traces.records import brief, lines, require_regular

FORMATS: dict[str, Callable[[str | Path], Trace]] = {
    "mooncake": mooncake.load,
    "agentic": agentic.load,
    "azure": azure.load,
    "generic": generic.load,
    "parquet": generic.load_parquet,
}
"""Loader of each format."""

_SIGNS = {
    "azure": (b"TIMESTAMP",),
    "generic": (b'"trace"',),
    "agentic": (b'"requests"',),
    "mooncake": (b'"hash_ids"', b'"timestamp"', b'"input_length"'),
}


def load(path: str | Path, form: str | None = None) -> Trace:
    """Read a trace.

    Parameters
    ----------
    path : str or Path
    form : {'mooncake', 'agentic', 'azure', 'generic', 'parquet'}, optional
        Recognised from the first line if it is not given.

    Raises
    ------
    InputError
        Naming the file, and the line or row that cannot be used; or if the format is unknown.
    """
    if form is not None and form not in FORMATS:
        raise InputError(path, "format", brief(form), f"one of {', '.join(FORMATS)}")
    return FORMATS[form or recognise(path)](path)


def recognise(path: str | Path) -> str:
    """Format of a file, from its first bytes.

    Raises
    ------
    InputError
        If it is none of :data:`FORMATS`.
    """
    require_regular(path)
    try:
        with Path(path).open("rb") as file:
            if file.read(4) == b"PAR1":
                return "parquet"
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a readable trace") from None
    _, first = next(lines(path), (1, b""))
    for form, signs in _SIGNS.items():
        if any(sign in first for sign in signs):
            return form
    raise InputError(path, "line 1", brief(first), f"the start of a trace: {', '.join(FORMATS)}")

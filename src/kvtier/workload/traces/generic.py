"""The project's own trace format, for what a service logs: JSONL, plain or gzip, or parquet.

JSONL. The first line is a header, ``{"trace": "kvtier", "version": 1, "block_tokens": 16}``. Each further line is a request:

| key | value |
|---|---|
| ``time_s`` | arrival [s], from 0, in order |
| ``input_tokens`` | prompt, at least 1 |
| ``output_tokens`` | generated, from 0 |
| ``blocks`` | identities of the prompt's blocks in order: integers from 0, two equal ones for equal tokens *up to the end of the block* |
| ``runs`` | the same as ``[[first, length], ...]`` of consecutive identities; in place of ``blocks`` |
| ``session`` | number of the session, from 0; optional |

There are at most ⌈input_tokens / block_tokens⌉ blocks; tokens behind the last are never found in a cache. With neither ``blocks`` nor
``runs`` a request has lengths only.

Parquet. One row a request, with columns of the same names (``blocks`` a list of integers, no ``runs``), and ``block_tokens``, the same
in all rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.workload.paths import NONE, Builder, Trace, runs_of
from kvtier.workload.traces.records import brief, identities, keys, microseconds, objects, require_regular, whole

HEADER = ("trace", "version", "block_tokens")
"""Keys of the first line."""

REQUIRED, OPTIONAL = ("time_s", "input_tokens", "output_tokens"), ("blocks", "runs", "session")
"""Keys of a request."""

BATCH_ROWS = 10_000
"""Rows of a parquet file that are Python objects at one time."""


def load(path: str | Path) -> Trace:
    """Read a JSONL trace.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        Naming file, line and field.
    """
    builder = None
    for number, record in objects(path):
        where = f"line {number}"
        if builder is None:
            keys(path, where, record, HEADER)
            if (record["trace"], record["version"]) != ("kvtier", 1):
                raise InputError(path, where, f"{brief(record['trace'])}, version {brief(record['version'])}", "trace kvtier, version 1")
            builder = Builder(path, _block_tokens(path, where, record["block_tokens"]))
            continue
        keys(path, where, record, REQUIRED, OPTIONAL)
        if "blocks" in record and "runs" in record:
            raise InputError(path, where, "blocks and runs", "one of them")
        runs = record.get("runs", [])
        if type(runs) is not list or not all(type(run) is list and list(map(type, run)) == [int, int] for run in runs):
            raise InputError(path, f"{where}, runs", brief(repr(runs)), "a list of [first, length]")
        _add(builder, where, record, runs or runs_of(identities(path, where, "blocks", record.get("blocks", []))))
    return (builder or Builder(path, 1)).trace()


def load_parquet(path: str | Path) -> Trace:
    """Read a parquet trace.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        Naming file, row (from 1) and column.
    """
    import polars as pl

    require_regular(path)
    builder, row = None, 0
    try:
        scan = pl.scan_parquet(path)
        columns = scan.collect_schema().names()
        keys(path, "columns", dict.fromkeys(columns), (*REQUIRED, "block_tokens"), ("blocks", "session"))
        for batch in scan.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            for part in batch.iter_slices(BATCH_ROWS):
                for record in part.iter_rows(named=True):
                    row += 1
                    where = f"row {row}"
                    block_tokens = _block_tokens(path, where, record["block_tokens"])
                    builder = builder or Builder(path, block_tokens)
                    if block_tokens != builder.block_tokens:
                        raise InputError(path, f"{where}, block_tokens", block_tokens, f"{builder.block_tokens} as in row 1")
                    _add(builder, where, record, runs_of(identities(path, where, "blocks", record.get("blocks", []))))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(path, f"after row {row}", brief(error, 80), "a parquet file") from None
    return (builder or Builder(path, 1)).trace()


def _block_tokens(path: str | Path, where: str, value: object) -> int:
    block_tokens = whole(path, where, "block_tokens", value)
    if block_tokens < 1:
        raise InputError(path, f"{where}, block_tokens", block_tokens, "at least 1")
    return block_tokens


def _add(builder: Builder, where: str, record: dict[str, Any], runs: list) -> None:
    path = builder.source
    time_us = microseconds(path, where, "time_s", record["time_s"], 10**6)
    tokens, generated = (whole(path, where, name, record[name]) for name in REQUIRED[1:])
    session = whole(path, where, "session", record["session"]) if "session" in record else NONE
    if session < 0 and "session" in record:
        raise InputError(path, f"{where}, session", session, "0 or more")
    builder.add(where, time_us, tokens, generated, runs, session)

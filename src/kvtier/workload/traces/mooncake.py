"""Traces of Mooncake (Qin et al., FAST 2025): one JSON object a request.

``{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, ...]}``: time in ms, lengths in tokens, and a hash
for each block of 512 tokens, chained: a block's hash stands for all tokens up to its end, and hashes are renumbered in order of
appearance. The partly filled last block has one too, so there are ⌈input / 512⌉ of them.
"""

from __future__ import annotations

from pathlib import Path

from kvtier.errors import InputError
from kvtier.workload.paths import Builder, Trace, runs_of
from kvtier.workload.traces.records import identities, keys, microseconds, objects, whole

BLOCK_TOKENS = 512
"""Tokens of a hashed block (Qin et al., FAST 2025)."""

FIELDS = ("timestamp", "input_length", "output_length", "hash_ids")
"""Keys of a request."""


def load(path: str | Path) -> Trace:
    """Read a trace.

    Parameters
    ----------
    path : str or Path
        JSONL, plain or gzip.

    Raises
    ------
    InputError
        Naming file, line and field.
    """
    builder = Builder(path, BLOCK_TOKENS)
    for number, record in objects(path):
        where = f"line {number}"
        keys(path, where, record, FIELDS)
        time_us = microseconds(path, where, "timestamp", record["timestamp"], 1000)
        tokens, generated = (whole(path, where, name, record[name]) for name in ("input_length", "output_length"))
        hashes = identities(path, where, "hash_ids", record["hash_ids"])
        if tokens > 0 and len(hashes) < (fitting := -(-tokens // BLOCK_TOKENS)):
            raise InputError(path, f"{where}, hash_ids", f"{len(hashes)} hashes for {tokens} tokens", f"{fitting}, one a block")
        builder.add(where, time_us, tokens, generated, runs_of(hashes))
    return builder.trace()

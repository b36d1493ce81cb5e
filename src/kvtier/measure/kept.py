"""Raw rows of the measurement kit: one table a part, one row a timing. Nothing in them is summed up.

The kit writes them (:mod:`kvtier.kit`); the build reads what was kept of them under ``data/measured/``.
"""

from __future__ import annotations

import polars as pl

from kvtier.frames import Table

STREAM = Table(
    "stream",
    {
        "kernel": pl.String(),
        "buffer_bytes": pl.Int64(),
        "threads": pl.Int64(),
        "repetition": pl.Int64(),
        "passes": pl.Int64(),
        "moved_bytes": pl.Int64(),
        "seconds": pl.Float64(),
    },
)
"""Kernels ``read``, ``write``, ``copy``, ``triad``. ``buffer_bytes`` is the size of one array; ``moved_bytes`` what the kernel reads plus
what it writes, over all ``passes``, by its own count: that a store first reads its line is not counted."""

DECODE = Table(
    "decode",
    {
        "backend": pl.String(),
        "device": pl.String(),
        "dtype": pl.String(),
        "batch": pl.Int64(),
        "context_tokens": pl.Int64(),
        "repetition": pl.Int64(),
        "steps": pl.Int64(),
        "short_s": pl.Float64(),
        "long_s": pl.Float64(),
        "step_ms": pl.Float64(),
    },
)
"""``short_s`` is the time of 2 generated tokens a sequence, ``long_s`` that of ``steps``; ``step_ms`` their difference over
``steps - 2``."""

MOVEMENT = Table(
    "movement",
    {
        "path": pl.String(),
        "piece_bytes": pl.Int64(),
        "pieces": pl.Int64(),
        "repetition": pl.Int64(),
        "seconds": pl.Float64(),
    },
)
"""``path`` is where from and where to: ``memory to memory``, ``shared memory to memory``, ``file to memory``, ``memory to file``,
``node 0 to node 1``, ``host to device``, ``device to host``. ``seconds`` is the time of all ``pieces``, moved one after the other."""

REGENERATION = Table(
    "regeneration",
    {
        "backend": pl.String(),
        "device": pl.String(),
        "dtype": pl.String(),
        "context_tokens": pl.Int64(),
        "tokens": pl.Int64(),
        "repetition": pl.Int64(),
        "seconds": pl.Float64(),
    },
)
"""Forward compute of ``tokens`` tokens, whose KV is made again, on top of ``context_tokens`` whose KV is there."""

METADATA = Table(
    "metadata",
    {
        "operation": pl.String(),
        "policy": pl.String(),
        "blocks": pl.Int64(),
        "repetition": pl.Int64(),
        "operations": pl.Int64(),
        "seconds": pl.Float64(),
    },
)
"""``operation`` is ``lookup``, ``touch``, ``evict`` or ``readmit``; ``seconds`` the time of all ``operations`` on a table of ``blocks``
blocks."""

TABLE_SIZE = Table("table size", {"blocks": pl.Int64(), "table_bytes": pl.Int64(), "resident_bytes": pl.Int64()})
"""Records and index as allocated, and the growth of the process that held them."""

FOLDING = Table(
    "folding",
    {
        "fold": pl.String(),
        "streams": pl.Int64(),
        "blocks": pl.Int64(),
        "dtype": pl.String(),
        "threads": pl.Int64(),
        "repetition": pl.Int64(),
        "seconds": pl.Float64(),
    },
)
"""``fold`` is ``max`` or ``sum``: many score streams made one score a block, once a decode step."""

SENSORS = Table("sensors", {"part": pl.String(), "moment": pl.String(), "sensor": pl.String(), "value": pl.Float64(), "unit": pl.String()})
"""Clocks, temperatures, power and load; ``moment`` is ``before``, ``during`` or ``after``."""

LEAST_FIT_SIZES = 5
"""Sizes of KV that decode steps must have for a line through them: fewer say nothing of its errors."""

TABLES = {
    "stream": STREAM,
    "decode": DECODE,
    "movement": MOVEMENT,
    "regeneration": REGENERATION,
    "metadata": METADATA,
    "table_size": TABLE_SIZE,
    "folding": FOLDING,
    "sensors": SENSORS,
}
"""By the name of its file, ``<name>.csv``."""

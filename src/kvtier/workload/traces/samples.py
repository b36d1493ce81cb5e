"""Small traces in each format, made by the project: seeded, with shared first blocks, growing sessions and partly filled last blocks."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvtier.files import write_atomically
from kvtier.workload.paths import runs_of

FILES = {
    "mooncake": "mooncake.jsonl.gz",
    "agentic": "agentic.jsonl.gz",
    "azure": "azure.csv",
    "generic": "generic.jsonl",
    "parquet": "generic.parquet",
}
"""Name of the file of each format."""


@dataclass(frozen=True)
class Request:
    """One request, before it is written in some format.

    Parameters
    ----------
    time_ms : int
    session : int
    input_tokens, output_tokens : int
    blocks : list of int
        Identities of the blocks of its input, the partly filled last one included; chained, and numbered as they first appear.
    """

    time_ms: int
    session: int
    input_tokens: int
    output_tokens: int
    blocks: list[int]


def requests(seed: int, count: int = 40, sessions: int = 6, block_tokens: int = 512, shared_tokens: int = 700) -> list[Request]:
    """Requests of sessions that start with the same tokens and then go their own way.

    Parameters
    ----------
    seed : int
    count, sessions : int
    block_tokens : int
    shared_tokens : int
        Common to all sessions; what no whole block holds of them is hashed with the session's own.
    """
    rng = np.random.default_rng(seed)
    known: dict[tuple[int, ...], int] = {}
    tokens = [shared_tokens + int(rng.integers(1, 3 * block_tokens)) for _ in range(sessions)]
    made, time_ms = [], 0
    for _ in range(count):
        session = int(rng.integers(sessions))
        generated = int(rng.integers(1, block_tokens))
        blocks = []
        for first in range(0, tokens[session], block_tokens):
            stop = min(first + block_tokens, tokens[session])
            # Equal tokens up to `stop`: those of the shared part, or those of one session.
            name = (stop,) if stop <= shared_tokens else (stop, session)
            blocks.append(known.setdefault(name, len(known)))
        made.append(Request(time_ms, session, tokens[session], generated, blocks))
        tokens[session] += generated + int(rng.integers(1, block_tokens))
        time_ms += int(rng.exponential(1000))
    return made


def write(folder: str | Path, seed: int = 1) -> dict[str, Path]:
    """Write one file of each format.

    Parameters
    ----------
    folder : str or Path
    seed : int

    Returns
    -------
    dict
        Path by format, as :data:`kvtier.workload.traces.FORMATS` names them.
    """
    import polars as pl

    paths = {form: Path(folder, name) for form, name in FILES.items()}
    some = requests(seed)
    mooncake = (
        {"timestamp": one.time_ms, "input_length": one.input_tokens, "output_length": one.output_tokens, "hash_ids": one.blocks}
        for one in some
    )
    write_atomically(paths["mooncake"], gzip.compress(_jsonl(mooncake), mtime=0))
    write_atomically(paths["agentic"], gzip.compress(_jsonl(_sessions(seed)), mtime=0))
    rows = [f"2023-11-16 18:17:{one.time_ms // 1000 % 60:02}.{one.time_ms % 1000:03}0000" for one in some if one.time_ms < 60_000]
    lengths = [f"{time},{one.input_tokens},{one.output_tokens}\r\n" for time, one in zip(rows, some, strict=False)]
    write_atomically(paths["azure"], "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + "".join(lengths))
    generic = [
        {
            "time_s": one.time_ms / 1000,
            "input_tokens": one.input_tokens,
            "output_tokens": one.output_tokens,
            "blocks": one.blocks,
            "session": one.session,
        }
        for one in some
    ]
    header = {"trace": "kvtier", "version": 1, "block_tokens": 512}
    write_atomically(paths["generic"], _jsonl([header, *generic]))
    pl.DataFrame(generic).with_columns(block_tokens=pl.lit(512, pl.Int64)).write_parquet(paths["parquet"])
    return paths


def _jsonl(records) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _sessions(seed: int, count: int = 5, block_tokens: int = 64):
    rng = np.random.default_rng(seed)
    for number in range(count):
        time_s, tokens, common, made = 0.0, int(rng.integers(200, 2000)), 0, []
        fresh, blocks = 1, []
        for _ in range(int(rng.integers(1, 8))):
            # A part of the context is rewritten: its blocks are new from there on.
            blocks = blocks[:common] + list(range(fresh, fresh + tokens // block_tokens - common))
            fresh = max(fresh, *(block + 1 for block in blocks))
            runs = [list(run) for run in runs_of(blocks)]
            known = bool(rng.integers(4))
            api_s = round(float(rng.exponential(5)), 2)
            made.append([time_s, tokens, int(rng.integers(0, 400)), api_s if known else None, 1.0 if known else None, runs])
            time_s = round(time_s + api_s + 1.0, 2)
            common = int(rng.integers(len(blocks) // 2, len(blocks) + 1))
            tokens = max(tokens, (common + 1) * block_tokens) + int(rng.integers(1, 500))
        yield {"id": f"sample_{number}", "block_size": block_tokens, "requests": made}

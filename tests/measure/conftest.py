"""A folder of raw rows as the kit leaves it, small, and known in every value."""

import json
from pathlib import Path

import polars as pl
import pytest

from kvtier.measure import kept

REPETITIONS = (1, 2, 3, 4, 5, 6, 7)
NOISE = dict(zip(REPETITIONS, (0.98, 1.03, 1.0, 0.99, 1.01, 0.97, 1.02), strict=True))
"""What each repetition does to every time; the median leaves times as they are written below."""

KV_BYTES_PER_TOKEN = 4096
POLICIES = {"lru": 1.0, "ema": 1.5, "lfu": 2.0}
OPERATIONS = {"lookup": 40, "touch": 90, "evict": 400, "readmit": 300}


def stream():
    for kernel, gbps in (("read", 14), ("write", 8), ("copy", 10), ("triad", 9)):
        for size in (2**16, 2**24, 2**28):
            for threads in (1, 2):
                moved = size * {"copy": 2, "triad": 3}.get(kernel, 1)
                for repetition, noise in NOISE.items():
                    yield (
                        kernel,
                        size,
                        threads,
                        repetition,
                        3,
                        3 * moved,
                        noise * 3 * moved / (gbps * threads * (2 if size < 2**20 else 1) * 1e9),
                    )


def decode(slope_ms_per_gib=200.0):
    bend = {(1, 512): 0.1, (1, 1024): -0.1, (2, 1024): 0.2, (4, 1024): -0.3, (4, 2048): 0.1, (8, 2048): 0.05}
    for (batch, tokens), off in bend.items():
        step = 20 + slope_ms_per_gib * batch * tokens * KV_BYTES_PER_TOKEN / 2**30 + off
        for repetition, noise in NOISE.items():
            short = 0.1
            yield "sdpa", "cpu", "float32", batch, tokens, repetition, 10, short, short + 8 * noise * step / 1e3, noise * step


def movement():
    for path, setup_us, gbps in (("memory to memory", 0.5, 5), ("file to memory", 80, 1.5)):
        for size in (2**12, 2**14, 2**16, 2**18, 2**20, 2**22):
            pieces = max(1, 2**22 // size)
            for repetition, noise in NOISE.items():
                yield path, size, pieces, repetition, noise * pieces * (setup_us / 1e6 + size / (gbps * 1e9))


def regeneration():
    for context in (0, 512):
        for repetition, noise in NOISE.items():
            yield "sdpa", "cpu", "float32", context, 16, repetition, noise * (0.03 + context / 1e5)


def metadata():
    for operation, ns in OPERATIONS.items():
        for policy, factor in POLICIES.items():
            for blocks in (1000, 8192, 1_000_000):
                for repetition, noise in NOISE.items():
                    yield operation, policy, blocks, repetition, 1000, noise * 1000 * ns * factor * (2 if blocks > 8192 else 1) / 1e9


def folding():
    for fold, us in (("max", 900), ("sum", 700)):
        for threads in (1, 2):
            for repetition, noise in NOISE.items():
                yield fold, 640, 8192, "float32", threads, repetition, noise * us / threads / 1e6


ROWS = {
    "stream": stream,
    "decode": decode,
    "movement": movement,
    "regeneration": regeneration,
    "metadata": metadata,
    "table_size": lambda: [(1000, 72_000, 80_000), (8192, 589_824, 600_000), (1_000_000, 72_000_000, 73_000_000)],
    "folding": folding,
    "sensors": lambda: [("stream", "before", "load", 0.2, ""), ("stream", "after", "load", 2.1, "")],
}


def platform(tables, date="2026-11-30"):
    """The record that the kit leaves beside the rows, as far as the build reads it."""
    about = {
        "decode": {"weight_bytes": 2_250_000_000, "unread_weight_bytes": 250_000_000, "kv_bytes_per_token": KV_BYTES_PER_TOKEN},
        "regeneration": {"kv_bytes_per_token": KV_BYTES_PER_TOKEN},
    }
    machine = {
        "name": "2 cores of a made-up processor",
        "slug": "made_up_2_cores",
        "cores": 2,
        "last_level_cache_bytes": 8 * 2**20,
        "memory_bytes": 24 * 2**30,
    }
    parts = {name: {"state": "complete", "about": about.get(name, {}), "checked": []} for name in tables}
    bus = {"gbps": 170.7, "source": "made-up data sheet; an upper bound"}
    return {"format": 1, "date": date, "quick": False, "machine": machine, "bus": bus, "parts": parts}


@pytest.fixture
def write_kept():
    """Write the tables and the record of a run into a folder; `only` some of them, with other arguments for the rows of one."""

    def write(folder: Path, only=tuple(ROWS), date="2026-11-30", **arguments):
        folder.mkdir(parents=True, exist_ok=True)
        for name in only:
            table = kept.TABLES[name]
            rows = list(ROWS[name](**arguments.get(name, {})))
            table.write(pl.DataFrame(rows, schema=table.columns, orient="row"), folder / f"{name}.csv")
        (folder / "platform.json").write_text(json.dumps(platform(only, date), indent=1))
        return folder

    return write

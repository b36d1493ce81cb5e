"""Edge policies at edges of one block against libCacheSim: the same hits, and the golden integers of ``tests/simulate/test_eviction.py``.

Usage: ``python benchmarks/policies_against_peer.py [--traces N]``, in an environment with the extra ``bench`` (README.md of this folder).

The golden trace is 20,000 requests for 500 blocks, zipf with exponent 0.9, seed 1. Beside it random traces of 50 to 3,000 requests for up
to 300 blocks, of any skew. Nothing is pinned; a miss evicts and is then admitted. Only GDSF is asked in the peer's order, which admits
first and may evict what it has just admitted. Parameters that differ from the peer's defaults: MQ has a lifetime of 16 requests, LRU-2
forgets at eviction on both sides. S3-FIFO is compared from 20 blocks on and 2Q from four: below, the peer admits nothing.

The exit status is 1 if hits differ anywhere.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from pprint import pprint
from typing import Any

import numpy as np
import oracle_general

from kvtier.simulate import eviction
from kvtier.workload.turns import Turns

PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("FIFO", {}),
    "lru": ("LRU", {}),
    "lfu": ("LFU", {}),
    "lru2": ("LRUK", {}),
    "2q": ("TwoQ", {}),
    "arc": ("ARC", {}),
    "mq": ("MQ", {"lifetime": 16}),
    "sieve": ("Sieve", {}),
    "s3fifo": ("S3FIFO", {}),
    "gdsf": ("GDSF", {}),
    "farthest": ("Belady", {}),
}
"""Policy to the peer's class and its parameters."""

CAPACITIES = (20, 50, 100, 200)
LEAST = {"s3fifo": 20, "2q": 4}
"""Smallest capacity at which the peer admits anything."""


def zipf(seed: int, requests: int, blocks: int, exponent: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, blocks + 1) ** exponent
    return rng.permutation(blocks)[rng.choice(blocks, size=requests, p=share / share.sum())]


def hits_here(slug: str, capacity: int, trace: np.ndarray) -> int:
    blocks, edges = int(trace.max()) + 1, trace.tolist()
    named = eviction.NAMES[slug]
    if slug == "gdsf":
        policy = eviction.Gdsf(capacity, [0] * blocks, cost=lambda position_block: 1.0)
    else:
        policy = named.build(capacity, reads=eviction.reads_of([[edge] for edge in edges], blocks))
    resident, hits = set(), 0
    for turn, edge in enumerate(edges):
        hit = edge in resident
        hits += hit
        policy.asked(edge, turn, int(hit))
        if slug == "gdsf":
            policy.read(edge, turn, 1)
            resident.add(edge)
        if len(resident) + (edge not in resident) > capacity:
            victim = policy.victim(())
            policy.lost(victim, 0)
            resident.remove(victim)
        if slug != "gdsf":
            policy.read(edge, turn, 1)
            resident.add(edge)
    return hits


def hits_there(slug: str, capacity: int, trace: np.ndarray, folder: str) -> int:
    import libcachesim

    path, blocks = Path(folder, "trace.bin"), int(trace.max()) + 1
    ones, zeros = np.ones(blocks, dtype=np.int64), np.zeros(len(trace), dtype=np.int64)
    requests = oracle_general.write(path, Turns(0, ones, trace, zeros))
    # Never closed: close() frees twice and ends the process.
    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    name, parameters = PEERS[slug]
    miss_ratio, _ = getattr(libcachesim, name)(capacity, hashpower=12, **parameters).process_trace(reader)
    path.unlink()
    return round(requests * (1 - miss_ratio))


def random_traces(count: int) -> Iterator[tuple[int, np.ndarray, int]]:
    for seed in range(count):
        rng = np.random.default_rng(seed)
        blocks = int(rng.integers(4, 300))
        yield seed, zipf(seed, int(rng.integers(50, 3000)), blocks, rng.uniform(0, 1.2)), int(rng.integers(2, blocks))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=100, help="random traces beside the golden one (%(default)s)")
    chosen = parser.parse_args()
    golden, wrong, compared = {}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [("golden", zipf(1, 20_000, 500, 0.9), capacity) for capacity in CAPACITIES]
        for seed, trace, capacity in (*cases, *random_traces(chosen.traces)):
            for slug in PEERS:
                if capacity < LEAST.get(slug, 1):
                    continue
                here, there = hits_here(slug, capacity, trace), hits_there(slug, capacity, trace, folder)
                compared += 1
                if seed == "golden":
                    golden.setdefault(slug, []).append(there)
                if here != there:
                    wrong.append(f"{slug}, {capacity} blocks, trace {seed}: {here} hits here, {there} there")
    pprint({slug: tuple(hits) for slug, hits in golden.items()}, sort_dicts=False)
    print(f"{compared} comparisons, {len(wrong)} differ")
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

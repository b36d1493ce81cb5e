"""Cases T2, T3 and T9: conversation asked block by block, as cache simulators do, against published rates of libCacheSim 0.3.5.

Nothing here is libCacheSim's: the first five policies are those of :mod:`kvtier.simulate.requests`, 2Q and ARC those of
:mod:`kvtier.simulate.eviction` at edges of one block. The last test asks libCacheSim itself, where it is installed (extra ``bench``).
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from kvtier.simulate import eviction, path_blocks, requests
from kvtier.simulate.policies import Policy
from kvtier.workload.turns import Turns

CAPACITIES = (1_827, 5_859, 18_279)
"""1 %, 3.2 % and 10 % of the unique blocks."""


class OneBlockEdges:
    """A policy of edges as a cache of single blocks: look up, evict while full, insert."""

    def __init__(self, slug, capacity):
        self.policy, self.capacity, self.resident = eviction.NAMES[slug].build(capacity), capacity, set()
        self.asked = 0

    def request(self, block, turn):
        hit = block in self.resident
        self.policy.asked(block, self.asked, int(hit))
        if not hit and len(self.resident) == self.capacity:
            victim = self.policy.victim(())
            self.policy.lost(victim, 0)
            self.resident.remove(victim)
        self.policy.read(block, self.asked, 1)
        self.resident.add(block)
        self.asked += 1
        return hit, None


@pytest.fixture(scope="module")
def paths(public_trace):
    trace = public_trace("conversation")
    return [path_blocks.block_numbers(trace, request) for request in range(trace.requests)]


def rates(cache, paths):
    """Hits, and hits with no miss before them in their request, over block accesses; to 4 digits."""
    hits = prefix = accesses = 0
    for turn, path in enumerate(paths):
        whole = True
        for block in path:
            hit, _ = cache.request(block, turn)
            hits += hit
            whole = whole and hit
            prefix += whole
        accesses += len(path)
    return round(hits / accesses, 4), round(prefix / accesses, 4)


def cache_of(name, capacity, paths):
    if name in ("2q", "arc"):
        return OneBlockEdges(name, capacity)
    return requests.cache(Policy(name), capacity, np.concatenate(paths) if name == "min" else np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize(
    ("name", "hits"),
    [("lru", (0.0523, 0.1355, 0.2784)), ("lfu", (0.0582, 0.0966, 0.1948)), ("sieve", (0.0582, 0.0966, 0.1948))],
)
def test_t2_t3_block_hits(paths, name, hits):
    assert tuple(rates(cache_of(name, capacity, paths), paths)[0] for capacity in CAPACITIES) == hits


@pytest.mark.parametrize(
    ("name", "prefix_hits"),
    [
        ("fifo", (0.0505, 0.1248, 0.2481)),
        ("2q", (0.0655, 0.1248, 0.2496)),
        ("arc", (0.0644, 0.1425, 0.2842)),
        ("min", (0.2463, 0.3531, 0.3664)),
    ],
)
def test_t9_prefix_hits(paths, name, prefix_hits):
    found = [rates(cache_of(name, capacity, paths), paths) for capacity in CAPACITIES]
    assert tuple(prefix for _, prefix in found) == prefix_hits
    assert all(prefix <= hits for hits, prefix in found)


def test_a_hit_behind_a_hole_does_not_count():
    # FIFO of three: [1, 2, 3], then 9 drives 1 out; of [1, 2, 3] the first is a hole, and its return drives 2 out.
    cache = requests.cache(Policy("fifo"), 3, np.zeros(0, dtype=np.int64))
    assert rates(cache, [[1, 2, 3], [9], [1, 3]]) == (round(1 / 6, 4), 0.0)


PEERS = {"lru": "LRU", "fifo": "FIFO", "lfu": "LFU", "sieve": "Sieve", "2q": "TwoQ", "arc": "ARC", "min": "Belady"}


@pytest.mark.parametrize("name", PEERS)
def test_equals_libcachesim(paths, name, tmp_path):
    libcachesim = pytest.importorskip("libcachesim")
    spec = importlib.util.spec_from_file_location("oracle_general", Path(__file__).resolve().parents[2] / "benchmarks/oracle_general.py")
    oracle_general = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle_general)
    blocks = np.concatenate(paths)
    count = oracle_general.write(tmp_path / "trace.bin", Turns(0, np.ones(blocks.max() + 1, dtype=np.int64), blocks, np.zeros_like(blocks)))
    for capacity in CAPACITIES:
        # Never closed: close() frees twice and ends the process.
        reader = libcachesim.TraceReader(str(tmp_path / "trace.bin"), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
        miss_ratio, _ = getattr(libcachesim, PEERS[name])(capacity).process_trace(reader)
        assert round(1 - miss_ratio, 4) == rates(cache_of(name, capacity, paths), paths)[0]
        assert count == len(blocks)

"""Peers on one workload, side by side: this engine and libCacheSim, the same hits, requests per CPU second, and their ratio.

Usage: ``python benchmarks/peers.py [--keep] [--contexts TOKENS ...] [--rounds N] [--at-least COMPARISON=RATIO ...]``, in an environment
with the extra ``bench`` (README.md of this folder).

Three tables. *Policies*: the zipf workload of seed 1 whose contexts stop growing at 768 blocks, with a cache of 6,553 blocks (32 GiB).
*Contexts*: initial contexts, the size at which they stop growing and the cache in proportion, so that the mean initial context is 8K to 1M
tokens; prefix and generated tokens as published; fewer turns at 512K and 1M, where the peer would take minutes.
*Arbitrary*: a million requests for 100,000 single blocks, zipf, no prefix, a cache of 10,000: no two neighbours share anything that the
engine could exploit, and the peer is faster.

Each timing is CPU time of one core, of the replay alone; each side has a process of its own. The workload is in memory on both sides:
here as turns (which session reads, its first context, how many tokens it gains), there as a trace file in memory, mapped and read once
before the clock starts. The peer's empty cache object is made before the clock starts. All that this engine makes of the turns, arrays
that `Turns` derives and the next uses of MIN among it, is inside: each replay gets a fresh copy. The peer finds next uses in its trace.
The peer's hash table has the size at which it was fastest in a trial, not its default, which is made for far larger caches and slows
small ones several times. The sides alternate, here, there, here, ...; a ratio is one of medians.

The exit status is 1 if the hits of a comparison under the same rules differ, or a ratio is below its bar.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import kept
import numpy as np
import oracle_general

from kvtier.simulate import engine, lossless
from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, SIEVE, Policy, ema
from kvtier.workload import synthetic
from kvtier.workload.synthetic import PUBLISHED
from kvtier.workload.turns import BLOCK_TOKENS, Turns

HBM_BLOCKS = 6553
"""32 GiB in blocks of 5 MiB."""

CAP_BLOCKS = 768
"""Where contexts stop growing: the largest initial context of the study, 12,288 tokens."""

MEAN_TOKENS = sum(PUBLISHED.context_tokens) / 2
CONTEXTS = {8: 2500, 32: 2500, 128: 2500, 512: 625, 1024: 312}
"""Mean initial context [Ki tokens] to turns."""

CACHES = {"lru": "LRU", "fifo": "FIFO", "sieve": "Sieve", "lfu": "LFU", "min": "Belady"}
"""Policy to the peer's class."""

TRIAL_REQUESTS = 5_000_000
"""Requests of a trial of the peer's hash table: more than fill the largest cache here."""

LEAST_S = 0.1
"""Shortest timing: a replay that is faster is repeated."""


@dataclass(frozen=True)
class Comparison:
    """One policy here against one policy there.

    Parameters
    ----------
    name : str
        As number keys have it.
    policy : Policy
        Here.
    peer : str
        There, a key of `CACHES`.
    at_least : float
        Bar of the ratio; 0 for none.
    same_rules : bool
        Whether hits must be equal. EMA has no peer, and is set against the nearest.
    simulate : callable
        Replays (turns, policy, blocks) and returns hits of each turn.
    """

    name: str
    policy: Policy
    peer: str
    at_least: float
    same_rules: bool
    simulate: Callable[[Turns, Policy, int], np.ndarray] = engine.replay_requests


def _lossless(turns: Turns, policy: Policy, hbm_blocks: int) -> np.ndarray:
    return lossless.simulate(turns, policy, hbm_blocks).hits


COMPARISONS = (
    Comparison("lru", LRU, "lru", 200, True),
    Comparison("fifo", FIFO, "fifo", 0, True),
    Comparison("sieve", SIEVE, "sieve", 0, True),
    Comparison("lfu", LFU, "lfu", 100, True),
    Comparison("min", MIN, "min", 300, True),
    Comparison("ema015", ema(0.15), "lfu", 100, False),
    Comparison("ema015_persistent", ema(0.15, persistent=True), "lru", 10, False),
    Comparison("lossless_lru", LRU, "lru", 20, False, _lossless),
)
FEW = tuple(comparison for comparison in COMPARISONS if comparison.name in ("lru", "lfu", "min"))


def workload(mean_tokens: float = MEAN_TOKENS, turns: int = PUBLISHED.turns) -> tuple[Turns, int]:
    """The zipf workload of seed 1 with contexts of another mean, and a cache in proportion [blocks]."""
    factor = mean_tokens / MEAN_TOKENS
    low, high = (round(tokens * factor) for tokens in PUBLISHED.context_tokens)
    shape = synthetic.Shape(turns=turns, context_tokens=(low, high))
    return synthetic.generate("zipf", 1, shape).capped(round(CAP_BLOCKS * factor)), round(HBM_BLOCKS * factor)


def arbitrary() -> tuple[Turns, int]:
    """A trace of single blocks in no order, as turns that read one block each, and a cache [blocks]."""
    blocks, requests = 100_000, 1_000_000
    shape = synthetic.Shape(sessions=blocks, turns=requests, prefix_tokens=0, context_tokens=(BLOCK_TOKENS, BLOCK_TOKENS + 1))
    return synthetic.generate("zipf", 1, shape, growing=False), blocks // 10


_held: dict[str, Any] = {}
"""In the peer's process: its module, and the reader of the trace."""


def _open(path: str) -> None:
    """In the peer's process: map the trace."""
    import libcachesim

    # Never closed: close() frees twice and ends the process.
    reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    _held.update(module=libcachesim, reader=reader)


def _replay(policy: str, capacity: int, hashpower: int, most: int) -> tuple[float, float]:
    """In the peer's process: CPU seconds of one replay of `most` requests (-1: all), and its miss ratio."""
    cache = getattr(_held["module"], CACHES[policy])(capacity, hashpower=hashpower)
    _held["reader"].reset()
    start = time.process_time()
    miss_ratio, _ = cache.process_trace(_held["reader"], max_req=most)
    return time.process_time() - start, miss_ratio


class Peer:
    """libCacheSim over one trace in memory, in a process of its own: two sides in one process share an allocator, and slow each other."""

    def __init__(self, path: Path, turns: Turns, capacity: int) -> None:
        self.requests, self.capacity = oracle_general.write(path, turns), capacity
        self.hashpower: dict[str, int] = {}
        self._process = ProcessPoolExecutor(1, get_context("spawn"))
        self._process.submit(_open, str(path)).result()

    def close(self) -> None:
        """End the process."""
        self._process.shutdown()

    def replay(self, policy: str, hashpower: int, most: int = -1) -> tuple[float, int]:
        """CPU seconds of one replay, and its hits; of all requests, or of the first ones."""
        cpu_s, miss_ratio = self._process.submit(_replay, policy, self.capacity, hashpower, most).result()
        return cpu_s, round(self.requests * (1 - miss_ratio))

    def tune(self, policy: str, trials: int = 2) -> int:
        """Size of the hash table [log2 of buckets] that is fastest in a trial, of one to 32 buckets a block; a first pass warms up."""
        if policy not in self.hashpower:
            powers = range(least := math.ceil(math.log2(self.capacity)), least + 6)
            self.replay(policy, least, TRIAL_REQUESTS)
            found = {power: min(self.replay(policy, power, TRIAL_REQUESTS)[0] for _ in range(trials)) for power in powers}
            self.hashpower[policy] = min(found, key=found.get)
        return self.hashpower[policy]


def here(comparison: Comparison, turns: Turns, capacity: int, replays: int) -> tuple[float, int]:
    """CPU seconds of `replays` replays, and the hits of one."""
    start = time.process_time()
    for _ in range(replays):
        # A copy has none of the arrays that an earlier replay has derived.
        hits = comparison.simulate(replace(turns), comparison.policy, capacity)
    return time.process_time() - start, int(hits.sum())


def compare(comparison: Comparison, turns: Turns, peer: Peer, rounds: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of one comparison: here, there, here, there, ..., here."""
    hashpower = peer.tune(comparison.peer)
    here(comparison, turns, peer.capacity, 1)  # compiles
    once_s, _ = here(comparison, turns, peer.capacity, 1)
    replays = max(1, math.ceil(LEAST_S / max(once_s, 1e-5)))
    rows = []
    for step in range(2 * rounds + 1):
        if step % 2 == 0:
            side, policy, count, power = "kvtier", comparison.policy.slug, replays, None
            cpu_s, hits = here(comparison, turns, peer.capacity, replays)
        else:
            side, policy, count, power = "libcachesim", comparison.peer, 1, hashpower
            cpu_s, hits = peer.replay(comparison.peer, hashpower)
        rows.append(
            {
                **about,
                "requests": peer.requests,
                "capacity_blocks": peer.capacity,
                "comparison": comparison.name,
                "same_rules": comparison.same_rules,
                "step": step,
                "side": side,
                "policy": policy,
                "hashpower": power,
                "replays": count,
                "cpu_s": cpu_s,
                "hits": hits,
            }
        )
    return rows


def judge(comparison: Comparison, rows: list[dict[str, Any]], bar: float) -> list[str]:
    """Print one line of a table; return what is wrong."""
    times = {
        side: statistics.median(row["cpu_s"] / row["replays"] for row in rows if row["side"] == side) for side in ("kvtier", "libcachesim")
    }
    ratio, requests = times["libcachesim"] / times["kvtier"], rows[0]["requests"]
    hits = {side: {row["hits"] for row in rows if row["side"] == side} for side in times}
    print(
        f"{comparison.name:<18}{comparison.peer:<7}{'/'.join(map(str, hits['kvtier'])):>12}{'/'.join(map(str, hits['libcachesim'])):>12}"
        f"{1e6 * times['kvtier']:>12.0f}{1e6 * times['libcachesim']:>12.0f}"
        f"{1e-6 * requests / times['kvtier']:>10.0f}{1e-6 * requests / times['libcachesim']:>8.1f}{ratio:>11.2f}{bar or '':>7}",
        flush=True,
    )
    wrong = []
    if comparison.same_rules and hits["kvtier"] != hits["libcachesim"]:
        wrong.append(f"{comparison.name}: hits differ, {hits}")
    if ratio < bar:
        wrong.append(f"{comparison.name}: ratio {ratio:.1f}, below {bar:g}")
    return wrong


def bars(given: list[str]) -> dict[str, float]:
    """Bar of each comparison: the default, unless given as ``name=ratio``."""
    found = {comparison.name: float(comparison.at_least) for comparison in COMPARISONS}
    for text in given:
        name, _, ratio = text.partition("=")
        if name not in found:
            sys.exit(f"--at-least {text}: expected one of {', '.join(found)}, =, and a number")
        found[name] = float(ratio)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="timings of the peer in a comparison (%(default)s)")
    parser.add_argument("--context-rounds", type=int, default=3, help="and at each context length (%(default)s)")
    parser.add_argument("--contexts", nargs="*", type=int, choices=CONTEXTS, default=list(CONTEXTS), metavar="KI", help="(%(default)s)")
    parser.add_argument("--at-least", nargs="+", default=[], metavar="COMPARISON=RATIO", help="bars, in place of the defaults")
    parser.add_argument("--folder", default="/dev/shm", help="where the traces lie; in memory, for a fair reading (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="write data/bench/peers.csv and peers.json")
    chosen = parser.parse_args()
    least = bars(chosen.at_least)
    columns = {"hits": 12, "hits there": 12, "CPU us": 12, "there": 12, "M req/s": 10, "there ": 8, "ratio": 11, "bar": 7}
    head = f"{'comparison':<18}{'peer':<7}" + "".join(f"{name:>{width}}" for name, width in columns.items())
    rows, wrong = [], []
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="kvtier-") as folder:
        workloads = [("policies", MEAN_TOKENS, workload), ("arbitrary", BLOCK_TOKENS, arbitrary)]
        workloads += [("contexts", 1024 * ki, partial(workload, 1024 * ki, CONTEXTS[ki])) for ki in chosen.contexts]
        for table, mean_tokens, make in workloads:
            turns, capacity = make()
            path = Path(folder, "trace.bin")
            peer = Peer(path, turns, capacity)
            about = {
                "table": table,
                "context_tokens": int(mean_tokens),
                "sessions": len(turns.context_blocks),
                "turns": len(turns.session),
            }
            print(f"\n{about}, {peer.requests:,} requests, {capacity:,} blocks\n{head}")
            for comparison in COMPARISONS if table == "policies" else FEW:
                found = compare(comparison, turns, peer, chosen.context_rounds if table == "contexts" else chosen.rounds, about)
                wrong += judge(comparison, found, least[comparison.name] if table == "policies" else 0)
                rows += found
            peer.close()
            path.unlink()
    if chosen.keep:
        method = {
            "clock": "CPU time of one core, replay alone; a process a side; sides alternate in one run",
            "workload": f"zipf, seed 1, contexts stop growing at {CAP_BLOCKS} blocks times the scale of the contexts; trace in memory",
            "machine": "shared with other work",
        }
        kept.keep("peers", rows, kept.about(("numpy", "numba", "libcachesim"), method))
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

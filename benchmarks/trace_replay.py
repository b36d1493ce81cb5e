"""What replaying traces costs: sweeps of the public ones, and a file of a million requests in bounded memory.

Run from the repository root: ``KVTIER_TRACES=FOLDER python benchmarks/trace_replay.py [--requests N] [--most-mib MIB]``

Three bars: the conversation trace under twelve policies at nine capacities, its optimum with them, on two cores; one LRU replay of the
coding-agent sessions, composed for 24 users; and ``kvtier simulate`` on a file of N requests, made here. Where KVTIER_TRACES names no
folder, the first two are left out. Beside wall times stand ratios of one run, which mean more than times: compiled against plain Python,
LRU against EMA, and memory against a file a tenth as long. The exit status is 1 if a
bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kvtier.simulate import paths, replays
from kvtier.simulate.eviction import NAMES
from kvtier.workload import arrivals, traces

TWELVE = ("fifo", "lru", "lfu", "ema015", "ema005", "ema001", "lru2", "2q", "arc", "mq", "sieve", "s3fifo")
CAPACITIES_TOKENS = [2**power for power in range(17, 26)]
SWEEP_S, AGENTIC_S = 60.0, 10.0
USERS, SEED = 24, 1
BLOCK_TOKENS, REQUESTS_A_SESSION = 16, 12


def timed(work, *arguments, **options):
    """Wall seconds of a call, and what it returns."""
    start = time.perf_counter()
    answer = work(*arguments, **options)
    return time.perf_counter() - start, answer


def sweep(trace, jobs):
    """The conversation bar: every rate that `kvtier simulate` prints, without times."""
    setting = replays.Setting(block_bytes=1, counted_from=trace.requests // 2)
    capacities = [tokens // trace.block_tokens for tokens in CAPACITIES_TOKENS]
    return replays.sweep(trace, [NAMES[slug] for slug in TWELVE], capacities, setting, jobs)


def bars_of_public_traces(folder):
    """Both bars on public traces; whether they hold."""
    conversation = traces.load(Path(folder, "mooncake_conversation_trace.jsonl.gz"))
    # Compiles, once and for the processes too.
    replays.Replayer(conversation).replay(NAMES["lru"], 1)
    sweep_s, _ = timed(sweep, conversation, 2)
    slowest = NAMES["ema015"]
    capacity = CAPACITIES_TOKENS[4] // conversation.block_tokens
    compiled_s, fast = timed(replays.Replayer(conversation).replay, slowest, capacity)
    plain_s, slow = timed(paths.replay, conversation, paths.build(slowest, conversation, capacity), capacity)
    if fast.hits.tolist() != slow.hits.tolist():
        sys.exit("compiled and plain replay disagree")
    print(f"conversation, {len(TWELVE)} policies x {len(CAPACITIES_TOKENS)} capacities and the optimum: {sweep_s:.1f} s")
    print(f"  bar {SWEEP_S:g} s; one replay in plain Python takes {plain_s / compiled_s:.0f} times as long as compiled, with equal hits")
    agentic = arrivals.compose(traces.load(Path(folder, "agentic_coding_sessions.jsonl.gz")), USERS, SEED)
    capacity = agentic.unique_blocks // 10
    lru_s, found = timed(paths.replay, agentic, paths.build(NAMES["lru"], agentic, capacity), capacity)
    slow_s, _ = timed(paths.replay, agentic, paths.build(NAMES["ema005"], agentic, capacity), capacity)
    rate = agentic.block_accesses / lru_s / 1e6
    print(f"agentic, one LRU replay of {agentic.block_accesses:,} block accesses: {lru_s:.1f} s, {rate:,.0f} million a second")
    print(f"  bar {AGENTIC_S:g} s; {found.hits.sum():,} hits; EMA in plain Python takes {slow_s / lru_s:.1f} times as long")
    return sweep_s < SWEEP_S and lru_s < AGENTIC_S


def write_requests(path, count):
    """Sessions that grow by a turn at a time, all with one first block; written as they are made."""
    rng = np.random.default_rng(SEED)
    live, fresh, at_s = [], 1, 0.0
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"trace": "kvtier", "version": 1, "block_tokens": BLOCK_TOKENS}) + "\n")
        for _ in range(count):
            at_s += float(rng.exponential(0.1))
            if len(live) < 200 or rng.random() < 1 / REQUESTS_A_SESSION:
                live.append([[0, 1]])
            index = int(rng.integers(len(live)))
            more = int(rng.integers(4, 60))
            live[index] = [*live[index], [fresh, more]]
            fresh += more
            tokens = BLOCK_TOKENS * sum(length for _, length in live[index])
            request = {"time_s": round(at_s, 6), "input_tokens": tokens, "output_tokens": 100, "runs": live[index]}
            file.write(json.dumps(request) + "\n")
            if len(live) > 200:
                live.pop(0)


def peak_mib(path, *words):
    """Peak resident memory of `kvtier simulate` on a file [MiB], and its wall seconds."""
    call = [sys.executable, "-c", _CHILD, "simulate", str(path), "--jobs", "1", "--policy", "lru", "--json", *words]
    seconds, done = timed(subprocess.run, call, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return int(done.stderr.splitlines()[-1]) / 1024, seconds


_CHILD = """
import re, sys
from pathlib import Path
from kvtier.cli import main
try:
    main()
finally:
    # Not ru_maxrss, which starts from what the parent had.
    print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
"""


def bar_of_memory(requests, most_mib):
    """A long file against one a tenth as long; whether the long one stays below the bar."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for count, tier in ((requests // 10, True), (requests // 10, False), (requests, False)):
            path = Path(folder, f"{count}.jsonl")
            if not path.exists():
                write_requests(path, count)
            peak, seconds = peak_mib(path, *(("--tier", "t:1 TiB:64 GB/s") if tier else ()))
            peaks.append(peak)
            said = f"{count:,} requests in {path.stat().st_size / 2**20:,.0f} MiB, {'a tier below' if tier else 'HBM alone'}"
            print(f"{said}: peak {peak:,.0f} MiB, {seconds:.0f} s", flush=True)
    _, small, large = peaks
    each = 2**20 * (large - small) / (requests - requests // 10)
    print(f"  ten times the requests take {large / small:.1f} times the memory, {each:,.0f} B for each more")
    print(f"  bar {most_mib:,.0f} MiB")
    return max(peaks) < most_mib


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000, help="of the long file (%(default)s)")
    parser.add_argument("--most-mib", type=float, default=2048.0, help="most memory for it (%(default)s)")
    chosen = parser.parse_args()
    held = True
    if folder := os.environ.get("KVTIER_TRACES"):
        held = bars_of_public_traces(folder)
    else:
        print("KVTIER_TRACES names no folder with the public traces: their bars are left out")
    return int(not (bar_of_memory(chosen.requests, chosen.most_mib) and held))


if __name__ == "__main__":
    sys.exit(main())

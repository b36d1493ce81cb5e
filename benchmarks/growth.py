"""How the cost of a replay grows with sessions, contexts and turns: time a turn, and peak memory.

Usage: ``python benchmarks/growth.py [--keep] [--largest-under SECONDS GIB] [--flat-within FACTOR FACTOR]``

Each case runs in a process of its own, under both semantics of the engine: Revision 2 with its CXL tier, and request by request. Workload:
zipf, seed 1, the published shape with other numbers of sessions and turns, and initial contexts of another mean. Contexts stop growing at
768 blocks, HBM holds 6,553 and CXL 104,857, all three times the scale of the contexts, the tiers also times that of the sessions. Times
are CPU seconds of one core after compilation; a replay under 0.1 s is repeated. *Preparing* is the draw and the derived arrays of the
workload. Memory is the most that the process held resident, interpreter and libraries included.

What decides the cost of a turn is extents, not blocks. Contexts are swept twice: without growth, where a session keeps its extents and a
turn should cost the same at any length; and with growth, where contexts of 8K soon stop growing and longer ones gain extents for longer.

The exit status is 1 if 250,000 turns over 20,000 sessions of 128K tokens take longer (preparing included) or more memory than the bar, or
if a turn at 1M tokens takes longer than at 8K by more than a factor: the first without growth, the second with it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

CONTEXTS_KI = (8, 32, 128, 512, 1024)
CASES = (
    *((200, context, 2500, growing) for growing in (False, True) for context in CONTEXTS_KI),
    *((200, 8, turns, True) for turns in (25_000, 250_000)),
    *((sessions, 8, 25_000, True) for sessions in (2_000, 20_000)),
    (20_000, 128, 250_000, True),
)
"""(sessions, mean initial context [Ki tokens], turns, growing): contexts, turns, sessions, then all that is large at once."""

LARGEST = CASES[-1]
POLICIES = ("lru", "ema015")
SEMANTICS = ("revision2", "requests")
LEAST_S = 0.1


def peak_mib() -> float:
    """Most memory that this process has held resident [MiB]. The parent imports little: a child's record starts from what it held."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def replay_case(sessions: int, context_ki: int, turns: int, growing: bool, semantics: str, policy: str) -> dict[str, Any]:
    """One case, in this process."""
    from kvtier.simulate import engine
    from kvtier.simulate.policies import LRU, ema
    from kvtier.workload import synthetic
    from kvtier.workload.synthetic import PUBLISHED

    def replay(workload):
        if semantics == "requests":
            return engine.replay_requests(workload, chosen, hbm_blocks)
        return engine.simulate(workload, chosen, hbm_blocks, cxl_blocks).hits

    chosen = {"lru": LRU, "ema015": ema(0.15)}[policy]
    hbm_blocks = cxl_blocks = 100
    replay(synthetic.generate("zipf", 1, synthetic.Shape(sessions=5, turns=20)))  # compiles
    started = time.process_time()
    factor = 1024 * context_ki / (sum(PUBLISHED.context_tokens) / 2)
    low, high = (round(tokens * factor) for tokens in PUBLISHED.context_tokens)
    shape = synthetic.Shape(sessions=sessions, turns=turns, context_tokens=(low, high))
    workload = synthetic.generate("zipf", 1, shape, growing=growing).capped(round(768 * factor))
    requests = int(workload.read_blocks.sum() + workload.growth_blocks.sum())
    hbm_blocks, cxl_blocks = (round(blocks * factor * sessions / PUBLISHED.sessions) for blocks in (6553, 104857))
    distinct = int(workload.first_block[-1])
    prepared_s = time.process_time() - started
    replays, hits = 0, None
    started = time.process_time()
    while (cpu_s := time.process_time() - started) < LEAST_S or not replays:
        hits, replays = replay(workload), replays + 1
    return {
        "sessions": sessions,
        "context_tokens": 1024 * context_ki,
        "turns": turns,
        "growing": growing,
        "semantics": semantics,
        "policy": policy,
        "requests": requests,
        "blocks": distinct,
        "hbm_blocks": hbm_blocks,
        "cxl_blocks": cxl_blocks if semantics == "revision2" else None,
        "hits": int(hits.sum()),
        "prepare_s": prepared_s,
        "replays": replays,
        "cpu_s": cpu_s,
        "peak_mib": peak_mib(),
    }


def in_child(case: tuple[int, int, int, bool], semantics: str, policy: str) -> dict[str, Any]:
    """The row of one case, from a process of its own."""
    command = [sys.executable, __file__, "--case", *(str(int(part)) for part in case), semantics, policy]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout)


def judge(rows: list[dict[str, Any]], largest_s: float, largest_gib: float, flat_within: tuple[float, float]) -> list[str]:
    """What is wrong."""
    sizes = ("sessions", "context_tokens", "turns", "growing", "semantics", "policy")
    found = {tuple(row[column] for column in sizes): row for row in rows}
    wrong = []
    for semantics in SEMANTICS:
        for policy in POLICIES:
            sessions, context, turns, growing = LARGEST
            largest = found[sessions, 1024 * context, turns, growing, semantics, policy]
            seconds, gib = largest["prepare_s"] + largest["cpu_s"] / largest["replays"], largest["peak_mib"] / 1024
            if seconds > largest_s or gib > largest_gib:
                wrong.append(
                    f"largest, {semantics}, {policy}: {seconds:.1f} s, {gib:.2f} GiB, above {largest_s:g} s or {largest_gib:g} GiB"
                )
            for growing, most in zip((False, True), flat_within, strict=True):
                short, long = (found[200, 1024 * context, 2500, growing, semantics, policy] for context in (8, 1024))
                factor = (long["cpu_s"] / long["replays"]) / (short["cpu_s"] / short["replays"])
                if factor > most:
                    words = f"{semantics}, {policy}, {'with' if growing else 'without'} growth"
                    wrong.append(f"contexts, {words}: a turn at 1M takes {factor:.2f} times that at 8K, above {most:g}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest-under", nargs=2, type=float, default=(60, 2), metavar=("SECONDS", "GIB"), help="(%(default)s)")
    parser.add_argument(
        "--flat-within",
        nargs=2,
        type=float,
        default=(1.5, 5),
        metavar=("STILL", "GROWING"),
        help="a turn at 1M tokens over one at 8K, contexts that do not grow and that do (%(default)s)",
    )
    parser.add_argument("--keep", action="store_true", help="write data/bench/growth.csv and growth.json")
    parser.add_argument("--case", nargs=6, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.case:
        *sizes, semantics, policy = chosen.case
        sessions, context, turns, growing = map(int, sizes)
        print(json.dumps(replay_case(sessions, context, turns, bool(growing), semantics, policy)))
        return 0
    rows = []
    columns = {
        "sessions": 9,
        "context": 9,
        "turns": 9,
        "growing": 9,
        "semantics": 11,
        "policy": 8,
        "requests": 15,
        "prepare s": 11,
        "replay s": 10,
    }
    columns |= {"us/turn": 9, "peak MiB": 10}
    print("".join(f"{name:>{width}}" for name, width in columns.items()))
    for semantics in SEMANTICS:
        for policy in POLICIES:
            in_child((5, 8, 20, True), semantics, policy)  # compiles, so that no case's memory holds the compiler's
            for case in CASES:
                row = in_child(case, semantics, policy)
                replay_s, grows = row["cpu_s"] / row["replays"], "yes" if row["growing"] else "no"
                rows.append(row)
                print(
                    f"{row['sessions']:>9,}{row['context_tokens'] // 1024:>8,}K{row['turns']:>9,}{grows:>9}  {semantics:>9}{policy:>8}"
                    f"{row['requests']:>15,}{row['prepare_s']:>11.2f}{replay_s:>10.4f}{1e6 * replay_s / row['turns']:>9.2f}"
                    f"{row['peak_mib']:>10.0f}",
                    flush=True,
                )
    if chosen.keep:
        import kept  # here, so that a child does not carry what it brings along

        method = {
            "clock": "CPU time of one process a row, after compilation",
            "memory": "most that the process held resident, interpreter and libraries included",
            "machine": "shared with other work",
        }
        kept.keep("growth", rows, kept.about(("numpy", "numba"), method))
    wrong = judge(rows, *chosen.largest_under, chosen.flat_within)
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

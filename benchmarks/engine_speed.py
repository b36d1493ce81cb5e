"""How much faster the compiled engine is than the reference, on published records of every policy.

Run from the repository root: ``python benchmarks/engine_speed.py [--records KEY ...] [--rounds N] [--at-least RATIO]``

Both replay the same full-size workload on one core; times are CPU seconds of this process, so that other load counts less. The engine is
compiled before the clock starts. Each record is timed as engine, reference, engine, so that a slow spell of the machine meets both; the
engine's time is the median of its repeats. The exit status is 1 if the two disagree or a policy's median ratio is below ``--at-least``.
"""

import argparse
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import fields
from functools import cache

import numpy as np

from kvtier.simulate import engine, revision2, sweeps
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LRU
from kvtier.workload import synthetic

RECORDS = {f"e1|{run.hbm_gib:g}|{run.policy.title}|{run.seed}": run for run in sweeps.revision2_budgets([8, 16, 32, 64, 128], [1, 2])}
DEFAULT = [key for key in RECORDS if key.startswith(("e1|8|", "e1|128|")) and key.endswith("|1")]
ENGINE_REPEATS = 5


def cpu_s(simulate, *arguments):
    """CPU seconds of one replay, and its counts."""
    start = time.process_time()
    counts = simulate(*arguments)
    return time.process_time() - start, counts


def compare(run, workload):
    """CPU seconds of the reference, and median CPU seconds of the engine around it."""
    arguments = (workload, run.policy, capacity_blocks(run.hbm_gib), capacity_blocks(run.cxl_gib))
    engine_s = [cpu_s(engine.simulate, *arguments)[0] for _ in range(ENGINE_REPEATS)]
    reference_s, expected = cpu_s(revision2.simulate, *arguments)
    engine_s += [cpu_s(engine.simulate, *arguments)[0] for _ in range(ENGINE_REPEATS)]
    found = engine.simulate(*arguments)
    if not all(np.array_equal(getattr(found, field.name), getattr(expected, field.name)) for field in fields(expected)):
        sys.exit(f"{run}: engine and reference disagree")
    return reference_s, statistics.median(engine_s)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", nargs="+", choices=RECORDS, default=DEFAULT, metavar="KEY", help="such as 'e1|32|LFU|1' (%(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="times each record is replayed by the reference (%(default)s)")
    parser.add_argument("--at-least", type=float, default=50.0, metavar="RATIO", help="least median ratio of a policy (%(default)s)")
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error("--rounds: expected 1 or more")

    @cache
    def workload(seed):
        turns = synthetic.generate("zipf", seed)
        # Compiles the engine, and the workload's derived arrays, computed on first use: neither side should pay for them.
        engine.simulate(turns, LRU, 1, 0)
        return turns

    ratios = defaultdict(list)
    print(f"{'record':<24}{'reference [s]':>14}{'engine [s]':>12}{'ratio':>8}")
    for _ in range(chosen.rounds):
        for key in chosen.records:
            run = RECORDS[key]
            reference_s, engine_s = compare(run, workload(run.seed))
            ratios[run.policy.title].append(reference_s / engine_s)
            print(f"{key:<24}{reference_s:>14.2f}{engine_s:>12.3f}{ratios[run.policy.title][-1]:>8.0f}", flush=True)
    print(f"\n{'policy':<24}{'least':>14}{'median':>12}")
    for title, found in ratios.items():
        print(f"{title:<24}{min(found):>14.0f}{statistics.median(found):>12.0f}")
    return int(any(statistics.median(found) < chosen.at_least for found in ratios.values()))


if __name__ == "__main__":
    sys.exit(main())

"""CPU time of every published simulation on one core, compilation excluded: all runs of Revision 2, and all of Revision 1.

Run from the repository root: ``python benchmarks/suite_times.py [--at-most SECONDS]``

Workloads are generated inside the clock, and runs that differ in reporting alone are simulated once, as in the build. The exit status
is 1 if a suite takes more than ``--at-most``.
"""

import argparse
import sys
import time

from kvtier import config
from kvtier.simulate import sweeps
from kvtier.workload import synthetic

CONFIG = config.load("config/full.yaml", "workflow/schemas/config.schema.json")


def suites():
    """Runs of each revision, by its number."""
    one, two = CONFIG["revision1"], CONFIG["revision2"]
    return {
        2: [
            *sweeps.revision2_budgets(two["budgets_gib"], two["seeds"]),
            *sweeps.revision2_alphas(two["alphas"]),
            *sweeps.revision2_workloads(two["workload_seeds"]),
            *sweeps.revision2_warmup(),
            *sweeps.revision2_persistence(),
            *sweeps.revision2_overlap(),
            *sweeps.revision2_alpha_grid(two["grid_alphas"], two["grid_budgets_gib"], two["grid_seeds"]),
        ],
        1: [
            *sweeps.revision1_budgets(one["budgets_gib"], one["seeds"]),
            *sweeps.revision1_cxl(one["cxl_gib"]),
            *sweeps.revision1_workloads(one["workload_seeds"]),
            *sweeps.revision1_alphas(one["alphas"]),
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-most", type=float, default=20.0, metavar="SECONDS", help="CPU time allowed for a suite (%(default)s)")
    chosen = parser.parse_args()
    slow = False
    for revision, runs in suites().items():
        sweeps.replay(runs[:1], revision, synthetic.Shape(sessions=5, turns=5), 1)
        start = time.process_time()
        sweeps.replay(runs, revision, synthetic.PUBLISHED, CONFIG["workload"]["counted_from"])
        taken_s = time.process_time() - start
        print(f"Revision {revision}: {len(runs)} runs in {taken_s:.2f} s of CPU time")
        slow |= taken_s > chosen.at_most
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())

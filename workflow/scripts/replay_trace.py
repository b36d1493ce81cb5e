"""Experiments on one public trace: the comparison of policies on every composition of its sessions, all else on the first."""

import polars as pl

from kvtier.jobs import reporting
from kvtier.simulate import trace_experiments as experiments
from kvtier.simulate import trace_studies as studies
from kvtier.simulate.trace_experiments import Stream
from kvtier.simulate.trace_studies import TIMED, WEIGHT_RUNS
from kvtier.simulate.trace_tables import TABLES
from kvtier.workload import traces


def replay(streams: list[Stream]) -> dict[str, pl.DataFrame]:
    first = streams[0]
    return {
        "streams": pl.concat(experiments.describe(stream) for stream in streams),
        "policies": pl.concat(experiments.compare_policies(stream) for stream in streams),
        "alphas": experiments.compare_alphas(first),
        "orders": experiments.compare_orders(first),
        "weights": studies.try_weights(first),
        "times": studies.time_tiers(first) if first.name in TIMED else studies.TIMES.check(pl.DataFrame(schema=studies.TIMES.columns)),
        "block_sizes": studies.compare_block_sizes(first),
    }


if __name__ == "__main__":
    with reporting(snakemake):
        made = replay(experiments.streams(snakemake.wildcards.trace, traces.load(snakemake.input.trace)))
        for name, table in (TABLES | {"weights": WEIGHT_RUNS}).items():
            table.write(made[name], snakemake.output[name])

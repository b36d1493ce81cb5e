"""Tables of single traces put together; the weights of the priority chosen from what was tried on each."""

import polars as pl

from kvtier.frames import Table
from kvtier.jobs import reporting
from kvtier.simulate import trace_studies
from kvtier.simulate.trace_tables import TABLES


def collect(table: Table, paths: list[str]) -> pl.DataFrame:
    return table.check(pl.concat([table.read_csv(path) for path in paths]))


if __name__ == "__main__":
    with reporting(snakemake):
        made = {name: collect(TABLES[name], snakemake.input[name]) for name in TABLES if name != "weights"}
        made["weights"] = trace_studies.choose_weights(collect(trace_studies.WEIGHT_RUNS, snakemake.input.weights))
        for name, table in TABLES.items():
            table.write(made[name], snakemake.output[name])

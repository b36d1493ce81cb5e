"""Revision 2 outputs in the published schemas and names."""

import json

import polars as pl

from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.simulate import records, tables

if __name__ == "__main__":
    with reporting(snakemake):
        published = records.revision2_records(pl.concat(tables.RUNS.read_parquet(path) for path in snakemake.input.runs))
        grid = records.alpha_grid(tables.RUNS.read_parquet(snakemake.input.alpha_grid))
        write_atomically(snakemake.output.records, json.dumps(published, indent=1) + "\n")
        write_atomically(snakemake.output.alpha_grid, json.dumps(grid, indent=1) + "\n")

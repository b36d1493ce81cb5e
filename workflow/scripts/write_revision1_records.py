"""Revision 1 outputs in the published schemas and names."""

import json

from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.simulate import records, tables

if __name__ == "__main__":
    with reporting(snakemake):
        sweep = records.revision1_sweep(tables.RUNS.read_parquet(snakemake.input.budgets))
        cxl_sweep = records.revision1_cxl_sweep(tables.RUNS.read_parquet(snakemake.input.cxl))
        write_atomically(snakemake.output.sweep, json.dumps(sweep, indent=1) + "\n")
        write_atomically(snakemake.output.cxl_sweep, json.dumps(cxl_sweep, indent=1) + "\n")

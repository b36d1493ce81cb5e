"""One shard of a sweep: its share of the runs, one row a run."""

from kvtier.jobs import reporting
from kvtier.simulate import shards, tables

if __name__ == "__main__":
    with reporting(snakemake):
        asked = snakemake.wildcards
        runs = shards.replay(asked.sweep, snakemake.params.settings, int(asked.shard), int(asked.shards))
        tables.RUNS.write(runs, snakemake.output.runs)

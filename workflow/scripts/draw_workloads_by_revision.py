"""Figure: hit rate on three workloads, two revisions."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import workloads_by_revision
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(workloads_by_revision.draw, ledger), **dict(snakemake.output.items()))

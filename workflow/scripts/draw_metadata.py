"""Figure: what a block's metadata costs, as measured."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import metadata
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(metadata.draw, snakemake.input.runs, ledger), **dict(snakemake.output.items()))

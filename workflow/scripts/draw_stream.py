"""Figure: streaming bandwidth against the stated bus, as measured."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import stream
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(stream.draw, snakemake.input.runs, ledger), **dict(snakemake.output.items()))

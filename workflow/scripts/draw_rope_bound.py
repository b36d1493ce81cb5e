"""Figure: rotary bound by distance."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import rope_bound
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(rope_bound.draw, snakemake.input.curve, ledger), **dict(snakemake.output.items()))

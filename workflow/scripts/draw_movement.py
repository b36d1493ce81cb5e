"""Figure: moving a piece of KV, and computing a block again, as measured."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import movement
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(movement.draw, snakemake.input.runs, ledger), **dict(snakemake.output.items()))

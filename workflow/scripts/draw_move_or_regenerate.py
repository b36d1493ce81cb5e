"""Figure: moving against regenerating."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import move_or_regenerate
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(move_or_regenerate.draw, ledger), **dict(snakemake.output.items()))

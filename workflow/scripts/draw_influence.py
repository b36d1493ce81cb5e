"""Figure: decode fits with each row left out."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import influence
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(influence.draw, snakemake.input.platform, ledger), **dict(snakemake.output.items()))

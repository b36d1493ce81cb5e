"""Figure: hit rate against EMA alpha, two revisions."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import alphas_by_revision
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(alphas_by_revision.draw, ledger), **dict(snakemake.output.items()))

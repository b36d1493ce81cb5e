"""Figure: effects in Revision 2 and in Revision 3."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import what_survives
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        draw = partial(what_survives.draw, ledger)
        render.write(draw, **dict(snakemake.output.items()))

"""Figure: hit rate against HBM budget (e1), Revision 2 beside Revision 3 and its optimum."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import revisions_by_budget
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        draw = partial(revisions_by_budget.draw, snakemake.input.old, snakemake.input.new, ledger)
        render.write(draw, **dict(snakemake.output.items()))

"""Figure: hit rate against HBM budget (e1)."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import hit_rate_by_budget
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        draw = partial(hit_rate_by_budget.draw, snakemake.input.runs, ledger)
        render.write(draw, **dict(snakemake.output.items()))

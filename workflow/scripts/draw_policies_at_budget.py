"""Figure: policies at one budget."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import policies_at_budget
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        render.write(partial(policies_at_budget.draw, ledger), **dict(snakemake.output.items()))

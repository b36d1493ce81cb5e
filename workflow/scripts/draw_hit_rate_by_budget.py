"""Figure: hit rate against HBM budget (e1)."""

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import hit_rate_by_budget
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        figure = hit_rate_by_budget.draw(snakemake.input.runs, Ledger.read(snakemake.input.numbers))
        render.write(figure, picture=snakemake.output.picture, specification=snakemake.output.specification, data=snakemake.output.data)

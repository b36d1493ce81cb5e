"""Figure: hit rate against HBM budget (e1), Revision 2 beside Revision 3 and its optimum."""

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import revisions_by_budget
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        figure = revisions_by_budget.draw(snakemake.input.old, snakemake.input.new, Ledger.read(snakemake.input.numbers))
        render.write(figure, picture=snakemake.output.picture, specification=snakemake.output.specification, data=snakemake.output.data)

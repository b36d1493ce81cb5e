"""Figure: hit rate against EMA alpha (e2)."""

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import alpha_curve
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        figure = alpha_curve.draw(snakemake.input.runs, Ledger.read(snakemake.input.numbers))
        render.write(figure, picture=snakemake.output.picture, specification=snakemake.output.specification, data=snakemake.output.data)

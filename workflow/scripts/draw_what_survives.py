"""Figure: effects in Revision 2 and in Revision 3."""

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import what_survives
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        figure = what_survives.draw(Ledger.read(snakemake.input.numbers))
        render.write(figure, picture=snakemake.output.picture, specification=snakemake.output.specification, data=snakemake.output.data)

"""Figure: decode step time against KV size, two frameworks."""

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import decode_fit
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        figure = decode_fit.draw(snakemake.input.rows, snakemake.input.fits, snakemake.input.platform, Ledger.read(snakemake.input.numbers))
        render.write(figure, picture=snakemake.output.picture, specification=snakemake.output.specification, data=snakemake.output.data)

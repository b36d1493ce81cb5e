"""Figure: block requests per CPU second against context length, two simulators."""

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import throughput_by_context
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        given = snakemake.input
        figure = throughput_by_context.draw(given.throughput, given.machine, Ledger.read(given.numbers))
        render.write(figure, picture=snakemake.output.picture, specification=snakemake.output.specification, data=snakemake.output.data)

"""Figure: block requests per CPU second against context length, two simulators."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import throughput_by_context
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        given = snakemake.input
        ledger = Ledger.read(given.numbers)
        draw = partial(throughput_by_context.draw, given.throughput, given.machine, ledger)
        render.write(draw, **dict(snakemake.output.items()))

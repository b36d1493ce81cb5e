"""Figure: decode step time against KV size, two frameworks."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import decode_fit
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        draw = partial(decode_fit.draw, snakemake.input.rows, snakemake.input.fits, snakemake.input.platform, ledger)
        render.write(draw, **dict(snakemake.output.items()))

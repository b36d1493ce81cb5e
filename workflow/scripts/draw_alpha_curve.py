"""Figure: hit rate against EMA alpha (e2)."""

from functools import partial

from kvtier.jobs import reporting
from kvtier.publish import render
from kvtier.publish.charts import alpha_curve
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = Ledger.read(snakemake.input.numbers)
        draw = partial(alpha_curve.draw, snakemake.input.runs, ledger)
        render.write(draw, **dict(snakemake.output.items()))

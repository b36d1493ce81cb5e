"""What a change of cached KV does to the logits: experiments on a small transformer, sums in a fixed order."""

from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.model.experiments import errors_by_layer, experiments
from kvtier.model.numbers import numbers

if __name__ == "__main__":
    with reporting(snakemake):
        table = experiments()
        write_atomically(snakemake.output.experiments, table.write_csv())
        write_atomically(snakemake.output.errors_by_layer, errors_by_layer().write_csv())
        write(snakemake.output.numbers, numbers(table), snakemake)

"""Numbers of the experiments on public traces, from the retained tables."""

from kvtier.evidence import numbers
from kvtier.jobs import reporting
from kvtier.simulate import trace_numbers
from kvtier.simulate.trace_tables import TABLES

if __name__ == "__main__":
    with reporting(snakemake):
        read = {name: table.read_csv(snakemake.input[name]) for name, table in TABLES.items()}
        numbers.write(snakemake.output.numbers, trace_numbers.of_tables(read), snakemake)

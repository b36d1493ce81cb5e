"""CANONICAL-NUMBERS.md: every number that stands, by evidence class."""

from kvtier.jobs import reporting
from kvtier.publish import documents

if __name__ == "__main__":
    with reporting(snakemake):
        documents.write(snakemake.input.template, snakemake.input.numbers, snakemake.output.document, retracted=snakemake.input.retracted)

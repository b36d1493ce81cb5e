"""KV of the models in the catalogue, by context."""

from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.numbers.size import numbers
from kvtier.analytic.tables.size import build
from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        catalogue = Catalogue(snakemake.input.catalogue)
        tables = build(catalogue, snakemake.params.context_tokens, snakemake.params.ranks)
        for name, table in tables.items():
            write_atomically(snakemake.output[name], table.write_csv())
        write(snakemake.output.numbers, numbers(catalogue, tables), snakemake)

"""Search the templates and the README for numbers that are typed and not printed by their key."""

from kvtier.evidence import lint
from kvtier.files import read_yaml, write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        searched = lint.check(snakemake.input.texts, read_yaml(snakemake.input.allowed))
        write_atomically(snakemake.output.report, f"{searched} texts, no bare number\n")

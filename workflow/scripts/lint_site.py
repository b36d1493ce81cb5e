"""Hold the pages of the documentation against the ledger: known keys, a caveat beside simulated values, no typed number."""

from kvtier.files import read_yaml, write_atomically
from kvtier.jobs import reporting
from kvtier.publish import site
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        allowed = {pattern: reason for file in snakemake.input.allowed for pattern, reason in read_yaml(file).items()}
        searched = site.check(snakemake.input.pages, Ledger.read(snakemake.input.numbers), allowed)
        write_atomically(snakemake.output.report, f"{searched} pages, no bare number, no key that may not stand\n")

"""The ledger: union of the numbers of all stages, sorted by key."""

import json

from kvtier.evidence import numbers
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        ledger = numbers.collect(snakemake.input.fragments)
        write_atomically(snakemake.output.ledger, json.dumps(ledger, indent=1, ensure_ascii=False) + "\n")

"""The README, its table of claims filled from the ledger, the map of rules and the kept times of rules."""

from pathlib import Path

from kvtier.certification import claims_table
from kvtier.evidence import retractions
from kvtier.files import read_json, write_atomically
from kvtier.jobs import reporting
from kvtier.publish.ledger import Ledger

if __name__ == "__main__":
    with reporting(snakemake):
        given, rules = snakemake.input, read_json(snakemake.input.rules)
        table = claims_table.table(
            given.claims,
            claims_table.read(given.claims),
            Ledger.read(given.numbers),
            retractions.read(given.retracted),
            rules["published"],
            rules["rules"],
            claims_table.read_times(given.times),
            given.times,
        )
        readme = Path(given.readme).read_text(encoding="utf-8")
        write_atomically(snakemake.output.readme, claims_table.inserted(readme, table, given.readme))

"""The paper as PDF, checked against the ledger before it is typeset."""

import kvtier
from kvtier.jobs import reporting
from kvtier.publish.paper import typeset
from kvtier.publish.sources import Given

if __name__ == "__main__":
    with reporting(snakemake):
        given = snakemake.input
        typeset.write(
            typeset.Manuscript(given.source, given.style, given.bibliography, given.pictures),
            Given(
                numbers=given.numbers,
                verdicts=given.verdicts,
                # The paper calls documents by their short names.
                titles=(),
                found=given.found,
                retracted=given.retracted,
                survival=given.survival,
            ),
            snakemake.output.paper,
            pages=given.pages,
            allowed=given.allowed,
            version=kvtier.__version__,
        )

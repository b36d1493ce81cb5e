"""A page for a browser from its template, the ledger and the claims."""

from kvtier.jobs import reporting
from kvtier.publish.pages import write
from kvtier.publish.sources import Given

if __name__ == "__main__":
    with reporting(snakemake):
        write.page(
            snakemake.params.template,
            snakemake.output.page,
            Given.of(snakemake.input),
            charts=snakemake.input.charts,
            allowed=snakemake.input.allowed,
        )

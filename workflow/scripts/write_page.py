"""A page for a browser from its template, the ledger and the claims."""

from kvtier.jobs import reporting
from kvtier.publish.pages import appendix

if __name__ == "__main__":
    with reporting(snakemake):
        appendix.write(
            snakemake.params.template,
            snakemake.output.page,
            appendix.given(snakemake.input),
            charts=snakemake.input.charts,
            allowed=snakemake.input.allowed,
        )

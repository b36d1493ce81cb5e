"""A document about published claims, findings and retractions, from its template."""

from kvtier.jobs import reporting
from kvtier.publish import documents
from kvtier.publish.sources import Given

if __name__ == "__main__":
    with reporting(snakemake):
        given = snakemake.input
        files = dict(zip(snakemake.params.get("names", []), given.get("files", []), strict=True))
        documents.write_on_claims(
            given.template,
            snakemake.output.document,
            Given.of(given),
            files=files,
            rules=snakemake.params.get("made_by", {}),
        )

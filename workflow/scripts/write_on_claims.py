"""A document about published claims, findings and retractions, from its template."""

from kvtier.jobs import reporting
from kvtier.publish import documents

if __name__ == "__main__":
    with reporting(snakemake):
        given = snakemake.input
        files = dict(zip(snakemake.params.get("names", []), given.get("files", []), strict=True))
        documents.write_on_claims(
            given.template,
            snakemake.output.document,
            numbers=given.numbers,
            verdicts=given.verdicts,
            titles=given.titles,
            found=given.found,
            retracted=given.retracted,
            files=files,
            rules=snakemake.params.get("made_by", {}),
            survival=given.get("survival"),
        )

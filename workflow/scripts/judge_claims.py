"""A verdict on every published value: one record a claim, by id. Fails if a numeric token of the documents is not covered."""

import json

from kvtier.errors import InputError
from kvtier.evidence import claims, coverage
from kvtier.files import read_json, read_yaml, write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        documents = [claims.read(path) for path in snakemake.input.claims]
        excuses = read_yaml(snakemake.input.excuses)
        for document, tokens in zip(documents, snakemake.input.tokens, strict=True):
            if missing := coverage.check(document, tokens, excuses):
                raise InputError(
                    tokens, "coverage", f"{missing[0]} (and {len(missing) - 1} more)", "every token covered by a claim or excused"
                )
        judged = claims.judge_all(documents, read_json(snakemake.input.numbers))
        records = {verdict.claim.id: claims.record(verdict) for verdict in judged}
        write_atomically(snakemake.output.verdicts, json.dumps(records, indent=1, ensure_ascii=False) + "\n")

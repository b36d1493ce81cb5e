"""Audits of every simulated run, from its table and its workload; one finding an audit and run."""

from functools import cache

import polars as pl

from kvtier.audit import compulsory, conservation, findings, lossless, monotonicity
from kvtier.audit.findings import FINDINGS, Finding
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.workload.synthetic import Shape, generate

RULES = {
    "conservation": "runs whose hits, fetches and recomputations do not add up to the blocks that the workload reads",
    "compulsory": "runs that recompute fewer blocks than are read for the first time",
    "monotonicity": "steps to a larger HBM budget that serve fewer blocks",
    "lossless": "evictions whose victim the turn reads or generates",
}


def audit(revision: int, runs: pl.DataFrame, shape: Shape) -> list[Finding]:
    @cache
    def workload(kind, seed):
        return generate(kind, seed, shape, growing=revision == 2)

    return [
        *conservation.audit(runs, workload),
        *compulsory.audit(runs, workload),
        *monotonicity.audit(runs),
        *lossless.audit(runs, must_hold=False),
    ]


def number(revision: int, found: list[Finding]) -> list[Number]:
    totals = []
    for name, what in RULES.items():
        of_rule = [finding for finding in found if finding.audit == name]
        for count, value in (("failed", sum(f.failed for f in of_rule)), ("checked", sum(f.checked for f in of_rule))):
            if of_rule:
                text = f"{what}; all Revision {revision} runs" if count == "failed" else f"cases of: {what}; all Revision {revision} runs"
                totals.append(Number(f"audit.{name}.rev{revision}.{count}", value, "", 0, Label.SIMULATED, text))
    return totals


if __name__ == "__main__":
    with reporting(snakemake):
        shape = Shape(snakemake.params.sessions, snakemake.params.turns)
        found = {
            revision: audit(revision, pl.concat(pl.read_parquet(path) for path in tables), shape)
            for revision, tables in ((1, snakemake.input.revision1), (2, snakemake.input.revision2))
        }
        everything = [finding for of_revision in found.values() for finding in of_revision]
        findings.require(everything)
        FINDINGS.write(findings.table(everything), snakemake.output.findings)
        numbers.write(
            snakemake.output.numbers,
            [value for revision, of_revision in found.items() for value in number(revision, of_revision)],
            snakemake,
        )

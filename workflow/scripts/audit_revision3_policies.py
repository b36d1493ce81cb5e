"""Audits of the policy family, the options and the other workloads of Revision 3: losslessness and the optimal bound, run by run."""

from functools import cache

import polars as pl

from kvtier.audit import edge_runs, findings
from kvtier.audit.findings import FINDINGS, Finding
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import sensitivity, tables
from kvtier.workload.synthetic import Shape, generate

RULES = {
    "lossless": ("evictions whose victim belongs to what is read or generated, whole runs", "evictions, whole runs"),
    "optimum": ("runs that serve more blocks from HBM than is possible under their constraints with all turns known", "runs"),
}
"""Audit to what has failed and what was checked."""


def audit(by_edges: list[pl.DataFrame], by_workload: pl.DataFrame, shape: Shape) -> list[Finding]:
    workload = cache(lambda seed, shape: generate("zipf", seed, shape))
    shapes = {(level.factor, level.level): level.shape for level in sensitivity.levels(shape)}
    return [
        *(finding for runs in by_edges for finding in edge_runs.audit(runs, lambda row: workload(row["seed"], shape))),
        *edge_runs.audit(by_workload, lambda row: workload(row["seed"], shapes[row["factor"], row["level"]])),
    ]


def number(found: list[Finding]) -> list[Number]:
    totals = []
    for name, (failed, checked) in RULES.items():
        of_rule = [finding for finding in found if finding.audit == name]
        which = "policy family, options and other workloads of Revision 3"
        for count, value, what in (
            ("failed", sum(finding.failed for finding in of_rule), failed),
            ("checked", sum(finding.checked for finding in of_rule), checked),
        ):
            about = f"{what}; {which}"
            totals.append(Number(f"audit.{name}.rev3_policies.{count}", value, "", 0, Label.SIMULATED, about, status=Status.PROVISIONAL))
    return totals


if __name__ == "__main__":
    with reporting(snakemake):
        by_edges = [tables.EDGE_RUNS.read_parquet(path) for path in (snakemake.input.policies, snakemake.input.options)]
        by_workload = tables.SENSITIVITY.read_parquet(snakemake.input.sensitivity)
        found = audit(by_edges, by_workload, Shape(snakemake.params.sessions, snakemake.params.turns))
        findings.require(found)
        FINDINGS.write(findings.table(found), snakemake.output.findings)
        numbers.write(snakemake.output.numbers, number(found), snakemake)

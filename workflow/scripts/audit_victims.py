"""Brute-force victim audit of both revisions, one finding a revision and policy."""

from kvtier.audit import findings, victims
from kvtier.audit.findings import FINDINGS, Finding
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate.policies import PUBLISHED, Policy
from kvtier.workload.synthetic import Shape, generate


def audit(sessions: int, turns: int, seed: int, hbm_gib: float) -> dict[tuple[int, Policy], Finding]:
    workload = generate("zipf", seed, Shape(sessions, turns), growing=False)
    return {(revision, policy): victims.audit(revision, policy, workload, hbm_gib) for revision in (1, 2) for policy in PUBLISHED}


def number(found: dict[tuple[int, Policy], Finding], conditions: str) -> list[Number]:
    def make(revision: int, policy: Policy, name: str, value: int, what: str) -> Number:
        key = f"audit.victims.rev{revision}.{policy.slug}.{name}"
        return Number(key, value, "", 0, Label.SIMULATED, f"{what}; Revision {revision}, {policy.title}, {conditions}")

    wrong = "evictions whose victim's score exceeds the smallest resident score by more than 1e-12"
    return [
        value
        for (revision, policy), finding in found.items()
        for value in (
            make(revision, policy, "wrong", finding.failed, wrong),
            make(revision, policy, "evictions", finding.checked, "evictions judged"),
        )
    ]


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        found = audit(params.sessions, params.turns, params.seed, params.hbm_gib)
        findings.require(found.values())
        FINDINGS.write(findings.table(found.values()), snakemake.output.findings)
        conditions = f"{params.sessions} sessions, {params.turns} turns, seed {params.seed}, HBM {params.hbm_gib:g} GiB, no CXL, no growth"
        numbers.write(snakemake.output.numbers, number(found, conditions), snakemake)

"""Brute-force victim audit of both revisions, one finding a revision and policy."""

from kvtier.audit import findings, victims
from kvtier.audit.findings import FINDINGS, Finding
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate.policies import PUBLISHED, Policy
from kvtier.workload.synthetic import Shape, generate


def audit(sessions: int, turns: int, seed: int, hbm_gib: float) -> dict[tuple[int, Policy], tuple[Finding, Finding]]:
    workload = generate("zipf", seed, Shape(sessions, turns), growing=False)
    return {(revision, policy): victims.audit(revision, policy, workload, hbm_gib) for revision in (1, 2) for policy in PUBLISHED}


def number(found: dict[tuple[int, Policy], tuple[Finding, Finding]], conditions: str) -> list[Number]:
    def make(revision: int, policy: Policy, name: str, value: int, what: str) -> Number:
        key = f"audit.victims.rev{revision}.{policy.slug}.{name}"
        definition = f"{what}; Revision {revision}, {policy.title}, {conditions}"
        return Number(key, value, "", 0, Label.SIMULATED, definition, status=Status.PROVISIONAL)

    wrong = "evictions whose victim's score exceeds the smallest resident score by more than 1e-12"
    return [
        value
        for (revision, policy), (published, relative) in found.items()
        for value in (
            make(revision, policy, "wrong", published.failed, wrong),
            make(
                revision,
                policy,
                "wrong_relative",
                relative.failed,
                "evictions whose victim exceeds the smallest score by a billionth of it",
            ),
            make(revision, policy, "evictions", published.checked, "evictions judged"),
        )
    ]


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        found = audit(params.sessions, params.turns, params.seed, params.hbm_gib)
        everything = [finding for pair in found.values() for finding in pair]
        findings.require(everything)
        FINDINGS.write(findings.table(everything), snakemake.output.findings)
        conditions = f"{params.sessions} sessions, {params.turns} turns, seed {params.seed}, HBM {params.hbm_gib:g} GiB, no CXL, no growth"
        numbers.write(snakemake.output.numbers, number(found, conditions), snakemake)

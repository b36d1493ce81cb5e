"""Audits of every simulated run, from its table and its workload; one finding an audit and run."""

from functools import cache
from math import fsum

import polars as pl

from kvtier.audit import compulsory, conservation, findings, lossless, monotonicity, optimum
from kvtier.audit.findings import FINDINGS, Finding
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import tables
from kvtier.simulate.metrics import capacity_blocks
from kvtier.workload.synthetic import Shape, generate

RULES = {
    "conservation": ("runs whose hits, fetches and recomputations do not add up to the blocks that the workload reads", "runs"),
    "compulsory": ("runs that recompute fewer blocks than are read for the first time", "runs"),
    "optimum": ("runs that serve more blocks from HBM than the best demand-fetching schedule that knows all turns ahead", "runs"),
    "monotonicity": ("steps to a larger HBM budget that serve fewer blocks", "steps to a larger HBM budget"),
    "lossless": ("evictions whose victim the turn reads or generates, whole runs", "evictions, whole runs"),
}
"""Audit to what has failed and what was checked."""

SIMULATION = ["workload", "seed", "policy", "alpha", "persist_meta", "hbm_gib", "cxl_gib"]
"""What makes a simulation: runs that agree in these differ in how they are reported only."""


def audit(revision: int, runs: pl.DataFrame, shape: Shape) -> list[Finding]:
    @cache
    def workload(kind, seed):
        return generate(kind, seed, shape, growing=revision > 1)

    return [
        *conservation.audit(runs, workload),
        *compulsory.audit(runs, workload),
        *optimum.audit(runs, workload),
        *monotonicity.audit(runs),
        *lossless.audit(runs.unique(SIMULATION, keep="first", maintain_order=True), must_hold=revision == 3),
    ]


def number(revision: int, found: list[Finding]) -> list[Number]:
    totals = []
    for name, (failed, checked) in RULES.items():
        of_rule = [finding for finding in found if finding.audit == name]
        which = f"distinct Revision {revision} simulations" if name == "lossless" else f"Revision {revision} runs"
        for count, value, what in (
            ("failed", sum(f.failed for f in of_rule), failed),
            ("checked", sum(f.checked for f in of_rule), checked),
        ):
            if of_rule:
                key, definition = f"audit.{name}.rev{revision}.{count}", f"{what}; all {which}"
                totals.append(Number(key, value, "", 0, Label.SIMULATED, definition, status=Status.PROVISIONAL))
    return totals


def over_budget(runs: pl.DataFrame, shape: Shape) -> list[Number]:
    """Turns of e1 that no policy can serve losslessly: what they read and generate is larger than HBM."""
    budgets, seeds = (runs.filter(pl.col("experiment") == "e1")[name].unique(maintain_order=True) for name in ("hbm_gib", "seed"))
    counted_from = runs.filter(pl.col("experiment") == "e1")["counted_from"][0]
    numbers = []
    for gib in budgets:
        shares = {"turns": {}, "reads": {}}
        for seed in seeds:
            turns = generate("zipf", seed, shape)
            read = turns.read_blocks[counted_from:]
            over = read + turns.growth_blocks[counted_from:] > capacity_blocks(gib)
            shares["turns"][seed] = 100 * int(over.sum()) / len(over)
            shares["reads"][seed] = 100 * int(read[over].sum()) / int(read.sum())
        which = f"turns that read and generate more blocks than HBM of {gib:g} GiB holds"
        for name, definition in (("turns", f"{which} / counted turns"), ("reads", f"blocks read by {which} / blocks read")):
            values = list(shares[name].values())
            numbers.append(
                Number(
                    f"workload.zipf.over_budget.{gib:g}.{name}",
                    fsum(values) / len(values),
                    "%",
                    1,
                    Label.SIMULATED,
                    f"{definition}; zipf, turns {counted_from:,} to {shape.turns - 1:,}, mean of seeds {', '.join(map(str, seeds))}",
                    {"lowest_seed": min(values), "highest_seed": max(values)} if len(values) > 1 else {},
                    Status.PROVISIONAL,
                )
            )
    return numbers


if __name__ == "__main__":
    with reporting(snakemake):
        shape = Shape(snakemake.params.sessions, snakemake.params.turns)
        runs = {
            revision: pl.concat(tables.RUNS.read_parquet(path) for path in paths)
            for revision, paths in ((1, snakemake.input.revision1), (2, snakemake.input.revision2), (3, snakemake.input.revision3))
        }
        found = {revision: audit(revision, of_revision, shape) for revision, of_revision in runs.items()}
        everything = [finding for of_revision in found.values() for finding in of_revision]
        findings.require(everything)
        FINDINGS.write(findings.table(everything), snakemake.output.findings)
        totals = [value for revision, of_revision in found.items() for value in number(revision, of_revision)]
        numbers.write(snakemake.output.numbers, [*totals, *over_budget(runs[2], shape)], snakemake)

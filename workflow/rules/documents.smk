"""Documents from templates, and the list of what is published."""


rule write_canonical_numbers:
    """CANONICAL-NUMBERS.md: the numbers that stand, by evidence class. Evidence: each number carries its own label."""
    input:
        code=code_of("write_canonical_numbers"),
        template="src/kvtier/publish/templates/CANONICAL-NUMBERS.md.j2",
        numbers=rules.collect_numbers.output.ledger,
    output:
        document="{results}/CANONICAL-NUMBERS.md",
    log:
        "{results}/logs/write_canonical_numbers.log",
    message:
        "Document: canonical numbers"
    script:
        "../scripts/write_canonical_numbers.py"


# Published file and where the build makes it, in the order of the DAG.
PUBLISHED = {
    "data/sweep_rev1_superseded.json": rules.write_revision1_records.output.sweep,
    "data/cxl_sweep.json": rules.write_revision1_records.output.cxl_sweep,
    "data/results_v2.json": rules.write_revision2_records.output.records,
    "data/alpha_grid.json": rules.write_revision2_records.output.alpha_grid,
    "data/numbers.json": rules.collect_numbers.output.ledger,
    "data/claims.json": rules.judge_claims.output.verdicts,
    "figures/hit_rate_by_budget.svg": rules.draw_hit_rate_by_budget.output.picture,
    "figures/hit_rate_by_budget.vl.json": rules.draw_hit_rate_by_budget.output.specification,
    "figures/hit_rate_by_budget.csv": rules.draw_hit_rate_by_budget.output.data,
    "figures/alpha_curve.svg": rules.draw_alpha_curve.output.picture,
    "figures/alpha_curve.vl.json": rules.draw_alpha_curve.output.specification,
    "figures/alpha_curve.csv": rules.draw_alpha_curve.output.data,
    "figures/decode_fit.svg": rules.draw_decode_fit.output.picture,
    "figures/decode_fit.vl.json": rules.draw_decode_fit.output.specification,
    "figures/decode_fit.csv": rules.draw_decode_fit.output.data,
    "CANONICAL-NUMBERS.md": rules.write_canonical_numbers.output.document,
}

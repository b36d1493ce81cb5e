"""Evidence: the numbers of all stages in one ledger."""

FRAGMENTS = [
    rules.tabulate_capacity.output.numbers,
    rules.tabulate_tiers.output.numbers,
    rules.tabulate_attention.output.numbers,
    rules.tabulate_scoring.output.numbers,
    rules.sweep_revision1_budgets.output.numbers,
    rules.sweep_revision1_cxl.output.numbers,
    rules.sweep_revision1_workloads.output.numbers,
    rules.sweep_revision1_alphas.output.numbers,
    rules.sweep_revision2_budgets.output.numbers,
    rules.sweep_revision2_alphas.output.numbers,
    rules.sweep_revision2_workloads.output.numbers,
    rules.compare_revision2_variants.output.numbers,
    rules.sweep_revision2_alpha_grid.output.numbers,
    rules.renumber_revision2_sessions.output.numbers,
    rules.fit_decode.output.numbers,
    rules.audit_victims.output.numbers,
    rules.audit_runs.output.numbers,
]


rule collect_numbers:
    """One ledger of every stage's numbers. Evidence: each number carries its own label."""
    input:
        code=code_of("collect_numbers"),
        fragments=FRAGMENTS,
    output:
        ledger="{results}/numbers.json",
    log:
        "{results}/logs/collect_numbers.log",
    message:
        "Numbers: one ledger"
    script:
        "../scripts/collect_numbers.py"

"""Evidence: the numbers of all stages in one ledger."""

FRAGMENTS = [
    rules.tabulate_capacity.output.numbers,
    rules.tabulate_tiers.output.numbers,
    rules.tabulate_attention.output.numbers,
    rules.tabulate_scoring.output.numbers,
    rules.tabulate_models.output.numbers,
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
    rules.sweep_revision3_budgets.output.numbers,
    rules.sweep_revision3_alphas.output.numbers,
    rules.sweep_revision3_workloads.output.numbers,
    rules.compare_revision3_variants.output.numbers,
    rules.time_revision3.output.numbers,
    rules.ablate_revision3.output.numbers,
    rules.calibrate_revision3.output.numbers,
    rules.sweep_revision3_policies.output.numbers,
    rules.compare_revision3_options.output.numbers,
    rules.sweep_revision3_sensitivity.output.numbers,
    rules.tabulate_traces.output.numbers,
    rules.fit_decode.output.numbers,
    rules.fit_kept_runs.output.numbers,
    rules.fit_literature.output.numbers,
    rules.tabulate_benchmarks.output.numbers,
    rules.alter_cached_kv.output.numbers,
    rules.audit_victims.output.numbers,
    rules.audit_runs.output.numbers,
    rules.audit_revision3_policies.output.numbers,
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


rule map_rules:
    """Which rule reads and makes which files, for `kvtier impact`. Evidence: none; it holds no number."""
    input:
        code=code_of("map_rules"),
        workflow=["Snakefile", *sorted(map(str, Path("workflow/rules").glob("*.smk")))],
    output:
        rules="results/rules.json",
    log:
        "results/logs/map_rules.log",
    params:
        rules=map_of_rules,
        published=lambda _: {
            path: template.replace("{results}", "results")
            for path, template in PUBLISHED.items()
        },
    message:
        "Rules: who reads and makes what"
    script:
        "../scripts/map_rules.py"

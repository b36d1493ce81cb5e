"""Audits: what can say no to a simulation. (The bus audit stands with the measurements.)"""

RUN_TABLES = {
    "revision1": [
        rules.sweep_revision1_budgets.output.runs,
        rules.sweep_revision1_cxl.output.runs,
        rules.sweep_revision1_workloads.output.runs,
        rules.sweep_revision1_alphas.output.runs,
    ],
    "revision2": [
        rules.sweep_revision2_budgets.output.runs,
        rules.sweep_revision2_alphas.output.runs,
        rules.sweep_revision2_workloads.output.runs,
        rules.compare_revision2_variants.output.runs,
        rules.sweep_revision2_alpha_grid.output.runs,
    ],
    "revision3": [
        rules.sweep_revision3_budgets.output.runs,
        rules.sweep_revision3_alphas.output.runs,
        rules.sweep_revision3_workloads.output.runs,
        rules.compare_revision3_variants.output.runs,
    ],
}


rule audit_victims:
    """Each victim against the brute-force minimum, both revisions, four policies. Evidence: Simulated (provisional)."""
    input:
        code=code_of("audit_victims"),
    output:
        findings=reported("{results}/audit/victims.csv"),
        numbers="{results}/numbers/audit_victims.json",
    log:
        "{results}/logs/audit_victims.log",
    params:
        sessions=setting("audit", "sessions"),
        turns=setting("audit", "turns"),
        seed=setting("audit", "seed"),
        hbm_gib=setting("audit", "hbm_gib"),
    message:
        "Audit: victims against brute force, {params.sessions} sessions, {params.turns} turns"
    script:
        "../scripts/audit_victims.py"


rule audit_runs:
    """Conservation, compulsory floor, optimal bound, monotonicity and losslessness of every run. Evidence: Simulated (provisional)."""
    input:
        **RUN_TABLES,
        code=code_of("audit_runs"),
    output:
        findings=reported("{results}/audit/runs.csv"),
        numbers="{results}/numbers/audit_runs.json",
    log:
        "{results}/logs/audit_runs.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
    message:
        "Audit: conservation, compulsory floor, optimal bound, monotonicity, losslessness"
    script:
        "../scripts/audit_runs.py"


rule audit_revision3_policies:
    """Losslessness and optimal bound of each run of policy family, options and sensitivity. Evidence: Simulated (provisional)."""
    input:
        code=code_of("audit_revision3_policies"),
        policies=rules.sweep_revision3_policies.output.runs,
        options=rules.compare_revision3_options.output.runs,
        sensitivity=rules.sweep_revision3_sensitivity.output.runs,
    output:
        findings=reported("{results}/audit/revision3_policies.csv"),
        numbers="{results}/numbers/audit_revision3_policies.json",
    log:
        "{results}/logs/audit_revision3_policies.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
    message:
        "Audit: losslessness and optimal bound of the policy family"
    script:
        "../scripts/audit_revision3_policies.py"

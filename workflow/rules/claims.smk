"""Claims: what v6.0 printed, against the ledger. Of the full build alone: the quick one does not make the published values."""


rule judge_claims:
    """A verdict on every published value, and proof that none was left out. Evidence: each claim carries its own label."""
    input:
        code=code_of("judge_claims"),
        numbers="results/numbers.json",
        claims=expand(
            "data/published/claims/{document}.yaml",
            document=["appendix", "retractions", "gqa"],
        ),
        tokens=expand(
            "data/published/tokens/{document}.csv",
            document=["appendix", "retractions", "gqa"],
        ),
        excuses="data/published/excuses.yaml",
    output:
        verdicts="results/claims.json",
    log:
        "results/logs/judge_claims.log",
    message:
        "Claims: a verdict on every published value"
    script:
        "../scripts/judge_claims.py"

"""Lint of the words: no number is typed where a document could print it by its key."""


rule lint_documents:
    """Bare numbers in templates, captions, reasons of claims and the README. Evidence: none; it makes no number."""
    input:
        code=code_of("lint_documents"),
        texts=["README.md"]
        + sorted(
            str(path) for path in Path("src/kvtier/publish/templates").glob("*.j2")
        ),
        figures=sorted(
            str(path) for path in Path("src/kvtier/publish/charts").glob("*.py")
        ),
        claims=expand(
            "data/published/claims/{document}.yaml",
            document=["appendix", "retractions", "gqa"],
        ),
        allowed="data/published/allowed_numbers.yaml",
    output:
        report="results/audit/bare_numbers.txt",
    log:
        "results/logs/lint_documents.log",
    message:
        "Lint: bare numbers in templates and README"
    script:
        "../scripts/lint_documents.py"

"""Documentation: the picture of the code, and the pages of the site held against the ledger. The site itself is `make docs`."""


rule draw_architecture:
    """docs/assets/architecture.svg: who imports whom, and which stage reads from which. Evidence: none; it counts the code."""
    input:
        code=code_of("draw_architecture"),
        contract="pyproject.toml",
        modules=sorted(str(path) for path in Path("src/kvtier").rglob("*.py")),
        order="Snakefile",
        rules=rules.map_rules.output.rules,
    output:
        wide="results/docs/assets/architecture.svg",
        narrow="results/docs/assets/architecture-narrow.svg",
    log:
        "results/logs/draw_architecture.log",
    message:
        "Documentation: the picture of the code"
    script:
        "../scripts/draw_architecture.py"


rule lint_site:
    """Keys, caveats and bare numbers in the pages of the documentation. Evidence: none; it makes no number."""
    input:
        code=code_of("lint_site"),
        pages=sorted(str(path) for path in Path("docs").rglob("*.md"))
        + ["CONTRIBUTING.md", "CHANGELOG.md"],
        numbers="results/numbers.json",
        allowed=[
            "data/published/allowed_numbers.yaml",
            "data/published/allowed_in_docs.yaml",
        ],
    output:
        report="results/audit/site.txt",
    log:
        "results/logs/lint_site.log",
    message:
        "Lint: keys and bare numbers in the documentation"
    script:
        "../scripts/lint_site.py"


PUBLISHED["docs/assets/architecture.svg"] = rules.draw_architecture.output.wide
PUBLISHED["docs/assets/architecture-narrow.svg"] = rules.draw_architecture.output.narrow

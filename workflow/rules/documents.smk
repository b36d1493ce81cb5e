"""Documents from templates, and the list of what is published."""

from snakemake.io import strip_wildcard_constraints


rule write_canonical_numbers:
    """CANONICAL-NUMBERS.md: the numbers that stand, by evidence class. Evidence: each number carries its own label."""
    input:
        code=code_of("write_canonical_numbers"),
        template="src/kvtier/publish/templates/CANONICAL-NUMBERS.md.j2",
        traces="src/kvtier/publish/templates/traces.md.j2",
        numbers=rules.collect_numbers.output.ledger,
        retracted="data/published/retractions.yaml",
    output:
        document=reported("{results}/CANONICAL-NUMBERS.md"),
    log:
        "{results}/logs/write_canonical_numbers.log",
    message:
        "Document: canonical numbers"
    script:
        "../scripts/write_canonical_numbers.py"


rule write_claims:
    """CLAIMS.md: what the package printed, claim by claim, with a verdict. Evidence: each claim carries its own label."""
    input:
        code=code_of("write_on_claims"),
        template="src/kvtier/publish/templates/CLAIMS.md.j2",
        numbers="results/numbers.json",
        verdicts=rules.judge_claims.output.verdicts,
        titles=rules.judge_claims.input.claims,
        found="data/published/findings.yaml",
        retracted="data/published/retractions.yaml",
    output:
        document=reported("results/CLAIMS.md"),
    log:
        "results/logs/write_claims.log",
    message:
        "Document: claims and verdicts"
    script:
        "../scripts/write_on_claims.py"


rule write_retractions:
    """RETRACTIONS.md: what was taken back and why, and what this reproduction found. Evidence: each number carries its own label."""
    input:
        code=code_of("write_on_claims"),
        template="src/kvtier/publish/templates/RETRACTIONS.md.j2",
        numbers="results/numbers.json",
        verdicts=rules.judge_claims.output.verdicts,
        titles=rules.judge_claims.input.claims,
        found="data/published/findings.yaml",
        retracted="data/published/retractions.yaml",
        survival="data/published/survival.yaml",
        files=["src/kvtier/simulate/revision1.py"],
    output:
        document=reported("results/RETRACTIONS.md"),
    log:
        "results/logs/write_retractions.log",
    params:
        names=["src/kvtier/simulate/revision1.py"],
    message:
        "Document: retractions and findings"
    script:
        "../scripts/write_on_claims.py"


rule write_erratum:
    """data/ERRATUM.md: Revision 1 against Revision 2. Evidence: Simulated (provisional); Revision 1 is withdrawn."""
    input:
        code=code_of("write_on_claims"),
        template="src/kvtier/publish/templates/ERRATUM.md.j2",
        numbers="results/numbers.json",
        verdicts=rules.judge_claims.output.verdicts,
        titles=rules.judge_claims.input.claims,
        found="data/published/findings.yaml",
        retracted="data/published/retractions.yaml",
    output:
        document=reported("results/data/ERRATUM.md"),
    log:
        "results/logs/write_erratum.log",
    message:
        "Document: erratum"
    script:
        "../scripts/write_on_claims.py"


# Published file and where the build makes it, in the order of the DAG.
PUBLISHED = {
    "data/sweep_rev1_superseded.json": rules.write_revision1_records.output.sweep,
    "data/cxl_sweep.json": rules.write_revision1_records.output.cxl_sweep,
    "data/results_v2.json": rules.write_revision2_records.output.records,
    "data/alpha_grid.json": rules.write_revision2_records.output.alpha_grid,
    "data/numbers.json": rules.collect_numbers.output.ledger,
    "data/claims.json": rules.judge_claims.output.verdicts,
    "CLAIMS.md": rules.write_claims.output.document,
    "RETRACTIONS.md": rules.write_retractions.output.document,
    "data/ERRATUM.md": rules.write_erratum.output.document,
    **{
        path: "{{results}}/{}".format(path)
        for path in expand(
            "figures/{figure}.{end}", figure=FIGURES, end=["svg", "vl.json", "csv"]
        )
    },
    "CANONICAL-NUMBERS.md": rules.write_canonical_numbers.output.document,
}

# Data files by published name: where they are in a build, and the rules of those that it makes.
MADE_DATA = {
    name: template.replace("{results}", "results")
    for name, template in PUBLISHED.items()
    if name.startswith("data/") and name.endswith(".json")
}
KEPT_DATA = [
    str(path)
    for folder in [
        "data/inputs",
        "data/measured",
        "data/bench",
        "data/published",
        "data/traces",
    ]
    for path in sorted(Path(folder).rglob("*"))
    if path.is_file() and path.suffix != ".md"
]
DATA_FILES = {**MADE_DATA, **{path: path for path in KEPT_DATA}}
DATA_RULES = {
    name: made.name
    for name in MADE_DATA
    for made in workflow.rules
    if PUBLISHED[name] in map(strip_wildcard_constraints, map(str, made.output))
}


rule write_data_readme:
    """data/README.md: origin, layout and digest of each data file. Evidence: none of its own."""
    input:
        code=code_of("write_on_claims"),
        template="src/kvtier/publish/templates/DATA-README.md.j2",
        numbers="results/numbers.json",
        verdicts=rules.judge_claims.output.verdicts,
        titles=rules.judge_claims.input.claims,
        found="data/published/findings.yaml",
        retracted="data/published/retractions.yaml",
        files=list(DATA_FILES.values()),
    output:
        document=reported("results/data/README.md"),
    log:
        "results/logs/write_data_readme.log",
    params:
        names=list(DATA_FILES),
        made_by=DATA_RULES,
    message:
        "Document: data files"
    script:
        "../scripts/write_on_claims.py"


PUBLISHED["data/README.md"] = rules.write_data_readme.output.document

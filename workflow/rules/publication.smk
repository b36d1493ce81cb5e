"""The published copy: is it what this build makes, and its renewal."""

from snakemake.io import strip_wildcard_constraints

RULE_OF = {
    strip_wildcard_constraints(str(output)): made.name
    for made in workflow.rules
    for output in made.output
}


rule verify:
    """Compare each built file with its published copy, and say in which rule the first difference arises."""
    input:
        code=code_of("verify_published_copy"),
        built=expand(list(PUBLISHED.values()), results="results"),
        # By a function, so that the map of the rules does not tell whether this machine has the traces.
        replayed=lambda _: list(TRACE_TABLES.values()) if TRACES_REPLAYED else [],
        published=[path for path in PUBLISHED if Path(path).is_file()],
    output:
        report=reported("results/verified.tsv"),
    log:
        "results/logs/verify.log",
    params:
        published=list(PUBLISHED),
        made_by=[RULE_OF[template] for template in PUBLISHED.values()],
        replayed=list(TRACE_TABLES) if TRACES_REPLAYED else [],
        rules=[made.name for made in workflow.rules],
    message:
        "Verify: the build against the published copy"
    script:
        "../scripts/verify_published_copy.py"


rule publish:
    """Renew the published copy from this build, once its words are free of typed numbers."""
    input:
        lint="results/audit/bare_numbers.txt",
        code=code_of("renew_published_copy"),
        built=expand(list(PUBLISHED.values()), results="results"),
    log:
        "results/logs/publish.log",
    params:
        published=list(PUBLISHED),
        made_by=[RULE_OF[template] for template in PUBLISHED.values()],
    message:
        "Publish: renew the tracked copies"
    script:
        "../scripts/renew_published_copy.py"

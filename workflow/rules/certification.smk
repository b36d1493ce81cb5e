"""Certification: what reproducibility reviewers ask for, made from the build and from one description of the artifact. After all that is published."""

from dataclasses import asdict

from kvtier.certification.steps import steps_behind
from snakemake.io import strip_wildcard_constraints

ARTIFACT = "data/published/artifact.yaml"


rule write_citation:
    """CITATION.cff and .zenodo.json, how the artifact is cited and archived. Evidence: none; it holds no number."""
    input:
        code=code_of("write_citation"),
        artifact=ARTIFACT,
    output:
        cff="results/CITATION.cff",
        zenodo="results/.zenodo.json",
    log:
        "results/logs/write_citation.log",
    message:
        "Certification: citation"
    script:
        "../scripts/write_citation.py"


PUBLISHED["CITATION.cff"] = rules.write_citation.output.cff
PUBLISHED[".zenodo.json"] = rules.write_citation.output.zenodo


rule write_readme:
    """README.md with its table of claims filled in. Evidence: each value carries its own label; minutes are Measured, on one machine."""
    input:
        code=code_of("write_readme"),
        readme="README.md",
        claims="data/published/headline_claims.yaml",
        numbers="results/numbers.json",
        retracted="data/published/retractions.yaml",
        rules=rules.map_rules.output.rules,
        times="data/bench/rule_times.csv",
    output:
        readme="results/README.md",
    log:
        "results/logs/write_readme.log",
    message:
        "Certification: table of claims"
    script:
        "../scripts/write_readme.py"


PUBLISHED["README.md"] = rules.write_readme.output.readme

# What is published at the last: each of the three tells of those before it, and none of itself.
PUBLISHED["codecheck.yml"] = "results/codecheck.yml"
PUBLISHED["ro-crate-metadata.json"] = "results/ro-crate-metadata.json"
PUBLISHED["SHA256SUMS"] = "results/SHA256SUMS"

SAYS = {
    made.name: (made.docstring or "").strip().partition("\n")[0]
    for made in workflow.rules
}
# Tables of the traces are listed everywhere, though only a folder with the traces can make them again.
LISTED = {
    path: template
    for path, template in {**PUBLISHED, **TRACE_TABLES}.items()
    if path not in ("codecheck.yml", "ro-crate-metadata.json", "SHA256SUMS")
}
MADE_BY = {
    strip_wildcard_constraints(str(output)): made.name
    for made in workflow.rules
    for output in made.output
}


rule write_codecheck:
    """codecheck.yml: each published file, and the rule that makes it. Evidence: none; it holds no number."""
    input:
        code=code_of("write_codecheck"),
        artifact=ARTIFACT,
    output:
        manifest="results/codecheck.yml",
    log:
        "results/logs/write_codecheck.log",
    params:
        files=list(LISTED),
        made_by=[MADE_BY[template] for template in LISTED.values()],
        says=[SAYS[MADE_BY[template]] for template in LISTED.values()],
    message:
        "Certification: manifest of the published copy"
    script:
        "../scripts/write_codecheck.py"


# The README is left out of what follows: a word in it must not move a digest.
IN_THE_CRATE = {
    template.replace("{results}", "results"): path
    for path, template in LISTED.items()
    if path != "README.md" and path not in TRACE_TABLES
}
STEPS = steps_behind(map_of_rules(None), SAYS, IN_THE_CRATE)


rule pack_crate:
    """ro-crate-metadata.json: what each rule of the build read and made, with digests. Evidence: none of its own."""
    input:
        code=code_of("pack_crate"),
        artifact=ARTIFACT,
        settings="config/full.yaml",
        files=sorted({path for step in STEPS for path in [*step.reads, *step.makes]}),
        workflow=["Snakefile", *sorted(map(str, Path("workflow/rules").glob("*.smk")))],
    output:
        crate="results/ro-crate-metadata.json",
    log:
        "results/logs/pack_crate.log",
    params:
        steps=[asdict(step) for step in STEPS],
        published=IN_THE_CRATE,
    message:
        "Certification: research object crate"
    script:
        "../scripts/pack_crate.py"


SUMMED = {
    **{path: path for path in KEPT_DATA},
    **{path: built for built, path in IN_THE_CRATE.items()},
    "codecheck.yml": rules.write_codecheck.output.manifest,
    "ro-crate-metadata.json": rules.pack_crate.output.crate,
}


rule sum_files:
    """SHA256SUMS of the published copy and of data/; neither of itself nor of the README. Evidence: none; it holds no number."""
    input:
        code=code_of("sum_files"),
        files=list(SUMMED.values()),
    output:
        sums="results/SHA256SUMS",
    log:
        "results/logs/sum_files.log",
    params:
        names=list(SUMMED),
    message:
        "Certification: digests"
    script:
        "../scripts/sum_files.py"


rule certification:
    """Citation, manifest, crate, digests and the README's table of claims."""
    input:
        rules.write_citation.output,
        rules.write_readme.output,
        rules.write_codecheck.output,
        rules.pack_crate.output,
        rules.sum_files.output,

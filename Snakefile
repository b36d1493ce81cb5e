"""From stated inputs to evidence-labelled figures and documents; every published number has a rule here."""

from kvtier.jobs import wait_for_other_builds


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/capacity.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/traces.smk"
include: "workflow/rules/trace_experiments.smk"
include: "workflow/rules/evidence.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/trace_figures.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/documents.smk"
include: "workflow/rules/appendix.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/notebooks.smk"
include: "workflow/rules/docs.smk"
include: "workflow/rules/certification.smk"
include: "workflow/rules/publication.smk"
include: "workflow/rules/lint.smk"


rule all:
    """Rebuild everything and compare it with the published copy."""
    default_target: True
    input:
        rules.lint_documents.output,
        rules.lint_site.output,
        # Named here too, so that a document whose rule failed is missed by the next build.
        expand(list(PUBLISHED.values()), results="results"),
        "results/verified.tsv",
        rules.map_rules.output.rules,
        TRACE_STAGE,
        NOTEBOOK_PAGES,


rule quick:
    """All numbers, and what is drawn of the simulations, on a small workload (config/quick.yaml), into results/quick; they are not the published ones."""
    input:
        expand(
            [
                built
                for built in PUBLISHED.values()
                if "{results}" in built
                and Path(built).name.split(".")[0] not in OF_NO_WORKLOAD
            ],
            results="results/quick",
        ),


rule quick_figures:
    """The other figures beside `quick`: of measurements, traces and shapes, which no setting of the workload moves."""
    input:
        expand("results/quick/figures/{figure}.svg", figure=OF_NO_WORKLOAD),


onstart:
    if TRACES_SKIPPED:
        print(TRACES_SKIPPED, file=sys.stderr)
    # In place of snakemake's own lock, which a killed build leaves behind.
    wait_for_other_builds(".snakemake")

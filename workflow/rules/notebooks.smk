"""Notebooks: each run from top to bottom and written as a page. They read results and make none: no number of a document comes from here."""

NOTEBOOK = dict(
    allowed="data/published/allowed_numbers.yaml",
    template="src/kvtier/publish/templates/notebooks/page.html.j2",
    style="src/kvtier/publish/templates/pages/style.css",
)
LEDGER = ["results/numbers.json", rules.judge_claims.output.verdicts]
CODE_OF_NOTEBOOK = {
    path.stem: sorted(
        {
            *code_of("run_notebook"),
            *(
                from_top(module)
                for module in import_closure(*sorted(set(imported_modules(path))))
            ),
        }
    )
    for path in Path("notebooks").glob("*.py")
}


rule run_where_a_number_comes_from:
    """From a printed value to its record, its rule, and the simulation, run again. Evidence: each value carries its own label."""
    input:
        **NOTEBOOK,
        notebook="notebooks/01-where-a-number-comes-from.py",
        read=[
            *LEDGER,
            # Of a number, the published value is said beside that of the build; of a rule, its line.
            "data/numbers.json",
            "Snakefile",
            *sorted(str(path) for path in Path("workflow/rules").glob("*.smk")),
            "results/simulate/revision2/e1.parquet",
            rules.fit_decode.input.platform,
            rules.fit_decode.input.streaming,
            rules.fit_decode.input.hf,
            rules.fit_decode.input.vllm,
        ],
        code=CODE_OF_NOTEBOOK["01-where-a-number-comes-from"],
    output:
        page="results/notebooks/01-where-a-number-comes-from.html",
    log:
        "results/logs/run_where_a_number_comes_from.log",
    message:
        "Notebook: where a number comes from"
    script:
        "../scripts/run_notebook.py"


rule run_policies_and_the_optimum:
    """A small workload under policies, the optimum and regret, to be moved by the reader. Evidence: Simulated (provisional)."""
    input:
        **NOTEBOOK,
        notebook="notebooks/02-policies-and-the-optimum.py",
        read=LEDGER,
        code=CODE_OF_NOTEBOOK["02-policies-and-the-optimum"],
    output:
        page="results/notebooks/02-policies-and-the-optimum.html",
    log:
        "results/logs/run_policies_and_the_optimum.log",
    message:
        "Notebook: policies and the optimum"
    script:
        "../scripts/run_notebook.py"


rule run_audit_the_audits:
    """Defects planted, and what the audits say of them. Evidence: each value carries its own label; what is planted is Illustrative."""
    input:
        **NOTEBOOK,
        notebook="notebooks/03-audit-the-audits.py",
        read=[*LEDGER, rules.fit_decode.input.platform, rules.fit_decode.input.vllm],
        code=CODE_OF_NOTEBOOK["03-audit-the-audits"],
    output:
        page="results/notebooks/03-audit-the-audits.html",
    log:
        "results/logs/run_audit_the_audits.log",
    message:
        "Notebook: audit the audits"
    script:
        "../scripts/run_notebook.py"


rule run_size_your_own_model_and_trace:
    """KV of a model, hits of a trace made up, break-even. Evidence: Analytical model, and Simulated (provisional); rates assumed."""
    input:
        **NOTEBOOK,
        notebook="notebooks/04-size-your-own-model-and-trace.py",
        read=LEDGER,
        catalogue="data/inputs/catalogue.yaml",
        code=CODE_OF_NOTEBOOK["04-size-your-own-model-and-trace"],
    output:
        page="results/notebooks/04-size-your-own-model-and-trace.html",
    log:
        "results/logs/run_size_your_own_model_and_trace.log",
    message:
        "Notebook: size your own model and trace"
    script:
        "../scripts/run_notebook.py"


NOTEBOOK_PAGES = [
    rules.run_where_a_number_comes_from.output.page,
    rules.run_policies_and_the_optimum.output.page,
    rules.run_audit_the_audits.output.page,
    rules.run_size_your_own_model_and_trace.output.page,
]


rule notebooks:
    """The notebooks alone, as pages."""
    input:
        NOTEBOOK_PAGES,

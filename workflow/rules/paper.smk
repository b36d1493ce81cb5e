"""The paper: typeset from its source, the ledger and the figures that it places."""

import re

PLACED = sorted(
    set(re.findall(r'#chart\("(\w+)"\)', Path("paper/paper.typ").read_text("utf-8")))
)


rule typeset_paper:
    """paper/paper.pdf: the paper, each number by its key. Evidence: each number carries its own label."""
    input:
        code=code_of("typeset_paper"),
        source="paper/paper.typ",
        style="paper/style.typ",
        bibliography="paper/references.bib",
        numbers="results/numbers.json",
        verdicts=rules.judge_claims.output.verdicts,
        found="data/published/findings.yaml",
        retracted="data/published/retractions.yaml",
        survival="data/published/survival.yaml",
        allowed=[
            "data/published/allowed_numbers.yaml",
            "data/published/allowed_in_paper.yaml",
        ],
        pictures=expand("results/figures/{chart}.svg", chart=PLACED),
        pages=expand("results/figures/{chart}.page.json", chart=PLACED),
    output:
        paper=reported("results/paper/paper.pdf"),
    log:
        "results/logs/typeset_paper.log",
    message:
        "Paper: {input.source}"
    script:
        "../scripts/typeset_paper.py"


PUBLISHED["paper/paper.pdf"] = rules.typeset_paper.output.paper

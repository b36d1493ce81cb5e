"""Pages for a browser: the visual appendix, the figure of the scoring streams, the gallery; and every diagram as a file of its own."""

from kvtier.publish.diagrams import catalogue

DIAGRAMS = [diagram.name for diagram in catalogue.read().values()]
PAGE = dict(
    templates=sorted(
        str(path)
        for path in Path("src/kvtier/publish/templates/pages").rglob("*")
        if path.is_file()
    ),
    numbers="results/numbers.json",
    verdicts=rules.judge_claims.output.verdicts,
    titles=rules.judge_claims.input.claims,
    found="data/published/findings.yaml",
    retracted="data/published/retractions.yaml",
    survival="data/published/survival.yaml",
    allowed=[
        "data/published/allowed_numbers.yaml",
        "data/published/allowed_on_pages.yaml",
    ],
    charts=expand("results/figures/{chart}.page.json", chart=FIGURES),
)


rule write_appendix:
    """paper/appendix.html: sixteen parts, every diagram of the technical appendix from the ledger. Evidence: each value carries its own label."""
    input:
        **PAGE,
        code=code_of("write_page"),
    output:
        page=reported("results/paper/appendix.html"),
    log:
        "results/logs/write_appendix.log",
    params:
        template="appendix.html.j2",
    message:
        "Page: the visual appendix"
    script:
        "../scripts/write_page.py"


rule write_gqa:
    """paper/gqa.html: from query heads to one score a block, and what keeping it buys. Evidence: each value carries its own label."""
    input:
        **PAGE,
        code=code_of("write_page"),
    output:
        page=reported("results/paper/gqa.html"),
    log:
        "results/logs/write_gqa.log",
    params:
        template="gqa.html.j2",
    message:
        "Page: scoring streams of grouped-query attention"
    script:
        "../scripts/write_page.py"


rule write_gallery:
    """figures/gallery.html: all figures, to be searched by label and part. Evidence: each figure carries its own label."""
    input:
        **PAGE,
        code=code_of("write_page"),
    output:
        page=reported("results/figures/gallery.html"),
    log:
        "results/logs/write_gallery.log",
    params:
        template="gallery.html.j2",
    message:
        "Page: gallery of figures"
    script:
        "../scripts/write_page.py"


rule draw_diagrams:
    """Each structural diagram as SVG for print, and its values as CSV. Evidence: each value carries its own label."""
    input:
        **PAGE,
        code=code_of("draw_diagrams"),
    output:
        pictures=expand("results/figures/diagrams/{diagram}.svg", diagram=DIAGRAMS),
        values=expand("results/figures/diagrams/{diagram}.csv", diagram=DIAGRAMS),
    log:
        "results/logs/draw_diagrams.log",
    message:
        "Diagrams: as files for print"
    script:
        "../scripts/draw_diagrams.py"


PAGES = {
    "paper/appendix.html": rules.write_appendix.output.page,
    "paper/gqa.html": rules.write_gqa.output.page,
    "figures/gallery.html": rules.write_gallery.output.page,
    **{
        path.removeprefix("results/"): path
        for path in [
            *rules.draw_diagrams.output.pictures,
            *rules.draw_diagrams.output.values,
        ]
    },
}
PUBLISHED.update(PAGES)


rule appendix:
    """The pages for a browser alone, and the diagrams as files."""
    input:
        list(PAGES.values()),

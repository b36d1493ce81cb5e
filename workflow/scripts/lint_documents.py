"""Search the templates and the README for numbers that are typed and not printed by their key."""

from kvtier.evidence import claims, lint
from kvtier.files import read_yaml, write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        allowed = read_yaml(snakemake.input.allowed)
        texts, figures = lint.check(snakemake.input.texts, allowed), lint.check_figures(snakemake.input.figures, allowed)
        reasons = lint.check_reasons(map(claims.read, snakemake.input.claims), allowed)
        write_atomically(snakemake.output.report, f"{texts} texts, {figures} figures and {reasons} claims, no bare number\n")

"""A notebook, searched for typed numbers, run in a fresh kernel, and written as one page."""

from collections.abc import Iterable
from pathlib import Path

from kvtier.files import read_yaml, write_atomically
from kvtier.jobs import reporting
from kvtier.publish.notebooks import page, run


def make(path: str, declared: Iterable[str], allowed: str, checkout: str | Path = ".") -> str:
    notebook = run.read(path)
    run.check_words(path, notebook, read_yaml(allowed))
    return page.render(path, run.execute(path, notebook, Path(checkout).resolve(), declared))


if __name__ == "__main__":
    with reporting(snakemake):
        html = make(snakemake.input.notebook, snakemake.input.read, snakemake.input.allowed)
        write_atomically(snakemake.output.page, html)

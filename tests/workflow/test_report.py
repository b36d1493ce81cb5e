"""Snakemake's own report: every figure and document is in it, with a caption in words and a category."""

import re
from pathlib import Path

import pytest

from kvtier.evidence import lint
from kvtier.files import read_yaml

ROOT = Path(__file__).resolve().parents[2]
CAPTIONS = sorted((ROOT / "workflow/report").rglob("*.rst"))
OWN = {"README.md"}
"""A document that holds a table of the others."""


def rule_files(folder=ROOT):
    return "\n".join(path.read_text() for path in sorted((folder / "workflow/rules").glob("*.smk")))


def published():
    """Files that the tracked manifest lists."""
    return [entry["file"] for entry in read_yaml(ROOT / "codecheck.yml")["manifest"]]


def unreported(files, text):
    """Documents that no rule hands to the report, and figures that are drawn without figure_files, which does."""
    documents = [path for path in files if path.endswith((".md", ".html", ".pdf")) and path not in OWN]
    figures = [Path(path).stem for path in files if re.fullmatch(r"figures/\w+\.svg", path)]
    return [path for path in documents if not re.search(rf'reported\("(?:results|\{{results\}})/{re.escape(path)}"\)', text)] + [
        figure for figure in figures if f'figure_files("{figure}")' not in text
    ]


def test_every_published_document_and_figure_is_reported():
    assert unreported(published(), rule_files()) == []


def test_a_document_that_is_not_reported_is_found():
    text = rule_files().replace('reported("results/CLAIMS.md")', '"results/CLAIMS.md"')
    assert unreported(published(), text) == ["CLAIMS.md"]


def test_every_caption_is_of_something_that_is_reported():
    text = rule_files()
    for caption in CAPTIONS:
        if caption.parent.name != "report":
            assert f'figure_files("{caption.stem}")' in text or re.search(rf'reported\("[^"]*/{re.escape(caption.stem)}\.', text), caption


@pytest.mark.parametrize("caption", CAPTIONS, ids=lambda path: path.stem)
def test_a_caption_is_a_sentence_without_typed_numbers(caption):
    text = caption.read_text()
    assert text.strip().endswith(".")
    assert lint.bare_numbers(text, read_yaml(ROOT / "data/published/allowed_numbers.yaml")) == []

"""From the paper's source to a PDF: pinned fonts, no date, no path, the same bytes on each machine."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import font_source_sans_pro
import typst

from kvtier.errors import InputError
from kvtier.files import read_yaml, write_atomically
from kvtier.publish.ledger import Ledger
from kvtier.publish.paper import transcript, values
from kvtier.publish.sources import Given, Sources, read

STANDARD = "ua-1"
"""PDF/UA-1: tagged, titled, each picture described."""


@dataclass(frozen=True)
class Manuscript:
    """Files of a paper.

    Parameters
    ----------
    source : path
        The text.
    style : path
        The functions that it may call.
    bibliography : path
    pictures : sequence of path
        ``<name>.svg`` of each figure that the text may place.
    """

    source: str | Path
    style: str | Path
    bibliography: str | Path
    pictures: Sequence[str | Path]


@contextmanager
def _compiler(manuscript: Manuscript, printable: Mapping[str, Any]) -> Iterator[typst.Compiler]:
    """A compiler over a folder that holds the manuscript and nothing else, so that no path of a machine enters the result."""
    fonts = typst.Fonts(include_system_fonts=False, font_paths=[font_source_sans_pro.font_directory])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, path in (("paper.typ", manuscript.source), ("style.typ", manuscript.style), ("references.bib", manuscript.bibliography)):
            shutil.copyfile(path, root / name)
        (root / "figures").mkdir()
        for path in manuscript.pictures:
            shutil.copyfile(path, root / "figures" / Path(path).name)
        (root / "values.json").write_text(json.dumps(printable, sort_keys=True), encoding="utf-8")
        try:
            yield typst.Compiler(root / "paper.typ", root=root, font_paths=fonts, ignore_system_fonts=True)
        except RuntimeError as error:
            raise _told(manuscript, error, root) from None


def _told(manuscript: Manuscript, error: RuntimeError, root: Path) -> InputError:
    """A compiler's error in one line, by the names that the files have outside its folder."""
    where = re.search(r"([\w.-]+\.(?:typ|bib)):(\d+)", str(getattr(error, "diagnostic", error)))
    names = {"paper.typ": manuscript.source, "style.typ": manuscript.style, "references.bib": manuscript.bibliography}
    place = f"line {where[2]}" if where else "document"
    found = str(getattr(error, "message", error)).replace(f"{root}/", "")
    return InputError(names.get(where[1] if where else "", manuscript.source), place, found, "a source that compiles")


def queried(compiler: typst.Compiler, label: str) -> list[Any]:
    """Values of the metadata that carry a label, in reading order."""
    try:
        return json.loads(compiler.query(f"<{label}>", field="value"))
    except RuntimeError:
        # A query does not say where the source is at fault; compiling does.
        compiler.compile(format="pdf")
        raise


def render(manuscript: Manuscript, ledger: Ledger, sources: Sources, printable: Mapping[str, Any], allowed: Mapping[str, str]) -> bytes:
    """Check a paper, then typeset it.

    Parameters
    ----------
    manuscript : Manuscript
    ledger : Ledger
    sources : Sources
        Claims, findings, retractions, survivals.
    printable : mapping
        As :func:`kvtier.publish.paper.values.printable` gives it.
    allowed : mapping of str to str
        Patterns of numbers that may be typed.

    Returns
    -------
    bytes
        PDF.

    Raises
    ------
    InputError
        If it does not compile, warns, or prints what it may not; see :func:`kvtier.publish.paper.transcript.check`.
    """
    transcript.check_source(manuscript.source)
    with _compiler(manuscript, printable) as compiler:
        (items,) = queried(compiler, "transcript")
        transcript.check(manuscript.source, items, ledger, sources.claims, sources.retractions, allowed)
        document, warned = compiler.compile_with_warnings(format="pdf", pdf_standards=STANDARD)
        if warned:
            raise _told(manuscript, warned[0], Path())
        return document


def write(
    manuscript: Manuscript, given: Given, path: str | Path, *, pages: Sequence[str | Path], allowed: Sequence[str | Path], version: str
) -> None:
    """Read what was built, check the paper against it, and write the PDF whole.

    Parameters
    ----------
    manuscript : Manuscript
    given : Given
        Ledger, claims, findings, retractions, survivals.
    path : path
        The PDF.
    pages : sequence of path
        ``<name>.page.json`` of the figures.
    allowed : sequence of path
        Lists of patterns of numbers that may be typed.
    version : str
    """
    ledger, sources = read(given)
    patterns = {pattern: reason for file in allowed for pattern, reason in read_yaml(file).items()}
    printable = values.printable(ledger, sources, values.read_figures(pages), version)
    write_atomically(path, render(manuscript, ledger, sources, printable, patterns))

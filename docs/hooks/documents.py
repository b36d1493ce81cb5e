"""The published documents inside the site, at the places they have in the repository, so that their links to each other hold."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

FOLDER = "documents"
DOCUMENTS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SPEC.md",
    "CLAIMS.md",
    "RETRACTIONS.md",
    "CANONICAL-NUMBERS.md",
    "config/README.md",
    "data/README.md",
    "data/ERRATUM.md",
    "data/traces/README.md",
    "data/inputs/README.md",
    "data/inputs/literature/README.md",
    "benchmarks/README.md",
    "notebooks/README.md",
    "paper/paper.pdf",
    "paper/appendix.html",
    "paper/gqa.html",
    "figures/gallery.html",
    "docs/assets/architecture.svg",
)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""Of long tables: their rows are found by `kvtier explain`, and would bury the pages."""

LONG = ("CLAIMS.md", "CANONICAL-NUMBERS.md", "data/README.md")


def linked(text: str, place: str, there: Collection[str]) -> str:
    """A document whose links lead to what the site has; others become their words.

    Parameters
    ----------
    text : str
        Markdown.
    place : str
        Where the document is in the repository.
    there : collection of str
        What the site has, as places in the repository.
    """

    def one(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return match[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        if meant in there:
            return match[0]
        # The documentation's own pages stand one folder up.
        if meant.startswith("docs/") and meant.endswith(".md"):
            up = posixpath.relpath(meant.removeprefix("docs/"), posixpath.join(FOLDER, posixpath.dirname(place)))
            return f"{mark}[{words}]({up}{'#' + anchor if anchor else ''})"
        return words

    return LINK.sub(one, text)


def into_site(text: str, page: str, there: Collection[str]) -> str:
    """A page of the documentation whose links to the repository's documents lead to their copies in the site.

    In the repository a page links to a document where it stands, so that it can be read there too.

    Parameters
    ----------
    text : str
        Markdown.
    page : str
        The page, from the documentation's folder.
    there : collection of str
        Documents that the site has, as places in the repository.
    """
    folder = posixpath.dirname(page)

    def one(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        path, hashed, anchor = target.partition("#")
        meant = posixpath.normpath(posixpath.join("docs", folder, path))
        if re.match(r"[a-z]+:", target) or meant.startswith("docs/") or meant not in there:
            return match[0]
        return f"{mark}[{words}]({posixpath.relpath(posixpath.join(FOLDER, meant), folder or '.')}{hashed}{anchor})"

    return LINK.sub(one, text)

"""What the site gets besides its pages: values by key, parts made from the code, the published documents, the pinned font."""

from __future__ import annotations

import re
from pathlib import Path

import commands
import documents
import rules
import settings
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from kvtier.errors import InputError
from kvtier.publish import font, site
from kvtier.publish.ledger import Ledger
from kvtier.publish.palette import DARK, LIGHT
from kvtier.queries.checkout import Checkout

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("analytic", "workload", "simulate", "measure", "audit", "blocks", "evidence", "queries", "kit")
ROLE = re.compile(r":(?:func|mod|class|data|meth|attr):<code>([~\w.]+)</code>")
"""A role as Markdown leaves it."""
FACES = ((400, "normal", "Regular"), (400, "italic", "It"), (600, "normal", "Semibold"), (700, "normal", "Bold"))


def _ledger() -> Ledger:
    numbers = Checkout(ROOT).numbers
    return Ledger(numbers.path, dict(numbers.by_name))


def architecture() -> str:
    """The picture for wide and narrow pages, in the page's colours: without the file's own."""
    parts = []
    for width, name in (("wide", "architecture"), ("narrow", "architecture-narrow")):
        picture = (ROOT / f"docs/assets/{name}.svg").read_text(encoding="utf-8")
        picture = re.sub(r"<style>.*?</style>|<rect[^>]*var\(--paper\)\"/>", "", picture, count=2)
        parts.append(f'<div class="picture {width}">{picture.strip()}</div>')
    return "\n".join(parts)


MADE = {
    "commands": commands.page,
    "settings": lambda: settings.page(ROOT),
    "rules": lambda: rules.page(ROOT),
    "architecture": architecture,
}


def colours() -> str:
    """The palette of figures and pages as variables, and the faces of the font."""
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in palette.items()) for palette in (LIGHT, DARK))
    faces = [
        f"@font-face{{font-family:'{font.FAMILY}';font-weight:{weight};font-style:{style};src:url({name}.ttf)}}"
        for weight, style, name in FACES
    ]
    return "\n".join([*faces, f":root{{{light}}}", f"[data-md-color-scheme=slate]{{{dark}}}"]) + "\n"


def on_files(files: Files, config) -> Files:
    """Add what is made: reference of packages, documents, colours, font."""
    made: dict[str, str | bytes] = {f"reference/packages/{name}.md": rules.package(ROOT, name) for name in PACKAGES}
    # What is not built or written yet is left out, and a link to it fails the build.
    there = [name for name in documents.DOCUMENTS if (ROOT / name).is_file()]
    for name in there:
        content = (ROOT / name).read_bytes()
        if name.endswith(".md"):
            text = documents.linked(content.decode(), name, there)
            content = (documents.UNSEARCHED if name in documents.LONG else "") + text
        made[f"{documents.FOLDER}/{name}"] = content
    made["assets/colours.css"] = colours()
    made |= {f"assets/{name}.ttf": font.path(name).read_bytes() for *_, name in FACES}
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Values and made parts, in pages of the documentation; documents have theirs already."""
    place = page.file.src_uri
    if not place.startswith(f"{documents.FOLDER}/"):
        markdown = documents.into_site(markdown, place, documents.DOCUMENTS)
    elif not place.endswith(("CHANGELOG.md", "CONTRIBUTING.md")):
        return markdown
    try:
        return site.expand(f"docs/{place}", markdown, _ledger(), MADE)
    except InputError as error:
        raise PluginError(str(error)) from None


def linked_roles(html: str) -> str:
    """Roles of docstrings as links, where the reference has what they name, else as its name."""

    def one(match: re.Match[str]) -> str:
        name = match[1].removeprefix("~")
        shown = f"<code>{name.rpartition('.')[2] if match[1].startswith('~') else name}</code>"
        return f'<autoref optional identifier="{name}">{shown}</autoref>' if name.startswith("kvtier.") else shown

    return ROLE.sub(one, html)


def on_page_content(html: str, page, config, files) -> str:
    """Docstrings are written with roles, which Markdown does not know."""
    return linked_roles(html) if page.file.src_uri.startswith("reference/packages/") else html


def on_post_build(config) -> None:
    """Leave out what carries the day of the build and serves a public address that there is not."""
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        Path(config.site_dir, name).unlink(missing_ok=True)

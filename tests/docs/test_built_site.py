"""The site as it is built: nothing from elsewhere, the same bytes twice, and no page with a value that may not stand."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="make docs installs it")

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"""<(?:script|img|iframe|source|object|embed|video|audio)\b[^>]*?\b(?:src|data)=["']?([^"'\s>]+)""")
LINKED = re.compile(r"""<link\b(?=[^>]*\brel=["']?(?:stylesheet|icon|preload|preconnect|modulepreload))[^>]*?\bhref=["']?([^"'\s>]+)""")
STYLED = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""")

pytestmark = pytest.mark.xdist_group("site")


def build(folder, **environment):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(folder, PYTHONHASHSEED="1", TZ="UTC")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def from_elsewhere(folder):
    """(file, address) of everything that a page or style sheet would load from a network."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".html":
            text = path.read_text(encoding="utf-8")
            styles = "".join(re.findall(r"<style.*?</style>", text, re.DOTALL))
            found += [(path.name, url) for url in LOADED.findall(text) + LINKED.findall(text) + STYLED.findall(styles)]
        elif path.suffix == ".css":
            found += [(path.name, url) for url in STYLED.findall(path.read_text(encoding="utf-8"))]
    return [(name, url) for name, url in found if re.match(r"(?:https?:)?//", url)]


def test_nothing_is_loaded_from_elsewhere(site):
    assert len(list(site.rglob("*.html"))) > 30
    assert from_elsewhere(site) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.html", '<script src="https://example.org/x.js"></script>'),
        ("page.html", "<script async src=//example.org/x.js></script>"),
        ("page.html", '<link rel="stylesheet" href="https://example.org/x.css">'),
        ("page.html", '<img alt="a" src="http://example.org/x.png">'),
        ("page.html", "<style>a{background:url(https://example.org/x.png)}</style>"),
        ("look.css", '@font-face{src:url("https://example.org/x.woff2")}'),
        ("look.css", '@import "https://example.org/x.css";'),
    ],
)
def test_what_is_loaded_from_elsewhere_is_seen(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert len(from_elsewhere(tmp_path)) == 1


def test_no_diagram_needs_a_renderer(site):
    """The theme would fetch one."""
    assert [path.name for path in site.rglob("*.html") if 'class="mermaid' in path.read_text(encoding="utf-8")] == []


def test_no_page_names_the_folder_it_was_built_in(site):
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert str(site) not in text, path


def test_the_same_bytes_twice(site, tmp_path):
    done = build(tmp_path / "again", PYTHONHASHSEED="2", TZ="Asia/Tokyo", LANG="C")
    assert done.returncode == 0, done.stdout + done.stderr
    files = [{path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()} for top in (site, tmp_path / "again")]
    assert files[0].keys() == files[1].keys()
    assert [str(path) for path in files[0] if files[0][path] != files[1][path]] == []


def test_documented_functions_are_there(site):
    page = (site / "reference/packages/analytic.html").read_text(encoding="utf-8")
    assert 'id="kvtier.analytic.breakeven.from_rate"' in page
    assert 'id="kvtier.analytic.breakeven"' in page


def test_retracted_values_are_struck_through(site):
    page = (site / "documents/RETRACTIONS.html").read_text(encoding="utf-8")
    assert page.count("<del>") > 20
    assert "~~" not in page


def test_roles_of_docstrings_are_links(site, hook):
    page = (site / "reference/packages/simulate.html").read_text(encoding="utf-8")
    assert ":func:" not in page
    assert ":mod:" not in page
    assert 'href="#kvtier.simulate.revision3.replay_edges"' in page
    linked = hook("build_site").linked_roles
    assert linked(":func:<code>alias</code>") == "<code>alias</code>"
    assert linked(":class:<code>~kvtier.a.B</code>") == '<autoref optional identifier="kvtier.a.B"><code>B</code></autoref>'


def page_of(place):
    return SimpleNamespace(file=SimpleNamespace(src_uri=place))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{{ num("no.such.key") }}', r"numbers\.json: no\.such\.key: found no such key"),
        ('{{ num("sim.rev1.budgets.32.ema015.hit") }} {{ caveat() }}', r"numbers\.json: .*: found a number that is withdrawn"),
        ('{{ num("sim.rev2.e1.32.lru.hit") }}', r"docs/page\.md: .*: found a simulated value and no caveat"),
        ("{{ unknown() }}", r"docs/page\.md: call: found \{\{ unknown\(\) \}\}"),
    ],
)
def test_a_value_that_may_not_stand_ends_the_build(hook, text, said):
    from mkdocs.exceptions import PluginError

    with pytest.raises(PluginError, match=said):
        hook("build_site").on_page_markdown(text, page_of("page.md"), None, None)


def test_documents_have_their_values_already(hook):
    text = "`{{ num(key) }}` {{ num(key) }}"
    assert hook("build_site").on_page_markdown(text, page_of("documents/SPEC.md"), None, None) == text

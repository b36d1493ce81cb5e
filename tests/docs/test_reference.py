"""Reference pages are made from what they describe, and refuse to leave something out."""

import re
import shutil
from pathlib import Path

import click
import pytest

from kvtier.cli import main
from kvtier.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_and_option_is_described(hook):
    commands = hook("commands")
    page = commands.page()
    seen = 0
    for name, command, context in commands.walk(main, "kvtier"):
        assert re.search(rf"^##+ `{name}`$", page, re.MULTILINE), name
        for given in command.get_params(context):
            if isinstance(given, click.Option) and not given.hidden:
                assert all(word in page for word in given.opts), (name, given.opts)
                seen += 1
    assert seen > 60


def test_a_new_option_appears(hook):
    commands = hook("commands")

    @click.command()
    @click.option("--planted", metavar="A|B", help="Of [brackets].")
    def planted():
        """What it does."""

    context = click.Context(planted, info_name="planted")
    assert commands.option(planted.params[0], context) == (r"`--planted A\|B`", r"Of \[brackets\].")


def test_examples_are_code(hook):
    said = hook("commands").prose("Head.\n\n    \b\n    Examples:\n      kvtier audit --all\n\n    Foot, with --all.")
    assert said == "Head.\n\nExamples:\n\n```sh\nkvtier audit --all\n```\n\nFoot, with `--all`."


@pytest.fixture
def configuration(tmp_path):
    """A copy of what the page of the configuration is made from."""
    for place in ("config", "workflow/schemas"):
        shutil.copytree(ROOT / place, tmp_path / place)
    return tmp_path


def test_every_setting_has_its_row(hook, configuration):
    page = hook("settings").page(configuration)
    assert "| `counted_from` | turn | first turn that warm runs count |" in page
    assert "| `seeds` | seed | budget sweep |" in page
    assert "| `budgets_gib` | GiB | budget sweep |" in page
    assert page.count("\n## `") == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("| `workload.counted_from` | turn |", "| counted | turn |", r"workload\.counted_from: found no row"),
        ("`traces.folder`", "`traces.holder`", r"traces\.\w+: found"),
    ],
)
def test_a_setting_without_its_meaning_is_refused(hook, configuration, old, new, message):
    path = configuration / "config/README.md"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        hook("settings").page(configuration)


def test_every_rule_is_described(hook):
    page = hook("rules").page(ROOT)
    files = [ROOT / "Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]
    written = [name for path in files for name in re.findall(r"^rule (\w+):", path.read_text(), re.MULTILINE)]
    assert len(written) > 60
    assert [name for name in written if f"| `{name}` |" not in page] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule draw:\n    input: 'a'\n", "docstring: found none"),
        ('"""A stage."""\n\nrule draw:\n    input: "a"\n', "draw: found no docstring"),
    ],
)
def test_a_rule_without_words_is_refused(hook, tmp_path, text, message):
    path = tmp_path / "stage.smk"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        hook("rules").stage(path)


def test_every_public_module_is_in_the_reference(hook):
    page = hook("rules").package(ROOT, "workload")
    assert "::: kvtier.workload.traces.generic\n" in page
    assert len(re.findall("^:::", page, re.MULTILINE)) == sum(
        not path.stem.startswith("_") for path in (ROOT / "src/kvtier/workload").rglob("*.py")
    )


def test_links_of_a_document_lead_to_what_is_there(hook):
    linked = hook("documents").linked
    text = "[a](CLAIMS.md#d1) [b](src/x.py) [c](https://example.org) [d](#here) ![e](docs/assets/architecture.svg) [f](docs/how-to/g.md)"
    there = ["README.md", "CLAIMS.md", "docs/assets/architecture.svg"]
    expected = "[a](CLAIMS.md#d1) b [c](https://example.org) [d](#here) ![e](docs/assets/architecture.svg) [f](../how-to/g.md)"
    assert linked(text, "README.md", there) == expected
    assert linked("[a](../CLAIMS.md)", "data/README.md", there) == "[a](../CLAIMS.md)"


def test_links_of_a_page_to_documents_lead_to_their_copies(hook):
    into_site = hook("documents").into_site
    there = ["CLAIMS.md", "data/README.md", "docs/assets/architecture.svg"]
    text = "[a](../../CLAIMS.md#d1) [b](formats.md) [c](https://example.org) [d](#e) [f](../assets/g.svg) [h](../../NONE.md)"
    expected = "[a](../documents/CLAIMS.md#d1) [b](formats.md) [c](https://example.org) [d](#e) [f](../assets/g.svg) [h](../../NONE.md)"
    assert into_site(text, "reference/documents.md", there) == expected
    assert into_site("[a](../data/README.md)", "index.md", there) == "[a](documents/data/README.md)"

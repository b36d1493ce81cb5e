"""The picture of the code follows the code."""

import re
import shutil
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.publish import architecture

ROOT = Path(__file__).resolve().parents[2]

CONTRACT = """
[[tool.importlinter.contracts]]
name = "one way"
type = "layers"
layers = [{layers}]
"""
RULES = {
    "sweep": {"file": "workflow/rules/simulate.smk", "inputs": [], "outputs": ["runs"]},
    "again": {"file": "workflow/rules/simulate.smk", "inputs": ["runs"], "outputs": ["more"]},
    "draw": {"file": "workflow/rules/figures.smk", "inputs": ["runs", "more", "elsewhere"], "outputs": ["picture"]},
}


@pytest.fixture
def small(tmp_path):
    """A package of three modules, its contract, and how to write a module."""
    (tmp_path / "kvtier/simulate").mkdir(parents=True)

    def module(name, text):
        (tmp_path / "kvtier" / name).write_text(text)

    def contract(*layers):
        path = tmp_path / "pyproject.toml"
        path.write_text(CONTRACT.format(layers=", ".join(f'"{layer}"' for layer in layers)))
        return path

    module("__init__.py", "")
    module("units.py", "")
    module("simulate/__init__.py", "")
    module("simulate/engine.py", "from kvtier import units\nfrom kvtier.units import GIB\n")
    module("cli.py", "def main():\n    import kvtier.simulate.engine\n    from kvtier.simulate import engine\n")
    return tmp_path, module, contract


def test_counts_pairs_of_modules(small):
    source, _, contract = small
    found = architecture.packages(contract("kvtier.cli", "kvtier.simulate", "kvtier.units"), source)
    assert found.names == ("cli", "simulate", "units")
    assert found.sizes == (1, 2, 1)
    assert found.counts == {("cli", "simulate"): 1, ("simulate", "units"): 1}


def test_follows_a_new_layer_and_a_new_import(small):
    source, module, contract = small
    before = architecture.packages(contract("kvtier.cli", "kvtier.simulate", "kvtier.units"), source)
    module("files.py", "")
    module("simulate/tables.py", "import kvtier.files\n")
    after = architecture.packages(contract("kvtier.cli", "kvtier.simulate", "kvtier.files", "kvtier.units"), source)
    assert after.counts == before.counts | {("simulate", "files"): 1}
    build = architecture.stages(ROOT / "Snakefile", RULES)
    assert architecture.draw(720, before, build).marks != architecture.draw(720, after, build).marks
    assert "files" in architecture.told(after, build)


@pytest.mark.parametrize(
    ("layers", "text", "message"),
    [
        (["kvtier.cli", "kvtier.units", "kvtier.simulate"], "", "kvtier.simulate imports kvtier.units"),
        (["kvtier.cli", "kvtier.simulate | kvtier.units"], "", "kvtier.simulate imports kvtier.units"),
        (["kvtier.cli", "kvtier.simulate", "kvtier.units"], "import kvtier.cli\n", "kvtier.units imports kvtier.cli"),
        (["kvtier.cli", "kvtier.simulate"], "", "no kvtier.units"),
        (["kvtier.cli", "kvtier.simulate", "kvtier.units", "kvtier.gone"], "", "kvtier.gone"),
    ],
)
def test_refuses_what_the_picture_would_hide(small, layers, text, message):
    source, module, contract = small
    module("units.py", text)
    with pytest.raises(InputError, match=re.escape(message)):
        architecture.packages(contract(*layers), source)


def test_one_contract_of_layers(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.importlinter]\n")
    with pytest.raises(InputError, match="0 contracts of layers, expected one"):
        architecture.layers(path)


def test_stages_count_pairs_of_rules():
    found = architecture.stages(ROOT / "Snakefile", RULES)
    assert found.names == ("simulate", "figures")
    assert found.sizes == (2, 1)
    assert found.counts == {("figures", "simulate"): 2}


def test_a_stage_that_is_not_included():
    stray = {"stray": {"file": "workflow/rules/stray.smk", "inputs": [], "outputs": []}}
    with pytest.raises(InputError, match=r"no workflow/rules/stray\.smk, which has rule stray"):
        architecture.stages(ROOT / "Snakefile", stray)


def test_counts_are_those_of_another_reader():
    """import-linter's own graph of the package, by another reader of the source."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("kvtier", cache_dir=None)
    found = architecture.packages(ROOT / "pyproject.toml", ROOT / "src")
    pairs = {
        (user, used) for user in graph.modules for used in graph.find_modules_directly_imported_by(user) if "." in user and "." in used
    }
    counts = {}
    for user, used in pairs:
        ends = user.split(".")[1], used.split(".")[1]
        if ends[0] != ends[1]:
            counts[ends] = counts.get(ends, 0) + 1
    assert counts == found.counts


def test_the_same_bytes_twice_and_nothing_from_elsewhere(small, tmp_path):
    source, _, contract = small
    code = architecture.packages(contract("kvtier.cli", "kvtier.simulate", "kvtier.units"), source)
    build = architecture.stages(ROOT / "Snakefile", RULES)
    written = []
    for name in ("one", "two"):
        architecture.write(tmp_path / name / "wide.svg", tmp_path / name / "narrow.svg", code, build)
        written.append([(tmp_path / name / f"{form}.svg").read_bytes() for form in ("wide", "narrow")])
        shutil.rmtree(tmp_path / name)
    assert written[0] == written[1]
    text = written[0][0].decode()
    assert "prefers-color-scheme:dark" in text
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]

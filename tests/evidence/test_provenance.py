"""Code closure: what a change to a module must remake, found without running anything."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvtier.evidence import provenance
from kvtier.evidence.provenance import SOURCE_ROOT, import_closure, imported_modules, module_path, of_job
from kvtier.files import sha256

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A package in place of the real one, from a mapping of relative path to source."""
    monkeypatch.setattr(provenance, "SOURCE_ROOT", tmp_path)
    import_closure.cache_clear()

    def plant(**sources):
        (tmp_path / "kvtier/sub").mkdir(parents=True)
        for folder in ("kvtier", "kvtier/sub"):
            (tmp_path / folder / "__init__.py").write_text("")
        for name, source in sources.items():
            (tmp_path / f"kvtier/{name.replace('__', '/')}.py").write_text(source)

        def closure(*modules):
            return {str(path.relative_to(tmp_path / "kvtier")) for path in import_closure(*modules)}

        return closure

    yield plant
    import_closure.cache_clear()


def test_closure_follows_imports_of_imports(tree):
    closure = tree(a="from kvtier import b", b="import kvtier.sub.c", sub__c="import numpy", d="from kvtier import a")
    assert closure("kvtier.a") == {"__init__.py", "a.py", "b.py", "sub/__init__.py", "sub/c.py"}
    assert closure("kvtier.b") == {"__init__.py", "b.py", "sub/__init__.py", "sub/c.py"}
    assert closure("kvtier.d") == {"__init__.py", "a.py", "b.py", "d.py", "sub/__init__.py", "sub/c.py"}


def test_imports_inside_functions_and_under_conditions_count(tree):
    closure = tree(
        a="def chart():\n    from kvtier.b import draw\n    if draw:\n        import kvtier.c as c, json\n",
        b="draw = 1",
        c="try:\n    from kvtier.sub import *\nexcept ImportError:\n    pass\n",
    )
    assert closure("kvtier.a") == {"__init__.py", "a.py", "b.py", "c.py", "sub/__init__.py"}


def test_names_inside_a_module_are_no_modules(tree):
    closure = tree(a="from kvtier.b import c", b="c = 1", c="")
    assert closure("kvtier.a") == {"__init__.py", "a.py", "b.py"}


def test_circles_end(tree):
    closure = tree(a="from kvtier import b", b="from kvtier import a")
    assert closure("kvtier.a") == closure("kvtier.b") == {"__init__.py", "a.py", "b.py"}


def test_words_in_strings_and_comments_are_no_imports(tree):
    closure = tree(a='"""import kvtier.b"""\n# import kvtier.b\n', b="")
    assert closure("kvtier.a") == {"__init__.py", "a.py"}


def test_a_module_that_is_not_there_is_an_error(tree):
    closure = tree(a="")
    with pytest.raises(ModuleNotFoundError, match=r"no module kvtier\.lost"):
        closure("kvtier.a", "kvtier.lost")


def test_editing_the_engine_reaches_what_simulates_and_nothing_analytic():
    engine = module_path("kvtier.simulate.engine")
    scripts = sorted((ROOT / "workflow/scripts").glob("*.py"))
    reached = {script.stem for script in scripts if engine in import_closure(*imported_modules(script))}
    assert {script.stem for script in scripts if script.stem.startswith(("sweep_", "compare_"))} <= reached
    assert reached.isdisjoint(script.stem for script in scripts if script.stem.startswith(("tabulate_", "fit_", "collect_")))


@pytest.mark.parametrize("module", ["kvtier.simulate.sweeps", "kvtier.audit.victims", "kvtier.evidence.simulated"])
def test_closure_holds_all_that_an_import_loads(module):
    """The interpreter as the oracle: files of this package that are loaded once the module is imported."""
    report = "import json, sys, {0}; print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'kvtier']))"
    loaded = subprocess.run([sys.executable, "-c", report.format(module)], capture_output=True, text=True, check=True).stdout
    assert set(json.loads(loaded)) == {str(path) for path in import_closure(module)}


def test_the_package_has_no_relative_imports():
    """They would escape the closure."""
    lines = [line for path in SOURCE_ROOT.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if line.lstrip().startswith("from .")] == []


def test_a_job_lists_data_by_hash_and_leaves_code_out(tmp_path):
    rows, code = tmp_path / "rows.csv", tmp_path / "code.py"
    rows.write_text("a\n")
    code.write_text("x = 1\n")
    job = SimpleNamespace(rule="fit", params={"z": 1, "a": [2]}, input=[str(rows), str(code)])
    assert of_job(job) == {"rule": "fit", "params": {"a": [2], "z": 1}, "inputs": {str(rows): sha256(rows)}}
    before = of_job(job)
    code.write_text("x = 2\n")
    assert of_job(job) == before
    rows.write_text("b\n")
    assert of_job(job) != before

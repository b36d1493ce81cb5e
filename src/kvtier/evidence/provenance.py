"""What made a file: the rule, its parameters, its data by hash and its code by module."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from kvtier.files import sha256

SOURCE_ROOT = Path(__file__).resolve().parents[2]
"""Folder that holds the package."""


def module_path(module: str) -> Path | None:
    """Source file of a module of this package, or None if there is none (a name inside a module, say)."""
    base = SOURCE_ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def imported_modules(path: Path) -> tuple[str, ...]:
    """Modules of this package that a source file imports anywhere in it, also inside functions, sorted.

    A file is parsed once a process: a workflow asks for the modules that most rules share dozens of times.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found.update(name for name in names if name.split(".")[0] == "kvtier" and module_path(name))
    return tuple(sorted(found))


@cache
def import_closure(*modules: str) -> tuple[Path, ...]:
    """Source files of the modules and of everything in this package that they import, sorted.

    Raises
    ------
    ModuleNotFoundError
        If a module named by the caller does not exist.
    """
    seen: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        path = module_path(module)
        if path is None:
            raise ModuleNotFoundError(f"no module {module} under {SOURCE_ROOT}")
        seen[module] = path
        waiting.extend(imported_modules(path))
        if "." in module:
            waiting.append(module.rpartition(".")[0])
    return tuple(sorted(seen.values()))


def of_job(job: Any) -> dict[str, Any]:
    """Rule, parameters and data inputs (with sha256) of the snakemake job that runs.

    Code is left out of the hashes: a comment must not move the ledger. Git and the rule's inputs tell the code. So are the shards of the
    job's own sweep: into how many jobs it was dealt out is no source of a number.
    """
    left_out = {str(path) for path in getattr(job.input, "shards", ())}
    read = [str(path) for path in job.input if Path(path).suffix not in {".py", ".smk"} and str(path) not in left_out]
    inputs = {path: sha256(path) for path in read}
    return {"rule": job.rule, "params": dict(sorted(job.params.items())), "inputs": dict(sorted(inputs.items()))}


def command(rule: str) -> str:
    """What remakes the numbers of a rule: its chain on a clean ``results/``, the rule itself where all is built already."""
    return f"snakemake --cores all --force results/numbers/{rule}.json"

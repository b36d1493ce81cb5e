"""Reference of the rules, from their own docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from kvtier.errors import InputError
from kvtier.publish.architecture import INCLUDE

RULE = re.compile(r'^rule (\w+):\n    """(.*?)"""(.*?)(?=^\S|\Z)', re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r'"\.\./scripts/(\w+\.py)"')


def stage(path: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """What a file of rules says of itself, and (rule, what it says, its script) of each.

    Raises
    ------
    InputError
        If the file, or a rule in it, has no docstring.
    """
    text = path.read_text(encoding="utf-8")
    about = re.match(r'"""(.*?)"""', text, re.DOTALL)
    if not about:
        raise InputError(path, "docstring", "none", "a line on what the stage makes")
    found = [(name, " ".join(said.split()), "".join(SCRIPT.findall(rest)[:1])) for name, said, rest in RULE.findall(text)]
    for name in sorted(set(re.findall(r"^rule (\w+):", text, re.MULTILINE)) - {name for name, *_ in found}):
        raise InputError(path, name, "no docstring", "a line on what the rule makes, and its evidence class")
    return " ".join(about[1].split()), found


def _cell(words: str) -> str:
    return re.sub(r"(?<![\w`/])((?:[\w.-]+/)*[\w-]+\.(?:json|md|html|yaml|csv|svg|pdf))(?![\w/`])", r"`\1`", words).replace("|", r"\|")


def _by(rule: str, script: str) -> str:
    """The script, where it has another name than the rule."""
    return f" By `{script}`." if script and script != f"{rule}.py" else ""


def page(root: Path) -> str:
    """Stages in the order of the Snakefile, each with its rules."""
    lines = []
    included = INCLUDE.findall((root / "Snakefile").read_text(encoding="utf-8"))
    for name, path in [("Targets", "Snakefile"), *((name, f"workflow/rules/{name}.smk") for name in included)]:
        about, found = stage(root / path)
        if not found:
            continue
        lines += ["", f"## {name}", "", _cell(about), "", "| rule | what it makes |", "|---|---|"]
        lines += [f"| `{rule}` | {_cell(said)}{_by(rule, script)} |" for rule, said, script in found]
    return "\n".join(lines)


def package(root: Path, name: str) -> str:
    """Reference of a package: a heading and a directive for each public module."""
    folder = root / "src/kvtier" / name
    about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = sorted(
        ".".join((*path.relative_to(folder).parent.parts, path.stem)) for path in folder.rglob("*.py") if not path.stem.startswith("_")
    )
    return "\n\n".join([f"# kvtier.{name}", about, *(f"::: kvtier.{name}.{module}" for module in modules)]) + "\n"

"""The picture of the code, counted from the code: which package imports which, and which stage of the build reads what which other makes.

Both are matrices: a row is who imports or reads, a column whose. Layers are those of the import contract in ``pyproject.toml``; stages are
the files of ``workflow/rules/`` in the order in which the Snakefile includes them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import write_atomically
from kvtier.publish.drawing import NARROW, WIDE, Canvas
from kvtier.publish.facts import Facts
from kvtier.publish.font import FAMILIES, measure
from kvtier.publish.ledger import Ledger
from kvtier.publish.palette import DARK, LIGHT
from kvtier.publish.verdicts import Claims

PACKAGE = "kvtier"
INCLUDE = re.compile(r'^include: "workflow/rules/(\w+)\.smk"$', re.MULTILINE)
MARGIN = 12
"""Paper around the picture [px]."""
SLACK = 1.12
"""Room for readers without the font, whose letters are wider."""


@dataclass(frozen=True)
class Matrix:
    """Who uses whom, how often.

    Parameters
    ----------
    names : tuple of str
        Rows and columns, from the top and from the left.
    groups : tuple of int
        Of each name; names of one group stand together.
    sizes : tuple of int
        Modules of a package, or rules of a stage.
    counts : mapping of (str, str) to int
        (who uses, who is used): how often. None of a name by itself.
    """

    names: tuple[str, ...]
    groups: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: Mapping[tuple[str, str], int]

    def backward(self) -> list[tuple[str, str]]:
        """Uses that go against the order of the groups, or stay inside one."""
        group = dict(zip(self.names, self.groups, strict=True))
        return sorted((user, used) for user, used in self.counts if group[used] <= group[user])


def layers(contract: str | Path) -> list[tuple[str, ...]]:
    """Packages by layer, the highest first, as the import contract has them.

    Raises
    ------
    InputError
        If the file has not exactly one contract of layers.
    """
    try:
        found = tomllib.loads(Path(contract).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(contract, "file", str(error), "TOML") from None
    contracts = [item for item in found.get("tool", {}).get("importlinter", {}).get("contracts", []) if item.get("type") == "layers"]
    if len(contracts) != 1:
        raise InputError(contract, "tool.importlinter.contracts", f"{len(contracts)} contracts of layers", "one")
    return [tuple(name.strip().removeprefix(f"{PACKAGE}.") for name in layer.split("|")) for layer in contracts[0]["layers"]]


def module_of(path: Path, source: Path) -> str:
    """Dotted name of a source file below the folder that holds the package."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, modules: Iterable[str]) -> Iterator[str]:
    """Modules among `modules` that a source file imports anywhere in it; of ``from a import b`` it is ``a.b`` where that is a module."""
    known = frozenset(modules)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in known:
                    yield name
                elif node.module in known:
                    yield node.module


def packages(contract: str | Path, source: str | Path) -> Matrix:
    """Imports between packages, a pair of modules counted once.

    Parameters
    ----------
    contract : str or Path
        ``pyproject.toml``.
    source : str or Path
        Folder that holds the package.

    Raises
    ------
    InputError
        If a package stands in no layer, a layer names one that does not exist, or an import goes up or stays in its layer.
    """
    source = Path(source)
    ranked = layers(contract)
    place = {name: rank for rank, layer in enumerate(ranked) for name in layer}
    files = {module_of(path, source): path for path in sorted(Path(source, PACKAGE).rglob("*.py"))}
    owner = {module: module.split(".")[1] for module in files if module != PACKAGE}
    for name in sorted(set(owner.values()) - set(place)):
        raise InputError(contract, "layers", f"no {PACKAGE}.{name}", "every package of the code in a layer")
    for name in sorted(set(place) - set(owner.values())):
        raise InputError(contract, "layers", f"{PACKAGE}.{name}", "packages that exist")
    pairs = {(module, used) for module in owner for used in imports(files[module], files) if used in owner}
    counts = Counter((owner[user], owner[used]) for user, used in pairs if owner[user] != owner[used])
    sizes = Counter(owner.values())
    found = Matrix(tuple(place), tuple(place.values()), tuple(sizes[name] for name in place), dict(sorted(counts.items())))
    for user, used in found.backward():
        raise InputError(contract, "layers", f"{PACKAGE}.{user} imports {PACKAGE}.{used}", "imports of lower layers alone")
    return found


def stages(order: str | Path, rules: Mapping[str, Mapping[str, Any]]) -> Matrix:
    """What stages read of each other: pairs of a rule and another whose output it reads.

    Parameters
    ----------
    order : str or Path
        The Snakefile.
    rules : mapping
        Of ``results/rules.json``.

    Raises
    ------
    InputError
        If a rule stands in a file that the Snakefile does not include.
    """
    included = INCLUDE.findall(Path(order).read_text(encoding="utf-8"))
    stage = {name: Path(rule["file"]).stem for name, rule in rules.items()}
    for name, found in stage.items():
        if found not in included:
            raise InputError(order, "include", f"no {rules[name]['file']}, which has rule {name}", "every file of rules")
    maker = {path: name for name, rule in rules.items() for path in rule["outputs"]}
    pairs = {(name, maker[path]) for name, rule in rules.items() for path in rule["inputs"] if path in maker}
    counts = Counter((stage[user], stage[used]) for user, used in pairs if stage[user] != stage[used])
    sizes = Counter(stage.values())
    names = tuple(name for name in included if name in sizes)
    return Matrix(names, tuple(range(len(names))), tuple(sizes[name] for name in names), dict(sorted(counts.items())))


def _tint(count: int) -> tuple[str, str]:
    """Fill and words of a cell: few, some, many."""
    return ("grey", "ink") if count < 5 else ("blue-tint", "ink") if count < 25 else ("blue", "paper")


def _matrix(canvas: Canvas, y: float, matrix: Matrix, note: Sequence[str] = ()) -> float:
    """A matrix from `y` down; `note` stands in its lower left, which has to be empty then. Returns where it ends."""
    size = 11.0 if canvas.narrow else 12.5
    shown = [f"{name}  {count}" if not canvas.narrow else name for name, count in zip(matrix.names, matrix.sizes, strict=True)]
    left = SLACK * max(measure(name, size) for name in shown) + 8
    step = (canvas.width - left) / len(matrix.names)
    tall = max(step, 13.0) if canvas.narrow else 22.0
    top = y + SLACK * max(measure(name, size) for name in matrix.names) + 8
    bottom = top + tall * len(matrix.names)
    for column, name in enumerate(matrix.names):
        x = left + (column + 0.5) * step
        canvas.text(x + 0.34 * size, top - 5, name, size=size, turned=True, tone="muted")
    for row, (name, words) in enumerate(zip(matrix.names, shown, strict=True)):
        line = top + row * tall
        # A line wherever another layer begins.
        if row == 0 or matrix.groups[row] != matrix.groups[row - 1]:
            canvas.line(0, line, canvas.width, line, tone="faint", thick=0.75)
        base = line + tall / 2 + 0.34 * size
        canvas.text(0, base, name, size=size)
        if words != name:
            canvas.text(left - 8, base, words.removeprefix(name).strip(), size=size, anchor="end", tone="muted")
        for column, used in enumerate(matrix.names):
            x = left + column * step
            if column == row:
                canvas.rect(x + 1, line + 1, step - 2, tall - 2, fill="faint", radius=0)
            elif count := matrix.counts.get((name, used), 0):
                fill, tone = _tint(count)
                canvas.rect(x + 1, line + 1, step - 2, tall - 2, fill=fill, radius=0)
                if not canvas.narrow:
                    canvas.text(x + step / 2, base, str(count), size=11, anchor="middle", tone=tone)
    canvas.line(0, bottom, canvas.width, bottom, tone="faint", thick=0.75)
    at = bottom - tall / 2 - (len(note) - 1) * size * 1.35 - 6
    for index, words in enumerate(note if not canvas.narrow else ()):
        canvas.text(left + 10, at + index * size * 1.35, words, size=size, tone="muted")
    return bottom


def _head(canvas: Canvas, y: float, title: str, words: str, key: str) -> float:
    """Title and words of a matrix, with the key to what the wide one writes beside and inside; returns where the matrix may start."""
    canvas.text(0, y, title, size=15, weight=600)
    return 10 + canvas.paragraph(0, y + 20, canvas.width / SLACK, words + key * (not canvas.narrow), size=12, tone="muted")


def draw(width: float, code: Matrix, build: Matrix) -> Canvas:
    """Both matrices on a canvas, whose colours follow the page."""
    ledger = Ledger("architecture", {})
    canvas = Canvas(width, Facts(ledger, Claims("architecture", {}, ledger)))
    summary = f"{sum(code.sizes)} modules in {code.groups[-1] + 1} layers, the highest first; {sum(code.counts.values())} imports between "
    y = _head(
        canvas, 15, "Packages: a row imports a column",
        summary + "packages, all of them downwards.", " Beside a name its modules, in a cell the imports.",
    )  # fmt: skip
    y = _matrix(canvas, y, code, ["No package imports one of a higher layer or", "of its own: this half has to stay empty."])
    y = _head(
        canvas, y + 40, "Stages: a row reads what a column makes",
        f"{sum(build.sizes)} rules in {len(build.names)} files, in the order in which the Snakefile includes them.",
        " Beside a name its rules, in a cell pairs of a rule and one whose output it reads.",
    )  # fmt: skip
    _matrix(canvas, y, build)
    return canvas


def told(code: Matrix, build: Matrix) -> str:
    """The picture in words."""

    def most(matrix: Matrix) -> str:
        ranked = sorted(matrix.counts.items(), key=lambda item: (-item[1], item[0]))[:3]
        return ", ".join(f"{user} of {used} ({count})" for (user, used), count in ranked)

    return (
        f"Two matrices. Packages from the top layer down: {', '.join(code.names)}; imports go from each to lower layers alone, "
        f"most by {most(code)}. Stages of the build in order: {', '.join(build.names)}; most is read by {most(build)}."
    )


def svg(canvas: Canvas, alt: str) -> str:
    """The picture as a file of its own, light or dark as its reader's system is."""

    def variables(colours: Mapping[str, str]) -> str:
        return "".join(f"--{name}:{colour};" for name, colour in colours.items())

    width, height = (round(side + 2 * MARGIN) for side in (canvas.width, canvas.bottom))
    look = f"svg{{{variables(LIGHT)}}}@media (prefers-color-scheme:dark){{svg{{{variables(DARK)}}}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(alt)}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width} {height}" width="{width}" height="{height}" font-family="{FAMILIES}">'
        f"<style>{look}</style>"
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width}" height="{height}" fill="var(--paper)"/>{canvas.marks}</svg>\n'
    )


def write(wide: str | Path, narrow: str | Path, code: Matrix, build: Matrix) -> None:
    """Write the picture for a page and for a telephone."""
    alt = told(code, build)
    drawn = {path: svg(draw(width, code, build), alt) for path, width in ((wide, WIDE), (narrow, NARROW))}
    for path, content in drawn.items():
        write_atomically(path, content)

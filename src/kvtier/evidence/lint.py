"""Bare numbers: a number typed into a template or the README instead of being printed by its key.

Text is searched after what the template fills in, code and links are taken out. A number may stand if a pattern of the allow-list
covers it; each pattern gives its reason (a date, a version, the definition of a unit, a name).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kvtier.errors import InputError
from kvtier.evidence.claims import Document

UNIT = r"(?:x|%|[KMGT]i?B|[mµun]s|tok/s|W)"
NUMBER = re.compile(rf"(?<![\w.^])[-+−±~≈]?\d[\d,]*(?:\.\d+)?(?={UNIT}?(?![\w^]))")
HIDDEN = (
    re.compile(r"\{#.*?#\}|\{\{(?!\s*[-+]?\d[\d,.]*\s*(?:\||\}\})).*?\}\}|\{%.*?%\}", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"```.*?```", re.DOTALL),
    re.compile(rf"`(?![-+−±~≈]?\d[\d,.]*\s?{UNIT}?`)[^`\n]*`"),
    re.compile(r"\]\([^)\s]*\)"),
)
"""Template expressions (but for a bare literal), comments, code (but for a number) and link targets."""


def visible(text: str) -> str:
    """The text with what is hidden blanked out, line by line as before."""
    for pattern in HIDDEN:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def bare_numbers(text: str, allowed: Mapping[str, str]) -> list[tuple[int, str]]:
    """Numbers that stand in a text on their own.

    Parameters
    ----------
    text : str
        Template or Markdown.
    allowed : mapping of str to str
        Regular expression to the reason why what it matches may stand.

    Returns
    -------
    list of (int, str)
        Line, from 1, and number.
    """
    text = visible(text)
    for pattern in allowed:
        text = re.sub(pattern, lambda match: re.sub(r"\d", " ", match[0]), text)
    return [(text.count("\n", 0, match.start()) + 1, match[0]) for match in NUMBER.finditer(text)]


def written_strings(source: str) -> list[tuple[int, str]]:
    """Prose typed into a module: its string literals that hold a space, without docstrings; of an f-string, the literal parts.

    Parameters
    ----------
    source : str
        Python module.

    Returns
    -------
    list of (int, str)
        Line and text.
    """
    tree = ast.parse(source)
    scopes = (ast.Module, ast.FunctionDef, ast.ClassDef)
    bare = {id(node.value) for scope in ast.walk(tree) if isinstance(scope, scopes) for node in scope.body if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare)
    return [(node.lineno, node.value) for node in strings if " " in node.value]


def check_figures(paths: list[str], allowed: Mapping[str, str]) -> int:
    """Search the words of figures; return how many modules were searched.

    Raises
    ------
    InputError
        For the first bare number in a text of a figure, such as its title, axes or caption: file, line, number.
    """
    for path in paths:
        for line, text in written_strings(Path(path).read_text(encoding="utf-8")):
            for _, number in bare_numbers(text, allowed):
                raise InputError(
                    path, f"line {line}", f"the bare number {number}", "a number of the ledger, or an allowed pattern with its reason"
                )
    return len(paths)


def check_reasons(documents: Iterable[Document], allowed: Mapping[str, str]) -> int:
    """Search the reasons of claims; return how many claims were searched.

    Raises
    ------
    InputError
        For the first bare number: claim, number.
    """
    searched = 0
    for document in documents:
        for claim in document.claims:
            for _, number in bare_numbers(claim.because, allowed):
                raise InputError(
                    f"claim {claim.id}", "because", f"the bare number {number}", "{{ expression | decimals }}, or an allowed pattern"
                )
            searched += 1
    return searched


def check(paths: list[str], allowed: Mapping[str, str]) -> int:
    """Search files; return how many were searched.

    Raises
    ------
    InputError
        For the first bare number: file, line, number.
    """
    for path in paths:
        for line, number in bare_numbers(Path(path).read_text(encoding="utf-8"), allowed):
            raise InputError(path, f"line {line}", f"the bare number {number}", "num() of a key, or an allowed pattern with its reason")
    return len(paths)

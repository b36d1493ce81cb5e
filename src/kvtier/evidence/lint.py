"""Bare numbers: a number typed into a template or the README instead of being printed by its key.

Text is searched after what the template fills in, code and links are taken out. A number may stand if a pattern of the allow-list
covers it; each pattern gives its reason (a date, a version, the definition of a unit, a name).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kvtier.errors import InputError

NUMBER = re.compile(r"(?<![\w.^])[-+−±~≈]?\d[\d,]*(?:\.\d+)?(?![\w^])")
HIDDEN = (
    re.compile(r"\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"```.*?```", re.DOTALL),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\]\([^)\s]*\)"),
)
"""Template expressions, comments, code and link targets."""


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

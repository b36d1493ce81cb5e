"""Pages of the documentation: values by their keys, expanded when the site is built and held against the ledger by the build.

A page says ``{{ num("key") }}`` for a value with its unit, ``{{ unc("key") }}`` for its interval, and ``{{ caveat() }}`` for the standing
caveat, which a page with a simulated value has to have. What stands in code is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

from kvtier.errors import InputError
from kvtier.evidence import lint
from kvtier.evidence.labels import SIMULATION_CAVEAT, Label
from kvtier.evidence.retractions import is_withdrawn
from kvtier.publish.ledger import Ledger

CALL = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
FORM = re.compile(r'(\w+)\((?:"([^"]*)")?\)')
CODE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?^[ \t]*(?P=fence)\s*$|(?P<ticks>`+)[^`\n]+(?P=ticks)", re.DOTALL | re.MULTILINE)
"""Fenced blocks, and code in a line."""

VALUES = ("num", "bare", "unc")


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` made to all that is not code."""
    done, end = [], 0
    for code in CODE.finditer(text):
        done += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*done, change(text[end:])])


def shown(ledger: Ledger, way: str, key: str) -> str:
    """A value as a page shows it, in HTML: its text, its class beside it, its definition on demand.

    Parameters
    ----------
    ledger : Ledger
    way : {'num', 'bare', 'unc'}
        With its unit, without, or its interval alone.
    key : str

    Raises
    ------
    InputError
        If the ledger has no such key, or the number is withdrawn or retracted, or its interval is asked for and it has none.
    """
    quote = ledger[key]
    if is_withdrawn(quote.status):
        raise InputError(ledger.source, key, f"a number that is {quote.status}", "one that may stand as a result")
    text = {"num": quote.text, "bare": quote.bare, "unc": quote.interval or ""}[way]
    if not text:
        raise InputError(ledger.source, key, "no uncertainty", "a number that has one")
    about = escape(f"{key}: {quote.definition}", quote=True)
    value = f'<span class="value" title="{about}">{escape(text, quote=False)}</span>'
    # An interval stands beside its value, which has the label.
    return value if way == "unc" else f'{value}<span class="label">{escape(quote.label, quote=False)}</span>'


def expand(source: str | Path, text: str, ledger: Ledger, made: Mapping[str, Callable[[], str]] | None = None) -> str:
    """A page with every call outside of code replaced by what it stands for.

    Parameters
    ----------
    source : str or Path
        The page, for messages.
    text : str
        Markdown.
    ledger : Ledger
    made : mapping of str to callable, optional
        Further calls without argument, by name: parts that are made from the code. None: they are left as they are.

    Raises
    ------
    InputError
        For the first call that is unknown or ill-formed, the first key that may not stand, or a page that shows a simulated value and
        nowhere the standing caveat.
    """
    simulated: list[str] = []
    warned: list[str] = []

    def one(match: re.Match[str]) -> str:
        form = FORM.fullmatch(match[1])
        name, key = (form[1], form[2]) if form else ("", None)
        if name in VALUES and key is not None:
            if ledger[key].label is Label.SIMULATED:
                simulated.append(key)
            return shown(ledger, name, key)
        if name == "caveat" and key is None:
            warned.append(name)
            return SIMULATION_CAVEAT
        if made is None and form and key is None:
            return match[0]
        if made is not None and name in made and key is None:
            return made[name]()
        calls = [*(f'{way}("key")' for way in VALUES), "caveat()", *(f"{name}()" for name in made or {})]
        raise InputError(source, "call", match[0], f"one of {', '.join(calls)}")

    done = _outside_code(text, lambda part: CALL.sub(one, part))
    if simulated and not warned:
        raise InputError(source, simulated[0], "a simulated value and no caveat on the page", "{{ caveat() }} near it")
    return done


def check(paths: list[str], ledger: Ledger, allowed: Mapping[str, str]) -> int:
    """Hold pages against the ledger, and search them for numbers that are typed; return how many were searched.

    Raises
    ------
    InputError
        As :func:`expand`, and for the first bare number.
    """
    for path in paths:
        expand(path, Path(path).read_text(encoding="utf-8"), ledger)
    return lint.check(paths, allowed)

"""The rules behind the published copy, in an order in which they can run; and how long a rule takes with all that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from kvtier.errors import InputError


@dataclass(frozen=True)
class Step:
    """A rule as it ran.

    Parameters
    ----------
    rule : str
    says : str
        First line of its docstring.
    script : str
        What it runs.
    reads, makes : tuple of str
        Files of data, without code.
    """

    rule: str
    says: str
    script: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]


def makers(rules: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Built file to the rule that makes it."""
    return {made: name for name, rule in rules.items() for made in rule["outputs"]}


def steps_behind(rules: Mapping[str, Mapping[str, Any]], says: Mapping[str, str], wanted: Iterable[str]) -> list[Step]:
    """The rules that some built files rest on, each after those whose files it reads.

    Parameters
    ----------
    rules : mapping
        Rule to ``script``, ``inputs`` and ``outputs``, as the map of rules has them.
    says : mapping of str to str
        Rule to the first line of its docstring.
    wanted : iterable of str
        Built files.

    Returns
    -------
    list of Step
        What a rule reads and no rule makes is an input of the whole and needs no step.

    Raises
    ------
    InputError
        If no rule makes a wanted file.
    """
    maker = makers(rules)
    placed: dict[str, Step] = {}

    def place(name: str) -> None:
        if name in placed:
            return
        rule = rules[name]
        reads = tuple(path for path in rule["inputs"] if is_data(path))
        for path in rule["inputs"]:
            if path in maker:
                place(maker[path])
        placed[name] = Step(name, says.get(name, ""), rule["script"], reads, tuple(rule["outputs"]))

    for path in wanted:
        if path not in maker:
            raise InputError("rules", path, "no rule that makes it by a script", "one")
        place(maker[path])
    return list(placed.values())


def is_data(path: str) -> bool:
    """Whether a rule's input is data, and not code, a template or the map of rules: a comment in those must not move the crate."""
    name = PurePosixPath(path)
    return name.suffix not in {".py", ".smk"} and name.parts[0] in {"data", "results", "config"} and path != "results/rules.json"


def with_all_it_needs(rules: Mapping[str, Mapping[str, Any]], rule: str) -> set[str]:
    """A rule and every rule whose files it reads, directly or not.

    Raises
    ------
    InputError
        If there is no such rule.
    """
    maker = makers(rules)
    needed: set[str] = set()
    waiting = [rule]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        if name not in rules:
            raise InputError("rules", name, "no such rule", "one of the workflow")
        needed.add(name)
        waiting += [maker[path] for path in rules[name]["inputs"] if path in maker]
    return needed

"""Reference of the configuration: what the schema allows, what config/README.md says of it, what both builds have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import read_json, read_yaml

SCHEMA, MEANINGS = "workflow/schemas/config.schema.json", "config/README.md"
ROW = re.compile(r"^\| (`[^|]+?) *\|([^|]*)\| (.+?) *\|$", re.MULTILINE)
SHOWN = 6
"""Elements of a long list that are printed."""


def keys(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``section.key`` and what is allowed there."""
    for section, about in schema["properties"].items():
        for key, allowed in about["properties"].items():
            yield f"{section}.{key}", allowed


def meanings(text: str) -> dict[str, tuple[str, str]]:
    """Unit and meaning by key, of a table whose rows may have several keys, the later ones without the section, and a unit for each."""
    found = {}
    for names, unit, meaning in ROW.findall(text):
        section, words, units = "", re.findall(r"`([^`]+)`", names), unit.split(",")
        for place, name in enumerate(words):
            section, _, key = name.rpartition(".") if "." in name else (section, "", name)
            found[f"{section}.{key}"] = ((units[place] if len(units) == len(words) else unit).strip(), meaning)
    return found


def allowed(about: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    kind = about.get("type")
    if kind == "array":
        least = about.get("minItems", 0)
        bounds = f"{least} or more" if least else "any number"
        unique = ", none twice" if about.get("uniqueItems") else ""
        return f"list of {bounds}{unique}; each: {allowed(about['items'])}"
    words = [" or ".join(kind) if isinstance(kind, list) else str(kind or "any")]
    if "enum" in about:
        words = [f"one of {', '.join(map(str, about['enum']))}"]
    for bound, said in (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("exclusiveMaximum", "below")):
        # The largest integer that a table holds is no choice of anyone.
        if bound in about and about[bound] < 2**62:
            words.append(f"{said} {about[bound]:,}")
    return " ".join(words)


def value(found: Any) -> str:
    """A value of a configuration, long lists cut."""
    if not isinstance(found, list):
        return f"`{found!r}`" if found != "" else "empty"
    if len(found) <= SHOWN:
        return f"`{', '.join(map(str, found))}`"
    return f"`{', '.join(map(str, found[: SHOWN - 3]))}, …, {found[-1]}` ({len(found)})"


def page(root: Path) -> str:
    """One table a section.

    Raises
    ------
    InputError
        If a key of the schema has no row in config/README.md, or a row no key.
    """
    schema, said = dict(keys(read_json(root / SCHEMA))), meanings((root / MEANINGS).read_text(encoding="utf-8"))
    for name in sorted(schema.keys() ^ said.keys()):
        raise InputError(MEANINGS, name, "no row" if name in schema else "a row", "one row for each key of the schema, and no other")
    full, quick = (read_yaml(root / f"config/{build}.yaml") for build in ("full", "quick"))
    lines, open_section = [], ""
    for name, about in schema.items():
        section, key = name.split(".")
        if section != open_section:
            lines += ["", f"## `{section}`", "", "| key | unit | meaning | allowed | full | quick |", "|---|---|---|---|---|---|"]
            open_section = section
        unit, meaning = said[name]
        cells = (f"`{key}`", unit, meaning, allowed(about), value(full[section][key]), value(quick[section][key]))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)

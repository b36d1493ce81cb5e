"""The README of a kept run: every word and number of it from the run's record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvtier.kit.record import FILE
from kvtier.measure.kept import TABLES

ROWS = {
    "stream": "one timing of a kernel over buffers of one size; `moved_bytes` is what it read plus what it wrote, in all `passes`",
    "decode": "one difference of two timed runs; `step_ms` is the time in which each sequence gains one token",
    "movement": "one timing of `pieces` pieces, moved one after the other along `path`",
    "regeneration": "one timing of forward compute of `tokens` tokens on top of `context_tokens` whose KV is there",
    "metadata": "one timing of `operations` operations on a table of `blocks` blocks",
    "table_size": "a table of `blocks` blocks: records and index as allocated, and the growth of the process",
    "folding": "one timing of `streams` score streams folded into one score a block",
    "sensors": "one reading of one sensor before, during or after a part",
}
"""What one row is, by table."""


def readme(name: str, document: Mapping[str, Any]) -> str:
    """Text of the README.

    Parameters
    ----------
    name : str
        Of the folder.
    document : mapping
        The record, as :func:`kvtier.kit.record.read` returns it.

    Returns
    -------
    str
        Markdown; the same record gives the same text.
    """
    sections = [
        f"# {name}",
        "**Evidence: Measured.** Raw rows as `kvtier measure` wrote them. This file is made from `platform.json` when the run is kept; "
        "nothing in the folder is edited by hand or by a build.",
        "## Machine",
        _table(("what", "value"), _machine(document)),
        "## Method",
        "Repetitions are the outer loop and points the inner one, so what drifts touches all points alike; each point is run once, "
        "untimed, before any is timed. Times are of the monotonic clock. What each part did:",
        *(f"### {part}\n\n{_about(entry['about'])}" for part, entry in document["parts"].items()),
        "## Guards that held",
        _guards(document["parts"], document["machine"]["name"]),
        "## Files and columns",
        _table(("file", "rows", "one row is", "columns"), _files(document["parts"])),
        "## Clocks, temperatures and load",
        _sensors(document["parts"]),
        "## Limits",
        _limits(document),
    ]
    return "\n\n".join(sections) + "\n"


def said(value: Any) -> str:
    """A value of the record as text: thousands apart, lists with commas, no digit added."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{words(key)} {said(each)}" for key, each in value.items()) or "nothing"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(said, value))
    return str(value)


def words(key: str) -> str:
    """A field's name as words."""
    return key.replace("_", " ")


def _cell(value: Any) -> str:
    return " ".join(said(value).replace("|", "\\|").split())


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [heads, ["---"] * len(heads), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine(document: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    machine, bus, software = document["machine"], document["bus"], document["software"]
    yield "machine", machine["name"]
    yield "processor", machine.get("processor") or "not said"
    for field in ("cores", "last_level_cache_bytes", "memory_bytes", "available_bytes", "numa_nodes"):
        yield words(field), machine.get(field)
    yield "memory bus", f"{said(bus['gbps'])} GB/s: {bus['source']}"
    if machine.get("accelerator"):
        for field, value in machine["accelerator"].items():
            yield f"accelerator, {words(field)}", value
    for field, value in software.items():
        yield field, value
    yield "command", f"`{document['command']}`"
    yield "start and end", f"{document['start']} to {document['end']}"
    yield "smallest step of the clock that was seen", f"{document['clock_tick_s'] * 1e9:.4g} ns"


def _about(about: Mapping[str, Any]) -> str:
    return "\n".join(f"- {words(key)}: {' '.join(said(value).split())}" for key, value in about.items()) or "It says nothing of itself."


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _guards(parts: Mapping[str, Any], machine: str) -> str:
    rows = [
        # The machine is named above.
        (name, each["subject"].replace(f" of {machine}", ""), *(f"{_rounded(each[which])} {each['unit']}" for which in ("value", "bound")))
        for name, part in parts.items()
        for each in part["checked"]
    ]
    return _table(("part", "subject", "value", "bound"), rows) if rows else "None was asked."


def _files(parts: Mapping[str, Any]) -> Iterable[tuple[str, Any, str, str]]:
    counted = {file.removesuffix(".csv"): rows for part in parts.values() for file, rows in part["tables"].items()}
    for table in [*counted, "sensors"]:
        columns = ", ".join(f"`{column}`" for column in TABLES[table].columns)
        yield f"`{table}.csv`", counted.get(table, ""), ROWS[table], columns
    yield f"`{FILE}`", "", "the record: machine, software, parts, guards", ""


def _sensors(parts: Mapping[str, Any]) -> str:
    rows = []
    for name, part in parts.items():
        for sensor, entry in part["sensors"].items():
            medians = [entry.get(moment, {}).get("median") for moment in ("before", "during", "after")]
            rows.append((name, f"{sensor} [{entry['unit']}]", *("" if value is None else value for value in medians)))
    if not rows:
        return "No sensor could be read."
    return "Medians of the readings; all of them are in `sensors.csv`.\n\n" + _table(("part", "sensor", "before", "during", "after"), rows)


def _limits(document: Mapping[str, Any]) -> str:
    lines = ["One machine, one run. Other work on the machine shows in the load above and in the spread of the rows."]
    if "guest" in (document["machine"].get("processor") or ""):
        lines.append("A virtual machine: neighbours share its caches and its bus, and its clock rate is what the hypervisor reports.")
    lines += [f"Not readable: {what}." for what in document["not_readable"]]
    lines += [f"Left out: {part}: {why}" for part, why in document["left_out"].items()]
    if document["software"].get("kvtier", {}).get("modified"):
        lines.append("The checkout had changes that were not committed.")
    return "\n".join(f"- {line}" for line in lines)

"""Guards of a kept run, again from its raw rows: a row that was changed afterwards is refused as it would have been when it was timed.

What only the run could see (token ids of a batch, counters of a prefix cache and of the block layer) is looked up in its record, which must
say that it held. The rest follows from the rows: no bandwidth above the bus (SPEC §7), timings long against the tick of the clock, no
drift, weights and KV of the size that their type gives them, and columns that are made of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from kvtier.audit.physical_bound import BYTES_PER_PARAMETER, Bandwidth, Checked, physical_bound, resident_weights
from kvtier.audit.quantities import count
from kvtier.audit.residency import kv_pool
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.errors import InputError
from kvtier.measure import fit, kept, kept_points, retained
from kvtier.measure.fields import Fields, shown
from kvtier.units import GB
from kvtier.workload.turns import BLOCK_TOKENS

COMPLETE = "complete"

BEYOND_CACHE = 4
"""From so many times the last-level cache on, what is read comes from memory: at most a quarter of it can have stayed."""

STREAM_ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
"""Arrays that a pass of each kernel reads or writes."""

OF_TOKENS = " of tokens"
"""End of the name of a fold whose streams have one score a token, not one a block."""

ROUNDING = 1e-9
"""Relative room of a column that is computed from others."""

SEEN_BY_THE_RUN = ("sequences", "hits", "% at least")
"""Units of guards whose subject is gone when the run ends."""

HOST = ("host", "cpu")
"""Devices whose memory is the host's."""


@dataclass(frozen=True)
class Audited:
    """A table of a kept run with what the record says of it.

    Parameters
    ----------
    source : path
        File of the table.
    rows : polars.DataFrame
        Raw rows, checked against the table's declaration.
    record : Fields
        The whole record.
    part : Fields
        Of the part that wrote the table.
    """

    source: Path
    rows: pl.DataFrame
    record: Fields
    part: Fields

    @property
    def about(self) -> Fields:
        """What the part says of itself."""
        return self.part.section("about")

    def bus_gbps(self, device: str) -> float | None:
        """Bandwidth of the memory of a device [GB/s]; None for an accelerator of which no data sheet is known."""
        if device in HOST:
            return self.record.section("bus").positive("gbps")
        accelerator = self.record.section("machine").section("accelerator")
        return None if accelerator["bus"] is None else accelerator.section("bus").positive("gbps")

    def beyond_cache_bytes(self, device: str) -> int:
        """What is read again and again from no cache, if it is as large [B]."""
        says = self.record.section("machine") if device in HOST else self.about
        return BEYOND_CACHE * says.count("last_level_cache_bytes")


def check(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], source: str | Path = "kept run") -> list[Checked]:
    """Every guard that raw rows and record of a kept run allow.

    Parameters
    ----------
    record : mapping
        ``platform.json`` of the run, format 1.
    tables : mapping of str to polars.DataFrame
        By name, as :func:`kvtier.measure.kept_points.read` gives them.
    source : str or Path
        Folder of the run, named in errors.

    Returns
    -------
    list of Checked
        What held, table by table, of bandwidths the fastest timing of each point; then what the record says of guards that only the run
        could ask.

    Raises
    ------
    InputError
        Of the guard that does not hold. Or if the run was a quick try, the record lacks a field, the bus is not known, a part is not
        complete, a guard that only the run could ask is not recorded, or a table has not the rows that the record counts.
    """
    folder = Path(source)
    fields = Fields(folder / "platform.json", dict(record))
    if fields["quick"]:
        raise InputError(fields.path, "quick", "a quick try", "a whole run")
    if fields["bus"] is None:
        raise InputError(fields.path, "bus", None, "the bandwidth of the memory bus: without it none is checked")
    found: list[Checked] = []
    for name, part, rows in _owned(fields, tables):
        path = folder / f"{name}.csv"
        audited = Audited(path, kept_points.check(name, kept.TABLES[name].check(rows, path), path), fields, part)
        # What is wrong with a single row is the plainer message.
        found += GUARDS.get(name, lambda _: iter(()))(audited)
        found += _timed(name, audited)
    if not found:
        raise InputError(folder, "tables", "nothing to check", "timed rows")
    for part_name in fields.section("parts").content:
        found += _recorded(fields.section("parts").section(part_name))
    return found


def _owned(fields: Fields, tables: Mapping[str, pl.DataFrame]) -> Iterator[tuple[str, Fields, pl.DataFrame]]:
    """Each table with the complete part that wrote it, every row of it."""
    left = {name for name in tables if name != "sensors"}
    parts = fields.section("parts")
    for part_name in parts.content:
        part = parts.section(part_name)
        if part.text("state") != COMPLETE:
            raise InputError(fields.path, f"{part.prefix}state", part["state"], COMPLETE)
        for file, rows in part.section("tables").content.items():
            name = file.removesuffix(".csv")
            if name not in left:
                raise InputError(fields.path.parent / file, "file", "no such table", f"the {rows} rows of part {part_name}")
            if tables[name].height != rows:
                raise InputError(fields.path.parent / file, "rows", tables[name].height, f"{rows}, as the record counts")
            left.remove(name)
            yield name, part, tables[name]
    if left:
        raise InputError(fields.path, "parts", f"no part that wrote {', '.join(sorted(left))}", "each table in the record")


def _timed(name: str, audited: Audited) -> Iterator[Checked]:
    """Resolution and drift, of a table whose rows are timings."""
    if name not in kept_points.QUANTITIES:
        return
    rows, source = audited.rows, str(audited.source)
    tick_s = (audited.about if "tick_s" in audited.about else audited.record).positive(
        "tick_s" if "tick_s" in audited.about else "clock_tick_s"
    )
    # A step is timed by a difference: that is an interval too.
    intervals = [rows["short_s"], rows["long_s"] - rows["short_s"]] if name == "decode" else [rows["seconds"]]
    yield resolved(min(interval.min() for interval in intervals), tick_s, source)
    quantity = kept_points.QUANTITIES[name]
    # A bandwidth is the inverse of a time.
    one = quantity.of() ** (-1 if name == "stream" else 1)
    yield steady(relative_times(rows.with_columns(one.alias("_time")), quantity.point, "_time", source), source)


def _stream(audited: Audited) -> Iterator[Checked]:
    """Bytes that the kernel moves; buffers that no cache holds, against the bus."""
    rows, source = audited.rows, audited.source
    arrays = rows["kernel"].replace_strict(STREAM_ARRAYS, default=None, return_dtype=pl.Int64)
    if arrays.has_nulls():
        raise InputError(source, "column kernel", rows["kernel"][int(arrays.is_null().arg_true()[0])], f"one of {', '.join(STREAM_ARRAYS)}")
    _made_of(audited, "moved_bytes", arrays * rows["buffer_bytes"] * rows["passes"], "arrays of the kernel × buffer_bytes × passes")
    device = audited.about.text("device")
    beyond = rows.filter(pl.col("buffer_bytes") >= audited.beyond_cache_bytes(device))
    points = ("kernel", "buffer_bytes", "threads")
    yield from _below(audited, beyond.with_columns(_gbps=pl.col("moved_bytes") / pl.col("seconds") / GB), points, device)


def _movement(audited: Audited) -> Iterator[Checked]:
    """Each path against the memories at its ends: a move inside one reads and writes it."""
    accelerator = audited.record.section("machine")["accelerator"]
    if not isinstance(accelerator, dict | None):
        raise InputError(audited.source, "machine.accelerator", shown(accelerator), "a mapping of fields, or null")
    unified = bool(accelerator and accelerator.get("unified"))
    one_way = pl.col("pieces") * pl.col("piece_bytes") / pl.col("seconds") / GB
    for (path,), rows in audited.rows.group_by("path", maintain_order=True):
        for device, times in _memories(str(path), unified):
            yield from _below(audited, rows.with_columns(_gbps=times * one_way), ("path", "piece_bytes"), device)
        if path == "file to memory":
            _must_say(audited, "% at least", "that the block layer read the file")


def _memories(path: str, unified: bool) -> tuple[tuple[str, int], ...]:
    """Memories that the bytes of a path cross, and how often."""
    if path in ("host to device", "device to host"):
        return (("device", 2),) if unified else (("host", 1), ("device", 1))
    if path in ("file to memory", "memory to file"):
        return (("host", 1),)
    return (("host", 2),)


def _decode(audited: Audited) -> Iterator[Checked]:
    """Step times as differences, weights and KV of a step against the bus, weights and KV pool against their type."""
    rows, about = audited.rows, audited.about
    if (rows["steps"] <= 2).any():
        raise InputError(audited.source, "column steps", int(rows["steps"].min()), "more than the 2 of the short run")
    _made_of(audited, "step_ms", 1e3 * (rows["long_s"] - rows["short_s"]) / (rows["steps"] - 2), "(long_s − short_s) / (steps − 2)")
    weight_bytes, per_token = about.count("weight_bytes"), about.count("kv_bytes_per_token")
    # An embedding table of its own is resident, and a step reads a row of it.
    read_weights = weight_bytes - (
        count(about["unread_weight_bytes"], about.path, "unread_weight_bytes") if "unread_weight_bytes" in about else 0
    )
    read_bytes = read_weights + pl.col("batch") * pl.col("context_tokens") * per_token
    for (device,), each in rows.group_by("device", maintain_order=True):
        # A model that a processor's cache holds is not read from memory. On an accelerator none is so small.
        least = audited.beyond_cache_bytes(str(device)) if device in HOST else 0
        beyond = each.filter(read_bytes >= least).with_columns(_gbps=read_bytes / pl.col("step_ms") * 1e3 / GB)
        yield from _below(audited, beyond, ("backend", "batch", "context_tokens"), str(device))
        yield from _lines(audited, each, read_weights, per_token, str(device))
    for dtype in rows["dtype"].unique(maintain_order=True):
        yield resident_weights(weight_bytes, about.count("parameters"), dtype, str(audited.source))
        if "kv_pool" in about:
            pool = about.section("kv_pool")
            yield kv_pool(pool.positive("bytes"), pool.count("tokens"), per_token, dtype, str(audited.source))
    _must_say(audited, "sequences", "that sequences were distinct")


def _lines(audited: Audited, rows: pl.DataFrame, read_weights: int, per_token: int, device: str) -> Iterator[Checked]:
    """Both paths of the line through the medians of a backend: a shared copy of KV shows in the slope (SPEC §7)."""
    bus_gbps = audited.bus_gbps(device)
    medians = rows.group_by("backend", "dtype", "batch", "context_tokens", maintain_order=True).agg(pl.col("step_ms").median())
    for (backend, _), points in medians.group_by("backend", "dtype", maintain_order=True):
        sizes = retained.kv_gib(points, per_token)
        if bus_gbps is None or len(set(sizes)) < kept.LEAST_FIT_SIZES:
            continue
        line = fit.two_term(sizes, points["step_ms"].to_list(), f"{audited.source}, {backend}")
        paths = [Bandwidth(line.source, "KV path", fit.kv_path_gbps(line).value)]
        # The intercept lies outside the points: where it is not clear of zero it says nothing.
        if line.intercept_ms.value > 2 * line.intercept_ms.standard_error:
            paths.append(Bandwidth(line.source, "fixed path", fit.fixed_path_gbps(line, read_weights).value))
        yield from physical_bound(paths, bus_gbps)


def _regeneration(audited: Audited) -> Iterator[Checked]:
    """Weights against their type; those of the layers and the KV of the context are read at least once, so against the bus."""
    about, points = audited.about, ("backend", "context_tokens")
    parameters, per_token = about.count("parameters"), about.count("kv_bytes_per_token")
    for (device, dtype), rows in audited.rows.group_by("device", "dtype", maintain_order=True):
        yield resident_weights(about.count("weight_bytes"), parameters, str(dtype), str(audited.source))
        read_bytes = about.count("layer_parameters") * BYTES_PER_PARAMETER[str(dtype)] + pl.col("context_tokens") * per_token
        least = audited.beyond_cache_bytes(str(device)) if device in HOST else 0
        beyond = rows.filter(read_bytes >= least).with_columns(_gbps=read_bytes / pl.col("seconds") / GB)
        yield from _below(audited, beyond, points, str(device))


def _folding(audited: Audited) -> Iterator[Checked]:
    """Scores that no cache holds, read once a fold."""
    width = pl.col("dtype").replace_strict(BYTES_PER_PARAMETER, default=None, return_dtype=pl.Int64)
    scores = pl.when(pl.col("fold").str.ends_with(OF_TOKENS)).then(BLOCK_TOKENS).otherwise(1)
    sized = audited.rows.with_columns(_bytes=pl.col("streams") * pl.col("blocks") * scores * width)
    if sized["_bytes"].has_nulls():
        bad = sized["dtype"][int(sized["_bytes"].is_null().arg_true()[0])]
        raise InputError(audited.source, "column dtype", bad, f"one of {', '.join(BYTES_PER_PARAMETER)}")
    beyond = sized.filter(pl.col("_bytes") >= audited.beyond_cache_bytes("host"))
    points = ("fold", "blocks", "dtype", "threads")
    yield from _below(audited, beyond.with_columns(_gbps=pl.col("_bytes") / pl.col("seconds") / GB), points, "host")


GUARDS: dict[str, Callable[[Audited], Iterator[Checked]]] = {
    "stream": _stream,
    "movement": _movement,
    "decode": _decode,
    "regeneration": _regeneration,
    "folding": _folding,
}
"""What is asked of a table beyond resolution and drift."""


def _below(audited: Audited, rows: pl.DataFrame, points: tuple[str, ...], device: str) -> list[Checked]:
    """The fastest timing of each point, column ``_gbps``, against the bus of a device."""
    bus_gbps = audited.bus_gbps(device)
    fastest = rows.group_by(points, maintain_order=True).agg(pl.col("_gbps").max())
    if bus_gbps is None or fastest.is_empty():
        return []
    where = [
        ", ".join(f"{column} {value}" for column, value in zip(points, row, strict=True)) for row in fastest.select(points).iter_rows()
    ]
    subjects = [Bandwidth(str(audited.source), point, gbps) for point, gbps in zip(where, fastest["_gbps"], strict=True)]
    return physical_bound(subjects, bus_gbps)


def _made_of(audited: Audited, column: str, made: pl.Series, formula: str) -> None:
    """Refuse a column that is not what it is made of."""
    found = audited.rows[column]
    wrong = (found - made).abs() > ROUNDING * made.abs()
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise InputError(audited.source, f"column {column}, row {row + 1}", found[row], f"{made[row]}: {formula}")


def _must_say(audited: Audited, unit: str, what: str) -> None:
    """Refuse a part whose record does not show a guard that cannot be asked again."""
    entries = audited.part["checked"]
    if not (isinstance(entries, list) and any(isinstance(entry, dict) and entry.get("unit") == unit for entry in entries)):
        raise InputError(audited.record.path, f"{audited.part.prefix}checked", "no such guard", f"one that says {what}")


def _recorded(part: Fields) -> Iterator[Checked]:
    """Refuse a recorded guard whose value is beyond its bound; those that only the run could ask."""
    field = f"{part.prefix}checked"
    entries = part["checked"]
    if not isinstance(entries, list):
        raise InputError(part.path, field, shown(entries), "a list of guards that held")
    for entry in entries:
        says = Fields(part.path, entry, f"{field}.")
        subject, unit, value, bound = says.text("subject"), says.text("unit"), says["value"], says["bound"]
        if not (_is_number(value) and _is_number(bound)):
            raise InputError(part.path, f"{field}, {subject}", f"{value} of {bound}", "a value and its bound")
        held = value == bound if unit == "sequences" else value >= bound if unit.endswith("at least") else 0 <= value <= bound
        if not held:
            raise InputError(part.path, f"{field}, {subject}", f"{value} {unit}", f"a value that its bound of {bound} allows")
        if unit in SEEN_BY_THE_RUN:
            yield Checked(subject, value, bound, unit)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)

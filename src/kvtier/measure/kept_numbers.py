"""Numbers of kept runs.

Labels. A median of timings is Measured. What a line is fitted to give, its coefficients included, is an Analytical model here: each
carries an interval, and an interval supposes something of the deviations that was not measured. Ratios of measured times, and times a step
made of times an operation, are Analytical as well. The bus is a Vendor specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.measure import medians
from kvtier.measure.kept_decode import Decode, word
from kvtier.measure.kept_runs import LEVELS, KeptRun
from kvtier.measure.repeatability import Compared
from kvtier.measure.uncertainty import Between, student
from kvtier.units import bytes_to_gib

LINE = "Interval: Student's, of independent and normal deviations from the line."
DEVIATIONS = "Least squares of relative deviations over the sizes timed, medians by size."
STEPS = (8192, 1_000_000)
"""Blocks of a table at which operations are told as time a step of the scheduler."""
STEP_OPERATIONS = ("lookup", "touch")
"""What a step does to each block that the sequences in flight read."""


class _Run:
    """Numbers of one run: a prefix of keys, and machine and day at the end of each definition."""

    def __init__(self, run: KeptRun) -> None:
        self.run = run

    def __call__(self, key: str, value: Between | float, unit: str, digits: int, label: Label, definition: str) -> Number:
        spread = value.uncertainty if isinstance(value, Between) else {}
        plain = value.value if isinstance(value, Between) else value
        words = f"{definition.rstrip('.')}. {self.run.where}."
        return Number(f"measured.{self.run.key}.{key}", plain, unit, digits, label, words, spread)


def digits(value: float) -> int:
    """Decimals that leave three digits or so."""
    size = abs(value)
    return 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3


def between(row: dict) -> Between | float:
    """Median of a row of a table of points, with its interval where it has one."""
    return row["median"] if row["low"] is None else Between(row["median"], row["low"], row["high"])


def of_machine(run: KeptRun) -> Iterator[Number]:
    """What was measured."""
    number = _Run(run)
    yield number("machine.cores", run.cores, "", 0, Label.MEASURED, "Cores that the run could use")
    yield number("machine.memory_gib", bytes_to_gib(run.memory_bytes), "GiB", 1, Label.MEASURED, "Memory that the run could use")
    words = "Largest cache that the system reports"
    yield number("machine.last_level_cache_mib", run.last_level_cache_bytes / 2**20, "MiB", 0, Label.MEASURED, words)
    yield number("machine.bus_gbps", run.bus_gbps, "GB/s", 1, Label.VENDOR, f"Memory bandwidth: {run.bus_source}")


def of_stream(run: KeptRun) -> Iterator[Number]:
    """Achieved bandwidth by kernel, threads and buffer, and the best from memory against the bus."""
    number, rows = _Run(run), run.points["stream"].to_dicts()
    for row in rows:
        key = f"stream.{row['kernel']}.{row['threads']}t.{row['buffer_bytes']}.gbps"
        words = (
            f"Bytes that the {row['kernel']} kernel reads and writes, over its time; arrays of {row['buffer_bytes']:,} B, threads: "
            f"{row['threads']}. {medians.ABOUT}"
        )
        yield number(key, between(row), "GB/s", digits(row["median"]), Label.MEASURED, words)
    from_memory = [row for row in rows if row["buffer_bytes"] >= LEVELS * run.last_level_cache_bytes]
    for kernel in dict.fromkeys(row["kernel"] for row in from_memory):
        best = max((row for row in from_memory if row["kernel"] == kernel), key=lambda row: row["median"])
        words = (
            f"Best median of the {kernel} kernel over buffers of {LEVELS} or more times the last-level cache and over threads; bytes that "
            f"it reads and writes over its time. {medians.ABOUT}"
        )
        yield number(f"stream.{kernel}.from_memory_gbps", between(best), "GB/s", 1, Label.MEASURED, words)
        value = between(best)
        share = value.through(lambda gbps: 100 * gbps / run.bus_gbps) if isinstance(value, Between) else 100 * value / run.bus_gbps
        yield number(f"stream.{kernel}.bus_share", share, "%", 1, Label.ANALYTICAL, f"{words} Over the bandwidth of the bus")


def of_decode(run: KeptRun) -> Iterator[Number]:
    """Step times, and what the lines through them imply."""
    for decode in run.decodes:
        yield from _of_decode_points(run, decode)
        yield from _of_decode_lines(run, decode)


def _of_decode_points(run: KeptRun, decode: Decode) -> Iterator[Number]:
    number, key = _Run(run), f"decode.{decode.key}"
    loaded = decode.loaded
    words = f"Weights that a step reads, resident ones less rows of the embedding that it does not look up: {decode.name}"
    yield number(f"{key}.weights_mib", loaded.weight_bytes / 2**20, "MiB", 1, Label.MEASURED, words)
    words = f"KV of a token of context, from the geometry: {decode.name}"
    yield number(f"{key}.kv_bytes_per_token", loaded.kv_bytes_per_token, "B", 0, Label.ANALYTICAL, words)
    for row in decode.points.to_dicts():
        words = (
            f"Decode step time by differencing, {decode.name}, batch {row['batch']}, {row['context_tokens']:,} tokens of context. "
            f"{medians.ABOUT}"
        )
        point = f"{key}.{row['batch']}x{row['context_tokens']}.step_ms"
        yield number(point, between(row), "ms", digits(row["median"]), Label.MEASURED, words)


def _of_decode_lines(run: KeptRun, decode: Decode) -> Iterator[Number]:
    number, key, model = _Run(run), f"decode.{decode.key}", Label.ANALYTICAL
    line = decode.line
    if line is None:
        return
    on = f"of decode step time over KV size, least squares of medians, {decode.name}"
    yield number(f"{key}.n", line.n, "", 0, model, f"Points of the line {on}")
    intercept, slope = student(line.intercept_ms, line.freedom), student(line.slope_ms_per_gib, line.freedom)
    yield number(f"{key}.intercept_ms", intercept, "ms", digits(intercept.value), model, f"Intercept {on}. {LINE}")
    yield number(f"{key}.slope", slope, "ms/GiB", digits(slope.value), model, f"Slope {on}. {LINE}")
    yield number(f"{key}.r2", line.r_squared, "", 3, model, f"R² {on}")
    if decode.fixed_gbps:
        words = f"Weight bytes over the intercept {on}. {LINE}"
        yield number(f"{key}.fixed_gbps", decode.fixed_gbps, "GB/s", digits(decode.fixed_gbps.value), model, words)
    if decode.kv_gbps:
        words = f"1 GiB over the time that the slope {on} gives it. {LINE}"
        yield number(f"{key}.kv_gbps", decode.kv_gbps, "GB/s", digits(decode.kv_gbps.value), model, words)
    if decode.fixed_over_kv:
        words = f"Fixed-path over KV-path bandwidth, from both coefficients {on}. Fieller's interval, deviations as for the line"
        yield number(f"{key}.fixed_over_kv", decode.fixed_over_kv, "", digits(decode.fixed_over_kv.value), model, words)
    if decode.theil_sen:
        robust = decode.theil_sen.slope_ms_per_gib
        words = f"Median of the slopes between all pairs of points (Theil–Sen), {decode.name}. Interval: order statistics of those slopes"
        yield number(f"{key}.theil_sen_slope", robust, "ms/GiB", digits(robust.value), model, words)
    if (row := decode.decisive) is not None:
        batch, tokens = decode.points.select("batch", "context_tokens").row(row)
        words = f"Largest Cook's distance of a point, that of {batch} × {tokens:,}, in the line {on}"
        yield number(f"{key}.largest_cooks", decode.influences[row].cooks, "", 2, model, words)
        other = student(decode.without[row].slope_ms_per_gib, decode.without[row].freedom)
        words = f"Slope {on}, without the point {batch} × {tokens:,}, which has the largest Cook's distance. {LINE}"
        yield number(f"{key}.slope_without_decisive", other, "ms/GiB", digits(other.value), model, words)
    if plane := decode.with_batch:
        both = f"least squares of decode step time over KV size and batch, {decode.name}. {LINE}"
        kv, each = student(plane.slope_ms_per_gib, plane.freedom), student(plane.ms_per_sequence, plane.freedom)
        yield number(f"{key}.with_batch.slope", kv, "ms/GiB", digits(kv.value), model, f"Time for a GiB of KV, {both}")
        words = f"Time for one more sequence without its KV, {both}"
        yield number(f"{key}.with_batch.ms_per_sequence", each, "ms", digits(each.value), model, words)
        yield number(f"{key}.with_batch.r2", plane.r_squared, "", 3, model, f"R², {both}")
        if decode.kv_gbps_with_batch:
            kv_path = decode.kv_gbps_with_batch
            yield number(f"{key}.with_batch.kv_gbps", kv_path, "GB/s", digits(kv_path.value), model, f"1 GiB over its time, {both}")


def of_movement(run: KeptRun) -> Iterator[Number]:
    """Times by path and size, and setup and bandwidth of each path."""
    number, model = _Run(run), Label.ANALYTICAL
    for path in run.paths:
        key = f"movement.{path.key}"
        for row in path.points.to_dicts():
            words = f"Time to move a piece of {row['piece_bytes']:,} B, {path.path}, pieces one after another. {medians.ABOUT}"
            yield number(f"{key}.{row['piece_bytes']}.us", between(row), "µs", digits(row["median"]), Label.MEASURED, words)
        if path.line:
            on = f"{path.path}, time = setup + bytes / bandwidth. {DEVIATIONS} {LINE}"
            setup = student(path.line.setup_us, path.line.freedom)
            yield number(f"{key}.setup_us", setup, "µs", digits(setup.value), model, f"Setup of a piece, {on}")
            words = f"Largest deviation of a size from its line, as a share of its time, {on}"
            yield number(f"{key}.largest_deviation", path.line.largest_deviation, "", 2, model, words)
        if path.gbps:
            yield number(f"{key}.gbps", path.gbps, "GB/s", digits(path.gbps.value), model, f"Bandwidth, {on}")


def of_regeneration(run: KeptRun) -> Iterator[Number]:
    """Time to compute a block's tokens again, and how many times that of moving the block it is."""
    number = _Run(run)
    for made in run.regenerated:
        key = f"regeneration.{made.key}"
        model = f"{made.backend} on {made.device}, {made.dtype}"
        what = f"forward compute of {made.tokens} tokens on top of {made.context_tokens:,} cached, {model}"
        if made.context_tokens == min(other.context_tokens for other in run.regenerated if other.key == made.key):
            words = f"KV of {made.tokens} tokens of the model that computes them, {made.dtype}"
            yield number(f"{key}.block_kib", made.block_bytes / 1024, "KiB", 0, Label.ANALYTICAL, words)
        if made.ms is None:
            continue
        words = f"Time of {what}. {medians.ABOUT}"
        yield number(f"{key}.{made.context_tokens}.ms", made.ms, "ms", digits(made.ms.value), Label.MEASURED, words)
        for path, ratio in made.over_move.items():
            words = (
                f"Time of {what}, over the time to move the {made.block_bytes:,} B of their KV, {path}, between sizes on a straight line. "
                "Medians; bootstrap over the repetitions of both"
            )
            yield number(f"{key}.{made.context_tokens}.over_move.{word(path)}", ratio, "", digits(ratio.value), Label.ANALYTICAL, words)


def of_metadata(run: KeptRun) -> Iterator[Number]:
    """Time an operation by policy and size, and what that makes a step of the scheduler."""
    number, rows = _Run(run), run.points["metadata"].to_dicts()
    for row in rows:
        key = f"block_state.{row['operation']}.{row['policy']}.{row['blocks']}.ns"
        words = f"Time of one {row['operation']}, {row['policy']}, in a table of {row['blocks']:,} blocks. {medians.ABOUT}"
        yield number(key, between(row), "ns", digits(row["median"]), Label.MEASURED, words)
    by_point = {(row["operation"], row["policy"], row["blocks"]): between(row) for row in rows}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        for blocks in STEPS:
            found = [by_point.get((operation, policy, blocks)) for operation in STEP_OPERATIONS]
            if None in found:
                continue
            ends = [each if isinstance(each, Between) else Between(each, each, each) for each in found]
            us = [blocks * sum(getattr(each, end) for each in ends) / 1e3 for end in ("value", "low", "high")]
            words = (
                f"One {' and one '.join(STEP_OPERATIONS)} of each of {blocks:,} blocks, {policy}: blocks times the sum of the medians. "
                "Ends: the same of the ends, wider than an interval of the sum"
            )
            yield number(f"block_state.step.{policy}.{blocks}.us", Between(*us), "µs", digits(us[0]), Label.ANALYTICAL, words)


def of_table_size(run: KeptRun) -> Iterator[Number]:
    """Bytes a block, index included."""
    number = _Run(run)
    for row in run.tables["table_size"].to_dicts():
        for column, what in (("table_bytes", "Records and index as allocated"), ("resident_bytes", "Growth of the process that held them")):
            words = f"{what}, over {row['blocks']:,} blocks"
            key = f"block_state.bytes_per_block.{row['blocks']}.{column.removesuffix('_bytes')}"
            yield number(key, row[column] / row["blocks"], "B", 1, Label.MEASURED, words)


def of_folding(run: KeptRun) -> Iterator[Number]:
    """Time to make many score streams one score a block."""
    number = _Run(run)
    for row in run.points["folding"].to_dicts():
        words = (
            f"Time to fold {row['streams']} score streams into one score for each of {row['blocks']:,} blocks by {row['fold']}, "
            f"{row['dtype']}, threads: {row['threads']}. {medians.ABOUT}"
        )
        key = f"folding.{word(row['fold'])}.{word(row['dtype'])}.{row['streams']}x{row['blocks']}.{row['threads']}t.us"
        yield number(key, between(row), "µs", digits(row["median"]), Label.MEASURED, words)


PARTS = {
    "stream": of_stream,
    "decode": of_decode,
    "movement": of_movement,
    "regeneration": of_regeneration,
    "metadata": of_metadata,
    "table_size": of_table_size,
    "folding": of_folding,
}
"""By table."""


def of_run(run: KeptRun) -> Iterator[Number]:
    """All numbers of a run."""
    yield from of_machine(run)
    for table, numbers in PARTS.items():
        if table in run.tables:
            yield from numbers(run)


def of_repeated(found: Iterable[Compared]) -> Iterator[Number]:
    """Each fitted slope of a later run over that of the first one of its machine, and how many agree."""
    by_pair: dict[tuple[str, str], list[Compared]] = {}
    for each in found:
        by_pair.setdefault((each.first.key, each.later.key), []).append(each)
    for (first, later), pairs in by_pair.items():
        prefix = f"measured.repeatability.{later}"
        for each in pairs:
            one, other = each.slopes
            words = (
                f"Slope of {later} over slope of {first}: {one.name}. Fieller's interval, Welch's degrees of freedom. {each.first.machine}."
            )
            ratio = each.ratio or other.estimate.value / one.estimate.value
            value, spread = (ratio.value, ratio.uncertainty) if isinstance(ratio, Between) else (ratio, {})
            yield Number(f"{prefix}.{one.key}.ratio", value, "", 2, Label.ANALYTICAL, words, spread)
        words = f"Fitted slopes whose two intervals have a value in common, {later} and {first}. {pairs[0].first.machine}."
        yield Number(f"{prefix}.agree", sum(each.meet for each in pairs), "", 0, Label.ANALYTICAL, words)
        words = f"Fitted slopes that both {later} and {first} have. {pairs[0].first.machine}."
        yield Number(f"{prefix}.compared", len(pairs), "", 0, Label.ANALYTICAL, words)


def numbers(runs: Iterable[KeptRun], found: Iterable[Compared]) -> Iterator[Number]:
    """All numbers of all kept runs."""
    for run in runs:
        yield from of_run(run)
    yield from of_repeated(found)

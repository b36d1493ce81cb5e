"""Commands that measure this machine."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvtier.commands.answer import INTERRUPTED, Commands, as_json, checkout, fail, show, show_json, warn
from kvtier.errors import InputError

if TYPE_CHECKING:
    from kvtier.kit.campaign import Plan
    from kvtier.kit.machine import Bus, Machine
    from kvtier.kit.parts import Part
    from kvtier.terminal import Block

SHOWN_ROWS = 16
"""Points of a table that are shown; of a longer one, those of the largest size. summary.json has all."""

SIZE_COLUMNS = ("buffer_bytes", "piece_bytes", "blocks", "context_tokens")

BUSY = 0.5
"""Load a core above which a run is said to be disturbed."""

PARTS = {
    "stream": "kvtier.kit.stream:Stream",
    "movement": "kvtier.kit.movement:Movement",
    "regeneration": "kvtier.kit.regeneration:Regeneration",
    "decode": "kvtier.kit.decode:Decode",
    "metadata": "kvtier.kit.metadata:Metadata",
    "folding": "kvtier.kit.folding:Folding",
}
"""Where each part is, in the order in which they run."""

NEED_TORCH = frozenset({"decode"})
"""Parts that do not run without the extra."""

EXTRA = "torch and transformers: `pip install 'kvtier[measure]'`, or `make measure` in a checkout"


@dataclass(frozen=True)
class Shared:
    """Options of every measurement."""

    dry_run: bool
    quick: bool
    keep: bool
    platform: str
    bus_gbps: float | None
    bus_source: str
    accelerator_bus_gbps: float | None
    accelerator_bus_source: str
    out: Path | None
    in_json: bool


SHARED = [
    click.option("--dry-run", is_flag=True, help="Print what would be done, how long it takes and what it needs; do nothing."),
    click.option("--quick", is_flag=True, help="A try of a minute or so; its rows cannot be kept."),
    click.option("--keep", is_flag=True, help="Move the run to data/measured/ when it is complete, for the build to fit and draw."),
    click.option("--platform", default="", metavar="NAME", help="Name of the machine in words; else what it says of itself."),
    click.option("--bus-gbps", type=click.FloatRange(0, min_open=True), metavar="GB/S", help="Bandwidth of the memory bus by data sheet."),
    click.option("--bus-source", default="", metavar="TEXT", help="The data sheet, or who said it."),
    click.option("--accelerator-bus-gbps", type=click.FloatRange(0, min_open=True), metavar="GB/S", help="The same of the accelerator."),
    click.option("--accelerator-bus-source", default="", metavar="TEXT", help="Where that is from."),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Folder for the run's folder; in a checkout results/live.",
    ),
    as_json,
]


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options."""
    for option in reversed(SHARED):
        command = option(command)
    return command


def sizes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Sizes such as ``64KiB,1MiB``, in bytes, each once.

    Raises
    ------
    click.BadParameter
        For anything else.
    """
    from kvtier.analytic.quantities import size_bytes

    if value is None:
        return None
    found = []
    for word in value.split(","):
        plain = word.strip()
        try:
            found.append(size_bytes(f"{plain} B" if plain.isdecimal() else plain, "sizes"))
        except InputError:
            raise click.BadParameter(f"{word!r} is no size; sizes are such as 64KiB, 1MiB, 4096") from None
    return tuple(dict.fromkeys(found))


def counts(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Whole numbers of 1 or more, such as ``1,2,4``, each once.

    Raises
    ------
    click.BadParameter
        For anything else.
    """
    if value is None:
        return None
    words = [word.strip().replace("_", "") for word in value.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise click.BadParameter(f"{value!r} is no list of whole numbers, such as 1,2,4")
    return tuple(dict.fromkeys(map(int, words)))


def words(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Names such as ``sdpa,eager``."""
    return None if value is None else tuple(word.strip() for word in value.split(","))


MODEL = "small, qwen2.5-1.5b or qwen2.5-7b with random weights, or a folder or hub name; else what fits the machine."

model = click.option("--model", metavar="NAME", help=MODEL)
dtype = click.option("--dtype", metavar="NAME", help="float32, float16 or bfloat16; else float16 on an accelerator, float32 on a CPU.")
repetitions = click.option("--repetitions", type=click.IntRange(3, 10_000), help="Timings of each point.")
device = click.option("--device", metavar="NAME", help="Where it runs, such as cpu or cuda; else the accelerator if there is one.")


@click.group(cls=Commands)
def measure() -> None:
    """Measure this machine: memory, moving KV blocks against making them again, decode, the cost of a block's metadata.

    A run writes raw rows (CSV), a record of the machine and of every part (platform.json) and medians with intervals (summary.json) to
    results/live/<platform>-<date>/. Guards refuse what cannot be true, such as a bandwidth above the memory bus. With --keep a complete
    run moves to data/measured/, and the next build fits, audits and draws it.

    \b
    Examples:
      kvtier measure all --dry-run
      kvtier measure all --keep
      kvtier measure stream --quick
      kvtier measure all --bus-gbps 89.6 --bus-source "two modules of DDR5-5600"

    Exit codes: 0 measured; 1 refused, or a guard said no; 2 wrong call; 130 interrupted (complete parts stay).
    """


# what a run is made of


def _class_of(name: str) -> Any:
    module, _, attribute = PARTS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def make_parts(names: Sequence[str], quick: bool, settings: Mapping[str, Any]) -> list[Part]:
    """Parts with their settings: ``field`` for every part that has it, ``part.field`` for one. What is None keeps the part's own."""
    parts = []
    for name in names:
        kind = _class_of(name)
        known = {field.name for field in fields(kind)}
        named = {key.removeprefix(f"{name}."): value for key, value in settings.items() if value is not None}
        given = {key: value for key, value in named.items() if key in known}
        parts.append(replace(kind.quick() if quick else kind(), **given))
    return parts


def lacks_torch() -> bool:
    """Whether the extra is missing."""
    return find_spec("torch") is None or find_spec("transformers") is None


def _root() -> Path | None:
    try:
        return checkout().root
    except InputError:
        return None


def _buses_file(root: Path | None) -> Path | None:
    from kvtier.kit import buses

    # An editable install lies in its checkout, wherever it is called from.
    candidates = [root, *Path(__file__).resolve().parents[3:4]]
    return next((found for top in candidates if top and (found := top / buses.FILE).is_file()), None)


def _stated(gbps: float | None, source: str, option: str) -> Bus | None:
    from kvtier.kit.machine import Bus

    if (gbps is None) != (not source):
        raise click.UsageError(f"--{option}-gbps and --{option}-source belong together: a bandwidth counts with its source.")
    if gbps is not None and not isfinite(gbps):
        raise InputError(f"--{option}-gbps", "value", gbps, "a bandwidth above 0 [GB/s]: no other bounds anything")
    return None if gbps is None else Bus(gbps, source)


def _machine(root: Path | None, options: Shared) -> Machine:
    from kvtier.kit import buses, system

    stated = _stated(options.bus_gbps, options.bus_source, "bus")
    of_accelerator = _stated(options.accelerator_bus_gbps, options.accelerator_bus_source, "accelerator-bus")
    path = _buses_file(root)
    return system.this_machine(None if path is None else buses.read(path), stated, options.platform, accelerator_bus=of_accelerator)


# running


def run(names: Sequence[str], options: Shared, settings: Mapping[str, Any], left_out: Mapping[str, str] | None = None) -> None:
    """Plan, refuse what does not fit, measure, sum up, show, and keep if asked."""
    from kvtier.kit import campaign
    from kvtier.kit import folder as folders

    if options.keep and options.quick:
        raise click.UsageError("--quick and --keep exclude each other: a quick try has too few repetitions to keep.")
    root = _root()
    if options.out is None and root is None and not options.dry_run:
        raise InputError("folder", "checkout", "none around the current folder", "--out DIR, for the run's folder")
    if options.keep and root is None:
        raise InputError("--keep", "checkout", "none around the current folder", "a checkout, whose data/measured takes the run")
    machine = _machine(root, options)
    if options.keep:
        _check_bus(machine)
    parent = options.out or (root or Path.cwd()) / folders.LIVE
    # What is read from files is read on the disk that the run's folder is on, unless another is named.
    settings = {**settings, "folder": settings.get("folder") or campaign.existing(parent)}
    wanted = settings.get("device")
    if wanted not in (None, "cpu") and find_spec("torch") is None:
        raise InputError("--device", "name", repr(wanted[:40]), f"cpu; another device needs {EXTRA}")
    parts = make_parts(names, options.quick, settings)
    plan = campaign.plan(parts, machine)
    if options.dry_run:
        _show_plan(plan, machine, left_out or {}, parent, options.in_json)
    plan.check(machine, [parent, *campaign.scratch_folders(parts)])
    if not options.dry_run:
        _measure(parts, plan, machine, options, root, parent, left_out or {})


def _check_bus(machine: Machine) -> None:
    if machine.bus is None:
        raise InputError("--keep", "memory bus", "no data sheet is known for this processor", "--bus-gbps and --bus-source")
    if machine.accelerator is not None and machine.accelerator.bus is None:
        expected = "--accelerator-bus-gbps and --accelerator-bus-source"
        raise InputError("--keep", "memory bus", f"no data sheet is known for {machine.accelerator.name}", expected)


def _measure(
    parts: Sequence[Part], plan: Plan, machine: Machine, options: Shared, root: Path | None, parent: Path, left_out: Mapping[str, str]
) -> None:
    from datetime import UTC, datetime

    from kvtier.commands.progress import watcher
    from kvtier.kit import folder as folders
    from kvtier.kit import record as records
    from kvtier.kit.campaign import Campaign
    from kvtier.kit.timing import tick_s

    _warn_of_load(machine.cores)
    start = datetime.now(UTC)
    command = shlex.join(["kvtier", *sys.argv[1:]])
    entries = {part.name: records.PartRecord() for part in parts}
    software = records.software(root)
    record = records.Record(machine, command, options.quick, start, tick_s(), software, entries, left_out)
    folder = folders.live_folder(parent, machine.slug, start.date(), [root / folders.KEPT] if root else [])
    watching = watcher(quiet=options.in_json)
    failures, interrupted = [], False
    try:
        failures = Campaign(folder, record, plan, watching).run(parts)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        watching.close()
    summary = _sum_up(folder, record)
    kept = folders.keep(folder, root) if options.keep and root and not failures and not interrupted else None
    if options.in_json:
        show_json(
            {"folder": str(kept or folder), "kept": kept is not None, "record": record.plain(), "summary": summary, "failures": failures}
        )
    else:
        show(*_outcome(record, summary, kept or folder))
    if interrupted:
        click.echo(f"interrupted: what is complete is in {folder}", err=True)
        sys.exit(INTERRUPTED)
    if failures:
        fail("; ".join(failures) + ("; nothing is kept" if options.keep else ""))


def _warn_of_load(cores: int) -> None:
    import os

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > BUSY * cores:
        warn(f"the load of the last minute is {load:.1f} on {cores} cores: other work will show in the times, and drift may be refused")


def _sum_up(folder: Path, record: Any) -> dict[str, Any]:
    """Write ``summary.json``, if a part is complete whose rows can be summed up."""
    from kvtier.files import write_atomically
    from kvtier.kit.folder import SUMMARY_FILE
    from kvtier.measure import kept_summary

    if not any(entry.tables for entry in record.parts.values()):
        return {}
    summary = kept_summary.summary(folder)
    write_atomically(folder / SUMMARY_FILE, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    return summary


# what is shown


def _bus_said(bus: Bus | None) -> str:
    return "not known: --bus-gbps and --bus-source state it" if bus is None else f"{bus.gbps:g} GB/s, {bus.source}"


def _machine_fields(machine: Machine, *more: tuple[str, str]) -> Block:
    from kvtier.terminal import Fields

    pairs = [
        ("machine", machine.name),
        ("memory bus", _bus_said(machine.bus)),
        ("memory", f"{_size(machine.available_bytes)} free of {_size(machine.memory_bytes)}"),
        ("last-level cache", _size(machine.last_level_cache_bytes)),
    ]
    if machine.accelerator is not None:
        seen = machine.accelerator
        pairs.append(("accelerator", f"{seen.name}, {_size(seen.available_bytes)} free, bus {_bus_said(seen.bus)}"))
    pairs.append(("not readable", "\n".join(machine.not_readable)))
    return Fields([*pairs, *more])


def _size(size_bytes: float) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:,.1f} {unit}"
    return f"{size_bytes:.0f} B" if size_bytes else ""


def _show_plan(plan: Plan, machine: Machine, left_out: Mapping[str, str], parent: Path, in_json: bool) -> None:
    from dataclasses import asdict

    from kvtier.commands.progress import minutes
    from kvtier.terminal import Fields, Table

    if in_json:
        needs = {name: getattr(plan, name) for name in ("seconds", "memory_bytes", "device_bytes", "disk_bytes")}
        steps = {name: [asdict(step) for step in steps] for name, steps in plan.steps.items()}
        show_json({"machine": asdict(machine), "steps": steps, "needs": needs, "left_out": dict(left_out)})
        return
    rows = [
        (name, step.says, minutes(step.seconds), _size(step.memory_bytes), _size(step.device_bytes), _size(step.disk_bytes))
        for name, steps in plan.steps.items()
        for step in steps
    ]
    rows.append(("all", "", minutes(plan.seconds), _size(plan.memory_bytes), _size(plan.device_bytes), _size(plan.disk_bytes)))
    heads = ["Part", "What", "Time", "Memory", "Device", "Disk"]
    device_used = 4 if plan.device_bytes else None
    kept = [column for column in range(len(heads)) if column != 4 or device_used]
    table = Table(
        [heads[column] for column in kept],
        [[row[column] for column in kept] for row in rows],
        frozenset(heads[2:]),
        "What would be done; nothing is",
    )
    excluded = Fields(list(left_out.items()), "Left out") if left_out else ""
    show(_machine_fields(machine, ("would write to", str(parent))), table, excluded)


def _outcome(record: Any, summary: Mapping[str, Any], folder: Path) -> list[Block]:
    from kvtier.terminal import Table

    rows = [
        (name, entry.state, ", ".join(f"{file} {count:,}" for file, count in entry.tables.items()), len(entry.checked), entry.why)
        for name, entry in record.parts.items()
    ]
    parts = Table(["Part", "State", "Rows of", "Guards that held", "Why"], rows, frozenset({"Guards that held"}), f"Run in {folder}")
    blocks: list[Block] = [_machine_fields(record.machine), parts]
    more = []
    for name, found in summary.get("points", {}).items():
        points, which = _few(found["rows"])
        if which:
            more.append(f"{len(found['rows'])} points of {name}")
        columns = [column for column in points[0] if column not in ("repetitions", "median", "low", "high")]
        shown = [(*(point[column] for column in columns), *_interval(point)) for point in points]
        heads = [*columns, f"{found['quantity']} [{found['unit']}]", "interval"]
        blocks.append(Table(heads, shown, frozenset(heads[-2:]), f"{name}{which}: {found['interval']}"))
    for name, fits in summary.get("fits", {}).items():
        blocks.append(Table(["Fit", "Result"], [(_fit_of(each), _fit_said(each)) for each in fits], title=f"{name}: fits"))
    if more:
        blocks.append(f"In summary.json: {', '.join(more)}.")
    return blocks


def _few(points: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Points to show, and which they are if not all."""
    column = next((column for column in SIZE_COLUMNS if column in points[0]), None)
    if len(points) <= SHOWN_ROWS or column is None:
        return points, ""
    largest = max(point[column] for point in points)
    return [point for point in points if point[column] == largest], f", {column} {largest:,}"


def _interval(point: Mapping[str, Any]) -> tuple[str, str]:
    ends = "" if point["low"] is None else f"{_rounded(point['low'])} to {_rounded(point['high'])}"
    return _rounded(point["median"]), ends


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _fit_of(fitted: Mapping[str, Any]) -> str:
    return ", ".join(value for value in fitted.values() if isinstance(value, str) and value != fitted.get("left_out"))


def _fit_said(fitted: Mapping[str, Any]) -> str:
    if "left_out" in fitted:
        return f"left out: {fitted['left_out']}"
    ends = {name: value for name, value in fitted.items() if isinstance(value, Mapping)}
    return "; ".join(
        f"{name} {_rounded(each['value'])} ({_rounded(each['low'])} to {_rounded(each['high'])})" for name, each in ends.items()
    )


# the commands


def _run(names: Sequence[str], given: dict[str, Any], left_out: Mapping[str, str] | None = None) -> None:
    options = Shared(**{field.name: given.pop(field.name) for field in fields(Shared)})
    run(names, options, given, left_out)


@measure.command()
@click.option("--buffers", "buffers_bytes", callback=sizes, metavar="SIZES", help="Sizes of one array, such as 1MiB,64MiB.")
@click.option("--threads", callback=counts, metavar="COUNTS", help="Numbers of threads, such as 1,2.")
@repetitions
@device
@shared
def stream(**given: Any) -> None:
    """Bandwidth of memory: read, write, copy and triad, by buffer size and number of threads, against the bus."""
    _run(["stream"], given)


@measure.command()
@click.option("--pieces", "pieces_bytes", callback=sizes, metavar="SIZES", help="Sizes of a piece, such as 4KiB,1MiB,5MiB.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="On the disk to measure; else that of the run's folder.",
)
@click.option("--contexts", callback=counts, metavar="COUNTS", help="Tokens before the block that is made again, such as 1024,4096.")
@model
@dtype
@repetitions
@device
@shared
def movement(**given: Any) -> None:
    """Moving KV blocks between regions of memory, by size, against making the KV again by forward compute."""
    _run(["movement", "regeneration"], given)


@measure.command()
@model
@click.option("--backends", callback=words, metavar="NAMES", help="Of sdpa, sdpa-in-place, eager; or vllm alone.")
@click.option("--batches", callback=counts, metavar="COUNTS", help="Sequences, such as 1,4.")
@click.option("--contexts", callback=counts, metavar="COUNTS", help="Tokens in each, such as 1024,4096.")
@click.option("--steps", type=click.IntRange(3), help="Tokens of the long run; a step is its time less that of two, by difference.")
@dtype
@repetitions
@device
@shared
def decode(**given: Any) -> None:
    """Decode steps of a model, by batch and context. Needs the extra: torch and transformers."""
    if lacks_torch():
        raise InputError("decode", "libraries", "no torch or no transformers", EXTRA)
    _run(["decode"], given)


@measure.command()
@click.option("--blocks", callback=counts, metavar="COUNTS", help="Sizes of tables in blocks, such as 1000,100000.")
@repetitions
@shared
def metadata(**given: Any) -> None:
    """Cost of a block's metadata: lookup, touch, evict and re-admit by policy and size, and folding score streams."""
    # Folding counts blocks too, those of one context.
    given["metadata.blocks"] = given.pop("blocks")
    _run(["metadata", "folding"], given)


@measure.command(name="all")
@shared
def every(**given: Any) -> None:
    """Every part with its own settings, one after the other: under eight minutes on two cores.

    Without torch the part decode is left out, and the record says so.
    """
    left_out = {}
    if lacks_torch():
        left_out = dict.fromkeys(NEED_TORCH, f"it needs {EXTRA}")
        for name, why in left_out.items():
            warn(f"{name} is left out: {why}")
    _run([name for name in PARTS if name not in left_out], given, left_out)


@measure.command()
@click.argument("folder", type=click.Path(path_type=Path))
@as_json
def keep(folder: Path, in_json: bool) -> None:
    """Move a complete run to data/measured/, with a README made from its record.

    Refused: a run with a part that is not complete, a quick try, a machine whose memory bus is not known, a name that is taken.

    \b
    Example:
      kvtier measure keep results/live/epyc_2_cores-2026-11-30
    """
    from kvtier.kit import folder as folders

    root = checkout().root
    place = folders.keep(folder, root)
    if in_json:
        show_json({"folder": str(place), "kept": True})
    else:
        show(f"Kept in {place.relative_to(root)}. The next build reads it.")

"""`kvtier simulate`: a trace, or a synthetic workload, under several policies, capacities and tiers."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvtier.analytic.breakeven import ASSUMED_MFU, ASSUMED_PEAK
from kvtier.commands.answer import INTERRUPTED, as_json, show, show_json
from kvtier.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from kvtier.analytic.layouts import Layout
    from kvtier.simulate.eviction import Named
    from kvtier.simulate.replays import Setting
    from kvtier.simulate.serving import LinkedTier, Prefill
    from kvtier.terminal import Block, Table
    from kvtier.workload.paths import Trace

SYNTHETIC = ("zipf", "scan", "loop")

DEFAULT_POLICIES = "lru,lfu,ema0.05,s3fifo"

READ_BYTES_PER_S = 3e6
"""Roughly, to say how long reading may take."""

MOST_SERVERS = MOST_USERS = 1_000_000
"""Each is a clock of the queue, or of a session."""

TAKEN = ("hbm", "computed")
"""Names that no tier may have: columns beside those of the tiers, in lower case."""

LARGEST_SUM = 2.0**62
"""Of lengths: less than what an integer of 64 bits holds."""


@click.command()
@click.argument("trace", metavar="[TRACE]", required=False, type=click.Path(path_type=Path))
@click.option("--synthetic", type=click.Choice(SYNTHETIC), help="The study's synthetic workload instead of a trace.")
@click.option("--format", "form", metavar="NAME", help="mooncake, agentic, azure, generic or parquet.  [default: as the first line looks]")
@click.option("--model", default="llama3_70b", show_default=True, help="A name that kvtier size --list prints, or a config.json.")
@click.option("--dtype", default="bf16", show_default=True, help="Of the cache, as for kvtier size.")
@click.option("--hbm", default="32 GiB", show_default=True, metavar="SIZES", help="Room for KV in HBM; several with commas between.")
@click.option("--tier", "tiers", multiple=True, metavar="NAME:SIZE:GB/S[:US]", help="A tier below, such as 'cxl:512 GiB:64 GB/s:0.3 us'.")
@click.option("--policy", "policies", default=DEFAULT_POLICIES, show_default=True, metavar="NAMES", help="With commas between, or all.")
@click.option("--warm-up", default="0.5", show_default=True, metavar="SHARE", help="Of the requests: they are served and not counted.")
@click.option("--prefix-first", is_flag=True, help="Evict the first block of an edge first, not the last: to see what it costs.")
@click.option("--arrivals", default="trace", show_default=True, metavar="trace|poisson:RATE", help="When requests come [requests/s].")
@click.option("--spread", is_flag=True, help="Spread arrivals of a coarse clock from each tick to the next.")
@click.option(
    "--servers", type=click.IntRange(1, MOST_SERVERS), default=1, show_default=True, help="Requests that are in prefill at one time."
)
@click.option("--prefill-tps", help="Prefill rate [tokens/s], as measured.")
@click.option("--flops", help=f"Peak of a server [FLOP/s], such as 989T.  [default: {ASSUMED_PEAK}, assumed]")
@click.option("--mfu", help=f"Share of the peak that prefill reaches.  [default: {ASSUMED_MFU}, assumed]")
@click.option(
    "--users", type=click.IntRange(1, MOST_USERS), default=24, show_default=True, help="Who play the sessions of an agentic trace."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of whatever is drawn.")
@click.option("--limit-requests", type=click.IntRange(1), metavar="N", help="Only the first N requests.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes.  [default: one a core]")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.html", help="Write tables and charts to one file.")
@as_json
def simulate(trace: Path | None, synthetic: str | None, report: Path | None, in_json: bool, **options: Any) -> None:
    """Replay a trace: hits, distance to the optimum, bytes moved, stall, by policy and capacity.

    TRACE is a file of requests with block identities: Mooncake, coding-agent sessions, or the format of kvtier.workload.traces.generic
    for your own. Blocks are the trace's. A request finds what is resident, then pins and admits its whole context. Nothing is measured:
    bandwidths and prefill rates are what you say, or assumed.

    \b
    A trace of your own, one request a line below its header; equal identities for equal tokens up to the end of a block
      {"trace": "kvtier", "version": 1, "block_tokens": 16}
      {"time_s": 0.5, "input_tokens": 40, "output_tokens": 5, "blocks": [0, 1, 2]}
      {"time_s": 2.0, "input_tokens": 48, "output_tokens": 9, "blocks": [0, 1, 3]}

    \b
    Examples:
      kvtier simulate requests.jsonl --hbm "32 GiB,64 GiB,128 GiB" --policy all
      kvtier simulate requests.jsonl --tier "cxl:512 GiB:64 GB/s:0.3 us" --servers 32 --report requests.html
      kvtier simulate requests.parquet --model qwen3-32b --prefill-tps 8000 --warm-up 0 --json
      kvtier simulate --synthetic zipf --arrivals poisson:0.1

    Exit codes: 0 answered; 1 refused; 2 wrong call; 130 interrupted, with nothing written.
    """
    if (trace is None) == (synthetic is None):
        raise click.UsageError("a TRACE, or --synthetic")
    from kvtier.commands.progress import watcher

    asked = _understood(**options)
    if report:
        _require_folder(report)
    watching = watcher(quiet=in_json)
    try:
        answer = _answer(trace, synthetic, asked, watching)
    except KeyboardInterrupt:
        click.echo("interrupted: nothing is written", err=True)
        sys.exit(INTERRUPTED)
    finally:
        watching.close()
    if report:
        _write(report, answer)
    if in_json:
        show_json(answer)
    else:
        show(*_blocks(answer), *([f"report: {report}"] if report else []))


# what was asked


@dataclass(frozen=True)
class Asked:
    """Options, understood before anything is read."""

    form: str | None
    layout: Layout
    bytes_per_token: int
    cached_as: str
    hbm_bytes: tuple[int, ...]
    tiers: tuple[dict[str, Any], ...]
    policies: tuple[Named, ...]
    warm_up: float
    suffix_first: bool
    poisson_per_s: float | None
    spread: bool
    servers: int
    prefill: Prefill | None
    prefill_said: str
    users: int
    seed: int
    limit: int | None
    jobs: int


def _understood(
    *,
    form: str | None,
    model: str,
    dtype: str,
    hbm: str,
    tiers: Sequence[str],
    policies: str,
    warm_up: str,
    prefix_first: bool,
    arrivals: str,
    spread: bool,
    servers: int,
    prefill_tps: str | None,
    flops: str | None,
    mfu: str | None,
    users: int,
    seed: int,
    limit_requests: int | None,
    jobs: int | None,
) -> Asked:
    from kvtier.analytic.footprint import Footprint
    from kvtier.analytic.kv_formats import FORMATS, named
    from kvtier.analytic.quantities import amount, amount_or_zero, size_bytes
    from kvtier.commands import models
    from kvtier.simulate import replays
    from kvtier.workload.traces import FORMATS as TRACES

    if prefill_tps is not None and (flops or mfu):
        raise click.UsageError("either --prefill-tps, or --flops and --mfu")
    if form is not None and form not in TRACES:
        raise InputError("--format", "name", repr(form[:40]), f"one of {', '.join(TRACES)}")
    layout, stored = models.model(model), named(dtype, FORMATS, "--dtype")
    footprint = Footprint(layout, stored)
    expected = "a share of at least 0 and below 1"
    share = float(amount_or_zero(warm_up, "--warm-up", expected))
    if share >= 1:
        raise InputError("--warm-up", "value", repr(warm_up[:40]), expected)
    rate = None
    if arrivals != "trace":
        kind, _, per_s = arrivals.partition(":")
        if kind != "poisson":
            raise InputError("--arrivals", "process", repr(arrivals[:40]), "trace, or poisson:RATE such as poisson:2.5")
        rate = float(amount(per_s, "--arrivals", "poisson:RATE with a rate above 0 [requests/s]"))
    prefill, said = _prefill(layout, prefill_tps, flops, mfu)
    return Asked(
        form=form,
        layout=layout,
        bytes_per_token=footprint.bytes_per_token,
        cached_as=stored.said,
        hbm_bytes=tuple(dict.fromkeys(size_bytes(word, "--hbm") for word in _sizes(hbm))),
        tiers=_tiers(tiers),
        policies=_policies(policies),
        warm_up=share,
        suffix_first=not prefix_first,
        poisson_per_s=rate,
        spread=spread,
        servers=servers,
        prefill=prefill,
        prefill_said=said,
        users=users,
        seed=seed,
        limit=limit_requests,
        jobs=jobs or replays.cores(),
    )


def _sizes(text: str) -> list[str]:
    # A comma between a digit and three more is one inside a number.
    return [word.strip() for word in re.split(r"(?<!\d),|,(?!\d{3}(?!\d))", text)]


def _policies(text: str) -> tuple[Named, ...]:
    """Policies by slug, or by name and a parameter of one's own; each once.

    Raises
    ------
    InputError
        With the nearest names.
    """
    from kvtier.simulate.eviction import NAMES

    if text.strip().lower() == "all":
        return tuple(NAMES.values())
    found = [_policy(word.strip()) for word in text.split(",")]
    return tuple({named.slug: named for named in found}.values())


def _policy(word: str) -> Named:
    import difflib

    from kvtier.simulate.eviction import NAMES, ema, look_ahead, priority

    plain = word.lower().replace("-", "")
    if plain in NAMES:
        return NAMES[plain]
    if (match := re.fullmatch(r"(ema|priority)(0?\.\d{1,6})(_persistent|_demotes)?", plain)) and float(match[2]) > 0:
        if match[1] == "ema" and match[3] != "_demotes":
            return ema(float(match[2]), persistent=bool(match[3]))
        if match[1] == "priority" and match[3] != "_persistent":
            return priority(float(match[2]), demote_below=0.3 if match[3] else 0.0)
    if match := re.fullmatch(r"look([1-9]\d{0,8})", plain):
        return look_ahead(int(match[1]))
    near = difflib.get_close_matches(plain, [*NAMES, "all"], 4, 0.4) or list(NAMES)[:4]
    raise InputError("--policy", "name", repr(word[:40]), f"a name such as {', '.join(near)}, or ema with a weight such as ema0.05")


def _tiers(words: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Name, capacity and link of each tier, from the top down."""
    from kvtier.analytic.quantities import amount, shortened, size_bytes

    shape = "NAME:SIZE:BANDWIDTH[:SETUP], such as 'cxl:512 GiB:64 GB/s:0.3 us', or unlimited for the size"
    found: list[dict[str, Any]] = []
    for word in words:
        parts = [part.strip() for part in word.split(":")]
        if len(parts) not in (3, 4) or not parts[0]:
            raise InputError("--tier", "tier", shortened(word), shape)
        name, size, bandwidth, *setup = parts
        where = f"--tier {name[:20]}"
        if name.lower() in TAKEN:
            raise InputError(where, "name", "what a column of the answer is called", f"another name than {', '.join(TAKEN)}")
        if any(one["name"] == name for one in found):
            raise InputError(where, "name", "a second tier of that name", "each name once")
        capacity = None if size == "unlimited" else size_bytes(size, where)
        rate = bandwidth.removesuffix("GB/s").strip()
        gbps = float(amount(rate, where, "a bandwidth above 0 in GB/s (10^9 B/s)"))
        setup_us = 0.0
        if setup:
            time = re.fullmatch(r"(?:setup\s+)?([0-9.]{1,20})\s*(?:us|µs)", setup[0])
            if not time or time[1].count(".") > 1 or not time[1].strip("."):
                raise InputError(where, "setup", shortened(setup[0]), "a time a block in us, such as 0.3 us")
            setup_us = float(time[1])
        found.append({"name": name, "capacity_bytes": capacity, "bandwidth_gbps": gbps, "setup_us": setup_us})
    return tuple(found)


def _prefill(layout: Layout, prefill_tps: str | None, flops: str | None, mfu: str | None) -> tuple[Prefill | None, str]:
    """What computing takes, and how that is said; None where nothing is stated and the model's source does not say enough to assume it."""
    from kvtier.analytic.quantities import amount, rounded
    from kvtier.simulate.serving import AtRate, ByCompute

    if prefill_tps is not None:
        rate = float(amount(prefill_tps, "--prefill-tps", "a rate above 0 [tokens/s]"))
        return AtRate(rate), f"{rate:,.6g} tokens/s, as stated"
    peak = amount(flops or ASSUMED_PEAK, "--flops", "a peak above 0 [FLOP/s], such as 989T")
    share = amount(mfu or ASSUMED_MFU, "--mfu", "a share above 0 and at most 1")
    if share > 1:
        raise InputError("--mfu", "value", float(share), "a share above 0 and at most 1")
    stated = "as stated" if flops and mfu else "assumed" if not (flops or mfu) else f"{'--mfu' if flops else '--flops'} assumed"
    try:
        prefill = ByCompute(layout, float(peak * share))
    except InputError as error:
        if flops or mfu:
            raise
        return None, f"no times: {error.field} of {layout.model} is not stated; --prefill-tps gives a rate"
    said = f"{rounded(peak * share / 10**12)[0]} TFLOP/s effective, {stated}: 2 · parameters a token, and attention"
    return prefill, said


def _require_folder(report: Path) -> None:
    """Refuse before the work what cannot be written after it."""
    if report.suffix.lower() not in (".html", ".htm"):
        raise InputError("--report", "file", report.name, "a name that ends in .html")
    if not report.absolute().parent.is_dir():
        raise InputError("--report", "folder", report.parent, "a folder that exists")


# the answer


def _answer(path: Path | None, synthetic: str | None, asked: Asked, watching: Any) -> dict[str, Any]:
    """Everything that is printed."""
    from dataclasses import asdict

    from kvtier.simulate import replays

    trace, about, notes = _requests(path, synthetic, asked, watching)
    counted_from = int(asked.warm_up * trace.requests)
    block_bytes = asked.bytes_per_token * trace.block_tokens
    capacities = [_blocks_of(size, block_bytes, "--hbm") for size in asked.hbm_bytes]
    arrivals_s, arrivals_said = _arrivals(trace, synthetic, asked)
    setting = replays.Setting(
        block_bytes=block_bytes,
        counted_from=counted_from,
        tiers=_linked(asked.tiers, trace, block_bytes),
        suffix_first=asked.suffix_first,
        prefill=asked.prefill,
        arrivals_s=arrivals_s,
        servers=asked.servers,
    )
    rows = _replayed(trace, capacities, setting, asked, watching)
    reachable, read = replays.ceiling(trace, counted_from)
    at = dict(zip(capacities, asked.hbm_bytes, strict=True))
    return {
        "evidence": "Simulated (provisional)",
        "trace": {
            **about,
            "requests": trace.requests,
            "sessions": int(trace.session.max()) + 1 if trace.session.max() >= 0 else None,
            "block_tokens": trace.block_tokens,
            "block_accesses": trace.block_accesses,
            "unique_blocks": trace.unique_blocks,
            "input_tokens": int(trace.input_tokens.sum()),
        },
        "model": {
            "name": asked.layout.model,
            "source": asked.layout.source,
            "cached_as": asked.cached_as,
            "kv_bytes_per_token": asked.bytes_per_token,
            "block_bytes": block_bytes,
        },
        "counted": {"from_request": counted_from, "requests": trace.requests - counted_from, "warm_up": asked.warm_up},
        "ceiling": {"hits": reachable, "blocks": read, "percent": replays.percent(reachable, read)},
        "tiers": [asdict(one.tier) | {**said} for one, said in zip(setting.tiers, asked.tiers, strict=True)],
        "evicts": "the deepest block of an edge first" if asked.suffix_first else "the first block of an edge first",
        "arrivals": arrivals_said,
        "servers": asked.servers,
        "prefill": asked.prefill_said,
        "rows": [{**row, "asked_bytes": at[row["capacity_blocks"]]} for row in rows],
        "assumed": _assumed(synthetic, asked, trace),
        "notes": [*notes, *asked.layout.notes, *_observed(rows, asked)],
    }


def _requests(path: Path | None, synthetic: str | None, asked: Asked, watching: Any) -> tuple[Trace, dict[str, Any], list[str]]:
    """The requests, where they are from, and what to know of them."""
    import numpy as np

    from kvtier.simulate import replays
    from kvtier.workload import arrivals, traces

    notes: list[str] = []
    if synthetic is not None:
        from kvtier.workload.synthetic import generate

        trace = replays.of_turns(generate(synthetic, asked.seed), f"--synthetic {synthetic}")
        about: dict[str, Any] = {"source": f"synthetic {synthetic}, seed {asked.seed}", "format": None, "sha256": None}
    else:
        # Which also says what is wrong with a path that is no file, whatever the format.
        form = traces.recognise(path) if asked.form is None or not path.is_file() else asked.form
        watching.starts("reading", path.stat().st_size / READ_BYTES_PER_S)
        trace = traces.load(path, form)
        watching.ends("reading", "complete", f"{trace.requests:,} requests of {path.name}")
        about = {"source": path.name, "format": form, "sha256": _digest(path)}
        if not trace.block_tokens or not trace.block_accesses:
            raise InputError(path, "blocks", "lengths alone", "requests with identities of blocks: without them nothing can be found again")
        _require_countable(path, trace)
    if trace.by_session:
        trace = arrivals.compose(trace, asked.users, asked.seed)
        about["source"] += f", sessions played by {asked.users} users, seed {asked.seed}"
        notes.append("which session comes when is drawn: other seeds give other rates")
    if asked.limit is not None and asked.limit < trace.requests:
        trace = trace.select(np.arange(asked.limit), trace.time_us[: asked.limit])
        about["source"] += f", first {asked.limit:,} requests"
    tick_us = arrivals.tick_us(trace)
    if tick_us and asked.spread:
        trace = arrivals.spread(trace, tick_us, asked.seed)
        about["source"] += f", ticks of {tick_us / 1e6:g} s spread, seed {asked.seed}"
    elif tick_us and asked.poisson_per_s is None:
        notes.append(
            f"the clock ticks every {tick_us / 1e6:g} s: requests of a tick come together, which lengthens queues; --spread parts them"
        )
    elif asked.spread:
        notes.append("--spread changes nothing: the clock has no coarse ticks")
    return trace, about, notes


def _require_countable(path: Path, trace: Trace) -> None:
    """Refuse lengths whose sums are no integers of 64 bits: each may be one, and together they are counted."""
    sums = {"input tokens": trace.input_tokens, "output tokens": trace.output_tokens, "blocks": trace.path_blocks}
    for field, lengths in sums.items():
        if (total := float(lengths.sum(dtype=float))) >= LARGEST_SUM:
            raise InputError(path, field, f"{total:.3g} in all", f"fewer than {LARGEST_SUM:.3g}, which can be counted")


def _digest(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _blocks_of(size: int, block_bytes: int, option: str) -> int:
    from kvtier.analytic.quantities import said

    if size < block_bytes:
        raise InputError(option, "size", said(size), f"room for one block of the trace or more, {said(block_bytes)}")
    return size // block_bytes


def _linked(tiers: Sequence[dict[str, Any]], trace: Trace, block_bytes: int) -> tuple[LinkedTier, ...]:
    from kvtier.simulate.lower_tiers import Tier
    from kvtier.simulate.queueing import Link
    from kvtier.simulate.serving import LinkedTier

    found = []
    for one in tiers:
        size = one["capacity_bytes"]
        blocks = trace.unique_blocks if size is None else _blocks_of(size, block_bytes, f"--tier {one['name']}")
        found.append(LinkedTier(Tier(one["name"], blocks), Link(one["bandwidth_gbps"], one["setup_us"])))
    return tuple(found)


def _arrivals(trace: Trace, synthetic: str | None, asked: Asked) -> tuple[np.ndarray | None, str]:
    from kvtier.simulate import queueing

    if asked.poisson_per_s is not None:
        at_s = queueing.poisson(trace.requests, asked.poisson_per_s, asked.seed)
        return at_s, f"Poisson, {asked.poisson_per_s:g} requests/s, seed {asked.seed}"
    if synthetic is not None:
        return None, "none: a synthetic workload has no times, so there is no queue; --arrivals poisson:RATE"
    return trace.time_us / 1e6, "of the trace"


def _replayed(trace: Trace, capacities: Sequence[int], setting: Setting, asked: Asked, watching: Any) -> list[dict[str, Any]]:
    from kvtier.simulate import replays

    cells = len(capacities) * (len(asked.policies) + 1)
    watching.starts("replaying", replays.expected_s(trace, cells, setting))

    def done(count: int, of: int) -> None:
        watching.at("replaying", f"{count} of {of} replays", count / of)

    rows = replays.sweep(trace, asked.policies, list(dict.fromkeys(capacities)), setting, asked.jobs, done)
    watching.ends("replaying", "complete", f"{len(rows)} rows")
    return rows


def _assumed(synthetic: str | None, asked: Asked, trace: Trace) -> list[str]:
    """What every row rests on."""
    times = ", bandwidths" * bool(asked.tiers) + (", prefill rate" if asked.prefill is not None else "")
    said = [
        f"Simulated (provisional), not run on hardware: one {'synthetic workload' if synthetic else 'trace'} and no interval; lossless "
        f"residency, blocks of {trace.block_tokens:,} tokens{times} are assumed or as stated.",
        "Lossless residency: a request pins and admits its whole context, and evicts others alone. Another block size gives other rates.",
        "The optimum bounds block hits in HBM. It is not defined for tokens, hits in tiers, stall or TTFT, nor where no block is counted.",
    ]
    if asked.tiers:
        links = "; ".join(f"{one['name']} {one['bandwidth_gbps']:g} GB/s, setup {one['setup_us']:g} us a block" for one in asked.tiers)
        said.append(f"Tiers run LRU and keep what is fetched; bandwidths are as stated and not measured: {links}.")
    if asked.prefill is not None:
        said.append(
            f"Stall: fetch, then computing of all that no tier has, new tokens too, at {asked.prefill_said}. "
            "Decoding is elsewhere: TTFT is wait and stall, without a decode step."
        )
    if synthetic:
        said.append("Generated blocks are computed by the session's next turn, so rates are below those of Revision 3, which keeps them.")
    return said


def _observed(rows: Sequence[dict[str, Any]], asked: Asked) -> list[str]:
    """What the rows say that a reader could miss."""
    import math

    from kvtier.publish import series

    notes = []
    if asked.prefill is None:
        notes.append(asked.prefill_said)
    unstable = [row for row in rows if row.get("stable") is False]
    if unstable:
        needed = [row["load"] for row in unstable if row["load"] is not None]
        enough = f"; {math.floor(max(needed) * asked.servers) + 1} servers would be enough for all" if len(needed) == len(unstable) else ""
        notes.append(
            f"the queue is unstable in {len(unstable)} of {len(rows)} rows: requests bring more work than {asked.servers} "
            f"server{'s' * (asked.servers != 1)} can do, so there is no TTFT{enough}"
        )
    if seeing := [series.title(named.slug) for named in asked.policies if "reads" in named.kind.needs]:
        notes.append(f"no service can run {', '.join(seeing)}: they know what will be asked")
    streamed = [row for row in rows if row["streamed_blocks"]]
    if streamed:
        notes.append(f"some contexts are larger than HBM in {len(streamed)} of {len(rows)} rows: what did not fit was not kept there")
    if any(row["hit_percent"] is None for row in rows):
        notes.append("no counted request reads a block: there are no rates, and no optimum")
    return notes


# how it is shown


def _tables(answer: dict[str, Any]) -> list[Table]:
    """The rows as tables: hits, where blocks come from, times."""
    tables = [_hits(answer), _sources(answer)]
    return [*tables, _times(answer)] if "stall_ms_mean" in answer["rows"][0] else tables


def _names(row: dict[str, Any]) -> tuple[str, str]:
    from fractions import Fraction

    from kvtier.analytic.quantities import BINARY, DECIMAL, rounded
    from kvtier.publish import series

    size = row["asked_bytes"]
    # The unit in which the number is shortest is the one it was asked in.
    texts = [f"{rounded(Fraction(size, scale))[0]} {unit}" for unit, scale in (BINARY | DECIMAL).items() if size >= scale]
    return min(texts, key=len), series.title(row["policy"])


def _share(value: float | None, places: int = 2) -> str:
    return "none" if value is None else f"{value:.{places}f}"


def _of(part: int, whole: int) -> str:
    return f"{part:,} / {whole:,}"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from kvtier.terminal import Table

    return Table(columns, rows, frozenset(columns[2:]), title)


def _hits(answer: dict[str, Any]) -> Table:
    counted = answer["counted"]
    heads = ["HBM", "Policy", "Block hits, %", "hits / blocks read", "Optimum, %", "Regret, points"]
    heads += ["Contiguous prefix, %", "prefix hits / blocks read", "Tokens, %", "hit tokens / prompt tokens"]
    rows = [
        (
            *_names(row),
            _share(row["hit_percent"]),
            _of(row["hits"], row["blocks"]),
            _share(row["optimum_percent"]),
            _share(row["regret_points"]),
            _share(row["prefix_hit_percent"]),
            _of(row["prefix_hits"], row["blocks"]),
            _share(row["token_hit_percent"]),
            _of(row["hit_tokens"], row["tokens"]),
        )
        for row in answer["rows"]
    ]
    first = counted["from_request"]
    title = f"Hits in HBM, counted from request {first:,} on: {counted['requests']:,} requests after a warm-up of {first:,}"
    return _table(title, heads, rows)


def _sources(answer: dict[str, Any]) -> Table:
    names = [one["name"] for one in answer["tiers"]]
    heads = ["HBM", "Policy", "HBM, %", *(f"{name}, %" for name in names), "Computed, %", "new blocks", "recomputed", "evicted"]
    heads += [f"{name}, GB {way}" for name in names for way in ("up", "down")]
    rows = []
    for row in answer["rows"]:
        computed = None if row["hit_percent"] is None else 100 * row["computed_blocks"] / row["blocks"]
        moved = [f"{tier[f'{way}_bytes'] / 1e9:,.1f}" for tier in row["tiers"] for way in ("up", "down")]
        counts = [f"{row[f'{name}_blocks']:,}" for name in ("new", "recomputed", "evicted")]
        rates = [row["hit_percent"], *(tier["hit_percent"] for tier in row["tiers"]), computed]
        rows.append((*_names(row), *map(_share, rates), *counts, *moved))
    return _table("Where the blocks read come from: the shares add up to 100 (same requests; counts in blocks)", heads, rows)


def _times(answer: dict[str, Any]) -> Table:
    kinds = ("mean", "p50", "p95", "p99")
    heads = ["HBM", "Policy", *(f"Stall {kind}, ms" for kind in kinds), "of it computing"]
    queued = answer["rows"][0]["stable"] is not None
    heads += [*(f"TTFT {kind}, ms" for kind in kinds), "Load"] if queued else []
    rows = []
    for row in answer["rows"]:
        cells = [f"{row[f'stall_ms_{kind}']:,.1f}" for kind in kinds] + [f"{row['compute_ms_mean']:,.1f}"]
        if queued:
            cells += [f"{row[f'ttft_ms_{kind}']:,.1f}" if row["stable"] else "unstable" for kind in kinds]
            cells.append("no time passes" if row["load"] is None else f"{row['load']:.3f}")
        rows.append((*_names(row), *cells))
    load = f"; load is work over what {answer['servers']} server{'s' * (answer['servers'] != 1)} can do, all requests" if queued else ""
    return _table(f"Times of the counted requests{load}", heads, rows)


def _facts(answer: dict[str, Any]) -> list[tuple[str, str]]:
    from kvtier.analytic.quantities import said

    trace, model, ceiling = answer["trace"], answer["model"], answer["ceiling"]
    tiers = "\n".join(f"{one['name']}: {one['capacity_blocks']:,} blocks, {one['bandwidth_gbps']:g} GB/s" for one in answer["tiers"])
    return [
        ("evidence", answer["evidence"]),
        ("trace", f"{trace['source']}{' (' + trace['format'] + ')' if trace['format'] else ''}"),
        ("sha256", trace["sha256"] or ""),
        ("requests", f"{trace['requests']:,}" + (f" of {trace['sessions']:,} sessions" if trace["sessions"] else "")),
        ("blocks", f"{trace['block_accesses']:,} read, {trace['unique_blocks']:,} different, of {trace['block_tokens']:,} tokens"),
        ("ceiling", f"{_share(ceiling['percent'])}% of blocks: {_of(ceiling['hits'], ceiling['blocks'])}, a cache without limit"),
        ("model", f"{model['name']}: {said(model['kv_bytes_per_token'])} a token, {said(model['block_bytes'])} a block"),
        ("cached as", model["cached_as"]),
        ("tiers below", tiers),
        ("evicts", answer["evicts"]),
        ("arrivals", answer["arrivals"]),
        ("prefill", answer["prefill"]),
    ]


def _blocks(answer: dict[str, Any]) -> list[Block]:
    from kvtier.terminal import Fields

    return [
        Fields(_facts(answer)),
        *_tables(answer),
        "\n".join(["Assumed:", *(f"- {words}" for words in answer["assumed"])]),
        "\n".join(f"note: {words}" for words in answer["notes"]),
    ]


def _drawn(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Columns that the report draws."""
    import polars as pl

    from kvtier.publish.replay_report import REPLAYS
    from kvtier.simulate.replays import percent

    return pl.DataFrame(
        [
            {
                "policy": row["policy"],
                "capacity_bytes": row["capacity_bytes"],
                "capacity": _names(row)[0],
                "hit_percent": row["hit_percent"],
                "optimum_percent": row["optimum_percent"],
                "regret_points": row["regret_points"],
                "tier_percents": [tier["hit_percent"] for tier in row["tiers"]],
                "recomputed_percent": percent(row["recomputed_blocks"], row["blocks"]),
                "new_percent": percent(row["new_blocks"], row["blocks"]),
                "stall_ms_mean": row.get("stall_ms_mean"),
            }
            for row in rows
        ],
        schema=REPLAYS.columns,
    )


def _write(report: Path, answer: dict[str, Any]) -> None:
    """The report, whole or not at all."""
    from kvtier.publish import replay_report

    sheets = [replay_report.Sheet(table.title, table.columns, table.rows, table.right) for table in _tables(answer)]
    try:
        replay_report.write(
            report,
            source=answer["trace"]["source"],
            facts=[(name, text) for name, text in _facts(answer) if text and name != "evidence"],
            assumed=answer["assumed"],
            notes=answer["notes"],
            sheets=sheets,
            rows=_drawn(answer["rows"]),
            tiers=[one["name"] for one in answer["tiers"]],
        )
    except OSError as error:
        raise InputError("--report", "file", error.strerror or error, "a place that can be written") from None

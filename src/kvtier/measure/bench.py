"""Retained rows of the benchmarks: this engine beside a peer, and how the cost of a replay grows.

The rows are written by ``benchmarks/peers.py`` and ``benchmarks/growth.py``, which say how they are taken. Here they are read, checked
(equal hits where both sides follow the same rules) and summed up. All numbers are Measured: CPU time and memory on the machine that is
described beside the rows; hits are counts of the same runs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.files import read_json
from kvtier.frames import Table

PREFIX = "measured.bench"
OURS, PEER = "kvtier", "libcachesim"

PEERS = Table(
    "peers",
    {
        "table": pl.String(),
        "context_tokens": pl.Int64(),
        "sessions": pl.Int64(),
        "turns": pl.Int64(),
        "requests": pl.Int64(),
        "capacity_blocks": pl.Int64(),
        "comparison": pl.String(),
        "same_rules": pl.Boolean(),
        "step": pl.Int64(),
        "side": pl.String(),
        "policy": pl.String(),
        "hashpower": pl.Int64(),
        "replays": pl.Int64(),
        "cpu_s": pl.Float64(),
        "hits": pl.Int64(),
    },
    nullable=frozenset({"hashpower"}),
)
"""One row a timing: ``cpu_s`` is that of all ``replays``, ``hits`` those of one; ``step`` is its place in its comparison's alternation."""

GROWTH = Table(
    "growth",
    {
        "sessions": pl.Int64(),
        "context_tokens": pl.Int64(),
        "turns": pl.Int64(),
        "growing": pl.Boolean(),
        "semantics": pl.String(),
        "policy": pl.String(),
        "requests": pl.Int64(),
        "blocks": pl.Int64(),
        "hbm_blocks": pl.Int64(),
        "cxl_blocks": pl.Int64(),
        "hits": pl.Int64(),
        "prepare_s": pl.Float64(),
        "replays": pl.Int64(),
        "cpu_s": pl.Float64(),
        "peak_mib": pl.Float64(),
    },
    nullable=frozenset({"cxl_blocks"}),
)
"""One row a case, semantics and policy, from a process of its own."""

THROUGHPUT = Table(
    "throughput",
    {
        "key": pl.String(),
        "context_tokens": pl.Int64(),
        "turns": pl.Int64(),
        "policy": pl.String(),
        "side": pl.String(),
        "million_requests_per_s": pl.Float64(),
        "lowest": pl.Float64(),
        "highest": pl.Float64(),
    },
)
"""One row a context length, policy and side: median, slowest and fastest timing."""


@dataclass(frozen=True)
class Machine:
    """What the rows were taken on.

    Parameters
    ----------
    cpu, date : str
        Processor and day.
    cores : int
        Cores that the system shows.
    peer : str
        Version of the peer; empty where there is none.
    """

    cpu: str
    cores: int
    date: str
    peer: str

    @property
    def said(self) -> str:
        """In words, for definitions and captions."""
        return f"{self.cpu}, one of {self.cores} cores, {self.date}"


def read_machine(path: str | Path) -> Machine:
    """Read the platform that lies beside retained rows.

    Raises
    ------
    InputError
        If it does not name processor, cores and day.
    """
    found = read_json(path)
    for field, kind in (("cpu", str), ("cores", int), ("date", str)):
        if not isinstance(found, dict) or not isinstance(found.get(field), kind) or not found[field]:
            raise InputError(path, field, json.dumps(found.get(field) if isinstance(found, dict) else found), f"a {kind.__name__}")
    return Machine(found["cpu"], found["cores"], found["date"], str(found.get(PEER, "")))


@dataclass(frozen=True)
class Comparison:
    """One policy on both sides, summed up.

    Parameters
    ----------
    table, name : str
        ``policies``, ``arbitrary`` or ``contexts``, and the comparison in it.
    about : mapping
        Sizes of the workload, and whether both sides follow the same rules.
    policies, hits : mapping of str to str, of str to int
        Policy and hits by side.
    times_s : mapping of str to list of float
        CPU time of a replay by side, in the order of the timings [s].
    ratios : list of float
        Each timing of the peer over the mean of the two of ours around it.
    """

    table: str
    name: str
    about: Mapping[str, Any]
    policies: Mapping[str, str]
    hits: Mapping[str, int]
    times_s: Mapping[str, list[float]]
    ratios: list[float]

    @property
    def context(self) -> str:
        """Mean initial context inside a key: ``8k``, ``1m``."""
        return context_word(self.about["context_tokens"])

    @property
    def ratio(self) -> float:
        """Median time of the peer over median time of ours."""
        return statistics.median(self.times_s[PEER]) / statistics.median(self.times_s[OURS])

    def rates(self, side: str) -> tuple[float, float, float]:
        """Requests per CPU second: median, lowest, highest timing [millions]."""
        millions = self.about["requests"] / 1e6
        times = self.times_s[side]
        return millions / statistics.median(times), millions / max(times), millions / min(times)


def context_word(tokens: int) -> str:
    """A context length inside a key: ``8k``, ``1m``."""
    ki, rest = divmod(tokens, 2**10)
    if rest:
        return str(tokens)
    return f"{ki // 2**10}m" if ki % 2**10 == 0 else f"{ki}k"


def _one(rows: pl.DataFrame, column: str, path: str | Path, where: str) -> Any:
    values = rows[column].unique().sort().to_list()
    if len(values) != 1:
        raise InputError(path, f"column {column}, {where}", ", ".join(map(str, values)), "one value")
    return values[0]


def read_comparisons(path: str | Path) -> list[Comparison]:
    """Read and sum up ``peers.csv``, in the order of the file.

    Raises
    ------
    InputError
        If a timing is not positive, the sides do not alternate, a replay of one side gives other hits than the next, or the hits of the two
        sides differ under the same rules.
    """
    frame = PEERS.read_csv(path)
    for column in ("cpu_s", "replays", "requests"):
        if (frame[column] <= 0).any():
            row = int((frame[column] <= 0).arg_true()[0])
            raise InputError(path, f"column {column}, row {row + 1}", frame[column][row], "a value above 0")
    found = []
    for (table, context, name), rows in frame.group_by("table", "context_tokens", "comparison", maintain_order=True):
        where = f"{table}, {context} tokens, {name}"
        sides = rows["side"].to_list()
        if len(sides) < 3 or sides != ([OURS, PEER] * len(sides))[: len(sides)] or sides[-1] != OURS:
            raise InputError(path, f"column side, {where}", ", ".join(sides), f"{OURS}, {PEER}, {OURS}, ..., {OURS}")
        by_side = {side: rows.filter(pl.col("side") == side) for side in (OURS, PEER)}
        hits = {side: _one(part, "hits", path, f"{where}, {side}") for side, part in by_side.items()}
        same_rules = _one(rows, "same_rules", path, where)
        if same_rules and hits[OURS] != hits[PEER]:
            raise InputError(
                path, f"column hits, {where}", f"{hits[OURS]} and {hits[PEER]}", "equal hits: both sides follow the same rules"
            )
        sizes = {column: _one(rows, column, path, where) for column in ("sessions", "turns", "requests", "capacity_blocks")}
        times_s = {side: (part["cpu_s"] / part["replays"]).to_list() for side, part in by_side.items()}
        around = [(before + after) / 2 for before, after in zip(times_s[OURS][:-1], times_s[OURS][1:], strict=True)]
        found.append(
            Comparison(
                table=str(table),
                name=str(name),
                about={"context_tokens": context, "same_rules": same_rules, **sizes},
                policies={side: _one(part, "policy", path, where) for side, part in by_side.items()},
                hits=hits,
                times_s=times_s,
                ratios=[theirs / ours for theirs, ours in zip(times_s[PEER], around, strict=True)],
            )
        )
    return found


def throughput(comparisons: list[Comparison]) -> pl.DataFrame:
    """``THROUGHPUT`` of the comparisons by context length: ours, then the peer, contexts rising."""
    rows = []
    for side in (OURS, PEER):
        for each in comparisons:
            if each.table == "contexts":
                median, lowest, highest = each.rates(side)
                rows.append(
                    {
                        "key": f"{PREFIX}.contexts.{each.context}.{each.name}.{side}_rate",
                        "context_tokens": each.about["context_tokens"],
                        "turns": each.about["turns"],
                        "policy": each.name,
                        "side": side,
                        "million_requests_per_s": median,
                        "lowest": lowest,
                        "highest": highest,
                    }
                )
    return THROUGHPUT.check(pl.DataFrame(rows))


def _number(key: str, value: float, unit: str, digits: int, definition: str, **uncertainty: float) -> Number:
    return Number(f"{PREFIX}.{key}", value, unit, digits, Label.MEASURED, definition, uncertainty)


def _digits(value: float) -> int:
    """Decimals that leave three digits or so."""
    return 0 if value >= 100 else 1 if value >= 10 else 2


def _of_comparison(key: str, each: Comparison, machine: Machine) -> Iterator[Number]:
    rules = (
        "the same rules and hits" if each.about["same_rules"] else f"other rules: no peer has ours, {each.policies[PEER]} is the nearest"
    )
    what = (
        f"{each.policies[OURS]} here, {each.policies[PEER]} in {PEER} {machine.peer}, {rules}; {each.about['requests']:,} requests of "
        f"{each.about['turns']:,} turns, cache of {each.about['capacity_blocks']:,} blocks; {machine.said}"
    )
    timings = f"median of {len(each.times_s[OURS])} timings here and {len(each.times_s[PEER])} there, which alternate"
    ratio = each.ratio
    yield _number(
        f"{key}.ratio",
        ratio,
        "",
        _digits(ratio),
        f"CPU time of a replay there over CPU time here, {timings}: {what}. The interval is over single timings.",
        lowest_timing=min(each.ratios),
        highest_timing=max(each.ratios),
    )
    for side, where in ((OURS, "here"), (PEER, "there")):
        median, lowest, highest = each.rates(side)
        yield _number(
            f"{key}.{side}_rate",
            median,
            "M requests/s",
            _digits(median),
            f"Block requests over CPU time {where}, in effect: {what}.",
            lowest_timing=lowest,
            highest_timing=highest,
        )


def of_peers(comparisons: list[Comparison], machine: Machine) -> Iterator[Number]:
    """Ratio, rates, times and hits of each comparison of policies; ratio and rates on an arbitrary trace and at each context length."""
    for each in comparisons:
        if each.table == "contexts":
            yield from _of_comparison(f"contexts.{each.context}.{each.name}", each, machine)
            continue
        if each.table == "arbitrary":
            yield from _of_comparison(f"arbitrary.{each.name}", each, machine)
            continue
        key = f"peers.{each.name}"
        yield from _of_comparison(key, each, machine)
        for side, digits in ((OURS, 2), (PEER, 1)):
            median_ms = 1e3 * statistics.median(each.times_s[side])
            yield _number(f"{key}.{side}_ms", median_ms, "ms", digits, f"CPU time of one replay, {side}, {each.name}; {machine.said}.")
            yield _number(f"{key}.{side}_hits", each.hits[side], "", 0, f"Block requests that hit, {each.policies[side]} of {side}.")
    first = next(each for each in comparisons if each.table == "policies")
    yield _number("peers.requests", first.about["requests"], "", 0, "Block requests of the workload, generated blocks included.")
    yield _number("peers.capacity", first.about["capacity_blocks"], "blocks", 0, "Size of the cache.")
    yield _number("peers.turns", first.about["turns"], "", 0, "Turns of the workload.")


SWEEPS = {"still_contexts", "contexts", "turns", "sessions", "largest"}
SMALLEST = {"sessions": 200, "context_tokens": 8 * 2**10, "turns": 2500}
"""Case from which each sweep of the growth starts; sessions need more turns to be visited."""
VISITING_TURNS = 25_000


def places(case: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Each sweep that a case belongs to, and its name there."""
    if not case["growing"]:
        yield "still_contexts", context_word(case["context_tokens"])
        return
    at_least = {column: case[column] == least for column, least in SMALLEST.items()}
    if at_least["sessions"] and at_least["turns"]:
        yield "contexts", context_word(case["context_tokens"])
    if at_least["sessions"] and at_least["context_tokens"]:
        yield "turns", str(case["turns"])
    if at_least["context_tokens"] and case["turns"] == VISITING_TURNS:
        yield "sessions", str(case["sessions"])
    if not any(at_least.values()):
        yield "largest", "all"


def of_growth(path: str | Path, machine: Machine) -> Iterator[Number]:
    """Time a turn, time in all and peak memory of each case of ``growth.csv``.

    Raises
    ------
    InputError
        If a sweep has no case.
    """
    frame = GROWTH.read_csv(path)
    missing = SWEEPS - {sweep for case in frame.iter_rows(named=True) for sweep, _ in places(case)}
    if missing:
        raise InputError(path, "rows", f"no case of {', '.join(sorted(missing))}", "cases of every sweep")
    for case in frame.iter_rows(named=True):
        semantics = "request by request" if case["semantics"] == "requests" else "Revision 2 with its CXL tier"
        what = (
            f"{case['policy']}, {semantics}, {case['sessions']:,} sessions that start with {case['context_tokens']:,} tokens in the mean "
            f"and {'grow' if case['growing'] else 'do not grow'}, {case['turns']:,} turns, {case['requests']:,} block touches; "
            f"{machine.said}."
        )
        cpu_s = case["cpu_s"] / case["replays"]
        for sweep, name in places(case):
            key = f"growth.{sweep}.{name}.{case['semantics']}_{case['policy']}"
            yield _number(f"{key}.us_per_turn", 1e6 * cpu_s / case["turns"], "µs", 2, f"CPU time of a replay over its turns: {what}")
            yield _number(f"{key}.peak_mib", case["peak_mib"], "MiB", 0, f"Most memory held, interpreter and libraries included: {what}")
            if sweep == "largest":
                yield _number(f"{key}.cpu_s", cpu_s, "s", 2, f"CPU time of a replay: {what}")
                yield _number(f"{key}.prepare_s", case["prepare_s"], "s", 2, f"CPU time to draw the workload and derive its arrays: {what}")
                yield _number(f"{key}.requests", case["requests"], "", 0, f"Block touches of the workload: {what}")

"""Audits of the public traces, and their rates with numerator, denominator and warm-up."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from kvtier.audit import findings, traces
from kvtier.audit.findings import FINDINGS, Finding
from kvtier.audit.traces import RATES, Rate
from kvtier.jobs import reporting
from kvtier.workload import arrivals, retrieve
from kvtier.workload.paths import Trace
from kvtier.workload.traces import load

CAPACITY_TOKENS, ORDERS = 2**20, (1, 2, 3)
"""A cache in which order may matter, and seeds of the orders that are tried."""


def audit(some: Iterable[Trace]) -> tuple[list[Finding], list[Rate]]:
    found, rates = [], []
    for trace in some:
        found += [traces.parents(trace), traces.time_quantum(trace)]
        if trace.by_session:
            found.append(traces.duplicate_sessions(trace))
        # The last half by requests; in a trace whose sessions are not composed it would be some sessions, and no warm cache.
        starts = (0,) if trace.by_session else (0, -(-trace.requests // 2))
        rates += [traces.ceiling(trace, unit, start) for unit in ("blocks", "tokens") for start in starts]
        rates.append(traces.commonest_block(trace)[1])
        if not trace.by_session and (tick_us := arrivals.tick_us(trace)):
            # What the coarse clock leaves open: the hits of other orders inside its ticks.
            rates += traces.orders_in_ticks(trace, tick_us, CAPACITY_TOKENS // trace.block_tokens, ORDERS)
    return found, rates


def tabulate(rates: list[Rate]) -> pl.DataFrame:
    return RATES.check(pl.DataFrame([asdict(rate) | {"percent": rate.percent} for rate in rates], schema_overrides=RATES.columns))


if __name__ == "__main__":
    with reporting(snakemake):
        names = {source.file: name for name, source in retrieve.read_sources(snakemake.input.sources).items()}
        loaded = (replace(load(path), source=names[Path(path).name]) for path in snakemake.input.traces)
        found, rates = audit(loaded)
        findings.require(found)
        FINDINGS.write(findings.table(found), snakemake.output.findings)
        RATES.write(tabulate(rates), snakemake.output.rates)

"""A third party's times by context, fitted by the same line: setup and bandwidth of KV copied from the host and of KV on the device.

The times are External literature; what is fitted to them is an Analytical model, not a measurement of this project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kvtier.analytic import labelling
from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.frames import Table
from kvtier.measure import fit
from kvtier.measure.fit import Estimate, TwoTermFit
from kvtier.units import GIB

TIMES = Table(
    "times by context",
    {"kv": pl.String(), "context_tokens": pl.Int64(), "kv_kb_per_token": pl.Float64(), "ms": pl.Float64()},
)
FITS = Table(
    "fits of times by context",
    {
        "kv": pl.String(),
        "n": pl.Int64(),
        "r_squared": pl.Float64(),
        **{name: pl.Float64() for column in ("setup_ms", "gbps") for name in (column, f"{column}_standard_error")},
    },
)
"""One row a place of the KV."""

KILOBYTE = 1000
PREFIX = "literature.llama_cpp_pr31"
CITED = "GenerelSchwerz/llama.cpp, pull request 31; cited, not reproduced."
PLACES = {"host_copy": "KV copied from the host", "on_device": "KV on the device"}


@dataclass(frozen=True)
class Times:
    """Times of one place of the KV, and the line through them.

    Parameters
    ----------
    place : str
        ``host_copy`` or ``on_device``.
    rows : polars.DataFrame
        Columns ``TIMES``, in the order of the file.
    line : TwoTermFit
        Of time over KV size [ms, GiB].
    """

    place: str
    rows: pl.DataFrame
    line: TwoTermFit

    @property
    def gbps(self) -> Estimate:
        """Bandwidth that the slope implies [GB/s]."""
        return fit.kv_path_gbps(self.line)


def read(path: str | Path) -> list[Times]:
    """Read and fit a file of times.

    Raises
    ------
    InputError
        If a column is missing, a value is not positive, a place is missing or unknown, its contexts repeat, or its rows cannot be fitted.
    """
    rows = TIMES.read_csv(path)
    for column in ("context_tokens", "kv_kb_per_token", "ms"):
        bad = rows[column] <= 0
        if bad.any():
            row = int(bad.arg_true()[0])
            raise InputError(path, f"column {column}, row {row + 1}", rows[column][row], "a value above 0")
    if set(rows["kv"]) != set(PLACES):
        raise InputError(path, "column kv", ", ".join(sorted(set(rows["kv"]))) or "no rows", f"both of {', '.join(PLACES)} and no other")
    found = []
    for place in PLACES:
        own = rows.filter(kv=place)
        if own["context_tokens"].is_duplicated().any():
            raise InputError(path, f"column context_tokens, {place}", "a context twice", "each context once")
        sizes = [tokens * kilobytes * KILOBYTE / GIB for tokens, kilobytes in own.select("context_tokens", "kv_kb_per_token").iter_rows()]
        found.append(Times(place, own, fit.two_term(sizes, own["ms"].to_list(), f"{path} ({place})")))
    return found


def numbers(found: list[Times]) -> Iterator[Number]:
    """The times as cited, and what the lines through them imply."""
    derived = labelling.derived_label([Label.LITERATURE])
    for times in found:
        key, place = f"{PREFIX}.{times.place}", PLACES[times.place]
        for tokens, ms in times.rows.select("context_tokens", "ms").iter_rows():
            yield Number(f"{key}.{tokens}.ms", ms, "ms", 2, Label.LITERATURE, f"Time at {tokens:,} tokens of context, {place}. {CITED}")
        setup, gbps, line = times.line.intercept_ms, times.gbps, times.line
        on = f"{place}, least squares over {line.n} contexts. Times: {CITED}"
        words = f"Time without any KV: intercept of time over KV size, {on}"
        yield Number(f"{key}.setup_ms", setup.value, "ms", 2, derived, words, {"standard_error": setup.standard_error})
        words = f"Bandwidth that the slope implies: {on}"
        yield Number(f"{key}.gbps", gbps.value, "GB/s", 1, derived, words, {"standard_error": gbps.standard_error})
        yield Number(f"{key}.r2", line.r_squared, "", 4, derived, f"R² of the line, {on}")
    host, device = (times.gbps for times in found)
    ratio = fit.independent_ratio(device, host)
    words = f"Bandwidth with KV on the device over that of the copy from the host. Times: {CITED}"
    yield Number(f"{PREFIX}.device_over_host", ratio.value, "", 1, derived, words, {"standard_error": ratio.standard_error})
    kilobytes = found[0].rows["kv_kb_per_token"][0]
    yield Number(f"{PREFIX}.kv_kb_per_token", kilobytes, "kB", 1, Label.LITERATURE, f"KV of a token, decimal kB. {CITED}")


def table(found: list[Times]) -> pl.DataFrame:
    """``FITS``, in the order of ``PLACES``."""
    records = []
    for times in found:
        estimates = {"setup_ms": times.line.intercept_ms, "gbps": times.gbps}
        columns = {k: v for name, e in estimates.items() for k, v in ((name, e.value), (f"{name}_standard_error", e.standard_error))}
        records.append({"kv": times.place, "n": times.line.n, "r_squared": times.line.r_squared, **columns})
    return FITS.check(pl.DataFrame(records))

"""Two runs of one machine: do their fitted slopes agree within the intervals of each?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from kvtier.errors import InputError
from kvtier.frames import Table
from kvtier.measure.fit import Estimate
from kvtier.measure.kept_runs import KeptRun, by_machine
from kvtier.measure.uncertainty import Between, independent_ratio, student

COMPARED = Table(
    "repeatability",
    {
        "machine": pl.String(),
        "first": pl.String(),
        "later": pl.String(),
        "slope": pl.String(),
        "unit": pl.String(),
        **{f"{run}_{end}": pl.Float64() for run in ("first", "later") for end in ("value", "low", "high")},
        "ratio": pl.Float64(),
        "ratio_low": pl.Float64(),
        "ratio_high": pl.Float64(),
        "intervals_meet": pl.Boolean(),
    },
    nullable=frozenset({"ratio_low", "ratio_high"}),
)
"""One row a fitted slope and pair of runs."""


@dataclass(frozen=True)
class Slope:
    """A fitted slope.

    Parameters
    ----------
    key, name : str
        Inside a number key, and in words.
    unit : str
        Of the estimate.
    estimate : Estimate
        Slope and standard error.
    freedom : int
        Degrees of freedom of the error.
    """

    key: str
    name: str
    unit: str
    estimate: Estimate
    freedom: int

    @property
    def between(self) -> Between:
        """Student's interval."""
        return student(self.estimate, self.freedom)


@dataclass(frozen=True)
class Compared:
    """A slope in two runs of one machine.

    Parameters
    ----------
    first, later : KeptRun
        The runs.
    slopes : tuple of Slope
        Of the first and of the later.
    ratio : Between or None
        Later over first, Fieller's interval; None where the first is not clear of zero.
    """

    first: KeptRun
    later: KeptRun
    slopes: tuple[Slope, Slope]
    ratio: Between | None

    @property
    def meet(self) -> bool:
        """Whether the two intervals have a value in common."""
        one, other = (slope.between for slope in self.slopes)
        return one.low <= other.high and other.low <= one.high


def slopes(run: KeptRun) -> Iterator[Slope]:
    """Every slope that was fitted to a run: decode time over KV, and movement time over bytes."""
    for decode in run.decodes:
        if decode.line:
            words = f"decode, {decode.name}"
            yield Slope(f"decode_{decode.key}", words, "ms/GiB", decode.line.slope_ms_per_gib, decode.line.freedom)
        if plane := decode.with_batch:
            words = f"decode, {decode.name}, with a term for the batch"
            yield Slope(f"decode_{decode.key}_with_batch", words, "ms/GiB", plane.slope_ms_per_gib, plane.freedom)
    for path in run.paths:
        if path.line:
            per_byte = path.line.us_per_byte
            # In ns per KiB: a byte takes a few ten-thousandths of a microsecond.
            scaled = per_byte.over(1 / (1e3 * 1024))
            yield Slope(f"movement_{path.key}", f"movement, {path.path}", "ns/KiB", scaled, path.line.freedom)


def compare(first: KeptRun, later: KeptRun) -> list[Compared]:
    """Each slope that both runs have."""
    found, theirs = [], {slope.key: slope for slope in slopes(later)}
    for slope in slopes(first):
        if slope.key not in theirs:
            continue
        other, ratio = theirs[slope.key], None
        try:
            ratio = independent_ratio(other.estimate, other.freedom, slope.estimate, slope.freedom, f"{first.name}, {slope.name}")
        except InputError:
            # A slope that is not clear of zero has no ratio with ends; its interval is compared all the same.
            ratio = None
        found.append(Compared(first, later, (slope, other), ratio))
    return found


def repeated(runs: Iterable[KeptRun]) -> list[Compared]:
    """The first run of each machine against each later one."""
    return [each for own in by_machine(runs).values() for later in own[1:] for each in compare(own[0], later)]


def table(found: Iterable[Compared]) -> pl.DataFrame:
    """``COMPARED``."""
    records = []
    for each in found:
        record = {
            "machine": each.first.slug,
            "first": each.first.name,
            "later": each.later.name,
            "slope": each.slopes[0].name,
            "unit": each.slopes[0].unit,
        }
        for run, slope in zip(("first", "later"), each.slopes, strict=True):
            ends = slope.between
            record |= {f"{run}_value": ends.value, f"{run}_low": ends.low, f"{run}_high": ends.high}
        one, other = (slope.estimate.value for slope in each.slopes)
        record |= {
            "ratio": other / one,
            "ratio_low": each.ratio.low if each.ratio else None,
            "ratio_high": each.ratio.high if each.ratio else None,
            "intervals_meet": each.meet,
        }
        records.append(record)
    return COMPARED.check(pl.DataFrame(records, schema=COMPARED.columns))

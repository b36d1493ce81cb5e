"""Decode rows of a kept run, fitted and weighed as those of the GB10 are: one line a backend, device and type.

On an accelerator a step reads weights and KV, and the line over KV is the model. On a few cores a larger batch also computes longer,
which the line cannot tell from KV: the term for the batch then says more than the line does. Whatever the rows do not allow is left out,
with the reason: a line through few sizes among it, as the kit itself leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from kvtier.errors import InputError
from kvtier.measure import fit, influence, robust, sensitivity, three_term
from kvtier.measure.fit import TwoTermFit
from kvtier.measure.influence import Influence
from kvtier.measure.kept import LEAST_FIT_SIZES
from kvtier.measure.retained import kv_gib
from kvtier.measure.robust import TheilSen
from kvtier.measure.three_term import ThreeTermFit
from kvtier.measure.uncertainty import Between, student, unbounded
from kvtier.units import GB, GIB

Found = TypeVar("Found")


@dataclass(frozen=True)
class Loaded:
    """What a decode step reads.

    Parameters
    ----------
    weight_bytes : int
        Weights that a step reads: resident ones less rows of the embedding that it does not look up [B].
    kv_bytes_per_token : int
        KV of a token of context [B].
    """

    weight_bytes: int
    kv_bytes_per_token: int


@dataclass(frozen=True)
class Decode:
    """One backend, device and type of a kept run.

    Parameters
    ----------
    backend, device, dtype : str
        As in the rows.
    loaded : Loaded
        What a step reads.
    points : polars.DataFrame
        Medians of the timed points, with ``kv_gib``.
    line : TwoTermFit or None
        Least squares of the medians over KV size.
    theil_sen : TheilSen or None
        Robust line.
    with_batch : ThreeTermFit or None
        Fit with a term for the batch.
    without : list of TwoTermFit
        Fits without row 1, without row 2, ...
    influences : list of Influence
        Of each row.
    fixed_gbps, kv_gbps, fixed_over_kv, kv_gbps_with_batch : Between or None
        Bandwidths that the coefficients imply [GB/s], and their ratio.
    left_out : tuple of str
        What the rows do not allow, and why.
    """

    backend: str
    device: str
    dtype: str
    loaded: Loaded
    points: pl.DataFrame
    line: TwoTermFit | None
    theil_sen: TheilSen | None
    with_batch: ThreeTermFit | None
    without: list[TwoTermFit]
    influences: list[Influence]
    fixed_gbps: Between | None
    kv_gbps: Between | None
    fixed_over_kv: Between | None
    kv_gbps_with_batch: Between | None
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.backend} on {self.device}, {self.dtype}"

    @property
    def key(self) -> str:
        """Inside a number key."""
        return word(f"{self.backend} {self.device} {self.dtype}")

    @property
    def decisive(self) -> int | None:
        """Index of the row with the largest Cook's distance."""
        return influence.decisive(self.influences) if self.influences else None


def word(text: str) -> str:
    """Words as one word of a number key: lower-case letters, digits and ``_``."""
    return "_".join("".join(letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower()).split())


def gbps(payload_bytes: float, ms: Between, source: str) -> Between:
    """Bandwidth of a payload over a fitted time [GB/s]; the ends are those of the time, turned over.

    Raises
    ------
    InputError
        If the interval of the time holds zero.
    """
    if ms.low <= 0:
        raise unbounded(source, ms)
    return ms.through(lambda time_ms: payload_bytes / GB * fit.MS_PER_S / time_ms)


def weigh(backend: str, device: str, dtype: str, points: pl.DataFrame, loaded: Loaded, source: str) -> Decode:
    """Fit the medians of one backend, device and type.

    Parameters
    ----------
    backend, device, dtype : str
        As in the rows.
    points : polars.DataFrame
        Its rows of the table of points of ``decode``.
    loaded : Loaded
        What a step reads.
    source : str
        Named in the reasons why something is left out.
    """
    sizes, times, batch = kv_gib(points, loaded.kv_bytes_per_token), points["median"].to_list(), points["batch"].to_list()
    reasons: list[str] = []

    def tried(make: Callable[[], Found]) -> Found | None:
        try:
            return make()
        except InputError as error:
            reasons.append(str(error))
            return None

    def fitted() -> fit.TwoTermFit:
        if len(set(sizes)) < LEAST_FIT_SIZES:
            raise InputError(source, "sizes of KV", len(set(sizes)), f"{LEAST_FIT_SIZES} or more for a line")
        return fit.two_term(sizes, times, source)

    line = tried(fitted)
    found: dict[str, object] = dict.fromkeys(("theil_sen", "with_batch", "fixed_gbps", "kv_gbps", "fixed_over_kv", "kv_gbps_with_batch"))
    found |= {"without": [], "influences": []}
    if line is not None:
        with_batch = tried(lambda: three_term.three_term(sizes, batch, times, source))
        found |= {
            "theil_sen": tried(lambda: robust.theil_sen(sizes, times, source)),
            "with_batch": with_batch,
            "without": tried(lambda: fit.leave_one_out(sizes, times, source)) or [],
            "influences": tried(lambda: influence.influences(sizes, times, source)) or [],
            "fixed_gbps": tried(lambda: gbps(loaded.weight_bytes, student(line.intercept_ms, line.freedom), source)),
            "kv_gbps": tried(lambda: gbps(GIB, student(line.slope_ms_per_gib, line.freedom), source)),
            "fixed_over_kv": tried(lambda: sensitivity.fixed_over_kv(line, loaded.weight_bytes)),
        }
        if with_batch is not None:
            slope = student(with_batch.slope_ms_per_gib, with_batch.freedom)
            found["kv_gbps_with_batch"] = tried(lambda: gbps(GIB, slope, f"{source} (with batch)"))
    sized = points.with_columns(pl.Series("kv_gib", sizes, dtype=pl.Float64))
    return Decode(backend, device, dtype, loaded, sized, line, left_out=tuple(dict.fromkeys(reasons)), **found)

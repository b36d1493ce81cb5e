"""A decode run: its rows, its fits on both kinds of KV size and with each row left out, and the row that decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.measure import fit, retained
from kvtier.measure.fit import Implied, TwoTermFit
from kvtier.measure.platform import Platform
from kvtier.units import GB, GIB


@dataclass(frozen=True)
class Fitted:
    """A line and what it implies."""

    line: TwoTermFit
    implied: Implied


@dataclass(frozen=True)
class Run:
    """One decode run.

    Parameters
    ----------
    key, name : str
        Short, as in number keys, and as printed.
    rows : polars.DataFrame
        Columns ``retained.DECODE_STEPS``.
    kv_gib : list of float
        KV that each row's step reads, from the geometry [GiB].
    step_gbps : list of float
        Weights and KV of each row over its step time [GB/s].
    exact, published : Fitted
        On KV sizes from the geometry, and on those rounded as the published fits took them.
    without : list of Fitted
        On exact sizes, without row 1, without row 2, ...
    """

    key: str
    name: str
    rows: pl.DataFrame
    kv_gib: list[float]
    step_gbps: list[float]
    exact: Fitted
    published: Fitted
    without: list[Fitted]

    @property
    def points(self) -> list[tuple[int, int]]:
        """(batch, context_tokens) of each row."""
        return self.rows.select("batch", "context_tokens").rows()

    @property
    def step_ms(self) -> list[float]:
        """Step time of each row [ms]."""
        return self.rows["step_ms"].to_list()

    @property
    def decisive(self) -> int:
        """Index of the row whose omission moves the slope most; the first of equals."""
        slope = self.exact.line.slope_ms_per_gib.value
        moves = [abs(each.line.slope_ms_per_gib.value - slope) for each in self.without]
        return moves.index(max(moves))

    def missed_ms(self, row: int) -> float:
        """Step time of a row less what the fit of the others gives it [ms]."""
        return self.step_ms[row] - self.without[row].line.step_ms(self.kv_gib[row])


def fit_run(key: str, path: str | Path, platform: Platform, copy_gbps: float) -> Run:
    """Read the rows of a run and fit them.

    Parameters
    ----------
    key : str
        A run that the platform file names.
    path : str or Path
        Its retained rows.
    platform : Platform
        Machine and model.
    copy_gbps : float
        Streaming copy bandwidth [GB/s], of which shares are taken.

    Raises
    ------
    InputError
        If the platform does not name the run, the rows cannot be used or fitted, or a fit gives no bandwidth.
    """
    if key not in platform.run_names:
        raise InputError(path, "run", key, f"one that the platform file names: {', '.join(platform.run_names)}")
    rows, weight_bytes = retained.read_decode_steps(path), platform.model.stated("weight_bytes")
    sizes, times = retained.kv_gib(rows, platform.model.kv_bytes_per_token), rows["step_ms"].to_list()

    def fitted(line: TwoTermFit) -> Fitted:
        return Fitted(line, fit.implied(line, weight_bytes, copy_gbps))

    return Run(
        key=key,
        name=platform.run_names[key],
        rows=rows,
        kv_gib=sizes,
        step_gbps=[(weight_bytes + size * GIB) / GB / (step_ms / fit.MS_PER_S) for size, step_ms in zip(sizes, times, strict=True)],
        exact=fitted(fit.two_term(sizes, times, path)),
        published=fitted(fit.two_term(retained.as_published(sizes), times, f"{path} (KV sizes as published)")),
        without=[fitted(line) for line in fit.leave_one_out(sizes, times, path)],
    )

"""Bootstrap of rates on one trace: windows of time in runs of neighbours, or whole sessions; paired, as all policies share the draws.

A rate is a quotient of sums, Σ hits / Σ reads, and so is a difference of two rates with one denominator. A resample takes parts of the
trace with replacement, the same for numerators and denominators, and for all policies. Neighbouring windows are alike, so they are drawn in
runs (moving blocks: Künsch, Annals of Statistics 17 (1989)); sessions share no block, and are drawn one by one.

What the interval leaves out: hits are those of the replay that was made. A trace made of the drawn parts would fill the cache otherwise.

Draws come from :meth:`random.Random.random`, sums are of integers: the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

LEVEL = 0.95
RESAMPLES = 1_999
"""One more is 2,000: the tails of 95 % are whole ranks."""


def run_length(windows: int) -> int:
    """Windows in a run: the cube root of their number, rounded up, the order that Bühlmann & Künsch (1999) give for a variance.

    Parameters
    ----------
    windows : int
        How many there are, at least one.
    """
    length = 1
    while length**3 < windows:
        length += 1
    return length


def moving_blocks(windows: int, length: int, resamples: int = RESAMPLES, seed: int = 1) -> np.ndarray:
    """How often each resample has each window.

    Parameters
    ----------
    windows : int
        How many there are.
    length : int
        Neighbours that are drawn together; the last run of a resample is cut to fit.
    resamples : int
        How many are drawn.
    seed : int
        Of the draws.

    Returns
    -------
    ndarray of int64, shape (resamples, windows)
        Each row sums to `windows`.

    Raises
    ------
    ValueError
        If there is no window, or the length is not from 1 to their number.
    """
    if not 1 <= length <= windows:
        raise ValueError(f"runs of {length} windows of {windows}: expected from 1 to as many as there are")
    draw, starts, runs = Random(seed).random, windows - length + 1, -(-windows // length)
    first = np.array([[int(draw() * starts) for _ in range(runs)] for _ in range(resamples)])
    taken = (first[:, :, None] + np.arange(length)).reshape(resamples, -1)[:, :windows]
    return np.stack([np.bincount(row, minlength=windows) for row in taken])


def clusters(count: int, resamples: int = RESAMPLES, seed: int = 1) -> np.ndarray:
    """How often each resample has each cluster, drawn one by one with replacement: :func:`moving_blocks` with runs of one.

    Parameters
    ----------
    count : int
        Clusters, at least one.
    resamples : int
        How many are drawn.
    seed : int
        Of the draws.

    Returns
    -------
    ndarray of int64, shape (resamples, count)
        Each row sums to `count`.

    Raises
    ------
    ValueError
        If there is no cluster.
    """
    return moving_blocks(count, 1, resamples, seed)


@dataclass(frozen=True)
class Parts:
    """Counted requests of a trace by the part that is drawn as one.

    Parameters
    ----------
    part : ndarray of int64, shape (requests,)
        Of each counted request.
    drawn : ndarray of int64, shape (resamples, parts)
    kind : str
        What the parts are, in words.
    """

    part: np.ndarray
    drawn: np.ndarray
    kind: str

    def sums(self, by_request: np.ndarray) -> np.ndarray:
        """Sum over each resample.

        Parameters
        ----------
        by_request : ndarray of int64, shape (requests,)
            What is summed, such as hits, of each counted request.

        Returns
        -------
        ndarray of int64, shape (resamples,)
            Exact.
        """
        of_part = np.zeros(self.drawn.shape[1], dtype=np.int64)
        np.add.at(of_part, self.part, by_request)
        return self.drawn @ of_part


def by_time(time_us: np.ndarray, window_us: int, seed: int = 1, resamples: int = RESAMPLES) -> Parts:
    """Windows of equal length from the first request on, in runs of :func:`run_length`; what is left over joins the last whole window.

    Parameters
    ----------
    time_us : ndarray of int64, shape (requests,)
        Arrival of each counted request, in order [µs].
    window_us : int
        Length of a window [µs].
    seed : int
        Of the draws.
    resamples : int
        How many are drawn.

    Raises
    ------
    ValueError
        If there is no request.
    """
    since = time_us - time_us[:1]
    windows = max(int(since[-1]) // window_us, 1)
    length = run_length(windows)
    part = np.minimum(since // window_us, windows - 1)
    kind = f"{windows} windows of {window_us // 10**6} s in runs of {length}"
    return Parts(part, moving_blocks(windows, length, resamples, seed), kind)


def by_session(session: np.ndarray, seed: int = 1, resamples: int = RESAMPLES) -> Parts:
    """Sessions with a counted request, drawn one by one: they share no block.

    Parameters
    ----------
    session : ndarray of int64, shape (requests,)
        Session of each counted request.
    seed : int
        Of the draws.
    resamples : int
        How many are drawn.

    Raises
    ------
    ValueError
        If there is no request.
    """
    names, part = np.unique(session, return_inverse=True)
    return Parts(part, clusters(len(names), resamples, seed), f"{len(names)} sessions")


def interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of resampled values: nearest ranks, no interpolation.

    Parameters
    ----------
    values : ndarray of float64, shape (resamples,)
        One a resample, in any order.
    level : float
        Confidence, two-sided.

    Returns
    -------
    (float, float)
        Lower and upper end, in the unit of the values.

    Raises
    ------
    ValueError
        If the level leaves no resample in a tail.
    """
    rank = round((1 - level) / 2 * (len(values) + 1))
    if rank < 1:
        raise ValueError(f"level {level:g} of {len(values)} resamples: expected at least one in a tail")
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[len(values) - rank])

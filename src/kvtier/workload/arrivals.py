"""Arrival times of a trace made over: sessions composed into one stream, and ticks of a coarse clock spread."""

from __future__ import annotations

import heapq

import numpy as np

from kvtier.workload.paths import Trace

COARSE_US = 500_000
"""Shortest step of a clock from which on requests of one time are taken to have come apart [µs]."""


def tick_us(trace: Trace) -> int:
    """What a coarse clock ticks by, the median of its steps [µs]; 0 where the clock is fine, or no two requests share a time."""
    steps = np.diff(np.unique(trace.time_us))
    coarse = len(steps) and len(steps) + 1 < trace.requests and steps.min() >= COARSE_US
    return int(np.median(steps)) if coarse else 0


def compose(trace: Trace, users: int, seed: int) -> Trace:
    """Sessions as so many concurrent users would play them.

    Each user plays one session after another, in the sessions' own times: whoever is free first takes the next session of a random
    permutation. The first session of each user starts at a time drawn uniformly from the mean length of a session, so that they do not
    march in step. A session ends when its last request has been served, if that time is known, else with that request. Once no session
    is left, fewer users remain.

    Parameters
    ----------
    trace : Trace
        With sessions, each in its own time (``by_session``).
    users : int
        Sessions that run at one time.
    seed : int
        Of ``numpy.random.default_rng``: draws the permutation, then the first starts.

    Returns
    -------
    Trace
        All requests in order of arrival; at one time, lower session numbers first. The first arrives at time 0.

    Raises
    ------
    ValueError
        If the trace has no sessions in their own times, or `users` is not positive.
    """
    if not trace.by_session or users < 1:
        raise ValueError(f"{users} users of {trace.source}: expected at least one, and sessions that each have their own times")
    rng = np.random.default_rng(seed)
    sessions, first = np.unique(trace.session, return_index=True)
    last = np.append(first[1:], trace.requests) - 1
    served_us = 0 if trace.api_us is None else np.maximum(trace.api_us[last], 0)
    length_us = trace.time_us[last] + served_us
    permutation = rng.permutation(len(sessions))
    free = sorted(rng.integers(0, max(int(length_us.mean()), 1), size=users).tolist())
    start_us = np.empty(len(sessions), dtype=np.int64)
    for session in permutation.tolist():
        start_us[session] = heapq.heappop(free)
        heapq.heappush(free, int(start_us[session] + length_us[session]))
    time_us = trace.time_us + np.repeat(start_us, last - first + 1)
    order = np.argsort(time_us, kind="stable")
    return trace.select(order, time_us[order] - time_us.min())


def spread(trace: Trace, tick_us: int, seed: int, *, keep_order: bool = True) -> Trace:
    """Arrivals of a clock with coarse ticks, spread uniformly from each tick to the next.

    Parameters
    ----------
    trace : Trace
    tick_us : int
        Longest time that a tick stands for [µs]; less where the next one comes sooner.
    seed : int
        Of ``numpy.random.default_rng``: draws one number a request, in order.
    keep_order : bool
        Whether requests of one tick keep their order in the file; else that is random too.

    Returns
    -------
    Trace
        In order of the new times.
    """
    within = np.random.default_rng(seed).random(trace.requests)
    ticks, tick = np.unique(trace.time_us, return_inverse=True)
    width_us = np.minimum(np.append(np.diff(ticks), tick_us), tick_us)[tick]
    if keep_order:
        within = within[np.lexsort((within, tick))]
    time_us = trace.time_us + (within * width_us).astype(np.int64)
    order = np.argsort(time_us, kind="stable")
    return trace.select(order, time_us[order])

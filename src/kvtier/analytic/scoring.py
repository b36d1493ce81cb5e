"""Placement and prefetch scores as published: their forms. No constant of them was fitted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def ema_update(alpha: float, attention: float, previous: float) -> float:
    """One step of the moving average: α · attention + (1 − α) · previous.

    Raises
    ------
    ValueError
        If `alpha` is outside (0, 1].

    Notes
    -----
    A decayed frequency of the LRFU family (Lee et al., SIGMETRICS 1999).
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be above 0 and at most 1, got {alpha}")
    return alpha * attention + (1 - alpha) * previous


def ema_scores(alpha: float, attention: Iterable[float], start: float = 0.0) -> list[float]:
    """Score after each step of a series of attention values.

    Raises
    ------
    ValueError
        If `alpha` is outside (0, 1].
    """
    scores = []
    for value in attention:
        start = ema_update(alpha, value, start)
        scores.append(start)
    return scores


def half_life_steps(alpha: float) -> float:
    """Steps after which an untouched score is halved: ln 0.5 / ln(1 − α).

    Returns
    -------
    float
        13.51 at α = 0.05.

    Raises
    ------
    ValueError
        If `alpha` is outside (0, 1).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    # log1p keeps the digits of a small alpha that 1 - alpha would drop.
    return math.log(0.5) / math.log1p(-alpha)


def half_life_s(alpha: float, steps_per_s: float) -> float:
    """Half-life as time, at a decode rate [s].

    Raises
    ------
    ValueError
        If `alpha` is outside (0, 1) or the rate is not positive.
    """
    if not steps_per_s > 0:
        raise ValueError(f"steps_per_s must be positive, got {steps_per_s}")
    return half_life_steps(alpha) / steps_per_s


def _weighted(signals: Sequence[float], weights: Sequence[float]) -> float:
    if len(signals) != len(weights):
        raise ValueError(f"{len(signals)} signals need as many weights, got {len(weights)}")
    if not all(0 <= signal <= 1 for signal in signals):
        raise ValueError(f"signals must lie from 0 to 1, got {list(signals)}")
    return math.fsum(weight * signal for weight, signal in zip(weights, signals, strict=True))


def priority(recency: float, ema: float, anchor: float, weights: Sequence[float]) -> float:
    """Placement priority P = w_R · R + w_E · E + w_N · N. Illustrative.

    Parameters
    ----------
    recency, ema, anchor : float
        Signals from 0 to 1.
    weights : sequence of float, shape (3,)
        Published: 0.25, 0.55, 0.20.

    Raises
    ------
    ValueError
        If a signal is out of range or the number of weights is not three.
    """
    return _weighted((recency, ema, anchor), weights)


def tier_of(priority: float, cuts: Sequence[float]) -> str:
    """Tier of a placement priority: T2 below the first cut, T1 below the second, else T0. Illustrative.

    Notes
    -----
    The published text does not say to which side a priority equal to a cut belongs; here it goes to the nearer tier.
    """
    to_hbm, to_pinned = cuts
    if priority >= to_pinned:
        return "T0"
    return "T1" if priority >= to_hbm else "T2"


def prefetch_priority(distance_tokens: float, scale_tokens: float) -> float:
    """Prefetch priority 1 / (1 + distance / scale). Illustrative.

    Raises
    ------
    ValueError
        If the distance is negative or the scale is not positive.
    """
    if distance_tokens < 0 or not scale_tokens > 0:
        raise ValueError(f"need distance >= 0 and scale > 0, got {distance_tokens} and {scale_tokens}")
    return 1 / (1 + distance_tokens / scale_tokens)


def prefetch_blend(rope: float, ema: float, weights: Sequence[float]) -> float:
    """Prefetch score w_r · rope + w_e · ema; published weights 0.6 and 0.4. Illustrative.

    Raises
    ------
    ValueError
        If a factor is outside 0 to 1 or the number of weights is not two.
    """
    return _weighted((rope, ema), weights)

"""Moving a block between tiers against computing it again: idealised, without queueing."""

from __future__ import annotations

from kvtier.units import GB, TB


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")


def block_transfer_us(block_bytes: int, bandwidth_gbps: float, setup_us: float = 0.0) -> float:
    """Time to move one KV block over a link.

    Parameters
    ----------
    block_bytes : int
        Payload of the block [B].
    bandwidth_gbps : float
        Effective one-way bandwidth [GB/s, decimal].
    setup_us : float
        Fixed cost of a transfer [µs].

    Returns
    -------
    float
        Time [µs]. 5 MiB at 64 GB/s is 81.92 µs.

    Raises
    ------
    ValueError
        If `bandwidth_gbps` is not positive.

    Notes
    -----
    No queueing: a lower bound of the loaded link (SPEC §2).
    """
    _positive(bandwidth_gbps=bandwidth_gbps)
    return setup_us + block_bytes / (bandwidth_gbps * GB) * 1e6


def linear_flop(parameters: int, tokens: int) -> int:
    """Forward compute of `tokens`, the term linear in the parameters [FLOP]: 2 · parameters · tokens.

    Notes
    -----
    One multiply and one add a parameter and token (Kaplan et al. 2020, section 2.1). Attention over the preceding context
    comes on top, so this is a lower bound.
    """
    return 2 * parameters * tokens


def regeneration_ms(parameters: int, tokens: int, peak_tflops: float, mfu: float) -> float:
    """Time to compute the KV of `tokens` again, linear term only.

    Parameters
    ----------
    parameters, tokens : int
        Model size, tokens of the block.
    peak_tflops : float
        Peak compute [TFLOP/s].
    mfu : float
        Model FLOP utilisation, above 0 and at most 1.

    Returns
    -------
    float
        Time [ms]. 70 B parameters, 16 tokens, 25% of 500 TFLOP/s: 17.92 ms.

    Raises
    ------
    ValueError
        If the peak is not positive or the MFU is outside (0, 1].
    """
    _positive(peak_tflops=peak_tflops, mfu=mfu)
    if mfu > 1:
        raise ValueError(f"mfu must be at most 1, got {mfu}")
    return linear_flop(parameters, tokens) / (peak_tflops * 1e12 * mfu) * 1e3


def regenerate_over_move(regenerate_ms: float, move_us: float) -> float:
    """Time to compute a block again over the time to move it.

    Raises
    ------
    ValueError
        If `move_us` is not positive.
    """
    _positive(move_us=move_us)
    return regenerate_ms * 1e3 / move_us


def window_bytes(window_ms: float, bandwidth_gbps: float) -> float:
    """Bytes that a link moves in a time window [B].

    Raises
    ------
    ValueError
        If either is not positive.
    """
    _positive(window_ms=window_ms, bandwidth_gbps=bandwidth_gbps)
    # Scaled first: whole milliseconds at whole GB/s give whole bytes, which a product of fractions would miss.
    return window_ms * (bandwidth_gbps * GB) / 1e3


def window_positions(window_ms: float, bandwidth_gbps: float, kv_bytes_per_token: int) -> float:
    """Token positions whose KV a link moves in a time window, exact; the floor counts whole positions.

    Raises
    ------
    ValueError
        If an argument is not positive.
    """
    _positive(kv_bytes_per_token=kv_bytes_per_token)
    return window_bytes(window_ms, bandwidth_gbps) / kv_bytes_per_token


def decode_read_tbps(read_bytes: int, budget_ms: float) -> float:
    """Bandwidth if all of `read_bytes` crossed one link in a decode step [TB/s].

    Raises
    ------
    ValueError
        If `budget_ms` is not positive.

    Notes
    -----
    A strawman: the weights stay in HBM and never cross the tier (SPEC §2).
    """
    _positive(budget_ms=budget_ms)
    return read_bytes / (budget_ms / 1e3) / TB

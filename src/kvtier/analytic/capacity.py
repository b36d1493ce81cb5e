"""How much memory KV needs, and how many contexts fit: arithmetic of capacity, never a served-user count."""

from __future__ import annotations

from kvtier.analytic.geometry import ModelGeometry
from kvtier.errors import InputError


def crossover_tokens(model: ModelGeometry) -> float:
    """Context at which the KV of one sequence is as large as the weights.

    Returns
    -------
    float
        Tokens, exact. Llama-3 70B: 427,246.09.

    Raises
    ------
    InputError
        If the model states no weights.
    """
    return model.stated("weight_bytes") / model.kv_bytes_per_token


def contexts(available_bytes: float, kv_bytes: int) -> float:
    """Contexts of `kv_bytes` in `available_bytes` of memory, as an exact ratio.

    Raises
    ------
    ValueError
        If `kv_bytes` is not positive or `available_bytes` is negative.
    """
    if kv_bytes <= 0 or available_bytes < 0:
        raise ValueError(f"need kv_bytes > 0 and available_bytes >= 0, got {kv_bytes} and {available_bytes}")
    return available_bytes / kv_bytes


def whole_contexts(available_bytes: float, kv_bytes: int) -> int:
    """Contexts that fit entirely: the floor of :func:`contexts`, a partial context serves nobody.

    Raises
    ------
    ValueError
        As :func:`contexts`.
    """
    contexts(available_bytes, kv_bytes)
    return int(available_bytes // kv_bytes)


def hbm_parts_gb(weights_gb: float, activations_gb: float, pinned_gb: float, evictable_gb: float, capacity_gb: float) -> dict[str, float]:
    """Partition of HBM by part [GB], checked to fill the device.

    Raises
    ------
    InputError
        If the parts do not sum to `capacity_gb` within 1 MB.
    """
    parts = {"weights": weights_gb, "activations": activations_gb, "pinned": pinned_gb, "evictable": evictable_gb}
    if abs(sum(parts.values()) - capacity_gb) > 1e-3:
        raise InputError("HBM partition", "sum of the parts", f"{sum(parts.values()):g} GB", f"the capacity of {capacity_gb:g} GB")
    return parts


def footprint_bytes(weight_bytes: int, activation_bytes: int, kv_bytes: int, users: int) -> int:
    """Memory of `users` sequences over one copy of the weights [B]: weights + activations + users · KV.

    Raises
    ------
    ValueError
        If `users` is negative.

    Notes
    -----
    Activations are counted once whatever the number of users, as the published totals do.
    """
    if users < 0:
        raise ValueError(f"users must not be negative, got {users}")
    return weight_bytes + activation_bytes + users * kv_bytes


def node_kv_bytes(gpus: int, gpu_bytes: int, weight_bytes: int, workspace_bytes: int) -> int:
    """Memory left for KV on a node that holds one copy of the weights [B].

    Raises
    ------
    ValueError
        If weights and workspace do not fit.
    """
    left = gpus * gpu_bytes - weight_bytes - workspace_bytes
    if left < 0:
        raise ValueError(f"weights and workspace exceed the node by {-left} B")
    return left


def expansion(near_gb: float, far_gb: float) -> float:
    """Memory of both tiers over that of the near one: (near + far) / near.

    Raises
    ------
    ValueError
        If `near_gb` is not positive.
    """
    if near_gb <= 0:
        raise ValueError(f"near_gb must be positive, got {near_gb}")
    return (near_gb + far_gb) / near_gb

"""Stated inputs of the analytic stage: each with unit, evidence label, status and source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.files import read_yaml

COUNT, QUANTITY, FRACTION = "a positive whole number", "a positive finite number", "a number above 0 and at most 1"
COUNTS, SHARES, WORDS = "whole numbers of 0 or more", "numbers from 0 to 1", "distinct words of a-z, 0-9 and _"

FIELDS: dict[str, tuple[str, str, int | None]] = {
    "block_tokens": (COUNT, "tokens", None),
    "hbm_capacity": (QUANTITY, "GB", None),
    "hbm_bandwidth": (QUANTITY, "GB/s", None),
    "hbm_activations": (QUANTITY, "GB", None),
    "hbm_pinned": (QUANTITY, "GB", None),
    "hbm_evictable": (QUANTITY, "GB", None),
    "hbm_latency": (QUANTITY, "ns", None),
    "cxl_endpoints": (COUNT, "", None),
    "cxl_endpoint_capacity": (QUANTITY, "GB", None),
    "cxl_latency": (QUANTITY, "ns", None),
    "cxl_bandwidth_low": (QUANTITY, "GB/s", None),
    "cxl_bandwidth_high": (QUANTITY, "GB/s", None),
    "cxl_link_bandwidth": (QUANTITY, "GB/s", None),
    "nvme_endpoints": (COUNT, "", None),
    "nvme_endpoint_capacity": (QUANTITY, "GB", None),
    "nvme_latency": (QUANTITY, "ns", None),
    "baseline_gpus": (COUNT, "", None),
    "node_gpus": (COUNT, "", None),
    "node_gpu_capacity": (QUANTITY, "GiB", None),
    "node_workspace": (QUANTITY, "GiB", None),
    "peak_compute": (QUANTITY, "TFLOP/s", None),
    "mfu": (SHARES, "", 0),
    "simulator_compute": (QUANTITY, "TFLOP/s", None),
    "decode_budget": (QUANTITY, "ms", None),
    "decode_compute": (QUANTITY, "ms", None),
    "decode_rate": (QUANTITY, "tokens/s", None),
    "rope_base": (QUANTITY, "", None),
    "attention_positions": (SHARES, "", 3),
    "attention_mass": (SHARES, "", 3),
    "softmax_tokens": (WORDS, "", 0),
    "softmax_scores": (SHARES, "", 0),
    "state_size": (COUNT, "B", None),
    "state_identity": (COUNT, "B", None),
    "state_score": (COUNT, "B", None),
    "state_timestamp": (COUNT, "B", None),
    "state_count": (COUNT, "B", None),
    "state_per_head_position": (COUNT, "B", None),
    "state_context": (COUNT, "tokens", None),
    "example_blocks": (COUNTS, "", 0),
    "example_touches": (COUNTS, "", 0),
    "example_scores": (SHARES, "", 0),
    "ema_alpha": (FRACTION, "", None),
    "ema_alpha_example": (FRACTION, "", None),
    "ema_example_hot": (SHARES, "", 0),
    "ema_example_cold": (SHARES, "", 0),
    "priority_weights": (SHARES, "", 3),
    "priority_cuts": (SHARES, "", 2),
    "prefetch_scale": (QUANTITY, "tokens", None),
    "prefetch_weights": (SHARES, "", 2),
}
"""Every entry of the platform file: what its value must be, its unit, and for a list its length (0: one or more)."""


@dataclass(frozen=True)
class StatedInput:
    """One input and its papers.

    Parameters
    ----------
    value : int, float, list of numbers or list of str
        In `unit`.
    unit : str
        Empty for a count or ratio.
    label : Label
        Evidence class.
    source : str
        Where it was stated.
    status : Status
        Standing of the value; ``stands`` unless said otherwise.
    """

    value: Any
    unit: str
    label: Label
    source: str
    status: Status = Status.STANDS


class StatedInputs(dict[str, StatedInput]):
    """Inputs by name; :meth:`value` gives the bare value."""

    def value(self, name: str) -> Any:
        """Value of one input, in its declared unit."""
        return self[name].value

    def entries(self, *names: str) -> list[StatedInput]:
        """Several inputs with their papers, for what is derived from them."""
        return [self[name] for name in names]


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _fits(value: Any, kind: str, length: int | None) -> bool:
    if length is not None and not (isinstance(value, list) and value and len(value) == (length or len(value))):
        return False
    if kind == COUNT:
        return type(value) is int and value > 0
    if kind == QUANTITY:
        return _is_number(value) and value > 0
    if kind == FRACTION:
        return _is_number(value) and 0 < value <= 1
    if kind == COUNTS:
        return all(type(item) is int and item >= 0 for item in value)
    if kind == SHARES:
        return all(_is_number(item) and 0 <= item <= 1 for item in value)
    return all(isinstance(item, str) and item.isascii() and item.isidentifier() and item.islower() for item in value) and len(
        set(value)
    ) == len(value)


def _entry(path: str | Path, name: str, entry: Any) -> StatedInput:
    kind, unit, length = FIELDS[name]
    if not isinstance(entry, dict):
        raise InputError(path, name, entry, "value, unit, label and source")
    for key in ("value", "unit", "label", "source"):
        if key not in entry:
            raise InputError(path, name, f"no {key}", "value, unit, label and source")
    for key in entry:
        if key not in ("value", "unit", "label", "source", "status"):
            raise InputError(path, f"{name}.{key}", "an unknown key", "value, unit, label, source or status")
    if entry["unit"] != unit:
        raise InputError(path, f"{name}.unit", repr(entry["unit"]), repr(unit))
    if not _fits(entry["value"], kind, length):
        expected = kind if length is None else f"a list of {length or 'one or more'} {kind}"
        raise InputError(path, f"{name}.value", repr(entry["value"]), expected)
    if not isinstance(entry["source"], str) or not entry["source"].strip():
        raise InputError(path, f"{name}.source", repr(entry["source"]), "where the value was stated")
    try:
        label = Label(entry["label"])
    except ValueError:
        raise InputError(path, f"{name}.label", repr(entry["label"]), "one of " + ", ".join(Label)) from None
    try:
        status = Status(entry.get("status", Status.STANDS))
    except ValueError:
        raise InputError(path, f"{name}.status", repr(entry["status"]), "one of " + ", ".join(Status)) from None
    return StatedInput(entry["value"], unit, label, entry["source"], status)


def _check_together(path: str | Path, inputs: StatedInputs) -> None:
    """Relations between entries that no single entry shows."""
    value = inputs.value
    for name in ("priority_weights", "prefetch_weights"):
        if not math.isclose(sum(value(name)), 1.0):
            raise InputError(path, f"{name}.value", f"a sum of {sum(value(name)):g}", "weights that sum to 1")
    for name, other in (("softmax_scores", "softmax_tokens"), ("example_touches", "example_blocks"), ("example_scores", "example_blocks")):
        if len(value(name)) != len(value(other)):
            raise InputError(path, f"{name}.value", f"{len(value(name))} values", f"{len(value(other))}, as many as {other}")
    for name in ("attention_positions", "attention_mass"):
        if not math.isclose(sum(value(name)), 1.0):
            raise InputError(path, f"{name}.value", f"a sum of {sum(value(name)):g}", "shares that sum to 1")
    if 0 in value("attention_positions"):
        raise InputError(path, "attention_positions.value", 0, "numbers above 0")
    if 0 in value("mfu"):
        raise InputError(path, "mfu.value", 0, "numbers above 0")
    if value("priority_cuts")[0] > value("priority_cuts")[1]:
        raise InputError(path, "priority_cuts.value", value("priority_cuts"), "ascending cuts")
    if value("cxl_bandwidth_low") > value("cxl_bandwidth_high"):
        raise InputError(path, "cxl_bandwidth_low.value", value("cxl_bandwidth_low"), f"at most {value('cxl_bandwidth_high')}")
    if value("decode_compute") >= value("decode_budget"):
        raise InputError(path, "decode_compute.value", value("decode_compute"), f"less than {value('decode_budget')}")
    if value("state_context") % value("block_tokens"):
        raise InputError(path, "state_context.value", value("state_context"), f"whole blocks of {value('block_tokens')} tokens")
    used = sum(value(f"state_{part}") for part in ("identity", "score", "timestamp", "count"))
    if used > value("state_size"):
        raise InputError(path, "state_size.value", value("state_size"), f"at least {used}, the sum of its parts")
    if value("ema_alpha") == 1 or value("ema_alpha_example") == 1:
        raise InputError(path, "ema_alpha", 1, "a number below 1")


def load_platform(path: str | Path) -> StatedInputs:
    """Read and check the stated inputs.

    Raises
    ------
    InputError
        In one line that names the file and the entry: a missing, unknown or repeated entry, a wrong unit, a bool,
        negative or non-finite number, an unknown label or status, no source, or entries that contradict each other.
    """
    document = read_yaml(path)
    for name in document:
        if name not in FIELDS:
            raise InputError(path, str(name), "an unknown entry", f"only {', '.join(FIELDS)}")
    for name in FIELDS:
        if name not in document:
            raise InputError(path, name, "no entry", "value, unit, label and source")
    inputs = StatedInputs({name: _entry(path, name, document[name]) for name in FIELDS})
    _check_together(path, inputs)
    return inputs

"""What was measured on what: the platform file that lies beside retained rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvtier.analytic.geometry import ModelGeometry
from kvtier.errors import InputError
from kvtier.files import read_yaml
from kvtier.measure.fields import Fields


@dataclass(frozen=True)
class Platform:
    """One machine, one model and the runs made with them.

    Parameters
    ----------
    machine, date : str
        Name of the machine and day of the measurement.
    bus_gbps : float
        Memory bandwidth as specified [GB/s, decimal].
    model : ModelGeometry
        The model that was decoded; it states its weights.
    dtype : str
        Type of its weights and of its KV.
    run_names : mapping of str to str
        Name of each decode run by its short key, such as ``hf``.
    recorded_bugs : mapping of str to float
        Values that known bugs produced; never results.
    """

    machine: str
    date: str
    bus_gbps: float
    model: ModelGeometry
    dtype: str
    run_names: Mapping[str, str]
    recorded_bugs: Mapping[str, float]


def _geometry(fields: Fields) -> ModelGeometry:
    counts = {name: fields.count(name) for name in ("layers", "kv_heads", "head_dim", "bytes_per_element", "parameters", "weight_bytes")}
    try:
        return ModelGeometry(fields.text("name"), **counts, label=fields.text("label"), source=fields.text("source"))
    except InputError as error:
        raise InputError(fields.path, fields.prefix + error.field, error.found, error.expected) from None


def read_platform(path: str | Path) -> Platform:
    """Read and check a ``platform.yaml``.

    Raises
    ------
    InputError
        If the file is missing, is not YAML, lacks a field or holds a value out of range; the message names the field.
    """
    path = Path(path)
    fields = Fields(path, read_yaml(path))
    model, decode, bugs = fields.section("model"), fields.section("decode"), fields.section("recorded_bugs")
    return Platform(
        machine=fields.text("machine"),
        date=fields.text("date"),
        bus_gbps=fields.section("memory").positive("bus_gbps"),
        model=_geometry(model),
        dtype=model.text("dtype"),
        run_names={key: decode.section(key).text("name") for key in decode.content},
        recorded_bugs={key: bugs.positive(key) for key in bugs.content},
    )

"""Model shapes and the KV bytes that follow from them (grouped-query attention)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.frames import Table

REFERENCE_MODEL = "llama3_70b"
"""Key of the model to which the published capacity and tier arithmetic refers."""

MODELS = Table(
    "models",
    {
        "model": pl.String(),
        "layers": pl.Int64(),
        "query_heads": pl.Int64(),
        "kv_heads": pl.Int64(),
        "head_dim": pl.Int64(),
        "hidden_size": pl.Int64(),
        "ffn_size": pl.Int64(),
        "parameters": pl.Int64(),
        "bytes_per_element": pl.Int64(),
        "weight_bytes": pl.Int64(),
        "rope_base": pl.Float64(),
        "label": pl.String(),
        "source": pl.String(),
    },
    nullable=frozenset({"query_heads", "hidden_size", "ffn_size", "parameters", "weight_bytes", "rope_base"}),
)


@dataclass(frozen=True)
class ModelGeometry:
    """Shape of a decoder whose layers all cache keys and values alike.

    Parameters
    ----------
    model : str
        Name as printed.
    layers, kv_heads, head_dim : int
        Layers, KV heads a layer, elements a head.
    bytes_per_element : int
        Size of one cached element [B]; that of the weights may differ.
    query_heads, hidden_size, ffn_size, parameters : int, optional
        None where not stated. `query_heads` is a multiple of `kv_heads`.
    weight_bytes : int, optional
        Weights as loaded [B].
    rope_base : float, optional
        Base of the rotary frequencies.
    label : Label
        Evidence class of the shape: where it was copied from.
    source : str
        Where the shape was published.

    Raises
    ------
    InputError
        If a value is not a positive whole number (a finite one above 1 for `rope_base`), the query heads do not divide into
        groups, or the label is no evidence class.

    Notes
    -----
    Head size is stated, never derived: hidden size over query heads is wrong for Qwen3, among others.
    """

    model: str
    layers: int
    kv_heads: int
    head_dim: int
    bytes_per_element: int = 2
    query_heads: int | None = None
    hidden_size: int | None = None
    ffn_size: int | None = None
    parameters: int | None = None
    weight_bytes: int | None = None
    rope_base: float | None = None
    label: Label = Label.LITERATURE
    source: str = ""

    status: ClassVar[Status] = Status.STANDS
    """A shape is what its publisher says it is."""

    def __post_init__(self) -> None:
        where = f"model {self.model}"
        if not self.model:
            raise InputError("model", "model", "an empty name", "a name")
        for field in ("layers", "kv_heads", "head_dim", "bytes_per_element"):
            value = getattr(self, field)
            if type(value) is not int or value <= 0:
                raise InputError(where, field, value, "a positive whole number")
        for field in ("query_heads", "hidden_size", "ffn_size", "parameters", "weight_bytes"):
            value = getattr(self, field)
            if value is not None and (type(value) is not int or value <= 0):
                raise InputError(where, field, value, "a positive whole number or nothing")
        if self.rope_base is not None and (type(self.rope_base) not in (int, float) or not 1 < self.rope_base < float("inf")):
            raise InputError(where, "rope_base", self.rope_base, "a finite number above 1 or nothing")
        if self.query_heads is not None and self.query_heads % self.kv_heads:
            raise InputError(where, "query_heads", self.query_heads, f"a multiple of the {self.kv_heads} KV heads")
        if self.label not in set(Label):
            raise InputError(where, "label", self.label, "one of " + ", ".join(Label))
        object.__setattr__(self, "label", Label(self.label))

    @property
    def key(self) -> str:
        """Name for number keys: ``Llama-3 70B`` is ``llama3_70b``."""
        joined = re.sub(r"(?<=[a-z])-(?=\d)", "", self.model.lower())
        return re.sub(r"[^a-z0-9]+", "_", joined).strip("_")

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token in all layers [B]: 2 · layers · kv_heads · head_dim · bytes_per_element."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_element

    @property
    def score_streams(self) -> int:
        """Places from which attention scores can be read: one a layer and KV head."""
        return self.layers * self.kv_heads

    @property
    def queries_per_kv_head(self) -> int:
        """Query heads that share one KV head.

        Raises
        ------
        InputError
            If the query heads are not stated.
        """
        return self.stated("query_heads") // self.kv_heads

    def kv_bytes(self, tokens: int) -> int:
        """KV of `tokens` positions of one sequence, or of one block of that many tokens [B].

        Raises
        ------
        ValueError
            If `tokens` is negative.
        """
        if tokens < 0:
            raise ValueError(f"tokens must not be negative, got {tokens}")
        return self.kv_bytes_per_token * tokens

    def stated(self, field: str) -> int:
        """An optional field that a formula cannot do without.

        Raises
        ------
        InputError
            If the field has no value.
        """
        value = getattr(self, field)
        if value is None:
            raise InputError(f"model {self.model}", field, "no value", "a stated value, which this formula needs")
        return value


def load_models(path: str | Path) -> dict[str, ModelGeometry]:
    """Read a table of model shapes, keyed by :attr:`ModelGeometry.key`, in file order.

    Raises
    ------
    InputError
        Naming the file and the field: no rows, a column missing or unknown, a value that is no positive number, two
        rows for one model.
    """
    models: dict[str, ModelGeometry] = {}
    for row in MODELS.read_csv(path).iter_rows(named=True):
        try:
            model = ModelGeometry(**row)
        except InputError as error:
            raise InputError(path, f"{error.source}, {error.field}", error.found, error.expected) from None
        if model.key in models:
            raise InputError(path, f"model {model.model}", f"a second row for {model.key}", "one row a model")
        models[model.key] = model
    if not models:
        raise InputError(path, "rows", "none", "at least one model")
    return models


def reference_model(models: dict[str, ModelGeometry], source: str | Path) -> ModelGeometry:
    """The model of the published arithmetic.

    Raises
    ------
    InputError
        If `models`, read from `source`, does not list it.
    """
    if REFERENCE_MODEL not in models:
        raise InputError(source, "model", ", ".join(models), f"a row for {REFERENCE_MODEL}")
    return models[REFERENCE_MODEL]

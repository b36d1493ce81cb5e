"""The model that a command is asked about: of the catalogue, or of a config.json; and what its weights weigh."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvtier.analytic.layouts import Layout


def model(word: str, parameters: str | None = None) -> Layout:
    """The layout of MODEL, else of CONFIG where that is a file, or a folder with a ``config.json``.

    Raises
    ------
    InputError
        With the nearest names if it is neither, or from the file.
    """
    from kvtier.analytic import model_configs, quantities
    from kvtier.analytic.catalogue import Catalogue

    path = Path(word)
    if word.endswith(".json") or path.is_file() or (path / "config.json").is_file():
        found = model_configs.load(path)
    else:
        found = Catalogue().find(word)
    if parameters is None:
        return found
    count = int(quantities.amount(parameters, "--parameters", "a number of parameters, such as 8.03B"))
    return replace(found, parameters=count, active_parameters=None, weight_bytes=None)


def weights(layout: Layout, dtype: str | None) -> tuple[int | None, str]:
    """Bytes of the weights, and where they come from; None where the number of parameters is not known.

    A checkpoint's own sum stands unless a dtype is asked for.
    """
    from kvtier.analytic.kv_formats import WEIGHTS, named

    stored = named(dtype or layout.weights_stored, WEIGHTS, "--weights-dtype")
    if layout.weight_bytes is not None and dtype is None:
        return layout.weight_bytes, "size of the checkpoint as published"
    if layout.parameters is None:
        return None, "the source states no number of parameters; --parameters gives it"
    scales = f", {stored.scale_bytes} B of scale for {stored.group}" if stored.group else ""
    return stored.vector_bytes(layout.parameters), f"{layout.parameters:,} parameters in {stored.name}{scales}"

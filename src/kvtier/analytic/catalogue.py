"""The catalogue of public models: read, checked, and searched by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvtier.analytic.kv_formats import WEIGHTS
from kvtier.analytic.layouts import LayerGroup, Layout
from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.files import read_yaml

CATALOGUE = Path(__file__).with_name("catalogue.yaml")
"""Lies in the package, for an installed kvtier has no ``data/``; ``data/inputs/catalogue.yaml`` is a link to it."""

REQUIRED = ("name", "layers", "label", "source")
FIELDS = {
    "query_heads": "query_heads",
    "parameters": "parameters",
    "active": "active_parameters",
    "context": "context_tokens",
    "weight_bytes": "weight_bytes",
    "stored": "weights_stored",
}
"""Optional fields of an entry, and what a layout calls them."""

GROUP_FIELDS = frozenset(LayerGroup.__dataclass_fields__)
ENDINGS = re.compile(r"(?:[-_ ](?:instruct|chat|base|it|pt|hf|fp8|bf16))+$")


def bare(name: str) -> str:
    """A name without owner, vendor prefix, ending such as -Instruct, case and punctuation: what names are compared by."""
    name = ENDINGS.sub("", name.strip().rpartition("/")[2].lower().removeprefix("meta-"))
    return re.sub(r"[^a-z0-9+]", "", name)


def _layout(path: Path, key: str, entry: Any) -> Layout:
    if not isinstance(entry, dict):
        raise InputError(path, key, entry, "fields " + ", ".join(REQUIRED))
    for field in REQUIRED:
        if field not in entry:
            raise InputError(path, f"{key}.{field}", "nothing", "the field to be given")
    for field in entry:
        if field not in (*REQUIRED, *FIELDS, "aliases"):
            raise InputError(path, f"{key}.{field}", "an unknown field", "only " + ", ".join((*REQUIRED, *FIELDS, "aliases")))
    for field in ("name", "source"):
        if not isinstance(entry[field], str) or not entry[field].strip():
            raise InputError(path, f"{key}.{field}", repr(entry[field]), "words")
    try:
        label = Label(entry["label"])
    except ValueError:
        raise InputError(path, f"{key}.label", repr(entry["label"]), "one of " + ", ".join(Label)) from None
    if not isinstance(entry["layers"], list) or not all(
        isinstance(group, dict) and set(group) <= GROUP_FIELDS for group in entry["layers"]
    ):
        raise InputError(path, f"{key}.layers", entry["layers"], f"a list of groups with {', '.join(sorted(GROUP_FIELDS))}")
    if "stored" in entry and (not isinstance(entry["stored"], str) or entry["stored"] not in WEIGHTS):
        raise InputError(path, f"{key}.stored", repr(entry["stored"]), "one of " + ", ".join(WEIGHTS))
    try:
        groups = tuple(LayerGroup(**{"kind": "nothing", "layers": None} | group) for group in entry["layers"])
        stated = {ours: entry[theirs] for theirs, ours in FIELDS.items() if theirs in entry}
        return Layout(entry["name"], groups, **stated, label=label, source=entry["source"])
    except InputError as error:
        raise InputError(path, f"{key}, {error.source}, {error.field}", error.found, error.expected) from None


class Catalogue(Mapping[str, Layout]):
    """Layouts by key, in file order.

    Parameters
    ----------
    path : str or Path
        File to read.

    Raises
    ------
    InputError
        Naming the file, the model and the field: a field missing, unknown or out of range, a key that is no word, or one name for two
        models.
    """

    def __init__(self, path: str | Path = CATALOGUE) -> None:
        self.path, self._layouts, self._names = Path(path), {}, {}
        for key, entry in read_yaml(path).items():
            if not isinstance(key, str) or not re.fullmatch(r"[a-z0-9_]+", key):
                raise InputError(path, str(key), "a key", "a word of a-z, 0-9 and _")
            layout = _layout(self.path, key, entry)
            aliases = entry.get("aliases", [])
            if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
                raise InputError(path, f"{key}.aliases", aliases, "a list of names")
            for name in {bare(word): word for word in (layout.model, *aliases)}:
                if name in self._names:
                    raise InputError(path, f"{key}.name", layout.model, f"a name that {self._names[name]} does not have")
                self._names[name] = key
            self._layouts[key] = layout
        if not self._layouts:
            raise InputError(path, "models", "none", "at least one")

    def __getitem__(self, key: str) -> Layout:
        return self._layouts[key]

    def __iter__(self):
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)

    def find(self, name: str) -> Layout:
        """A model by its name, another name of it, or its key; case, punctuation, owner and endings such as -Instruct do not matter.

        Raises
        ------
        InputError
            With the nearest names, if there is none.
        """
        asked = bare(name)
        key = name if name in self._layouts else self._names.get(asked) or self._names.get(re.sub(r"(?:instruct|chat)?\d{4}$", "", asked))
        if key is None:
            words = difflib.get_close_matches(asked, self._names, 4, 0.5)
            near = ", ".join(dict.fromkeys(self._layouts[self._names[word]].model for word in words))
            hint = f"a name such as {near}" if near else "a name that `kvtier size --list` prints"
            raise InputError("model", "name", repr(name[:80]), f"{hint}, or a config.json")
        return self._layouts[key]

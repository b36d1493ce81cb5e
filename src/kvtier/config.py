"""Configuration: YAML checked against a schema that knows every key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jsonschema

from kvtier.errors import InputError
from kvtier.files import read_json, read_yaml

_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    # JSON takes 2500.0 for an integer; here it is a slip.
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


def load(path: str | Path, schema_path: str | Path) -> dict[str, Any]:
    """Read a configuration and check it.

    Parameters
    ----------
    path : str or Path
        YAML file.
    schema_path : str or Path
        JSON schema that forbids unknown keys.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        For the first fault: file, key, what was found, what is allowed.
    """
    config = read_yaml(path)
    _refuse_non_finite(path, config, "")
    validator = _Validator(read_json(schema_path))
    fault = next(
        iter(sorted(validator.iter_errors(config), key=lambda error: ([str(part) for part in error.absolute_path], error.validator))), None
    )
    if fault is not None:
        raise InputError(path, *_explain(fault))
    workload = config["workload"]
    if workload["counted_from"] >= workload["turns"]:
        raise InputError(path, "workload.counted_from", workload["counted_from"], f"less than workload.turns, {workload['turns']}")
    return config


def _refuse_non_finite(path: str | Path, value: Any, field: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(path, field, value, "a finite number")
    for name, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        _refuse_non_finite(path, item, f"{field}.{name}".lstrip("."))


def _explain(fault: jsonschema.ValidationError) -> tuple[str, object, str]:
    """Field, what was found and what is allowed, for one schema error."""
    field = ".".join(str(part) for part in fault.absolute_path)
    schema, found = fault.schema, fault.instance
    if fault.validator == "additionalProperties":
        unknown = min(set(found) - set(schema["properties"]), key=str)
        return f"{field}.{unknown}".lstrip("."), f"an unknown key with value {found[unknown]!r}", f"only {', '.join(schema['properties'])}"
    if fault.validator == "required":
        missing = next(name for name in schema["required"] if name not in found)
        return f"{field}.{missing}".lstrip("."), "nothing", "the key to be given"
    bounds = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
        "minItems": "this many items at least:",
    }
    if fault.validator in bounds:
        allowed = [f"{words} {schema[name]}" for name, words in bounds.items() if name in schema]
        return field, repr(found), " and ".join(allowed)
    if fault.validator == "type":
        return field or "document", repr(found), f"of type {schema['type']}"
    if fault.validator == "uniqueItems":
        return field, repr(found), "no value twice"
    return field, repr(found), fault.message

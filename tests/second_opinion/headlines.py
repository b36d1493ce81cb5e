"""Which numbers are headlines: those that claims, the claims table, retractions and findings of the project rest on."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

JUDGED = {"reproduced", "reproduced exactly", "contradicted", "challenged", "retracted"}
"""Verdicts for which a number of this project was computed; a stated input has none."""

NAMED_IN = (
    "data/published/retractions.yaml",
    "data/published/findings.yaml",
    "data/published/survival.yaml",
    "src/kvtier/publish/templates/RETRACTIONS.md.j2",
)
CLAIMS_TABLE = "data/published/headline_claims.yaml"


def keys_in(text: str, known: Collection[str]) -> set[str]:
    """Keys of the ledger that a text names."""
    return set(re.findall(r"[a-z]+(?:\.[a-z0-9_]+)+", text)) & set(known)


def of_claims(claims: dict[str, dict[str, Any]]) -> set[str]:
    """Keys that judged claims were held against."""
    return {key for claim in claims.values() if claim["verdict"] in JUDGED for key in claim["keys"]}


def headlines(root: Path, known: Collection[str]) -> set[str]:
    """All of them.

    Raises
    ------
    LookupError
        If the claims table names a number that the ledger does not have.
    """
    found = of_claims(json.loads((root / "data/claims.json").read_text(encoding="utf-8")))
    for name in NAMED_IN:
        found |= keys_in((root / name).read_text(encoding="utf-8"), known)
    table = yaml.safe_load((root / CLAIMS_TABLE).read_text(encoding="utf-8"))["claims"]
    named = {claim["number"] for claim in table}
    if unknown := sorted(named - set(known)):
        raise LookupError(f"{CLAIMS_TABLE}: number: found {unknown[0]}, expected a key of the ledger")
    return found | named

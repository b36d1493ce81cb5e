"""The papers of a page: what its script shows of each value that is clicked."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from kvtier.evidence import provenance
from kvtier.evidence.claims import MEANING as VERDICT_MEANING
from kvtier.evidence.claims import uses
from kvtier.evidence.labels import MEANING
from kvtier.publish.facts import Facts
from kvtier.publish.pages.markup import plain_text


def papers(facts: Facts) -> Markup:
    """What the page's script shows of each value: of numbers and claims that the page uses, and of those that these rest on."""
    needed = {claim: uses(record) for claim, record in facts.claims.records.items()}
    numbers = {ref[2:] for ref in facts.used if ref.startswith("n/")}
    claims = {ref[2:] for ref in facts.used if ref.startswith("c/")}
    claims |= {claim for claim, keys in needed.items() if numbers.intersection(keys)}
    numbers |= {key for claim in claims for key in needed[claim] if key in facts.ledger}
    resting: dict[str, list[str]] = {}
    for claim in sorted(claims):
        for key in needed[claim]:
            resting.setdefault(key, []).append(claim)
    found = {
        "numbers": {key: _number(facts, key, resting.get(key, [])) for key in sorted(numbers)},
        "claims": {claim: _claim(facts, claim) for claim in sorted(claims)},
        "labels": MEANING,
        "verdicts": VERDICT_MEANING,
    }
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), sort_keys=True).replace("</", "<\\/")
    return Markup('<script type="application/json" id="papers">{}</script>').format(Markup(text))


def _number(facts: Facts, key: str, resting: list[str]) -> dict[str, Any]:
    quote = facts.ledger[key]
    return {
        "text": quote.text,
        "interval": quote.interval or "",
        "label": quote.label,
        "status": quote.status,
        "definition": quote.definition,
        "rule": quote.rule,
        "command": provenance.command(quote.rule),
        "claims": resting,
    }


def _claim(facts: Facts, claim: str) -> dict[str, Any]:
    record = facts.claims[claim]
    title = facts.claims.document_title(record["document"])
    return {
        "printed": f"{record['printed']} {record['unit']}".rstrip(),
        "place": f"{title}: {record['section']}",
        "withdrawn": facts.claims.withdrawn(claim),
        "reason": plain_text(record["reason"]),
        "keys": [key for key in record["keys"] if key in facts.ledger],
        **{name: record[name] for name in ("says", "label", "status", "verdict")},
    }

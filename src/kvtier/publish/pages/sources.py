"""What a page draws on, read and held together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvtier.evidence import findings, retractions
from kvtier.evidence import survival as survivals
from kvtier.files import read_json, read_yaml
from kvtier.publish.documents import Sources
from kvtier.publish.facts import Facts
from kvtier.publish.ledger import Ledger
from kvtier.publish.verdicts import Claims


@dataclass(frozen=True)
class Given:
    """Files that a page is made from.

    Parameters
    ----------
    numbers, verdicts : path
        Ledger and verdicts, as built.
    titles : sequence of path
        Files of claims, for the documents' titles.
    found, retracted, survival : path
        Findings, retractions, and what becomes of superseded results.
    """

    numbers: str | Path
    verdicts: str | Path
    titles: Sequence[str | Path]
    found: str | Path
    retracted: str | Path
    survival: str | Path


def facts_and_sources(given: Given) -> tuple[Facts, Sources]:
    """The facts that a page may show, and what else it draws on.

    Raises
    ------
    InputError
        If a finding, retraction or survival no longer holds against the ledger.
    """
    ledger, records = Ledger.read(given.numbers), read_json(given.verdicts)
    titles = {content["name"]: content["title"] for content in map(read_yaml, given.titles)}
    claims = Claims(str(given.verdicts), records, ledger, titles)
    listed, withdrawn = findings.read(given.found), retractions.read(given.retracted)
    findings.check(given.found, listed, claims.values(), records)
    retractions.check(given.retracted, withdrawn, records, read_json(given.numbers))
    results = survivals.read(given.survival)
    fates = survivals.judge(given.survival, results, claims.values())
    return Facts(ledger, claims), Sources(claims, listed, withdrawn, survivals=[(result, fates[result.id]) for result in results])

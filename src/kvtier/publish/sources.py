"""What documents and pages draw on besides the ledger, read and held against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvtier.evidence import findings, retractions
from kvtier.evidence import survival as survivals
from kvtier.evidence.findings import Finding
from kvtier.evidence.retractions import Retraction
from kvtier.evidence.survival import Fate, Survival
from kvtier.files import read_json, read_yaml
from kvtier.publish.ledger import Ledger
from kvtier.publish.verdicts import Claims


@dataclass(frozen=True)
class Given:
    """Files to read.

    Parameters
    ----------
    numbers, verdicts : path
        Ledger and verdicts, as built.
    titles : sequence of path
        Files of claims, for the documents' titles.
    found, retracted : path
        Findings and retractions.
    survival : path, optional
        Results of Revision 2 that are held against Revision 3.
    """

    numbers: str | Path
    verdicts: str | Path
    titles: Sequence[str | Path]
    found: str | Path
    retracted: str | Path
    survival: str | Path | None = None

    @classmethod
    def of(cls, files: Any) -> Given:
        """The inputs of a rule, by these names."""
        return cls(files.numbers, files.verdicts, files.titles, files.found, files.retracted, files.get("survival"))


@dataclass(frozen=True)
class Sources:
    """What a document or page draws on besides the ledger; each is needed by the functions that read it, and by them alone.

    Parameters
    ----------
    claims : Claims, optional
        Published claims and their verdicts.
    findings : sequence of Finding
        What this reproduction found.
    retractions : sequence of Retraction
        Retracted values, none of which the document may print outside passages about retractions.
    files : mapping of str to Path
        Published name of a file to where it is now.
    rules : mapping of str to str
        Published name of a file to the rule that makes it.
    survivals : sequence of (Survival, Fate)
        Results of Revision 2, and what became of each under Revision 3.
    """

    claims: Claims | None = None
    findings: Sequence[Finding] = ()
    retractions: Sequence[Retraction] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    survivals: Sequence[tuple[Survival, Fate]] = ()


def read(given: Given) -> tuple[Ledger, Sources]:
    """The ledger, and what else may be drawn on; without the files that a document names.

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
    results = survivals.read(given.survival) if given.survival else ()
    fates = survivals.judge(given.survival, results, claims.values()) if given.survival else {}
    return ledger, Sources(claims, listed, withdrawn, survivals=[(result, fates[result.id]) for result in results])

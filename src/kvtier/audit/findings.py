"""What an audit says: how many cases it looked at, and how many broke the rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import polars as pl

from kvtier.frames import Table

FINDINGS = Table(
    "audit findings",
    {"audit": pl.String, "subject": pl.String, "checked": pl.Int64, "failed": pl.Int64, "must_hold": pl.Boolean, "note": pl.String},
)
"""One row a subject. Where ``must_hold`` is false, a failure is a result (the defect is known and shown), not an error of the build."""


@dataclass(frozen=True)
class Finding:
    """Outcome of one audit on one subject.

    Parameters
    ----------
    audit, subject : str
        Which rule, on what.
    checked, failed : int
        Cases looked at; cases that broke the rule.
    must_hold : bool
        Whether a failure stops the build.
    note : str
        The first failing case, or nothing.
    """

    audit: str
    subject: str
    checked: int
    failed: int
    must_hold: bool = True
    note: str = ""


class AuditFailed(RuntimeError):
    """A rule that must hold does not."""


def require(findings: Iterable[Finding]) -> None:
    """Pass if every rule that must hold held on at least one case.

    Raises
    ------
    AuditFailed
        Naming the first audit that failed or that had nothing to look at.
    """
    for finding in findings:
        if finding.must_hold and finding.failed:
            raise AuditFailed(f"audit {finding.audit}: {finding.subject}: {finding.failed} of {finding.checked} failed: {finding.note}")
        if finding.checked == 0:
            raise AuditFailed(f"audit {finding.audit}: {finding.subject}: nothing was checked")


def table(findings: Iterable[Finding]) -> pl.DataFrame:
    """Findings as a table, one row each."""
    return FINDINGS.check(pl.DataFrame([asdict(finding) for finding in findings]))

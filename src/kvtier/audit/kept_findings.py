"""What the guards of a kept run looked at: one row a kind of guard, and how near its bound the nearest came."""

from __future__ import annotations

from collections.abc import Iterable

from kvtier.audit.findings import Finding
from kvtier.audit.physical_bound import Checked

KINDS = {
    "GB/s": "bandwidths below the bus",
    "GiB": "sizes as their type gives them",
    "B/token": "KV pools as the geometry gives them",
    "sequences": "sequences that share no block",
    "hits": "no hit of a prefix cache",
    "% at least": "files read from their device",
    "ticks at least": "intervals long against the clock",
    "%": "no drift between first and last repetitions",
}
"""By the unit of what was checked, what it asks."""


def share_of_bound(checked: Checked) -> float:
    """How near its bound a subject is: 1 at the bound, less inside it."""
    if checked.unit.endswith("at least"):
        return checked.bound / checked.value
    return checked.value / checked.bound if checked.bound else 0.0


def findings(run: str, held: Iterable[Checked]) -> list[Finding]:
    """One row a kind of guard that held on a run.

    Parameters
    ----------
    run : str
        Name of the run.
    held : iterable of Checked
        All that held. What does not hold has no row: it stops the build.
    """
    by_unit: dict[str, list[Checked]] = {}
    for each in held:
        by_unit.setdefault(each.unit, []).append(each)
    found = []
    for unit, subjects in by_unit.items():
        nearest = max(subjects, key=share_of_bound)
        note = f"nearest its bound: {nearest.subject}, {nearest.value:,.4g} of {nearest.bound:,.4g} {unit}"
        found.append(Finding("kept_run", f"{run}: {KINDS.get(unit, unit)}", len(subjects), 0, note=note))
    return found

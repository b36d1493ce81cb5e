"""Evidence classes and the status of a claim (SPEC §1)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Label(StrEnum):
    """Evidence class of a value, strongest first."""

    MEASURED = "Measured"
    SIMULATED = "Simulated (provisional)"
    ANALYTICAL = "Analytical model"
    VENDOR = "Vendor specification"
    LITERATURE = "External literature"
    TARGET = "Design target"
    ILLUSTRATIVE = "Illustrative"

    @property
    def rank(self) -> int:
        """0 for the strongest class."""
        return list(Label).index(self)


MEANING: dict[Label, str] = {
    Label.MEASURED: "run on named hardware; method and raw data published",
    Label.SIMULATED: "trace-driven simulation, corrected after an erratum, not settled",
    Label.ANALYTICAL: "derived from stated inputs",
    Label.VENDOR: "copied from a data sheet and used as an input",
    Label.LITERATURE: "a third party's published result, cited and not reproduced",
    Label.TARGET: "desired, not demonstrated",
    Label.ILLUSTRATIVE: "pedagogical, never a result",
}


class Status(StrEnum):
    """Standing of a published value or of an input."""

    STANDS = "stands"
    PROVISIONAL = "provisional"
    ASSUMPTION = "assumption"
    DEMOTED = "demoted"
    WITHDRAWN = "withdrawn"
    REVERSED = "reversed"
    RETRACTED = "retracted"


SIMULATION_LIMITS = "synthetic workload or replayed trace, no hardware validation, costs assumed"
"""What is true of every simulated value; seeds, bounds and queues stand with each number."""

SIMULATION_CAVEAT = (
    f"Simulated values are provisional: {SIMULATION_LIMITS}. A defect in the victim search of Revision 1 has turned its findings once."
)
"""Stands wherever a simulated number is printed."""


def weakest(labels: Iterable[Label]) -> Label:
    """The label that a value derived from all of these may carry."""
    return max(labels, key=lambda label: label.rank)

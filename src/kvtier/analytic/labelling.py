"""Label and status of a number, from those of its inputs: the one place where the rule is written.

A number that repeats an input keeps the input's label. A number computed from inputs is Analytical whatever class they were copied
from (SPEC §1: "a number computed from a literature input is Analytical"), a change of unit system such as GB to GiB included; only
an illustrative input makes it Illustrative. That an input is assumed travels as the status, which says more than a weaker label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number

STANDINGS = (Status.RETRACTED, Status.WITHDRAWN, Status.REVERSED, Status.ASSUMPTION, Status.PROVISIONAL, Status.STANDS)
"""Weakest first. A demoted claim is not among them: the value it left behind is an assumption."""


class Stated(Protocol):
    """Anything with evidence papers: an entry of the platform file, a model's shape."""

    @property
    def label(self) -> Label:
        """Evidence class."""

    @property
    def status(self) -> Status:
        """Standing of the value."""


def derived_label(labels: Iterable[Label]) -> Label:
    """Evidence class of a number computed from inputs of these classes, measured ones among them or not.

    Parameters
    ----------
    labels : iterable of Label
        Of the inputs; none where the number follows from its formula alone.
    """
    return Label.ILLUSTRATIVE if Label.ILLUSTRATIVE in set(labels) else Label.ANALYTICAL


def derived_status(statuses: Iterable[Status]) -> Status:
    """Standing of a number that rests on inputs of these standings: the weakest, and ``stands`` without inputs."""
    standings = {Status.ASSUMPTION if status is Status.DEMOTED else status for status in statuses}
    return next(status for status in STANDINGS if status in standings | {Status.STANDS})


def restated(key: str, value: float, unit: str, digits: int, source: Stated, definition: str) -> Number:
    """A number that repeats one input, perhaps at another power of ten."""
    return Number(key, value, unit, digits, source.label, definition, status=derived_status([source.status]))


def derived(key: str, value: float, unit: str, digits: int, sources: Iterable[Stated], definition: str) -> Number:
    """A number computed from inputs.

    Notes
    -----
    What is part of the key (a context, a bandwidth of a sweep, an α) is a setting and no input, unless it was stated as one.
    """
    sources = list(sources)
    label, status = derived_label(source.label for source in sources), derived_status(source.status for source in sources)
    return Number(key, value, unit, digits, label, definition, status=status)

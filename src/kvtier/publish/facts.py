"""Numbers and published values as pages and diagrams show them: each with the place where its papers are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from kvtier.errors import InputError
from kvtier.evidence.claims import Verdict
from kvtier.evidence.labels import Label, weakest
from kvtier.evidence.retractions import is_withdrawn, printed_values
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.verdicts import MARKS, Claims


class Kind(StrEnum):
    """How a value may be used."""

    NUMBER = "number"
    STATED = "stated"
    PUBLISHED = "published"
    RETRACTED = "retracted"


@dataclass(frozen=True)
class Fact:
    """A value that may be shown.

    Parameters
    ----------
    ref : str
        ``n/<key>`` of a number of the ledger, ``c/<claim>`` of a published claim.
    text : str
        As it is printed, with its unit.
    value : float
        To place a mark; never printed.
    label : Label
        Evidence class.
    kind : Kind
        What it may be used for.
    """

    ref: str
    text: str
    value: float
    label: Label
    kind: Kind


@dataclass(frozen=True)
class Both:
    """A published value and what it is when recomputed; a page shows the one that its reader asks for."""

    published: Fact
    recomputed: Fact

    @property
    def value(self) -> float:
        """The recomputed value."""
        return self.recomputed.value


SHOWN = {
    "num": lambda quote: quote.text,
    "bare": lambda quote: quote.bare,
    "signed": lambda quote: quote.signed,
    "unc": lambda quote: quote.interval or "",
    "plus_minus": lambda quote: quote.plus_minus,
}
"""Ways to print a number: with its unit, without, with its sign, its interval, and the number with its interval."""


class Facts:
    """What pages and diagrams may show, over one ledger and the published claims.

    Parameters
    ----------
    ledger : Ledger
    claims : Claims
    """

    def __init__(self, ledger: Ledger, claims: Claims) -> None:
        self.ledger = ledger
        self.claims = claims
        self.used: dict[str, Fact] = {}
        self._open: list[dict[str, Fact]] = []

    @contextmanager
    def collecting(self) -> Iterator[dict[str, Fact]]:
        """Everything shown meanwhile, by reference."""
        found: dict[str, Fact] = {}
        self._open.append(found)
        try:
            yield found
        finally:
            # By identity: an outer collection with the same facts so far is equal to this one, and stays open.
            self._open[:] = [other for other in self._open if other is not found]

    def _show(self, fact: Fact) -> Fact:
        for found in (self.used, *self._open):
            found.setdefault(fact.ref, fact)
        return fact

    def quote(self, key: str) -> Quote:
        """A number that may stand as a result.

        Raises
        ------
        InputError
            If the ledger lacks it, or it is withdrawn or retracted.
        """
        quote = self.ledger[key]
        if is_withdrawn(quote.status):
            raise InputError(self.ledger.source, key, f"a number that is {quote.status}", "one that is not, or a retraction box")
        return quote

    def num(self, key: str, show: str = "num") -> Fact:
        """A number of the ledger, printed in one of the ways of `SHOWN`.

        Raises
        ------
        InputError
            As :meth:`quote`; or if its uncertainty is asked for and the ledger has none.
        """
        quote = self.quote(key)
        text = SHOWN[show](quote)
        if not text:
            raise InputError(self.ledger.source, key, "no uncertainty", "a number that has one")
        return self._show(Fact(f"n/{key}", text, quote.value, quote.label, Kind.NUMBER))

    def _claimed(self, claim: str, position: int | None, kind: Kind) -> Fact:
        record = self.claims[claim]
        text = self.claims.printed(claim, position).translate(MARKS)
        value = float(printed_values(record["printed"])[position or 0])
        return self._show(Fact(f"c/{claim}", text, value, Label(record["label"]), kind))

    def stated(self, claim: str, position: int | None = None) -> Fact:
        """An input of the package, as it states it; one number of several by position.

        Raises
        ------
        InputError
            If the claim is not an input but a result: that has a number of the ledger.
        """
        verdict = self.claims[claim]["verdict"]
        if verdict != Verdict.STATED:
            raise InputError(self.claims.source, claim, f"a claim that is {verdict}", "a stated input, or both()")
        return self._claimed(claim, position, Kind.STATED)

    def published(self, claim: str, position: int | None = None) -> Fact:
        """A published value as printed.

        Raises
        ------
        InputError
            If the package has taken it back: it then stands in its retraction box alone.
        """
        if self.claims.withdrawn(claim):
            raise InputError(self.claims.source, claim, "a claim that is retracted", "a retraction box")
        return self._claimed(claim, position, Kind.PUBLISHED)

    def retracted(self, claim: str, position: int | None = None) -> Fact:
        """A published value that was taken back, for its retraction box.

        Raises
        ------
        InputError
            If it was not.
        """
        if not self.claims.withdrawn(claim):
            raise InputError(self.claims.source, claim, "a claim that is not retracted", "one that is")
        return self._claimed(claim, position, Kind.RETRACTED)

    def both(self, claim: str, position: int = 0, key: str = "") -> Both:
        """A published value and its number in the ledger.

        Parameters
        ----------
        claim : str
        position : int
            Which of several printed numbers.
        key : str
            The number, where it is not the one that the claim is checked against.

        Raises
        ------
        InputError
            If there is no such number, or one of the two may not be shown.
        """
        keys = self.claims[claim]["keys"]
        if not key and not keys:
            raise InputError(self.claims.source, claim, "no key that it is checked against", "one, or the argument key")
        several = len(printed_values(self.claims[claim]["printed"])) > 1
        return Both(self.published(claim, position if several else None), self.num(key or keys[position]))


INPUTS = frozenset({Label.VENDOR, Label.LITERATURE, Label.TARGET})
"""Classes of what is put in."""


def class_of(labels: Iterable[Label]) -> Label:
    """Evidence class of a figure: the weakest that it shows.

    Inputs do not count beside what a model makes of them, for its class says that it has inputs; beside a measurement they do.
    """
    shown = set(labels)
    results = shown - INPUTS
    return weakest(shown if results <= {Label.MEASURED} else results)


def label_of(facts: dict[str, Fact]) -> Label:
    """Evidence class of a figure that shows these facts, see :func:`class_of`.

    Raises
    ------
    InputError
        If there are none: what shows no number has no class of evidence, and says so in words.
    """
    if not facts:
        raise InputError("figure", "numbers", "none", "one or more: they carry the evidence label")
    return class_of(fact.label for fact in facts.values())

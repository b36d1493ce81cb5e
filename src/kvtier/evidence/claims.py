"""What v6.0 printed, and the verdict on each value: recomputed from the ledger, never from the claim itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.arithmetic import Values, evaluate, fill
from kvtier.evidence.labels import Label, Status
from kvtier.files import read_yaml


class Verdict(StrEnum):
    """Outcome of checking a claim."""

    EXACTLY = "reproduced exactly"
    REPRODUCED = "reproduced"
    CHALLENGED = "challenged"
    CONTRADICTED = "contradicted"
    UNTRACEABLE = "untraceable"
    RETRACTED = "retracted"
    STATED = "stated input"
    PENDING = "pending"


MEANING = {
    Verdict.EXACTLY: "recomputed, and exactly the printed number, with nothing rounded",
    Verdict.REPRODUCED: "recomputed, equal at the printed precision",
    Verdict.CHALLENGED: "recomputed as printed, but a stronger model or a sensitivity check does not bear it out",
    Verdict.CONTRADICTED: "recomputed, differs",
    Verdict.UNTRACEABLE: "no input or rule yields it",
    Verdict.RETRACTED: "withdrawn or retracted by the package itself; its old derivation is shown as arithmetic, never as a result",
    Verdict.STATED: "an input, a literature value or a choice: taken as given, nothing here recomputes it",
    Verdict.PENDING: "waits for a stage that does not exist yet",
}

NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Claim:
    """One printed value or range.

    Parameters
    ----------
    id : str
        Dotted, unique; starts with the document's short name.
    section : str
        Where it stands in the document.
    printed : str
        The value as printed, one number or a range of two.
    unit : str
        Unit as printed; empty for a pure number.
    says : str
        What is claimed, in this project's words.
    label, status
        Evidence class and standing that the package gives it.
    keys : tuple of str
        Number keys that it is checked against, one for each number in `printed`.
    scale : float
        Printed value = number × scale, where the units differ.
    digits : int, optional
        Decimals to which the values are printed, where the printed zeros do not tell: -3 for thousands.
    arithmetic : tuple of str
        Expressions that recompute it, one for each number in `printed`: for values derived from other claims, and for the old derivation
        of retracted ones.
    stated : bool
        Whether it is an input that nothing recomputes.
    challenge : str
        Condition over numbers; if true, the claim is challenged.
    because : str
        Why it is challenged, contradicted or untraceable, where the figures alone do not say it. Values are inserted, not typed:
        ``{{ num("key") | 1 }}`` with the decimals to print.
    pending : str
        What it waits for.
    """

    id: str
    section: str
    printed: str
    unit: str
    says: str
    label: Label
    status: Status
    keys: tuple[str, ...] = ()
    scale: float = 1.0
    arithmetic: tuple[str, ...] = ()
    digits: int | None = None
    stated: bool = False
    challenge: str = ""
    because: str = ""
    pending: str = ""
    document: str = ""

    @property
    def values(self) -> tuple[Decimal, ...]:
        """The printed numbers, in order."""
        return tuple(Decimal(token.replace(",", "").replace("−", "-")) for token in NUMBER.findall(self.printed))


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the recomputed values and one sentence of reason."""

    claim: Claim
    verdict: Verdict
    recomputed: tuple[float, ...]
    reason: str


@dataclass(frozen=True)
class Document:
    """A published document and its claims."""

    name: str
    title: str
    sha256: str
    claims: tuple[Claim, ...] = field(default_factory=tuple)


REQUIRED = ("id", "section", "printed", "unit", "says", "label", "status")
SEQUENCES = ("keys", "arithmetic")


def read(path: str | Path) -> Document:
    """Read one document's claims.

    Raises
    ------
    InputError
        Naming the claim and the field: unknown or missing fields, a word that is no label or status, an id twice, a claim without any
        way to a verdict or with two, or one whose keys do not match its numbers.
    """
    content = read_yaml(path)
    for name in ("name", "title", "sha256", "claims"):
        if name not in content:
            raise InputError(path, name, "nothing", "the field")
    known = {item.name for item in fields(Claim)} - {"document"}
    claims: dict[str, Claim] = {}
    for entry in content["claims"]:
        where = str(entry.get("id", "a claim without id"))
        for name in REQUIRED:
            if name not in entry:
                raise InputError(path, f"{where}.{name}", "nothing", "the field")
        for name in entry:
            if name not in known:
                raise InputError(path, f"{where}.{name}", "an unknown field", f"only {', '.join(sorted(known))}")
        values = dict(entry, document=content["name"])
        for name, words in (("label", Label), ("status", Status)):
            try:
                values[name] = words(values[name])
            except ValueError:
                raise InputError(path, f"{where}.{name}", values[name], f"one of {', '.join(words)}") from None
        for name in SEQUENCES:
            given = values.get(name, ())
            values[name] = (given,) if isinstance(given, str) else tuple(given)
        for name in ("printed", "unit", "section"):
            values[name] = str(values[name])
        claim = Claim(**values)
        _check(path, claim)
        if claim.id in claims:
            raise InputError(path, claim.id, "the id twice", "one claim an id")
        claims[claim.id] = claim
    return Document(content["name"], content["title"], content["sha256"], tuple(claims.values()))


def _check(path: str | Path, claim: Claim) -> None:
    if not claim.id.startswith(f"{claim.document}."):
        raise InputError(path, f"{claim.id}.id", claim.id, f"an id that starts with {claim.document}.")
    ways = [bool(claim.keys), bool(claim.arithmetic) and not claim.keys, claim.stated]
    if sum(ways) > 1:
        raise InputError(path, claim.id, "more than one way to a verdict", "keys, arithmetic or stated")
    if not any(ways) and not claim.because:
        raise InputError(
            path, claim.id, "no way to a verdict", "keys, arithmetic, stated, or because (untraceable, or retracted without derivation)"
        )
    for name in SEQUENCES:
        given = getattr(claim, name)
        if given and len(given) != len(claim.values):
            raise InputError(
                path, f"{claim.id}.{name}", f"{len(given)} of them", f"one for each of the {len(claim.values)} numbers in {claim.printed!r}"
            )
    if claim.challenge and "num(" not in claim.challenge:
        raise InputError(path, f"{claim.id}.challenge", claim.challenge, "a condition over num(), which can turn false")
    if claim.challenge and not claim.because:
        raise InputError(path, f"{claim.id}.because", "nothing", "the reason of the challenge")


def agrees(printed: Decimal, value: float, digits: int | None = None) -> bool:
    """Whether `value` prints as `printed` at its precision, or at `digits` decimals, a tie rounded either way."""
    step = Decimal(1).scaleb(min(0, int(printed.as_tuple().exponent)) if digits is None else -digits)
    exact = Decimal(repr(float(value)))
    return any(exact.quantize(step, rounding) == printed for rounding in (ROUND_HALF_EVEN, ROUND_HALF_UP))


def judge(claim: Claim, values: Values) -> Judged:
    """Verdict on one claim.

    Parameters
    ----------
    claim : Claim
    values : Values
        The ledger's numbers and the other claims' printed values.

    Raises
    ------
    InputError
        If a key is not in the ledger or an expression cannot be evaluated.
    """
    source = f"claim {claim.id}"
    because = fill(claim.because, values, source)
    if claim.keys:
        recomputed = tuple(values.num(key, source) * claim.scale for key in claim.keys)
    else:
        recomputed = tuple(float(evaluate(expression, values, source)) for expression in claim.arithmetic)
    shown = " and ".join(f"{value:,.6g}" for value in recomputed)
    same = bool(recomputed) and all(agrees(printed, value, claim.digits) for printed, value in zip(claim.values, recomputed, strict=True))

    if claim.status in (Status.RETRACTED, Status.WITHDRAWN, Status.REVERSED):
        if not recomputed:
            return Judged(claim, Verdict.RETRACTED, recomputed, because)
        follows = "its old derivation gives" if same else "its old derivation gives another value,"
        return Judged(claim, Verdict.RETRACTED, recomputed, " ".join(filter(None, [f"{follows} {shown}.", because])))
    if claim.pending:
        return Judged(claim, Verdict.PENDING, recomputed, f"Waits for {claim.pending}.")
    if claim.stated:
        return Judged(claim, Verdict.STATED, recomputed, because or "Taken as given.")
    if not recomputed:
        return Judged(claim, Verdict.UNTRACEABLE, recomputed, because)
    if not same:
        return Judged(claim, Verdict.CONTRADICTED, recomputed, " ".join(filter(None, [f"Recomputed {shown}.", because])))
    if claim.challenge and evaluate(claim.challenge, values, source):
        return Judged(claim, Verdict.CHALLENGED, recomputed, because)
    whole = all(printed == Decimal(repr(float(value))) for printed, value in zip(claim.values, recomputed, strict=True))
    return Judged(claim, Verdict.EXACTLY if whole else Verdict.REPRODUCED, recomputed, f"Recomputed {shown}.")


def judge_all(documents: Sequence[Document], ledger: Mapping[str, Mapping[str, Any]]) -> list[Judged]:
    """Verdicts on the claims of all documents, in their order.

    Raises
    ------
    InputError
        If two documents share a claim id, or a claim cannot be judged.
    """
    claims: dict[str, Claim] = {}
    for document in documents:
        for claim in document.claims:
            if claim.id in claims:
                raise InputError(f"claims of {document.name}", claim.id, "the id twice", "one claim an id")
            claims[claim.id] = claim
    ends = {key: record.get("uncertainty", {}) for key, record in ledger.items()}
    values = Values(
        {key: record["value"] for key, record in ledger.items()},
        {claim.id: claim.values for claim in claims.values()},
        {key: (found["interval_low"], found["interval_high"]) for key, found in ends.items() if "interval_low" in found},
    )
    return [judge(claim, values) for claim in claims.values()]


def record(judged: Judged) -> dict[str, Any]:
    """A verdict as the published file holds it: the claim's fields, what was recomputed, and why."""
    claim = judged.claim
    return {
        "document": claim.document,
        "section": claim.section,
        "printed": claim.printed,
        "unit": claim.unit,
        "says": claim.says,
        "label": claim.label,
        "status": claim.status,
        "verdict": judged.verdict,
        "recomputed": list(judged.recomputed),
        "reason": judged.reason,
        "keys": list(claim.keys),
        "arithmetic": list(claim.arithmetic),
        "challenge": claim.challenge,
    }


def _named(*expressions: str) -> set[str]:
    """Keys that arithmetic refers to."""
    return {key for expression in expressions for key in re.findall(r"""num\(["']([^"']+)["']""", expression)}


def uses(claim: Mapping[str, Any]) -> dict[str, str]:
    """The numbers that a verdict rests on, each with its part in it: the value itself, the arithmetic, or the challenge."""
    found = dict.fromkeys(_named(claim["challenge"]), "challenge")
    found |= dict.fromkeys(_named(*claim["arithmetic"]), "arithmetic")
    return found | dict.fromkeys(claim["keys"], "value")

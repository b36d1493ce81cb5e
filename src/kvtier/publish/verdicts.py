"""What a template may say about published claims: their values as printed, their verdicts, their derivations."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from kvtier.errors import InputError
from kvtier.evidence.arithmetic import Values
from kvtier.evidence.claims import MEANING, NUMBER, Verdict
from kvtier.evidence.labels import SIMULATION_CAVEAT, Label
from kvtier.evidence.retractions import RETRACTION_WORDS, is_withdrawn, printed_values
from kvtier.publish.ledger import Ledger

PUBLISHED_MARK = "\ue001"
"""Stands before a published value until the passage's heading has been checked."""
RETRACTED_MARK = "\ue002"
"""Stands before a published value, or a number, that is retracted or withdrawn."""
PUBLISHED_HEADING = "\ue003"
"""Ends the heading of a passage about published claims."""
SIMULATED_MARK = "\ue000"
"""Stands before each simulated value until the finished document has been searched for the caveat."""
MARKS = str.maketrans("", "", SIMULATED_MARK + PUBLISHED_MARK + RETRACTED_MARK + PUBLISHED_HEADING)

ORDER = (
    Verdict.CONTRADICTED,
    Verdict.CHALLENGED,
    Verdict.UNTRACEABLE,
    Verdict.PENDING,
    Verdict.RETRACTED,
    Verdict.REPRODUCED,
    Verdict.EXACTLY,
    Verdict.STATED,
)
"""Verdicts as a reader should meet them: what does not hold first."""


def slug(text: str) -> str:
    """An anchor: lower-case words joined by hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


def cell(text: str) -> str:
    """Text that does not break its table."""
    return text.replace("|", r"\|").replace("\n", " ")


def _tokens(printed: str) -> list[str]:
    """The numbers of a value as printed; a comma that ends one is punctuation."""
    return [token.rstrip(",") for token in NUMBER.findall(printed)]


def _plain(value: float) -> str:
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:g}")


def _digits(value: float) -> str:
    """Six digits of a value, written out."""
    return f"{Decimal(f'{value:.6g}'):,f}".replace("-", "−")


class Claims:
    """Published claims with their verdicts, as ``claims.json`` holds them.

    Parameters
    ----------
    source : str
        Where they came from, for messages.
    records : mapping
        Claim id to record.
    ledger : Ledger
        The numbers that derivations refer to.
    titles : mapping, optional
        Short name of a document to its title.
    """

    def __init__(
        self, source: str, records: Mapping[str, Mapping[str, Any]], ledger: Ledger, titles: Mapping[str, str] | None = None
    ) -> None:
        self.source = source
        self.records = records
        self.ledger = ledger
        self.titles = dict(titles or {})

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Name in the template to function."""
        given = (
            self.printed, self.derivation, self.verdict, self.as_published, self.as_retracted, self.verdict_counts, self.verdict_meanings,
            self.verdict_list, self.verdict_count, self.document_names, self.document_title, self.document_sections, self.section_table,
            self.anchor,
        )  # fmt: skip
        return {function.__name__: function for function in given} | {"claim_count": lambda: len(self.records)}

    def __getitem__(self, claim: str) -> Mapping[str, Any]:
        if claim not in self.records:
            raise InputError(self.source, claim, "no such claim", "the id of a published claim")
        return self.records[claim]

    def __contains__(self, claim: object) -> bool:
        return claim in self.records

    def values(self) -> Values:
        """Numbers and printed values, for expressions."""
        printed = {claim: printed_values(record["printed"]) for claim, record in self.records.items()}
        ends = {key: self.ledger[key].uncertainty for key in self.ledger}
        intervals = {key: (found["interval_low"], found["interval_high"]) for key, found in ends.items() if "interval_low" in found}
        return Values({key: self.ledger[key].value for key in self.ledger}, printed, intervals)

    def withdrawn(self, claim: str) -> bool:
        """Whether the package no longer stands by it."""
        return is_withdrawn(self[claim]["status"])

    def _text(self, claim: str, position: int | None = None) -> str:
        record = self[claim]
        if position is None:
            return f"{record['printed']} {record['unit']}".rstrip()
        tokens = _tokens(record["printed"])
        if not 0 <= position < len(tokens):
            raise InputError(self.source, claim, f"{len(tokens)} printed numbers", f"number {position}, counted from 0")
        return f"{tokens[position]} {record['unit']}".rstrip()

    def printed(self, claim: str, position: int | None = None) -> str:
        """A published value as printed, with its unit; one number of several by position."""
        simulated = SIMULATED_MARK if self[claim]["label"] == Label.SIMULATED else ""
        return f"{simulated}{RETRACTED_MARK if self.withdrawn(claim) else PUBLISHED_MARK}{self._text(claim, position)}"

    def verdict(self, claim: str) -> str:
        """The verdict, in a word or two."""
        return str(self[claim]["verdict"])

    def derivation(self, claim: str) -> str:
        """The arithmetic behind a claim, each reference replaced by the value it stands for, and what it gives."""
        record = self[claim]
        if not record["arithmetic"]:
            raise InputError(self.source, claim, "no arithmetic", "a claim that has some")
        terms = [self._spelled(expression) for expression in record["arithmetic"]]
        given = " and ".join(map(_digits, record["recomputed"]))
        mark = RETRACTED_MARK if self.withdrawn(claim) else PUBLISHED_MARK
        return f"{mark}{'; '.join(terms)} = {given}"

    def _spelled(self, expression: str) -> str:
        claims = self

        class Spell(ast.NodeTransformer):
            def visit_Call(self, node: ast.Call) -> ast.AST:
                self.generic_visit(node)
                if not isinstance(node.func, ast.Name) or node.func.id not in ("num", "printed"):
                    return node
                name, *position = (argument.value for argument in node.args if isinstance(argument, ast.Constant))
                if node.func.id == "num":
                    return ast.Name(claims.ledger[str(name)].display)
                return ast.Name(_tokens(claims[str(name)]["printed"])[int(*position)])

            def visit_Constant(self, node: ast.Constant) -> ast.AST:
                return ast.Name(_plain(node.value)) if isinstance(node.value, float) else node

        spelled = ast.unparse(Spell().visit(ast.parse(expression, mode="eval")))
        return spelled.replace(" ** ", "^").replace(" * ", " × ").replace(" - ", " − ")

    @staticmethod
    def as_published(heading: str, level: int = 2) -> str:
        """Open a passage about published claims, under its heading and up to the next one."""
        return f"{'#' * level} {heading}{PUBLISHED_HEADING}"

    @staticmethod
    def as_retracted(heading: str, level: int = 2) -> str:
        """Open a passage in which retracted values may be printed; its heading says so."""
        if not any(word in heading.lower() for word in RETRACTION_WORDS):
            raise InputError("as_retracted", heading, "a heading that does not say so", f"one with {', '.join(RETRACTION_WORDS)} in it")
        return f"{'#' * level} {heading}{PUBLISHED_HEADING}"

    def document_names(self) -> list[str]:
        """Short names of the documents, in the order of the claims."""
        return list(dict.fromkeys(record["document"] for record in self.records.values()))

    def document_title(self, document: str) -> str:
        """Title of a document."""
        return self.titles.get(document, document)

    def _of(self, document: str, section: str | None = None) -> dict[str, Mapping[str, Any]]:
        return {
            claim: record
            for claim, record in self.records.items()
            if record["document"] == document and (section is None or record["section"] == section)
        }

    def document_sections(self, document: str) -> list[str]:
        """Sections of a document, in order."""
        return list(dict.fromkeys(record["section"] for record in self._of(document).values()))

    def anchor(self, document: str, section: str = "") -> str:
        """Anchor of a document or of a section in the table of verdicts."""
        return slug(f"{document} {section}")

    def _found(self, verdict: Verdict, document: str | None = None) -> int:
        return sum(record["verdict"] == verdict and document in (None, record["document"]) for record in self.records.values())

    def verdict_count(self, verdict: str) -> int:
        """How many claims have a verdict."""
        return self._found(Verdict(verdict))

    def verdict_counts(self) -> str:
        """Table of verdicts by document."""
        documents = self.document_names()
        head = [f"[{self.document_title(document)}](#{self.anchor(document)})" for document in documents]
        lines = [f"| Verdict | {' | '.join(head)} | All |", f"|---|{'---:|' * (len(documents) + 1)}"]
        for verdict in ORDER:
            counts = [self._found(verdict, document) for document in documents]
            name = f"[{verdict}](#{slug(verdict)})" if verdict in ORDER[:5] else str(verdict)
            lines.append(f"| {name} | {' | '.join(map(str, counts))} | {sum(counts)} |")
        totals = [len(self._of(document)) for document in documents]
        return "\n".join([*lines, f"| **All** | {' | '.join(map(str, totals))} | {sum(totals)} |"])

    @staticmethod
    def verdict_meanings() -> str:
        """Table of what each verdict means."""
        return "\n".join(["| Verdict | Means |", "|---|---|", *(f"| {verdict} | {MEANING[verdict]} |" for verdict in ORDER)])

    def _shown(self, claim: str) -> str:
        return f"~~{self._text(claim)}~~" if self.withdrawn(claim) else self._text(claim)

    @staticmethod
    def _recomputed(record: Mapping[str, Any]) -> str:
        given = " and ".join(map(_digits, record["recomputed"]))
        return f"old derivation: {given}" if given and record["verdict"] == Verdict.RETRACTED else given

    @staticmethod
    def _reason(record: Mapping[str, Any]) -> str:
        """The reason without the values that the column before it shows, findings linked."""
        reason = re.sub(r"^(?:Recomputed|its old derivation gives(?: another value,)?) .*?\.(?: |$)", "", record["reason"])
        if record["reason"].startswith("its old derivation gives another value"):
            reason = f"The old derivation gives another value. {reason}".rstrip()
        return re.sub(r"\b(D\d+)\b", lambda found: f"[{found[0]}](RETRACTIONS.md#{found[0].lower()})", cell(reason))

    def _source(self, record: Mapping[str, Any]) -> str:
        if record["keys"]:
            return ", ".join(f"`{key}`" for key in record["keys"])
        used = dict.fromkeys(re.findall(r"(?:num|printed)\(\"([^\"]+)\"", " ".join(record["arithmetic"])))
        return f"arithmetic: {', '.join(f'`{name}`' for name in used)}" if used else ("arithmetic" if record["arithmetic"] else "")

    def _caveat(self, claims: Mapping[str, Mapping[str, Any]]) -> list[str]:
        return [f"> {SIMULATION_CAVEAT}", ""] if any(record["label"] == Label.SIMULATED for record in claims.values()) else []

    def verdict_list(self, verdict: str) -> str:
        """Table of the claims with a verdict; a value that is printed in several places is one row."""
        groups: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
        for claim, record in self.records.items():
            if record["verdict"] == Verdict(verdict):
                identity = (record["printed"].replace(" to ", " "), record["unit"], *record["keys"], *record["recomputed"])
                groups.setdefault(identity, {})[claim] = record
        if not groups:
            return "None."
        lines = ["| Printed | What it says | Recomputed | Why | Where |", "|---|---|---|---|---|"]
        for group in groups.values():
            claim, record = next(iter(group.items()))
            places = dict.fromkeys((other["document"], other["section"]) for other in group.values())
            where = "; ".join(f"[{cell(document)}: {cell(section)}](#{self.anchor(document, section)})" for document, section in places)
            told = (cell(record["says"]), self._recomputed(record), self._reason(record))
            lines.append(f"| {self._shown(claim)} | {' | '.join(told)} | {where} |")
        return "\n".join([*self._caveat({claim: record for group in groups.values() for claim, record in group.items()}), *lines])

    def section_table(self, document: str, section: str) -> str:
        """Table of all claims of a section, with the standing caveat where one is simulated."""
        claims = self._of(document, section)
        lines = [
            "| Claim | Printed | What it says | Class | Status | Verdict | Recomputed | Why | From |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for claim, record in claims.items():
            cells = (
                f'<a id="{slug(claim)}"></a>`{claim.partition(".")[2]}`',
                self._shown(claim),
                cell(record["says"]),
                record["label"],
                record["status"],
                f"**{record['verdict']}**" if record["verdict"] in ORDER[:3] else record["verdict"],
                self._recomputed(record),
                self._reason(record),
                self._source(record),
            )
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join([*self._caveat(claims), *lines])

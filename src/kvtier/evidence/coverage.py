"""Coverage: every numeric token of the published documents is covered by a claim, or excused with a reason.

The documents themselves are not part of the project. What is kept of them is the list of their numeric tokens, in order, each with what
covers it: ``data/published/tokens/<document>.csv``. Where the documents are at hand, the list is checked against them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.evidence.claims import Document
from kvtier.files import sha256
from kvtier.frames import Table

TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[₀-₉]+")
TOKENS = Table(
    "numeric tokens",
    {"position": pl.Int64, "line": pl.Int64, "token": pl.String, "claim": pl.String, "excuse": pl.String},
    nullable=frozenset({"claim", "excuse"}),
)
"""One row a token: its position and line (from 1), and either the claim that covers it or the reason why it is no claim."""


def numeric_tokens(text: str) -> list[tuple[int, str]]:
    """(line, token) of every number in a text, in order; a comma that ends a token is punctuation."""
    return [(text.count("\n", 0, match.start()) + 1, match[0].rstrip(",")) for match in TOKEN.finditer(text)]


def check(document: Document, tokens_path: str | Path, excuses: Mapping[str, str]) -> list[str]:
    """What is not covered.

    Parameters
    ----------
    document : Document
        Claims of the document.
    tokens_path : str or Path
        The kept list of its tokens.
    excuses : mapping of str to str
        Name of an excuse to its reason.

    Returns
    -------
    list of str
        One line a token that neither a claim nor an excuse covers, or that is covered by a claim that does not print it, and one a claim
        that covers no token.
    """
    claims = {claim.id: claim for claim in document.claims}
    tokens = TOKENS.read_csv(tokens_path)
    found, used = [], set()
    for row in tokens.iter_rows(named=True):
        where = f"{document.name}, line {row['line']}, token {row['position']}, {row['token']}"
        claim, excuse = row["claim"] or "", row["excuse"] or ""
        if bool(claim) == bool(excuse):
            found.append(f"{where}: {'both a claim and an excuse' if claim else 'not covered'}")
        elif excuse and excuse not in excuses:
            found.append(f"{where}: no excuse named {excuse}")
        elif claim and claim not in claims:
            found.append(f"{where}: no claim {claim}")
        elif claim and row["token"].replace(",", "") not in {str(abs(value)) for value in claims[claim].values}:
            found.append(f"{where}: claim {claim} prints {claims[claim].printed}")
        used.add(claim)
    found += [f"{document.name}: claim {claim} covers no token" for claim in claims if claim not in used]
    return found


def check_against(document: Document, tokens_path: str | Path, source: str | Path) -> None:
    """Hold the kept list against the document itself.

    Raises
    ------
    InputError
        If the document is another one, or its tokens are not those that were kept.
    """
    if sha256(source) != document.sha256:
        raise InputError(source, "sha256", sha256(source), document.sha256)
    kept: Sequence[tuple[int, str]] = TOKENS.read_csv(tokens_path).select("line", "token").rows()
    present = numeric_tokens(Path(source).read_text(encoding="utf-8"))
    for position, (ours, theirs) in enumerate(zip(kept, present, strict=False), start=1):
        if ours != theirs:
            raise InputError(tokens_path, f"token {position}", ours, f"{theirs}, as {source} has it")
    if len(kept) != len(present):
        raise InputError(tokens_path, "length", len(kept), f"{len(present)} tokens, as {source} has")

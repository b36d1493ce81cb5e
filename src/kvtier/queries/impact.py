"""What would move if a file changed, from the map of rules that each build writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kvtier.queries.checkout import Checkout, RuleMap
from kvtier.queries.explanation import nearest, resting_on

CONFIGURATION = "config/full.yaml"
"""What the settings of the rules come from."""

ALL_RULES = {
    "Snakefile": "defines the workflow",
    "workflow/rules/common.smk": "holds the helpers of all rules",
    "requirements.lock": "sets the environment in which every rule runs",
    "pyproject.toml": "sets the environment in which every rule runs",
}
"""Files that no rule names and every rule depends on."""

LEDGERS = ("results/numbers.json", "results/claims.json")
"""Read by key: what reads one of them moves with the keys it prints, not with the file."""

FIGURES = frozenset({".svg", ".png"})
DOCUMENTS = FIGURES | {".md", ".html", ".pdf", ".ipynb"}
"""Suffixes of what is made to be read."""

TOKEN = re.compile(r"`([a-z0-9_<>.]*\.[a-z0-9_<>.]+)`")


@dataclass(frozen=True)
class Impact:
    """What a change could move, at most.

    Parameters
    ----------
    path : str
        The file or folder.
    why : str
        How the rules depend on it.
    direct, downstream : tuple of str
        Rules that read it, and rules that read what those make.
    numbers : tuple of str
        Keys.
    documents : dict of str to str
        Published document or figure to the reason.
    claims : tuple of str
        Claims whose verdict rests on one of the numbers.
    """

    path: str
    why: str
    direct: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    documents: Mapping[str, str] | None = None
    claims: tuple[str, ...] = ()


def under(path: str, names: Iterable[str]) -> list[str]:
    """The names that are the path or lie in it."""
    return [name for name in names if path in (name, ".") or name.startswith(f"{path}/")]


def direct_rules(path: str, map_of: RuleMap) -> tuple[list[str], str]:
    """Rules that depend on a file or folder themselves, and how."""
    rules = map_of.rules
    if path in ALL_RULES:
        return list(rules), ALL_RULES[path]
    if path == CONFIGURATION:
        return [name for name, rule in rules.items() if rule["settings"]], "holds settings of the rules"
    read = [name for name, rule in rules.items() if under(path, [*rule["inputs"], rule["script"]])]
    defined = [name for name, rule in rules.items() if under(path, [rule["file"]])]
    configured = [name for name, rule in rules.items() if rule["settings"]] if under(path, [CONFIGURATION]) else []
    every = list(rules) if under(path, ALL_RULES) else []
    found = {*read, *defined, *configured, *every}
    why = "is read by rules" if read else "defines rules" if defined else "holds settings of the rules"
    return [name for name in rules if name in found], why if found else ""


def downstream(direct: Iterable[str], rules: Mapping[str, Mapping[str, Collection[str]]]) -> list[str]:
    """The rules and all that read what they make, but for reading a ledger: that goes by key."""
    reached, waiting = set(direct), list(direct)
    while waiting:
        made = set(rules[waiting.pop()]["outputs"]) - set(LEDGERS)
        for name, rule in rules.items():
            if name not in reached and made.intersection(rule["inputs"]):
                reached.add(name)
                waiting.append(name)
    return [name for name in rules if name in reached]


def key_patterns(text: str) -> Iterator[re.Pattern[str]]:
    """The keys that a document names under its tables: in backquotes, ``<words>`` for what varies, ``.word`` for another last word."""
    last = ""
    for token in TOKEN.findall(text):
        full = f"{last.rpartition('.')[0]}{token}" if token.startswith(".") else token
        last = full
        yield re.compile("".join("[a-z0-9_]+" if part.startswith("<") else re.escape(part) for part in re.split(r"(<\w+>)", full)))


def printed_keys(text: str, keys: Iterable[str]) -> set[str]:
    """Which of the keys a document prints."""
    patterns = list(key_patterns(text))
    return {key for key in keys if any(pattern.fullmatch(key) for pattern in patterns)}


def _documents(checkout: Checkout, affected: Collection[str], names: Collection[str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Documents that would move, with the reason."""
    for name, rule in checkout.rules.rules.items():
        for built in rule["outputs"]:
            if Path(built).suffix not in DOCUMENTS:
                continue
            shown = checkout.rules.published.get(built, built)
            if name in affected:
                yield shown, "made from it"
                continue
            # A figure draws its own tables; the ledger only words its caption with numbers of the same tables.
            if not names or Path(built).suffix in FIGURES or not set(LEDGERS).intersection(rule["inputs"]):
                continue
            file = next((path for path in (Path(checkout.root, built), Path(checkout.root, shown)) if path.is_file()), None)
            text = file.read_text(encoding="utf-8", errors="replace") if file else ""
            if count := len(printed_keys(text, names)):
                yield shown, f"prints {count} of them"
            elif not printed_keys(text, known):
                yield shown, "made from the ledger, and does not say which keys it prints"


def of_file(checkout: Checkout, path: str) -> Impact:
    """What a change of a file or folder would move.

    Parameters
    ----------
    checkout : Checkout
    path : str
        Relative to the top of the checkout.

    Raises
    ------
    InputError
        If there is no map of rules.
    """
    rules = checkout.rules.rules
    direct, why = direct_rules(path, checkout.rules)
    if not direct:
        return Impact(path, _no_reason(path, checkout.rules))
    affected = downstream(direct, rules)
    ledger = checkout.numbers.by_name
    keys = tuple(key for key, record in ledger.items() if record["rule"] in affected)
    claims = tuple(resting_on(checkout, keys))
    if "judge_claims" in direct:
        claims = tuple(checkout.claims.by_name)
    known = [*ledger, *checkout.claims.by_name]
    documents = dict(_documents(checkout, affected, [*keys, *claims], known))
    return Impact(path, why, tuple(direct), tuple(name for name in affected if name not in direct), keys, documents, claims)


def _no_reason(path: str, rules: RuleMap) -> str:
    makers = [name for name, rule in rules.rules.items() if path in rule["outputs"] or path in map(rules.published.get, rule["outputs"])]
    if makers:
        return f"is made by rule {makers[0]}, and nothing is made from it"
    if path.startswith("config/"):
        return "is not read by the full build"
    if path.endswith(".py") and path.startswith("src/"):
        return "is imported by no rule's script"
    return "is read by no rule"


def exists(checkout: Checkout, path: str) -> bool:
    """Whether there is such a file, or a rule makes it."""
    outputs = {built for rule in checkout.rules.rules.values() for built in rule["outputs"]}
    return Path(checkout.root, path).exists() or path in outputs


def similar(checkout: Checkout, path: str) -> list[str]:
    """Files of the workflow that look like a path that is none."""
    names = {name for rule in checkout.rules.rules.values() for name in (*rule["inputs"], rule["script"], rule["file"])}
    last = Path(path).name
    return list(dict.fromkeys([*(name for name in sorted(names) if Path(name).name == last), *nearest(path, sorted(names))]))[:3]

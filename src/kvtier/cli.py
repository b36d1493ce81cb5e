"""The command line. What a command needs is imported when it runs, so that help and answers come at once."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvtier.commands.answer import Commands, as_json, checkout, fail, show, show_json, warn
from kvtier.commands.breakeven import breakeven
from kvtier.commands.measure import measure
from kvtier.commands.simulate import simulate
from kvtier.commands.size import size

if TYPE_CHECKING:
    from kvtier.queries.checkout import Checkout
    from kvtier.queries.explanation import Found
    from kvtier.queries.impact import Impact
    from kvtier.terminal import Block

EXAMPLES = 4
"""Known failures of an audit that are shown."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kvtier")
def main() -> None:
    """Ask the evidence ledger: where a number comes from, what a change would move, what v6.0 claimed and what became of it.

    Run it anywhere in a checkout. It answers from the last build in results/, else from the published copy in data/, and says which.
    `measure` measures this machine, `simulate` replays a trace, `size` and `breakeven` size a model; these ask the ledger nothing.

    \b
    Examples:
      kvtier explain sim.rev2.e1.32.ema015.hit
      kvtier explain "44.18 %"
      kvtier impact data/inputs/models.csv
      kvtier claims --verdict contradicted
      kvtier audit
      kvtier measure all --dry-run
      kvtier size llama-3.1-8b --context 128K --device H100
      kvtier simulate requests.jsonl --hbm "32 GiB,64 GiB" --policy lru,ema0.05

    Exit codes: 0 answered; 1 not found, a file that cannot be used, or an audit that must hold and does not; 2 wrong call.
    """


for command in (measure, simulate, size, breakeven):
    main.add_command(command)


# explain


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("word", metavar="KEY|VALUE")
@as_json
def explain(word: str, in_json: bool) -> None:
    """Where a number comes from, and the command that makes it again.

    KEY is a key of the ledger, the beginning of one, a pattern with * in it, or the name of a claim. VALUE is a value as a document
    prints it, with or without its unit: it finds every number and every claim that prints it.

    \b
    Examples:
      kvtier explain sim.rev2.e1.32.ema015.hit
      kvtier explain sim.rev2.e1.32
      kvtier explain 'analytic.kv.*.bytes_per_token'
      kvtier explain 44.18
      kvtier explain "320 KiB" --json
    """
    from kvtier.queries import explanation

    here = checkout()
    found = explanation.find(here, word)
    if not found.keys and not found.claims:
        near = f"; nearest: {', '.join(found.nearest)}" if found.nearest else ""
        fail(f"{here.numbers.path}: no number or claim has the key or prints the value {word!r}{near}")
    numbers = [explanation.of_number(here, key) for key in found.keys]
    if in_json:
        claims = [{"id": name, **here.claims.by_name[name]} for name in found.claims]
        show_json({"asked": word, "how": found.how, "numbers": numbers, "claims": claims})
    elif len(numbers) == 1 and not (found.claims and found.how != "claim"):
        show(*_claim_found(here, found), *_one_number(here, numbers[0]))
    elif found.how == "claim":
        show(*_claim_found(here, found), _numbers_table(numbers, "Its numbers"))
    else:
        show(*_several(here, word, found, numbers))


def _value(record: dict[str, Any]) -> str:
    return f"{record['display']} {record['unit']}".rstrip()


def _pairs(values: dict[str, Any]) -> str:
    """Settings or uncertainties, one a line."""
    return "\n".join(f"{name} = {', '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in values.items())


def _elsewhere(root: Path) -> str:
    """The top of the checkout, if that is not where we are."""
    return "" if Path.cwd() == root else os.path.relpath(root)


def _one_number(here: Checkout, number: dict[str, Any]) -> list[Block]:
    from kvtier.terminal import Fields, Table

    uncertainty = {name.replace("_", " "): f"{value:,.4g}" for name, value in number["uncertainty"].items()}
    published = number["published"]
    differs = f"{published} in the published copy" if published not in (None, number["display"]) else ""
    about = Fields(
        [
            ("key", number["key"]),
            ("value", _value(number)),
            ("at full precision", repr(number["value"])),
            ("differs from", differs),
            ("uncertainty", _pairs(uncertainty)),
            ("label", number["label"]),
            ("status", number["status"]),
            ("definition", number["definition"]),
            ("caveat", "\n".join(number["caveats"])),
            ("rule", number["rule"]),
            ("defined at", number["rule_at"]),
            ("script", number["script"]),
            ("settings", _pairs(number["params"])),
            ("remade by", number["command"]),
            ("run it in", _elsewhere(here.root)),
            ("read from", number["source"]),
        ]
    )
    inputs = Table(["Input", "sha256", "File is"], [(item["path"], item["sha256"], item["now"]) for item in number["inputs"]])
    claims = Table(
        ["Claim of v6.0", "Printed", "Verdict", "Uses it for its", "What it says"],
        [
            (item["id"], f"{item['printed']} {item['unit']}".rstrip(), item["verdict"], item["uses_it_for"], item["says"])
            for item in number["claims"]
        ],
    )
    return [about, inputs if inputs.rows else "", claims if claims.rows else "No verdict on a claim of v6.0 rests on it."]


def _numbers_table(numbers: Iterable[dict[str, Any]], title: str) -> Block:
    from kvtier.terminal import Table

    rows = [(item["key"], _value(item), item["label"], item["status"], item["rule"]) for item in numbers]
    return Table(["Key", "Value", "Label", "Status", "Rule"], rows, frozenset({"Value"}), title) if rows else ""


def _claims_table(here: Checkout, names: Iterable[str], title: str = "") -> Block:
    from kvtier.terminal import Table

    rows = [
        (name, f"{claim['printed']} {claim['unit']}".rstrip(), claim["verdict"], claim["says"], claim["reason"])
        for name, claim in ((name, here.claims.by_name[name]) for name in names)
    ]
    return Table(["Claim", "Printed", "Verdict", "What it says", "Why"], rows, title=title) if rows else ""


def _claim_found(here: Checkout, found: Found) -> list[Block]:
    from kvtier.terminal import Fields

    blocks: list[Block] = []
    for name in found.claims:
        claim = here.claims.by_name[name]
        pairs = [
            ("claim", name),
            ("stands in", f"{claim['document']}, section {claim['section']}"),
            ("printed", f"{claim['printed']} {claim['unit']}".rstrip()),
            ("says", claim["says"]),
            ("label", claim["label"]),
            ("status", claim["status"]),
            ("verdict", claim["verdict"]),
            ("recomputed", ", ".join(map(repr, claim["recomputed"]))),
            ("arithmetic", "\n".join(claim["arithmetic"])),
            ("reason", claim["reason"]),
            ("read from", here.claims.said),
        ]
        blocks.append(Fields(pairs))
    return blocks


def _several(here: Checkout, word: str, found: Found, numbers: Sequence[dict[str, Any]]) -> list[Block]:
    count = f"{len(numbers)} number{'s' * (len(numbers) != 1)}"
    title = f"{word}: {found.how} {count} in {here.numbers.said}" if numbers else f"{word}: no number in {here.numbers.said} prints it"
    claims = _claims_table(here, found.claims, f"Claims of v6.0 that print it, in {here.claims.said}")
    hint = f"More about one of them: kvtier explain {numbers[0]['key']}" if numbers else ""
    return [_numbers_table(numbers, title) or title, claims, hint]


# impact


@main.command()
@click.argument("path", type=click.Path())
@click.option("--keys", "all_keys", is_flag=True, help="Name every number, not only how many of each rule.")
@as_json
def impact(path: str, all_keys: bool, in_json: bool) -> None:
    """Which numbers and documents could move if a file or folder changed.

    PATH is a module of the package, a script, a rule file, a configuration, an input, or a table that the build made. The answer is an
    upper bound: what depends on the file, not what a certain edit moves. It rests on results/rules.json, which each build writes.

    \b
    Examples:
      kvtier impact src/kvtier/simulate/engine.py
      kvtier impact data/inputs/models.csv --keys
      kvtier impact config/full.yaml --json
    """
    from kvtier.queries import impact as queries

    here = checkout()
    place = here.relative(path, Path.cwd())
    if not queries.exists(here, place):
        near = queries.similar(here, place)
        fail(f"{place}: no such file, and no rule makes it{'; nearest: ' + ', '.join(near) if near else ''}")
    if here.rules.stale:
        warn(f"results/rules.json is older than {here.rules.stale[0]}; `snakemake --cores all results/rules.json` renews it")
    found = queries.of_file(here, place)
    if in_json:
        show_json(_impact_json(here, found))
    else:
        show(*_impact_blocks(here, found, all_keys))


def _impact_json(here: Checkout, found: Impact) -> dict[str, Any]:
    ledger = here.numbers.by_name
    return {
        "path": found.path,
        "why": found.why,
        "rules": {"direct": list(found.direct), "downstream": list(found.downstream)},
        "numbers": [{"key": key, **{field: ledger[key][field] for field in ("display", "unit", "label", "rule")}} for key in found.numbers],
        "documents": dict(found.documents or {}),
        "claims": [{"id": name, "verdict": here.claims.by_name[name]["verdict"]} for name in found.claims],
        "source": here.numbers.said,
    }


def _impact_blocks(here: Checkout, found: Impact, all_keys: bool) -> list[Block]:
    from kvtier.terminal import Table

    if not found.direct:
        return [f"{found.path} {found.why}: no number and no document would move."]
    ledger = here.numbers.by_name
    made: dict[str, int] = {}
    for key in found.numbers:
        made[ledger[key]["rule"]] = made.get(ledger[key]["rule"], 0) + 1
    rules = Table(
        ["Rule", "Because it", "Numbers"],
        [(name, "depends on the file", made.get(name, 0)) for name in found.direct]
        + [(name, "reads what those make", made.get(name, 0)) for name in found.downstream],
        frozenset({"Numbers"}),
        f"{found.path} {found.why}",
    )
    total = f"{len(found.numbers)} of {len(ledger)} numbers could move, in {here.numbers.said}"
    keys = _numbers_table(({"key": key, **ledger[key]} for key in found.numbers), total) if all_keys else ""
    documents = Table(["Document", "Because it is"], list((found.documents or {}).items()))
    documents = Table(["Document or figure", "Why"], documents.rows, title="Documents") if documents.rows else "No document would move."
    count = len(found.claims)
    claims = f"{count} verdict{'s' * (count != 1)} on claims of v6.0 could move." if count else ""
    hint = "" if all_keys or not found.numbers else "--keys names the numbers."
    return [rules, keys or total, documents, claims, hint]


# claims


@main.command()
@click.option("--verdict", help="Only this verdict, such as contradicted, challenged, untraceable, retracted, 'reproduced exactly'.")
@click.option("--document", help="Only claims of this document: appendix, retractions or gqa.")
@as_json
def claims(verdict: str | None, document: str | None, in_json: bool) -> None:
    """What v6.0 printed, and the verdict on each value.

    Without an option: how many claims of each document have which verdict. With --json and no other option: all claims.

    \b
    Examples:
      kvtier claims
      kvtier claims --verdict contradicted
      kvtier claims --document gqa --json
    """
    from kvtier.evidence.claims import MEANING, Verdict
    from kvtier.terminal import Fields, Table

    here = checkout()
    records = here.claims.by_name
    documents = list(dict.fromkeys(record["document"] for record in records.values()))
    verdict = _choice(verdict, [str(word) for word in Verdict], "--verdict")
    document = _choice(document, documents, "--document")
    names = [
        name
        for name, record in records.items()
        if (verdict is None or record["verdict"] == verdict) and (document is None or record["document"] == document)
    ]
    if in_json:
        show_json([{"id": name, **records[name]} for name in names])
        return
    if verdict is None and document is None:
        counts = {word: [sum(r["verdict"] == word and r["document"] == d for r in records.values()) for d in documents] for word in Verdict}
        rows = [(str(word), *found, sum(found)) for word, found in counts.items() if any(found)]
        rows.append(("all", *(sum(counts[word][column] for word in Verdict) for column in range(len(documents))), len(records)))
        heads = [*documents, "all"]
        table = Table(["Verdict", *heads], rows, frozenset(heads), f"Claims of v6.0 by verdict and document, in {here.claims.said}")
        meanings = Fields([(str(word), MEANING[word]) for word, found in counts.items() if any(found)], "What the verdicts mean")
        show(table, meanings, "The claims themselves: kvtier claims --verdict contradicted")
        return
    which = " ".join(filter(None, [verdict, f"in {document}" if document else ""]))
    title = f"{len(names)} claim{'s' * (len(names) != 1)}: {which} ({here.claims.said})"
    show(_claims_table(here, names, title) or title)


def _choice(word: str | None, words: Sequence[str], option: str) -> str | None:
    """The word as it is spelt, whatever its case."""
    if word is None or word.casefold() in words:
        return word and word.casefold()
    import difflib

    near = difflib.get_close_matches(word.casefold(), words, 1)
    raise click.BadParameter(
        f"{word!r} is none of {', '.join(words)}{f'; did you mean {near[0]}?' if near else '.'}", param_hint=f"'{option}'"
    )


# audit


@main.command()
@click.option("--run", is_flag=True, help="Run the audits again first, with whatever they need.")
@click.option("--all", "every", is_flag=True, help="Every subject, not only sums and failures.")
@as_json
def audit(run: bool, every: bool, in_json: bool) -> None:
    """What the checks that can say no looked at and found, in the last build.

    An audit that must hold and does not, or that had nothing to look at, makes the exit code 1. Where an audit need not hold, a failure
    is a result: the defect of Revision 1 is known, and the audit is seen finding it.

    \b
    Examples:
      kvtier audit
      kvtier audit --all
      kvtier audit --run --json
    """
    from kvtier.queries import audits

    here = checkout()
    if run:
        _snakemake(here.root, ["results/rules.json"], quiet=True)
        _snakemake(here.root, ["--force", *audits.targets(checkout())])
    outcomes = audits.read(here)
    broken = [outcome for outcome in outcomes if outcome.broken]
    if in_json:
        fields = ("file", "audit", "subject", "checked", "failed", "must_hold", "note")
        show_json([{field: getattr(outcome, field) for field in fields} | {"outcome": outcome.said} for outcome in outcomes])
    else:
        show(*_audit_blocks(outcomes, every))
    if broken:
        fail(f"{broken[0].file}: audit {broken[0].audit}: {broken[0].subject}: {broken[0].failed} of {broken[0].checked} failed")


def _audit_blocks(outcomes: Sequence[Any], every: bool) -> list[Block]:
    from kvtier.terminal import Table

    groups: dict[tuple[str, str, bool], list[Any]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.file, outcome.audit, outcome.must_hold), []).append(outcome)
    rows = []
    for (file, name, must_hold), group in groups.items():
        said = next((word for word in ("nothing checked", "FAILS", "known failure") if any(o.said == word for o in group)), "holds")
        counts = (len(group), sum(o.checked for o in group), sum(o.failed for o in group))
        rows.append((name, *(f"{count:,}" for count in counts), "yes" if must_hold else "no", said, file))
    heads = ["Audit", "Subjects", "Checked", "Failed", "Must hold", "Outcome", "Read from"]
    sums = Table(heads, rows, frozenset(heads[1:4]), "Audits of the last build")
    groups_shown = [(group, group if every else [o for o in group if o.failed or o.broken]) for group in groups.values()]
    listed, left_out = [], []
    for group, shown in groups_shown:
        # What breaks the build is never left out.
        kept = shown if every or group[0].must_hold else shown[:EXAMPLES]
        listed += kept
        if len(kept) < len(shown):
            left_out.append(f"{len(shown) - len(kept)} of {group[0].audit}")
    details = Table(
        ["Audit", "Subject", "Checked", "Failed", "Outcome", "Note"],
        [(o.audit, o.subject, f"{o.checked:,}", f"{o.failed:,}", o.said, o.note) for o in listed],
        frozenset({"Checked", "Failed"}),
        "Every subject" if every else "Failures",
    )
    more = f"Left out: {', '.join(left_out)}; " if left_out else ""
    return [sums, details if listed else "", "" if every else f"{more}--all lists every subject."]


def _snakemake(root: Path, arguments: Sequence[str], quiet: bool = False) -> None:
    """Run snakemake in the checkout, all it says on stderr."""
    call = [sys.executable, "-m", "snakemake", "--cores", "all", *arguments]
    done = subprocess.run(call, cwd=root, stdout=sys.stderr, stderr=subprocess.PIPE if quiet else None, text=True, check=False)
    if done.returncode:
        if quiet:
            click.echo(done.stderr, err=True)
        fail(f"snakemake {shlex.join(call[3:])}: exit code {done.returncode}")


if __name__ == "__main__":
    main()

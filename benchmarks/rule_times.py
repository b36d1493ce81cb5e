"""How long each rule of the build took when it last ran, as snakemake's logs have it.

Usage: ``.venv/bin/python benchmarks/rule_times.py [--keep]``, after a full build from nothing (``make clean && make``). Jobs of one rule in
one build add up. Times are of this machine and of what else ran on it. ``--keep`` renews data/bench/rule_times.csv, from which the README's
table of claims takes its minutes.
"""

import argparse
import json
import re
from datetime import datetime
from pathlib import Path

import kept

ROOT = Path(__file__).resolve().parents[1]
STARTED = re.compile(r"^\[(.+)\]\n(?:Job|rule|localrule|checkpoint) (\d+):", re.MULTILINE)
FINISHED = re.compile(r"^\[(.+)\]\nFinished jobid: (\d+) \(Rule: (\w+)\)", re.MULTILINE)


def seconds_of(log: str) -> dict[str, float]:
    """Seconds by rule of one build, to the second; nothing of a build that only touched its files."""
    if re.search(r"^ *Command: .* --touch\b", log, re.MULTILINE):
        return {}

    def moment(text: str) -> datetime:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y")

    starts = {job: moment(text) for text, job in STARTED.findall(log)}
    found: dict[str, float] = {}
    for text, job, rule in FINISHED.findall(log):
        if job in starts:
            found[rule] = found.get(rule, 0.0) + max(1.0, (moment(text) - starts[job]).total_seconds())
    return found


def last_times(logs: list[str]) -> dict[str, float]:
    """Seconds by rule, each of the last build in which it ran; `logs` from the oldest to the newest."""
    found: dict[str, float] = {}
    for log in logs:
        found.update(seconds_of(log))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="renew data/bench/rule_times.csv and rule_times.json")
    options = parser.parse_args()
    rules = json.loads((ROOT / "results/rules.json").read_text(encoding="utf-8"))["rules"]
    logs = sorted((ROOT / ".snakemake/log").glob("*.snakemake.log"))
    found = last_times([log.read_text(encoding="utf-8") for log in logs])
    for rule in rules:
        print(f"{rule:<32} {found[rule]:6.0f} s" if rule in found else f"{rule:<32} did not run")
    if not options.keep:
        return
    # A rule that did not run is missed by the table of claims only if a claim needs it, and then by name.
    rows = [{"rule": rule, "seconds": found[rule]} for rule in rules if rule in found]
    method = {
        "clock": "wall time from start to end of a rule's jobs in the last build that ran it, to the second, at least one",
        "machine": "shared with other work, and with the other jobs of the build",
    }
    kept.keep("rule_times", rows, kept.about(["snakemake"], method))


if __name__ == "__main__":
    main()

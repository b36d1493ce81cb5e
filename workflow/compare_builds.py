"""Build twice under conditions that must not matter, and compare every output; on a difference, name the rule in which it arises.

``python workflow/compare_builds.py [TARGET ...]`` builds `quick` and the figures that it leaves out, or the targets named, in two copies of
this checkout at once. They differ in folder, hash seed, time zone, locale, home, file mode mask and number of cores. Exit status 0: the
same bytes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = ("quick", "quick_figures")
LIMIT_S = 1500
NO_RULE = "no rule"
SHOWN_BYTES = 60
"""Of what differs, from a little before the first byte that does."""


class Failed(Exception):
    """A build that did not end well."""


@dataclass(frozen=True)
class Conditions:
    """What two builds may differ in without differing in what they make."""

    folder: str
    cores: int
    mask: int
    environment: Mapping[str, str]


CONDITIONS = (
    Conditions("first", 1, 0o022, {"PYTHONHASHSEED": "1", "TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}),
    Conditions(
        "second/in-a-longer-path/than-the-first",
        2,
        0o077,
        {"PYTHONHASHSEED": "4242", "TZ": "Pacific/Auckland", "LANG": "C", "LC_ALL": "C", "POLARS_MAX_THREADS": "3"},
    ),
)


@dataclass(frozen=True)
class Made:
    """What snakemake has recorded of one output: its rule, and the files that were read for it."""

    rule: str
    inputs: frozenset[str]


def copy_checkout(source: Path, target: Path) -> Path:
    """A copy without anything built; what numba has compiled goes along, for it takes longer than the build."""
    left_out = shutil.ignore_patterns(".git", ".venv*", ".snakemake", "results", ".*_cache", ".hypothesis")
    shutil.copytree(source, target, symlinks=True, ignore=left_out)
    return target


def start(project: Path, conditions: Conditions, targets: Iterable[str]) -> subprocess.Popen:
    """Snakemake in a copy, with the copy's own package and a home of its own; what it says goes to build.log there."""
    home = project.parent / f"{project.name}.home"
    home.mkdir()
    own = {"PYTHONPATH": str(project / "src"), "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    with (project / "build.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", str(conditions.cores), *targets],
            cwd=project,
            env={**os.environ, **own, **conditions.environment},
            umask=conditions.mask,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def build_twice(source: Path, scratch: Path, targets: Iterable[str]) -> list[Path]:
    """Both copies, built side by side.

    Raises
    ------
    Failed
        If a build fails or takes longer than `LIMIT_S`, with the end of what it said. The other one is stopped.
    """
    projects = [copy_checkout(source, scratch / conditions.folder) for conditions in CONDITIONS]
    deadline = time.monotonic() + LIMIT_S
    running: dict[Path, subprocess.Popen] = {}
    try:
        for project, conditions in zip(projects, CONDITIONS, strict=True):
            running[project] = start(project, conditions, targets)
        for project, build in running.items():
            try:
                status = build.wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failed(f"the build in {project} was not done after {LIMIT_S} s") from None
            if status:
                said = (project / "build.log").read_text(encoding="utf-8", errors="replace").splitlines()
                raise Failed("\n  ".join([f"the build in {project} failed with status {status}", *said[-40:]]))
    finally:
        for build in running.values():
            if build.poll() is None:
                os.killpg(build.pid, signal.SIGKILL)
                build.wait()
    return projects


def outputs(project: Path) -> dict[str, Path]:
    """Every file of the results by its path in the checkout, without the logs, which tell of folders and times."""
    found = (path for path in sorted((project / "results").rglob("*")) if path.is_file())
    by_name = {path.relative_to(project).as_posix(): path for path in found}
    return {name: path for name, path in by_name.items() if "logs" not in Path(name).parts}


def recorded(project: Path) -> dict[str, Made]:
    """What snakemake's metadata say of each output. Their names are the outputs' in base64, a long one in folders that begin with @."""
    folder = project / ".snakemake" / "metadata"
    made = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = "".join(part.removeprefix("@") for part in path.relative_to(folder).parts)
        content = json.loads(path.read_text(encoding="utf-8"))
        made[base64.urlsafe_b64decode(name).decode()] = Made(content["rule"], frozenset(content["input"]))
    return made


def in_order(made: Mapping[str, Made]) -> list[str]:
    """Rules, each after all those whose outputs it reads."""
    reads: dict[str, set[str]] = {record.rule: set() for _, record in sorted(made.items())}
    for _, record in sorted(made.items()):
        reads[record.rule] |= {made[path].rule for path in record.inputs if path in made}
    return list(TopologicalSorter({rule: sorted(before - {rule}) for rule, before in reads.items()}).static_order())


def first_difference(ours: bytes, theirs: bytes) -> str:
    """Where two contents part: line and byte, and what stands there in each."""
    offset = next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    at = f"byte {offset:,}"
    if b"\0" not in ours + theirs:
        at = f"line {ours.count(bytes([10]), 0, offset) + 1}, {at}"
    begin = max(ours.rfind(b"\n", 0, offset) + 1, offset - SHOWN_BYTES // 3)
    shown = [content[begin : begin + SHOWN_BYTES].split(b"\n")[0] for content in (ours, theirs)]
    return f"{at}: {shown[0]!r} and {shown[1]!r}"


def compare(first: Path, second: Path) -> tuple[str, bool]:
    """Report on the outputs of two builds.

    Returns
    -------
    report : str
        One line if all is the same. Else the first rule, in the order of the DAG, of which an output differs though nothing that it read
        does; each of its differing files with the first difference and both sha256; other such rules; how much differs downstream.
    same : bool
    """
    ours, theirs = outputs(first), outputs(second)
    differ = [
        name
        for name in sorted(ours.keys() | theirs.keys())
        if name not in ours or name not in theirs or ours[name].read_bytes() != theirs[name].read_bytes()
    ]
    if not ours:
        return "nothing was built", False
    if not differ:
        return f"{len(ours)} files, {sum(path.stat().st_size for path in ours.values()):,} bytes: the same in both builds", True

    made = {**recorded(second), **recorded(first)}
    unmade = Made(NO_RULE, frozenset())
    order = {rule: position for position, rule in enumerate(in_order(made))}
    arises = [name for name in differ if not made.get(name, unmade).inputs & set(differ)]
    origins = sorted({made.get(name, unmade).rule for name in arises}, key=lambda rule: order.get(rule, len(order)))
    lines = [f"{len(differ)} of {len(ours.keys() | theirs.keys())} files differ; the first difference arises in rule {origins[0]}"]
    for name in arises:
        if made.get(name, unmade).rule == origins[0]:
            lines += told(name, ours, theirs)
    if origins[1:]:
        lines.append(f"  differ on their own too: {', '.join(origins[1:])}")
    downstream = {made.get(name, unmade).rule for name in differ} - set(origins)
    if downstream:
        lines.append(f"  downstream of these: {', '.join(sorted(downstream, key=lambda rule: order.get(rule, len(order))))}")
    return "\n".join(lines), False


def told(name: str, ours: Mapping[str, Path], theirs: Mapping[str, Path]) -> list[str]:
    """Lines on one file that differs."""
    if name not in ours or name not in theirs:
        return [f"  {name}: made in the {'first' if name in ours else 'second'} build alone"]
    contents = ours[name].read_bytes(), theirs[name].read_bytes()
    sums = [hashlib.sha256(content).hexdigest() for content in contents]
    return [f"  {name}: {first_difference(*contents)}", f"    sha256 {sums[0]}", f"       and {sums[1]}"]


def main(arguments: list[str] | None = None) -> int:
    """Build twice, compare, report; 1 if anything differs or a build fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=EVERYTHING, metavar="TARGET", help=f"what to build (default: {' '.join(EVERYTHING)})")
    targets = parser.parse_args(arguments).targets
    with tempfile.TemporaryDirectory(prefix="two-builds-") as scratch:
        try:
            projects = build_twice(ROOT, Path(scratch), targets)
        except Failed as failed:
            print(f"error: {failed}", file=sys.stderr)
            return 1
        report, same = compare(*projects)
    print(report, file=sys.stdout if same else sys.stderr)
    return not same


if __name__ == "__main__":
    sys.exit(main())

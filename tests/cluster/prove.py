"""Proof on a real Slurm: the quick build's simulations through the Slurm profile, in shards, a worker killed: the bytes of a local build.

``python tests/cluster/prove.py`` takes a few minutes; ``--whole`` builds all of `quick`, not its simulations alone. Exit status 0: proved.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from one_node import INSIDE, Refused, asked, inside, slurm

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "results/quick"
SIMULATIONS = [f"{RESULTS}/audit/runs.csv"]
"""What every sweep flows into."""
SHARDS = 2
LIMIT_S = {False: 1200, True: 3000}


@dataclass(frozen=True)
class Killed:
    """A worker that was killed at its work."""

    shard: str
    job: str
    processes: int


def copy_of_project(folder: Path, shards: int) -> Path:
    """A copy without anything built, with sweeps in so many shards. What numba has compiled goes along: it takes longer than the sweeps."""
    made = shutil.ignore_patterns(".git", ".venv", ".snakemake", "results", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=made)
    configuration = folder / "config/quick.yaml"
    text, replaced = re.subn(r"^  shards: \d+$", f"  shards: {shards}", configuration.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if replaced != 1:
        raise Refused(f"{configuration} does not say how many shards")
    configuration.write_text(text, encoding="utf-8")
    return folder


def build(project: Path, *arguments: str) -> subprocess.Popen:
    """Snakemake in a copy, with the copy's own package; it writes into build.log there."""
    with (project / "build.log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(project / "src")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def ended_well(project: Path, status: int) -> None:
    """Refuse a build that failed, with the end of its log."""
    if status:
        log = (project / "build.log").read_text(encoding="utf-8", errors="replace").splitlines()
        raise Refused("\n  ".join([f"the build in {project.name}/ failed with status {status}", *log[-40:]]))


def processes() -> Iterator[tuple[int, str, dict[str, str]]]:
    """Number, command line and environment of every process that can be read."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            pairs = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        yield int(folder.name), command, dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def kill_a_worker(project: Path) -> Killed | None:
    """Kill every process of the first job that is seen replaying a shard, as a machine out of memory would; None if none is at work."""
    seen = list(processes())
    at_work = [
        environment["SLURM_JOB_ID"] for _, command, environment in seen if ".replay_shard.py" in command and "SLURM_JOB_ID" in environment
    ]
    if not at_work:
        return None
    job = at_work[0]
    of_job = [number for number, _, environment in seen if environment.get("SLURM_JOB_ID") == job]
    asked_for = re.search(r"sweep=(\w+),shard=(\d+),shards=(\d+)", " ".join(command for number, command, _ in seen if number in of_job))
    for number in of_job:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue
    sweep, shard, shards = asked_for.groups() if asked_for else ("?", "?", "?")
    name = f"{RESULTS}/simulate/shards/{sweep}/{shard}-of-{shards}.parquet"
    if (project / name).exists():
        raise Refused(f"{name} was already made when its worker was killed")
    return Killed(name, job, len(of_job))


def made_bytes(project: Path) -> dict[str, bytes]:
    """Bytes of the results by path, without logs and shards."""
    folder = project / RESULTS
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file() and not {"logs", "shards"} & set(path.relative_to(folder).parts))
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def same_bytes(local: dict[str, bytes], cluster: dict[str, bytes]) -> None:
    """Refuse two builds that differ, by the first difference."""
    if local.keys() != cluster.keys():
        raise Refused(f"files of one build alone: {', '.join(sorted(local.keys() ^ cluster.keys()))}")
    differ = [path for path in local if local[path] != cluster[path]]
    if differ:
        raise Refused(f"{len(differ)} of {len(local)} files differ, the first is {differ[0]}")
    if not local:
        raise Refused("nothing was built")


def prove(targets: list[str]) -> None:
    """Build twice and compare; every step that does not hold is refused."""
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:5.0f} s  {line}", flush=True)

    with slurm() as scratch:
        say(f"{asked('sinfo', '--version')}: one node, {asked('sinfo', '--noheader', '--format=%c')} CPUs, loopback only")
        local = copy_of_project(scratch / "local", 1)
        ended_well(local, build(local, *targets).wait())
        say(f"local build, sweeps in one piece: {len(made_bytes(local))} files")

        cluster = copy_of_project(scratch / "cluster", SHARDS)
        running, killed = build(cluster, "--workflow-profile", "workflow/profiles/slurm", *targets), None
        while running.poll() is None:
            killed = killed or kill_a_worker(cluster)
            time.sleep(0.05)
        ended_well(cluster, running.returncode)
        if not killed:
            raise Refused("no worker was seen at its work, so none was killed")
        states = asked("squeue", "--noheader", "--states=all", "--format=%T").split()
        completed, failed = (states.count(state) for state in ("COMPLETED", "FAILED"))
        say(f"Slurm build, sweeps in {SHARDS} shards: {len(states)} jobs, {completed} completed, {failed} failed")
        if failed != 1 or completed != len(states) - 1:
            raise Refused(f"expected one failed job, the one whose worker was killed; found {sorted(states)}")
        if "Trying to restart job" not in (cluster / "build.log").read_text(encoding="utf-8", errors="replace"):
            raise Refused("snakemake did not say that it restarted the job")
        if not (cluster / killed.shard).exists():
            raise Refused(f"{killed.shard} is missing after the retry")
        say(f"worker of job {killed.job} killed ({killed.processes} processes), retried: {killed.shard}")
        ours, theirs = made_bytes(local), made_bytes(cluster)
        same_bytes(ours, theirs)
        say(f"same bytes: {len(ours)} files, {sum(map(len, ours.values())):,} bytes")


def main() -> int:
    """Prove, inside the namespaces; 1 and one line if something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="build all of quick, not its simulations alone")
    whole = parser.parse_args().whole
    try:
        if INSIDE not in os.environ:
            return inside([sys.executable, *sys.argv], LIMIT_S[whole])
        prove(["quick"] if whole else SIMULATIONS)
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

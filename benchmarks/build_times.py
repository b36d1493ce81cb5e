"""Time the build as a user meets it: full, nothing changed, evidence stage, quick; in a fresh copy of the checkout.

Usage: ``.venv/bin/python benchmarks/build_times.py [--cores N]``. Compilation of the engine is part of the first build; the evidence
stage is the ledger, the verdicts, all figures and documents, lint and the comparison with the published copy.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(project: Path, *arguments: str) -> float:
    """Wall time of one snakemake call [s]."""
    begin = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        sys.exit(f"snakemake {' '.join(arguments)} failed:\n{run.stdout}{run.stderr}")
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", default="2", help="cores for snakemake (default 2)")
    cores = parser.parse_args().cores
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(project)], check=True)
        for name, limit, arguments in (
            ("full build", 180, ("all",)),
            ("nothing changed", 15, ("all",)),
            ("evidence stage", 15, ("all", "--forcerun", "collect_numbers")),
            ("quick build", 40, ("quick",)),
        ):
            print(f"{name:<16} {build(project, '--cores', cores, *arguments):6.1f} s   (bar {limit} s)", flush=True)


if __name__ == "__main__":
    main()

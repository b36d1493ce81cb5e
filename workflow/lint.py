"""Run ``snakemake --lint`` and fail on every warning but one, which is left out by name.

Every rule runs in the project's own hash-locked environment, so "a conda environment or container for each rule" does not apply.
"""

import re
import subprocess
import sys

LEFT_OUT = "Specify a conda environment or container for each rule."


def warnings(report: str) -> list[str]:
    """``place: title`` of each warning in a lint report, without the one left out."""
    found, place = [], ""
    for line in report.splitlines():
        if line.startswith("Lints for "):
            place = line.removeprefix("Lints for ").rstrip(":")
        elif (match := re.match(r" +\* (.*?):?$", line)) and match[1] != LEFT_OUT:
            found.append(f"{place}: {match[1]}")
    return found


def main() -> int:
    """Print what is left; 1 if there is any, or if the linter itself failed."""
    lint = subprocess.run([sys.executable, "-m", "snakemake", "--lint"], capture_output=True, text=True, check=False)
    found = warnings(lint.stdout + lint.stderr)
    if lint.returncode and "Lints for " not in lint.stdout + lint.stderr:
        found.append(lint.stderr.strip() or "snakemake --lint failed")
    print("\n".join(found) or "snakemake --lint: no warnings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

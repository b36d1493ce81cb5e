#!/bin/sh
# Print a Python that can build the project: the one asked for ($1), else the first fit one on the PATH.
fit='import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'
found=
for python in ${1:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    if ! command -v "$python" >/dev/null 2>&1; then
        [ -z "$1" ] || found=" $1 (no such command)"
        continue
    fi
    if "$python" -c "$fit" >/dev/null 2>&1; then
        echo "$python"
        exit 0
    fi
    version=$("$python" -V 2>&1 | head -n 1) && found="$found $python ($version)"
done
echo "error: no usable Python:${found:- none on the PATH}; expected 3.11 to 3.14 with the venv module (make PYTHON=/path/to/python3.12)" >&2
exit 1

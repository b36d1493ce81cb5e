"""What surrounds the work: a script's log and its errors in one line, and one build of a folder at a time."""

from __future__ import annotations

import fcntl
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from kvtier.errors import InputError


@contextmanager
def reporting(job: Any) -> Iterator[None]:
    """Run a script's body; on failure write the log and exit 1, with one line on stderr where the input is at fault.

    Parameters
    ----------
    job : snakemake script object
        Gives ``rule`` and ``log``.
    """
    log = Path(job.log[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except InputError as error:
        line = f"error: {error}"
        log.write_text(line + "\n", encoding="utf-8")
        print(line, file=sys.stderr)
        sys.exit(1)
    except Exception:
        log.write_text(traceback.format_exc(), encoding="utf-8")
        raise
    log.write_text(f"{job.rule}: done\n", encoding="utf-8")


_HELD: list[TextIO] = []


def wait_for_other_builds(folder: str | Path) -> None:
    """Hold the folder until this process ends; wait while another build holds it.

    The system lets go of the lock when the process ends, however it ends: a killed build leaves nothing to clean up.
    """
    path = Path(folder, "build.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another build of this folder ({path})", file=sys.stderr, flush=True)
        # Snakemake has its own handlers by now, which would not end a wait.
        handlers = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
        fcntl.flock(lock, fcntl.LOCK_EX)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    _HELD.append(lock)

"""What a notebook may do while the build runs it: read what its rule declares, write below a temporary folder, and no network.

An audit hook of the interpreter (PEP 578) sees what Python opens. It is a guard against mistakes and no sandbox: what compiled code opens
by itself, such as a table that polars reads, passes unseen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"})
NETWORK = frozenset({"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"})
PROCESSES = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"})

CODE = ("src",)
"""Folders of the checkout that hold code: a rule names it by module."""

COMPILED = "__pycache__"
"""Folder in which Python and numba keep what they compile, wherever it is."""


class NotAllowed(PermissionError):
    """What a notebook tried and may not do."""


def confine(checkout: str | Path, declared: Iterable[str], temporary: str | Path) -> None:
    """Hold this process, from now to its end, to reading what is declared and to writing below one folder.

    Parameters
    ----------
    checkout : str or Path
        Its top: files outside may be read, they are the environment's.
    declared : iterable of str
        Files that may be read, from the top of the checkout.
    temporary : str or Path
        Folder that may be written to.
    """
    top, room = Path(checkout).resolve(), Path(temporary).resolve()
    readable = {top / path for path in declared}
    free = (*(top / folder for folder in CODE), Path(sys.prefix).resolve(), room)

    def full(path: Any) -> Path:
        # Not resolved: a link is named by its own place.
        return Path(os.path.normpath(Path.cwd() / os.fsdecode(path)))

    def writes(path: Path) -> None:
        if COMPILED not in path.parts and str(path) != os.devnull and not path.parent.resolve().is_relative_to(room):
            raise NotAllowed(f"a notebook may not write {os.path.relpath(path, top)}: only below the temporary folder")

    def reads(path: Path) -> None:
        if path.is_relative_to(top) and path not in readable and not any(map(path.is_relative_to, free)) and path.is_file():
            raise NotAllowed(f"a notebook may not read {path.relative_to(top)}: it is no input of its rule")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, int):
                return
            writing = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITING)
            (writes if writing else reads)(full(path))
        elif event in CHANGES:
            for path in arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]:
                if not isinstance(path, int):
                    writes(full(path))
        elif event in NETWORK or event in PROCESSES:
            raise NotAllowed(f"a notebook may not use {event}: it needs neither the network nor another process")

    sys.addaudithook(hook)

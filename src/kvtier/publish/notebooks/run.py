"""A notebook from its text form, run from top to bottom in a fresh kernel of this environment.

Nothing of the user's is read or written: no kernel specification, no profile, no history. Kernel and build talk through sockets in a folder
of their own, so that no port is taken and two builds at one time do not meet. Same notebook, same results: same outputs, for the clock's
zone, the language and the order of hashes are set, and no time is noted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import jupytext
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from traitlets.config import Config

from kvtier.errors import InputError
from kvtier.evidence import lint
from kvtier.publish.notebooks import confinement

CELL_LIMIT_S = 600
"""A cell that takes longer hangs; whole notebooks take a tenth of it."""

LONGEST_SOCKET = 100
"""Every system takes a path of a socket that is no longer [characters]."""

PINNED = {
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "NO_COLOR": "1",
    "COLUMNS": "120",
    "POLARS_MAX_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""What outputs could depend on, in the environment of the kernel."""

OPTIONS = ("--HistoryManager.enabled=False", "--InteractiveShell.colors=nocolor", "--InteractiveShell.cache_size=0")


class Kernel(AsyncKernelManager):
    """The kernel of this interpreter, whatever kernels the user has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How it is started."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *OPTIONS]
        return KernelSpec(argv=argv, display_name="Python", language="python")


def read(path: str | Path) -> NotebookNode:
    """A notebook from its text form; cells are numbered, so that ids do not vary.

    Raises
    ------
    InputError
        If the file cannot be read, or holds no cells of code.
    """
    try:
        notebook = jupytext.reads(Path(path).read_text(encoding="utf-8"), fmt="py:percent")
    except OSError as error:
        raise InputError(path, "file", error.strerror or error, "a readable notebook") from None
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise InputError(path, "cells", "no code", "a notebook in percent form: cells that begin with # %%")
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number}"
    return notebook


def lines(path: str | Path, notebook: NotebookNode) -> list[int]:
    """Line of the file on which each cell's text begins, from 1."""
    text, found, position = Path(path).read_text(encoding="utf-8").splitlines(), [], 0
    for cell in notebook.cells:
        first = next((line for line in cell.source.splitlines() if line.strip()), "")
        wanted = f"# {first}" if cell.cell_type == "markdown" else first
        position = next((at for at in range(position, len(text)) if text[at] == wanted), position)
        found.append(position + 1)
        position += 1
    return found


def check_words(path: str | Path, notebook: NotebookNode, allowed: Mapping[str, str]) -> int:
    """Search prose and captions for typed numbers; return how many cells of prose there are.

    Raises
    ------
    InputError
        For the first: file, cell, line, number; or for a cell that is no Python.
    """
    prose = 0
    for number, (cell, first) in enumerate(zip(notebook.cells, lines(path, notebook), strict=True), start=1):
        if cell.cell_type != "code":
            prose += 1
            found = lint.bare_numbers(cell.source, allowed)
        else:
            try:
                strings = lint.written_strings(cell.source)
            except SyntaxError as error:
                where = f"cell {number}, line {first + (error.lineno or 1) - 1}"
                raise InputError(path, where, error.msg, "Python, without magics") from None
            found = [(line, digits) for line, text in strings for _, digits in lint.bare_numbers(text, allowed)]
        for line, digits in found:
            where = f"cell {number}, line {first + line - 1}"
            raise InputError(path, where, f"the bare number {digits}", "a value that a cell prints, or an allowed pattern with its reason")
    return prose


def execute(path: str | Path, notebook: NotebookNode, checkout: str | Path, declared: Iterable[str]) -> NotebookNode:
    """Run all cells.

    Parameters
    ----------
    path : str or Path
        The notebook's file, for messages.
    notebook : NotebookNode
        As :func:`read` has it.
    checkout : str or Path
        Working folder of the kernel.
    declared : iterable of str
        Files of the checkout that the notebook may read, see :func:`kvtier.publish.notebooks.confinement.confine`.

    Returns
    -------
    NotebookNode
        The same, with outputs.

    Raises
    ------
    InputError
        Naming the first cell that fails, writes to stderr, runs for longer than :data:`CELL_LIMIT_S`, or ends the kernel.
    """
    # A path of a socket has a limit, which a long TMPDIR can break.
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < LONGEST_SOCKET // 2 else "/tmp"
    with tempfile.TemporaryDirectory(prefix="kvtier-notebook-", dir=parent) as folder:
        room = Path(folder, "written")
        room.mkdir()
        guard = new_code_cell(
            f"from {confinement.__name__} import confine as _confine\n"
            f"_confine({str(checkout)!r}, {sorted(declared)!r}, {str(room)!r})\n"
            "del _confine"
        )
        guarded = NotebookNode({**notebook, "cells": [guard, *notebook.cells]})
        talk = {"transport": "ipc", "ip": str(Path(folder, "kernel")), "connection_file": str(Path(folder, "kernel.json"))}
        # In place of execution counts: a kernel that dies at once may have sent none. The guard is the cell before the first.
        started: list[int] = []
        client = NotebookClient(
            guarded,
            on_cell_execute=lambda cell, cell_index: started.append(cell_index),
            kernel_manager_class=Kernel,
            config=Config({"Kernel": talk}),
            timeout=CELL_LIMIT_S,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(checkout)}},
        )
        own = {
            name: str(Path(folder, name.lower()))
            for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        }
        environment = {**os.environ, **PINNED, **own, "TMPDIR": str(room), "MPLCONFIGDIR": str(room)}
        try:
            client.execute(env=environment, cwd=str(checkout))
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise _told(path, notebook, started[-1] if started else 0, error) from None
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stderr":
                said = output.text.strip().splitlines()[-1]
                raise InputError(path, f"cell {number}, line {lines(path, notebook)[number - 1]}", f"on stderr: {said}", "no warning")
    return notebook


def _told(path: str | Path, notebook: NotebookNode, number: int, error: Exception) -> InputError:
    """The cell that failed, by its number, in one line; the guard has 0."""
    if isinstance(error, CellExecutionError):
        said = f"{error.ename}: {error.evalue.strip().splitlines()[0] if error.evalue.strip() else 'no message'}"
    elif isinstance(error, CellTimeoutError):
        said = f"nothing after {CELL_LIMIT_S} s"
    else:
        said = "a kernel that died"
    where = f"cell {number}, line {lines(path, notebook)[number - 1]}" if number else "the guard before its first cell"
    return InputError(path, where, said, "a cell that runs")

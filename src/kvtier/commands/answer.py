"""How commands answer: tables for readers, JSON for programs, bad input in one line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from kvtier.errors import InputError

if TYPE_CHECKING:
    from kvtier.queries.checkout import Checkout
    from kvtier.terminal import Block

NOT_FOUND = 1
"""Exit code; also where an audit that must hold does not, or a file cannot be used. Click has 2 for a wrong call."""

INTERRUPTED = 130
"""Exit code of a run that was stopped from the keyboard."""


class Commands(click.Group):
    """A group whose commands tell bad input in one line and exit 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        for stream in (sys.stdout, sys.stderr):
            # A terminal that has no alpha shows a question mark; a stream that was closed is none.
            if stream is not None:
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except InputError as error:
            fail(str(error))


def fail(message: str) -> NoReturn:
    """Say why, on stderr, and exit 1."""
    click.echo(f"error: {message}", err=True)
    sys.exit(NOT_FOUND)


def warn(message: str) -> None:
    """Say on stderr what a reader of the answer should know."""
    click.echo(f"note: {message}", err=True)


def checkout() -> Checkout:
    """The checkout around the current folder."""
    from kvtier.queries.checkout import Checkout

    return Checkout.around(Path.cwd())


@contextmanager
def _printed() -> Iterator[None]:
    """Printing, to its end: a stream that is closed, or a disk that is full, is said here and not as the interpreter ends."""
    if sys.stdout is None:
        fail("stdout: output: found a closed stream, expected one that can be written")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has enough, which click knows to end quietly.
        raise
    except OSError as error:
        # What is left in the buffer would be tried once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"stdout: output: found {error.strerror}, expected room for the whole answer")


def show(*blocks: Block) -> None:
    """Print an answer."""
    from kvtier import terminal

    with _printed():
        terminal.show([block for block in blocks if block])


def show_json(answer: object) -> None:
    """Print an answer for programs."""
    with _printed():
        click.echo(json.dumps(answer, indent=1, ensure_ascii=False))


as_json = click.option("--json", "in_json", is_flag=True, help="Answer in JSON.")

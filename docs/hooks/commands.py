"""Reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

from kvtier.cli import main

WIDTH = 100
"""Of usage lines and choices [characters]."""


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command, click.Context]]:
    """A command and all below it, each with its whole name."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    yield name, command, context
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            if below is not None and not below.hidden:
                yield from walk(below, f"{name} {word}")


def prose(text: str) -> str:
    r"""Help as Markdown: paragraphs, and what follows a line of ``\b`` as code."""
    parts = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if part.startswith("\b"):
            head, _, code = part.removeprefix("\b").strip("\n").partition("\n")
            parts.append(f"{head}\n\n```sh\n{textwrap.dedent(code)}\n```" if head.endswith(":") else f"```text\n{part[1:].strip()}\n```")
        else:
            parts.append(re.sub(r"(?<![\w`])(--?[a-z][\w-]*)", r"`\1`", " ".join(part.split())))
    return "\n\n".join(parts)


def option(given: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    """What is written and what it means, as ``--help`` has them."""
    record = given.get_help_record(context)
    if record is None:
        return None
    written, meaning = (" ".join(part.split()) for part in record)
    # Brackets would be taken for references.
    return f"`{written}`".replace("|", r"\|"), re.sub(r"([|\[\]])", r"\\\1", meaning)


def page() -> str:
    """Every command with usage, help and options."""
    lines = []
    for name, command, context in walk(main, "kvtier"):
        lines += [f"{'#' * min(2 + name.count(' '), 3)} `{name}`", "", f"```text\n{command.get_usage(context)}\n```", ""]
        lines += [prose(command.help or ""), ""]
        rows = [row for given in command.get_params(context) if (row := option(given, context))]
        lines += ["| option | meaning |", "|---|---|", *(f"| {written} | {meaning} |" for written, meaning in rows), ""]
    return "\n".join(lines)

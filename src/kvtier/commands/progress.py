"""How far a run has come: bars on a terminal, lines elsewhere. Nothing is drawn while a part is timing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

REDRAWN_S = 0.2
SAID_S = 10.0
"""Least time between two lines of one part [s]."""


def minutes(seconds: float) -> str:
    """A time in words."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


class Lines:
    """A line when a part starts, every ten seconds, and when it ends."""

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.now = stream or sys.stderr, now
        self.started = self.said_at = 0.0

    def _say(self, line: str) -> None:
        self.said_at = self.now()
        print(line, file=self.stream, flush=True)

    def starts(self, part: str, seconds: float) -> None:
        """A part starts."""
        self.started = self.now()
        self._say(f"{part}: starts, about {minutes(seconds)}")

    def at(self, part: str, says: str, share: float) -> None:
        """A part has come so far."""
        if self.now() - self.said_at >= SAID_S:
            self._say(f"{part}: {share:.0%}, {says}")

    def ends(self, part: str, state: str, said: str) -> None:
        """A part has ended."""
        self._say(f"{part}: {state} after {minutes(self.now() - self.started)}: {said}")

    def close(self) -> None:
        """Nothing is open."""


class Bars:
    """A bar a part."""

    def __init__(self, stream: TextIO | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        # Without a thread that redraws: it would run while something is timed.
        self.bars = Progress(
            TextColumn("{task.fields[part]:<13}"),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(file=stream or sys.stderr, highlight=False),
            auto_refresh=False,
        )
        self.bars.start()
        self.task = None
        self.drawn_at = 0.0

    def starts(self, part: str, seconds: float) -> None:
        """A part starts."""
        self.task = self.bars.add_task(f"about {minutes(seconds)}", total=1.0, part=part)
        self.bars.refresh()

    def at(self, part: str, says: str, share: float) -> None:
        """A part has come so far."""
        self.bars.update(self.task, completed=share, description=says)
        if time.monotonic() - self.drawn_at >= REDRAWN_S:
            self.drawn_at = time.monotonic()
            self.bars.refresh()

    def ends(self, part: str, state: str, said: str) -> None:
        """A part has ended."""
        completed = {"completed": 1.0} if state == "complete" else {}
        self.bars.update(self.task, description=f"{state}: {said}", **completed)
        self.bars.stop_task(self.task)
        self.bars.refresh()

    def close(self) -> None:
        """Leave the bars as they stand."""
        self.bars.stop()


def watcher(quiet: bool = False) -> Lines | Bars:
    """Bars if stderr is a terminal."""
    return Bars() if sys.stderr.isatty() and not quiet else Lines()

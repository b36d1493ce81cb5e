"""What a part of the kit is: it says what it would cost, runs, and hands raw rows over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

if TYPE_CHECKING:
    from kvtier.audit.physical_bound import Checked
    from kvtier.kit.machine import Machine


@dataclass(frozen=True)
class Step:
    """One line of a plan.

    Parameters
    ----------
    says : str
        What is timed, in a few words.
    seconds : float
        Expected time [s].
    memory_bytes : int
        Most memory in use at a time [B]; steps follow one another, so the largest of a plan counts.
    device_bytes : int
        The same on the accelerator [B].
    disk_bytes : int
        File space in use [B].
    """

    says: str
    seconds: float
    memory_bytes: int = 0
    device_bytes: int = 0
    disk_bytes: int = 0


@dataclass
class Outcome:
    """What a part brought.

    Parameters
    ----------
    tables : mapping of str to polars.DataFrame
        Raw rows by the name of their file, columns as in :data:`kvtier.measure.kept.TABLES`.
    about : mapping
        For the platform record, under the part's name: settings, what was really resident, what was left out and why.
    checked : list of Checked
        Guards that held, each with value and bound. A guard that does not hold raises, and there is no outcome.
    """

    tables: Mapping[str, pl.DataFrame]
    about: Mapping[str, Any]
    checked: list[Checked] = field(default_factory=list)


Progress = Callable[[str, float], None]
"""Called with what is under way and the share of the part that is done, from 0 to 1. Sensors are read when it is called."""


class Part(Protocol):
    """A part of the kit, made with its settings."""

    name: str

    def plan(self, machine: Machine) -> list[Step]:
        """What :meth:`run` would do, without doing it.

        Raises
        ------
        InputError
            If the settings cannot be used on the machine.
        """
        ...

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """Measure.

        Raises
        ------
        InputError
            If a guard does not hold; nothing is kept then.
        """
        ...

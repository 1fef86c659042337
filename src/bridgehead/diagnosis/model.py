"""The records of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from bridgehead.catalog import Listing

Progress = Callable[[int, int, tuple[str, ...]], None]
"""Told how many backends are done, of how many, and which are being tried now."""


class Level(StrEnum):
    """How bad it is."""

    WELL = "ok"
    WARNING = "warning"
    """It works, and is probably not what was meant, or not safe."""
    PROBLEM = "problem"
    """Something that was asked for does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: What it is about: `configuration`, `state`, `port`, `program node`, `backend git`, `group work`, …
        message: What was found, in one sentence.
        mend: What mends it, as the rest of a sentence that begins with `hint:`; None where nothing has to be.
    """

    level: Level
    about: str
    message: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """The harmless request that was made of a backend after it had listed what it offers.

    Attributes:
        tool: The tool that was called, by its original name; None where none could be called safely, so that listing was all.
        ok: Whether it answered, and did not call it a failure.
        answered: Whether it answered at all.
        cause: What it or the bridge says where it is not ok.
    """

    tool: str | None
    ok: bool = True
    answered: bool = True
    seconds: float = 0.0
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What trying one backend showed.

    Attributes:
        seconds: From the start of the process or connection to the complete listing.
        tools: The tools' original names.
        stderr: The last lines it wrote to standard error.
        trial: What was asked of it besides; None where it was not tried.
        listing: All that it offers; None where it did not come up.
    """

    name: str
    ok: bool
    cause: str | None
    seconds: float
    protocol: str | None = None
    server: str | None = None
    tools: tuple[str, ...] = ()
    resources: int = 0
    prompts: int = 0
    stderr: tuple[str, ...] = ()
    trial: Trial | None = None
    listing: Listing | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The probe as JSON values, without the listing."""
        shown = {key: getattr(self, key) for key in self.__slots__ if key not in {"trial", "listing"}}
        return {**shown, "trial": asdict(self.trial) if self.trial is not None else None}


@dataclass(frozen=True, slots=True)
class Program:
    """A runtime that backends need.

    Attributes:
        path: Where it is, or None where it was not found.
        version: What it says of itself, or None where it does not say.
        needed_by: The backends.
    """

    name: str
    path: str | None
    version: str | None
    needed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found, in the order in which it was looked at."""

    findings: tuple[Finding, ...]
    probes: tuple[Probe, ...] = ()
    programs: tuple[Program, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no problem; warnings are allowed."""
        return self.count(Level.PROBLEM) == 0

    def count(self, level: Level) -> int:
        """How many findings are of that level."""
        return sum(finding.level is level for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """`ok`, `problems` and `warnings` (how many), `findings`, `backends` and `programs`, as JSON values."""
        return {
            "ok": self.ok,
            "problems": self.count(Level.PROBLEM),
            "warnings": self.count(Level.WARNING),
            "findings": [asdict(finding) for finding in self.findings],
            "backends": [probe.as_dict() for probe in self.probes],
            "programs": [asdict(program) for program in self.programs],
        }

"""Which processes belong together, as `/proc` tells it.

A server may start others, and those may leave its process group and outlive it. They are found by the group and session they
are in, by who started them, and by a mark in the environment that every child is given and hands on. Where there is no
`/proc`, nothing is known of other processes but their start.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK_VARIABLE = "BRIDGEHEAD_CHILD"
"""Set for every child, to a text of its own; whoever has it in its environment was started by that child or is it."""

_PROC = Path("/proc")
KNOWS_KIN = (_PROC / "self" / "stat").exists()
"""Whether the system tells which processes there are (Linux)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A process at one moment.

    Attributes:
        state: The letter of its state; `Z` has ended and waits for its parent to take note.
        started: Clock ticks from the start of the machine to its own; with the number it names a process for good.
    """

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.state not in "ZX"


def look(pid: int) -> Seen | None:
    """What the system says of a process; None where there is none of that number."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except (OSError, ValueError):
        return None
    # The second field is the program's name in brackets, and may hold anything (proc_pid_stat(5)).
    fields = stat.rpartition(")")[2].split()
    return Seen(pid, fields[0], *(int(fields[at]) for at in (1, 2, 3, 19)))


def started_at(pid: int) -> str | None:
    """When a process started, in whatever form the system has it; None where it does not run."""
    if KNOWS_KIN:
        seen = look(pid)
        return str(seen.started) if seen is not None and seen.is_alive else None
    if os.name != "posix":
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        return shown.stdout.strip() or None
    return None


def boot() -> str:
    """What tells one run of the machine from the next; empty where starts are dates anyway."""
    with suppress(OSError):
        return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text(encoding="ascii").strip()
    return ""


def kin_of(mark: str, leader: int | None) -> list[Seen]:
    """The living processes that belong to a child, itself included.

    Args:
        mark: The child's mark.
        leader: Its number, if that is surely still its own or nobody's; else None, and only the mark counts.
    """
    everyone = _everyone()
    kin = {
        pid: seen
        for pid, seen in everyone.items()
        if (leader is not None and leader in (pid, seen.group, seen.session)) or _is_marked(pid, mark)
    }
    growing = True
    while growing:
        more = {pid: seen for pid, seen in everyone.items() if seen.parent in kin and pid not in kin}
        kin |= more
        growing = bool(more)
    kin.pop(os.getpid(), None)
    return [seen for seen in kin.values() if seen.is_alive]


def ended_strays(known: frozenset[int]) -> list[int]:
    """Adopted children of this process that have ended, in sessions of others, so that nobody waits for them."""
    own = os.getsid(0)
    found: list[int] = []
    for pid in _children():
        seen = look(pid) if pid not in known else None
        if seen is not None and not seen.is_alive and seen.session != own:
            found.append(pid)
    return found


def _children() -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in (_PROC / "self" / "task").iterdir():
            with suppress(OSError):
                found.extend(map(int, (task / "children").read_text(encoding="ascii").split()))
    return found


def _everyone() -> dict[int, Seen]:
    everyone: dict[int, Seen] = {}
    with suppress(OSError):
        for entry in os.scandir(_PROC):
            seen = look(int(entry.name)) if entry.name.isdecimal() else None
            if seen is not None:
                everyone[seen.pid] = seen
    return everyone


def _is_marked(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK_VARIABLE}={mark}".encode() in environment.split(b"\0")

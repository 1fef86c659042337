"""Which children a bridge has, on disk, so that the next bridge can end what a killed one left behind.

One small file a child. The number of a process is given out again after its end, so the file also holds when the process
started and under which run of the machine: a process that is merely numbered the same is left alone.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bridgehead.backends.mcp.kin import KNOWS_KIN, Seen, boot, kin_of, look, started_at


@dataclass(frozen=True, slots=True)
class Record:
    """A child and the bridge that it belongs to.

    Attributes:
        started: When it started, as `started_at` has it.
        boot: The run of the machine.
        mark: What it and its own children have in their environment.
        owner: The number of the bridge's process.
        owner_started: When that started.
    """

    backend: str
    pid: int
    started: str
    boot: str
    mark: str
    owner: int
    owner_started: str

    @property
    def is_orphaned(self) -> bool:
        """Whether its bridge is gone, but not the run of the machine that it may still run in."""
        return self.boot == boot() and started_at(self.owner) != self.owner_started

    @property
    def is_from_before(self) -> bool:
        """Whether the machine was started anew since, so that nothing of it can run."""
        return self.boot != boot()

    def left(self) -> list[Seen]:
        """What runs of it still."""
        if KNOWS_KIN:
            now = look(self.pid)
            return kin_of(self.mark, self.pid if now is None or str(now.started) == self.started else None)
        if started_at(self.pid) == self.started:
            return [Seen(self.pid, "R", 0, self.pid, self.pid, 0)]
        return []


def keep(directory: Path, record: Record) -> Path:
    """Write the record; the file's path.

    Raises:
        OSError: It cannot be written.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{record.mark}.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(record)), encoding="utf-8")
    new.replace(path)
    return path


def kept(directory: Path) -> dict[Path, Record]:
    """All records of all bridges; a file that is none is removed."""
    found: dict[Path, Record] = {}
    for path in sorted(directory.glob("*.json")):
        try:
            found[path] = Record(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            with suppress(OSError):
                path.unlink()
    return found


def owner() -> tuple[int, str]:
    """This process, and when it started."""
    pid = os.getpid()
    return pid, started_at(pid) or ""

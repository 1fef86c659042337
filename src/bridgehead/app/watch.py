"""Tells when a file has changed, whatever stands on the way to it: links, and directories that come and go.

Directories are watched and not the file, because editors write another file and rename it over the first. The operating
system's news of a directory only says that it is worth looking; what counts is what `stat` shows. It is looked at every two
seconds besides, for file systems that bring no news, such as those over a network.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.to_thread
import structlog
import watchfiles

log = structlog.get_logger(__name__)

POLL_S = 2.0
SETTLE_S = 0.1
"""How long a file has to stay as it is before it counts as written."""
_STEP_MS = 50
_LONGEST_BATCH_MS = 100
_MOST_LINKS = 40
"""As many as Linux follows before it takes them for a loop."""

Look = tuple[object, ...]
"""What `stat` shows; another look means that there is something to read."""
Places = Callable[[], Sequence[Path]]
"""The paths that matter now, absolute."""


def look(paths: Sequence[Path]) -> Look:
    """How the files at the end of these paths are now; a path that leads nowhere looks like nothing else."""
    return tuple(_look_at(path) for path in paths)


def _look_at(path: Path) -> object:
    try:
        found = path.stat()
    except OSError as error:
        return (str(path), error.errno)
    return (str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def directories(path: Path) -> frozenset[tuple[Path, int]]:
    """The directories in which a change can make the path lead elsewhere, each with its inode number.

    That of the file, and that of every link on the way; where the way ends before the file, the last directory that is there.
    """
    found: set[Path] = set()
    at, parts, links = Path(path.anchor), deque(path.parts[1:]), 0
    while parts:
        part = parts.popleft()
        if part == "..":
            at = at.parent
            continue
        step = at / part
        if step.is_symlink() and links < _MOST_LINKS:
            links += 1
            found.add(at)
            target = step.readlink()
            at = Path(target.anchor) if target.is_absolute() else at
            parts.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
        elif not parts or not step.is_dir():
            found.add(at)
            break
        else:
            at = step
    return frozenset((directory, number) for directory in found if (number := _inode(directory)) is not None)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


class Watch:
    """Calls for another look at some places; one call at a time."""

    def __init__(self, places: Places, seen: Look) -> None:
        """Watch `places`, which looked like `seen` when they were read."""
        self._places = places
        self._seen = seen
        self._stirred = anyio.Event()

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Await `changed` after each change that has settled, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear)
            while True:
                now = await self._look()
                if now == self._seen:
                    with anyio.move_on_after(POLL_S):
                        await self._stirred.wait()
                    self._stirred = anyio.Event()
                    continue
                self._seen = await self._settled(now)
                await changed()

    async def _settled(self, now: Look) -> Look:
        """What the places look like once they have stopped changing."""
        while True:
            before = now
            await anyio.sleep(SETTLE_S)
            now = await self._look()
            if now == before:
                return now

    async def _look(self) -> Look:
        # In a thread: a network file system may not answer for long.
        return await anyio.to_thread.run_sync(look, self._places())

    async def _hear(self) -> None:
        """Stir whenever the operating system has news of a directory on the way, and say so where it cannot tell any."""
        deaf = False
        while True:
            try:
                await self._hear_until_they_move()
                deaf = False
            except* (OSError, RuntimeError) as group:
                # Too many watches on this machine, a file system that has none, or a directory that has just gone.
                if not deaf:
                    cause = str(group.exceptions[0])
                    log.warning("the configuration cannot be watched; it is looked at now and then", cause=cause)
                deaf = True
                await anyio.sleep(POLL_S)

    async def _hear_until_they_move(self) -> None:
        """Listen to the directories as they are now, until they are others."""
        paths = await self._directories()
        if not paths:
            await anyio.sleep(POLL_S)
            return
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._notice_moves, paths, stop)
            # It runs once the directories are watched, and so finds what happened before they were.
            tasks.start_soon(self._stir)
            news = watchfiles.awatch(  # pyright: ignore[reportUnknownMemberType]  the event of a loop that is not installed
                *sorted({path for path, _ in paths}),
                watch_filter=None,
                debounce=_LONGEST_BATCH_MS,
                step=_STEP_MS,
                recursive=False,
                stop_event=stop,
            )
            async with aclosing(news):
                async for _ in news:
                    self._stirred.set()
                    if await self._directories() != paths:
                        break
            tasks.cancel_scope.cancel()

    async def _notice_moves(self, paths: frozenset[tuple[Path, int]], stop: anyio.Event) -> None:
        """End the listening when the directories are others, of which no news may have come, or when it is cancelled."""
        try:
            while await self._directories() == paths:  # noqa: ASYNC110 – it is because nobody may tell
                await anyio.sleep(POLL_S)
        finally:
            # The thread that listens cannot be cancelled; it looks at this in its every step.
            stop.set()

    async def _stir(self) -> None:
        self._stirred.set()

    async def _directories(self) -> frozenset[tuple[Path, int]]:
        places = self._places()
        return await anyio.to_thread.run_sync(
            lambda: frozenset[tuple[Path, int]]().union(*(directories(path) for path in places))
        )

"""When a configuration file counts as changed: real files, links and directories."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bridgehead.app import watch
from bridgehead.app.watch import Watch, directories, look

pytestmark = pytest.mark.anyio


class Seen:
    """What a watch told, each time with what the file held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.texts: list[str | None] = []
        self._told = anyio.Event()

    async def changed(self) -> None:
        self.texts.append(self._path.read_text() if self._path.exists() else None)
        self._told.set()

    async def next(self, within_s: float = 1.5) -> str | None:
        """What the file held when the next change had settled."""
        with anyio.fail_after(within_s):
            await self._told.wait()
        self._told = anyio.Event()
        return self.texts[-1]


class Unheard(Watch):
    """On a file system that brings no news."""

    async def _hear(self) -> None:
        await anyio.sleep_forever()


@asynccontextmanager
async def watching(
    path: Path, kind: Callable[[Callable[[], Sequence[Path]], watch.Look], Watch] = Watch
) -> AsyncGenerator[Seen]:
    seen = Seen(path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kind(lambda: [path], look([path])).run, seen.changed)
        # Until the operating system listens; what happens before that is found a little later.
        await anyio.sleep(0.2)
        yield seen
        tasks.cancel_scope.cancel()


def replace(path: Path, text: str) -> None:
    """As careful editors save: another file, renamed over the first."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text)
    draft.replace(path)


async def test_a_file_that_is_written_replaced_removed_and_made_again_is_noticed_each_time(tmp_path: Path) -> None:
    path = tmp_path / "bridgehead.toml"
    path.write_text("one")
    async with watching(path) as seen:
        path.write_text("two")
        assert await seen.next() == "two"
        replace(path, "three")
        assert await seen.next() == "three"
        path.unlink()
        assert await seen.next() is None
        path.write_text("four")
        assert await seen.next() == "four"
        # Saved as vim does: the old file is moved away first.
        path.rename(tmp_path / "bridgehead.toml~")
        path.write_text("five")
        assert await seen.next() == "five"
    assert seen.texts == ["two", "three", None, "four", "five"]


async def test_a_file_of_the_same_size_and_age_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "bridgehead.toml"
    path.write_text("one")
    then = path.stat()
    async with watching(path) as seen:
        draft = tmp_path / "draft"
        draft.write_text("two")
        os.utime(draft, ns=(then.st_atime_ns, then.st_mtime_ns))
        draft.replace(path)
        assert await seen.next() == "two"


async def test_other_files_beside_it_are_no_change(tmp_path: Path) -> None:
    path = tmp_path / "bridgehead.toml"
    path.write_text("one")
    async with watching(path) as seen:
        for number in range(20):
            (tmp_path / f"other-{number}").write_text("noise")
            await anyio.sleep(0.02)
        path.write_text("two")
        assert await seen.next() == "two"
    assert seen.texts == ["two"]


async def test_a_file_is_read_once_it_has_settled_and_not_between_two_writes(tmp_path: Path) -> None:
    path = tmp_path / "bridgehead.toml"
    path.write_text("one")
    async with watching(path) as seen:
        for number in range(20):
            path.write_text("")
            await anyio.sleep(0.03)
            path.write_text(f"whole {number}")
            await anyio.sleep(0.03)
        assert await seen.next() == "whole 19"
    assert seen.texts == ["whole 19"]


async def test_a_link_that_is_turned_elsewhere_is_noticed_wherever_it_stands_on_the_way(tmp_path: Path) -> None:
    """As Kubernetes mounts a configuration: file → `..data/file`, and `..data` is the link that is replaced."""
    for version in ("v1", "v2", "v3"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "bridgehead.toml").write_text(version)
    mount = tmp_path / "mount"
    mount.mkdir()
    (mount / "..data").symlink_to("../v1")
    (mount / "bridgehead.toml").symlink_to("..data/bridgehead.toml")
    async with watching(mount / "bridgehead.toml") as seen:
        for version in ("v2", "v3"):
            (mount / "..new").symlink_to(f"../{version}")
            (mount / "..new").replace(mount / "..data")
            assert await seen.next() == version
        (tmp_path / "v3" / "bridgehead.toml").write_text("written at the far end")
        assert await seen.next() == "written at the far end"


async def test_a_file_is_noticed_although_its_directory_was_not_there_yet_or_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config" / "bridgehead" / "bridgehead.toml"
    async with watching(path) as seen:
        path.parent.mkdir(parents=True)
        path.write_text("here")
        assert await seen.next() == "here"
        (tmp_path / "config").rename(tmp_path / "old")
        path.parent.mkdir(parents=True)
        path.write_text("another")
        assert await seen.next(4) == "another"
        path.write_text("and on")
        assert await seen.next(4) == "and on"


async def test_where_no_news_comes_the_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_S", 0.2)
    path = tmp_path / "bridgehead.toml"
    path.write_text("one")
    async with watching(path, Unheard) as seen:
        path.write_text("two")
        assert await seen.next() == "two"


async def test_a_change_before_the_watch_began_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "bridgehead.toml"
    path.write_text("one")
    before = look([path])
    path.write_text("two!")
    seen = Seen(path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Watch(lambda: [path], before).run, seen.changed)
        assert await seen.next() == "two!"
        tasks.cancel_scope.cancel()


async def test_a_watch_that_is_cancelled_ends_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(1):
        async with watching(tmp_path / "bridgehead.toml"):
            pass


def test_a_loop_of_links_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert {path for path, _ in directories(tmp_path / "a")} >= {tmp_path}
    assert look([tmp_path / "a"]) == look([tmp_path / "a"])

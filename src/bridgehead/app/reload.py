"""Keeps a running bridge to its configuration file: reads it again when it changes, and puts it in force whole or not at all.

A file that cannot be used changes nothing: what was in force stays so, and the status says why. What can change while the
bridge runs is said here; every other key is named as needing a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import structlog

from bridgehead.app.bridge import Bridge
from bridgehead.app.fleet import Change
from bridgehead.app.launches import Plan
from bridgehead.app.watch import Watch, look
from bridgehead.config import ConfigStatus, LimitSettings, ServerSettings, Settings, load, search_order
from bridgehead.core.errors import BridgeError, ConfigInvalid

log = structlog.get_logger(__name__)

_APPLIED_AT_ONCE = frozenset(
    {
        *(f"server.{key}" for key in ("allowed_hosts", "allowed_origins", "log_level", "max_body_bytes", "ungrouped")),
        *(f"server.{key}" for key in ("secret_store", "shutdown_grace_s")),
        *(f"limits.{key}" for key in ("backend_concurrency", "calls_per_minute", "identical_failures")),
        *(f"limits.{key}" for key in ("identical_failures_window_s", "result_bytes")),
        "backends",
        "groups",
    }
)
"""Keys of the configuration that can change while the bridge runs."""

Apply = Callable[[Settings], None]
"""Puts some of the settings in force, on the loop and without a pause."""


_TRIES = 20
"""How often a file is read that changes while it is read."""


class _Reading(NamedTuple):
    settings: Settings
    plan: Plan


class Reloading:
    """The configuration in force, and the way to another."""

    def __init__(self, bridge: Bridge, environ: Mapping[str, str], apply: Apply) -> None:
        """Go on from what the bridge was started with.

        Args:
            bridge: The bridge.
            environ: The environment, as at the start.
            apply: Puts in force what the bridge itself does not know of.
        """
        self._bridge = bridge
        self._environ = environ
        self._apply = apply
        self._at_start = bridge.settings
        self._directory = _working_directory()
        self._one_at_a_time = anyio.Lock()
        self._status = ConfigStatus(self._source, bridge.clock.now())

    @property
    def status(self) -> ConfigStatus:
        """What is in force, and what keeps the file from being so."""
        return self._status

    async def run(self) -> None:
        """Follow the file until cancelled."""
        seen = await anyio.to_thread.run_sync(look, self._places())
        # The file may have changed since it was read for the start. If it has not, nothing is looked up again.
        if not await anyio.to_thread.run_sync(self._is_as_in_force):
            await self.reload()
        await Watch(self._places, seen).run(self.reload)

    async def reload(self) -> None:
        """Read the configuration now, and put it in force if it can be used. Secrets are looked up again."""
        async with self._one_at_a_time:
            try:
                self._put_in_force(await anyio.to_thread.run_sync(self._read))
            except BridgeError as error:
                self._refuse(error.sentence())
            except Exception:
                # Where secrets are kept is another's code, and may fail in any way. None of it is to end the bridge.
                log.exception("reading the configuration failed in a way that nobody foresaw")
                self._refuse("The configuration could not be read for a reason that nobody foresaw; the log has it.")

    def _is_as_in_force(self) -> bool:
        try:
            return self._load() == self._bridge.settings
        except BridgeError:
            return False

    @property
    def _source(self) -> Path | None:
        """The file in force, wherever the process has gone meanwhile."""
        source = self._bridge.settings.source
        return self._directory / source if source is not None else None

    def _places(self) -> Sequence[Path]:
        """The file in force; where there is none, the places where one would be found."""
        source = self._source
        return [source] if source is not None else [self._directory / path for path in search_order(self._environ)]

    def _read(self) -> _Reading:
        """Read and check everything, in a thread.

        Raises:
            ConfigInvalid: The file cannot be used as it is now.
        """
        places = self._places()
        for _ in range(_TRIES):
            looked = look(places)
            try:
                reading = self._read_once()
            except BridgeError:
                if look(places) == looked:
                    raise
            else:
                if look(places) == looked:
                    return reading
        raise ConfigInvalid(
            "The configuration keeps changing while it is read.", hint="let whatever writes it come to an end."
        )

    def _read_once(self) -> _Reading:
        source = self._source
        if source is not None and source.name in self._bridge.settings.origins.values() and _is_blank(source):
            # More likely caught between being emptied and being written than meant.
            raise ConfigInvalid(
                f"{source} is empty, which it was not before.",
                hint="write it again; if nothing is to be configured, a comment in it will do.",
            )
        settings = self._load()
        return _Reading(settings, self._bridge.plan(settings))

    def _load(self) -> Settings:
        settings = load(self._source, self._environ)
        pinned = self._at_start.pinned
        server = {key: value for key, value in self._at_start.server if f"server.{key}" in pinned}
        kept = {
            "server": settings.server.model_copy(update=server),
            "pinned": pinned,
            # Whatever was named stays named as it was.
            "source": self._bridge.settings.source or settings.source,
        }
        return settings.model_copy(update=kept)

    def _put_in_force(self, reading: _Reading) -> None:
        before, settings = self._bridge.settings, reading.settings
        # The log level first: the gate asks it once, when it changes.
        self._apply(settings)
        change = self._bridge.change(settings, reading.plan)
        status = self._status
        needs_restart = tuple(self._needing_restart(settings))
        self._status = ConfigStatus(self._source, self._bridge.clock.now(), needs_restart=needs_restart)
        if needs_restart and needs_restart != status.needs_restart:
            log.warning("these keys take a restart of the bridge", keys=list(needs_restart))
        for warning in settings.warnings:
            if warning not in before.warnings:
                log.warning("configuration", warning=warning)
        if settings != before or status.error is not None or _news(change):
            log.info("the configuration is in force", source=str(self._source), **_news(change))

    def _refuse(self, sentence: str) -> None:
        if sentence == self._status.error:
            return
        since = self._status.error_since or self._bridge.clock.now()
        self._status = replace(self._status, error=sentence, error_since=since)
        log.error("the configuration cannot be used; the last good one stays in force", cause=sentence)

    def _needing_restart(self, settings: Settings) -> Iterator[str]:
        """The dotted keys that are not as at the start, and stay so until the next."""
        for key, then, now in _compared(self._at_start, settings):
            if then != now and key not in _APPLIED_AT_ONCE:
                yield key


def _news(change: Change) -> dict[str, list[str]]:
    said = {
        "started": change.started,
        "restarted": change.restarted,
        "adjusted": change.adjusted,
        "ended": change.ended,
    }
    return {what: list(names) for what, names in said.items() if names}


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        # It has gone already, so nothing is to be found in it.
        return Path(Path.home().anchor)


def _is_blank(file: Path) -> bool:
    """Whether the file is there and holds nothing."""
    try:
        return not file.read_bytes().strip()
    except OSError:
        # Whoever loads it says why better.
        return False


def _compared(then: Settings, now: Settings) -> Iterator[tuple[str, object, object]]:
    """Every key of `server` and `limits`, and every other section as a whole, in both."""
    for section in Settings.model_fields:
        if Settings.model_fields[section].exclude:
            continue
        one, other = getattr(then, section), getattr(now, section)
        if isinstance(one, ServerSettings | LimitSettings):
            for key in type(one).model_fields:
                yield f"{section}.{key}", getattr(one, key), getattr(other, key)
        else:
            yield section, one, other

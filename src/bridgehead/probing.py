"""Starts single backends to see how they are, each as a bridge of its own would, and ends them again.

Nothing here touches a running bridge or its state: what a backend lists is kept in a directory that is gone afterwards. Calls
pass the gate, as all calls do.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from bridgehead.app import Bridge, Vault, running
from bridgehead.catalog import State, discreet
from bridgehead.config import Concealment, Settings
from bridgehead.core import BridgeError, Call, CallId, Clock, Method, Outcome, Silence, SystemClock, as_mapping, new_id
from bridgehead.core.errors import ArgumentsInvalid, BackendNotFound
from bridgehead.core.logs import configure_logs
from bridgehead.diagnosis import Probe, Progress, Trial, harmless_tools
from bridgehead.identity import LOCAL_OWNER

AT_ONCE = 8
"""How many backends are tried at a time."""
_TRIAL_S = 10.0
_MOST_TRIALS = 3
"""How many tools are tried where one refuses to go without arguments although its schema does not say so."""
_CAUSE_LENGTH = 300


def probe(settings: Settings, state_dir: Path, name: str, *, told: Progress | None = None) -> Probe:
    """Start one backend as `probe_each` does.

    Raises:
        BackendNotFound: There is no backend of that name.
    """
    if name not in settings.backends:
        known = ", ".join(settings.backends) or "none"
        raise BackendNotFound(f"No backend {name!r} is configured.", hint=f"configured are: {known}.")
    return probe_each(settings, state_dir, [name], told=told)[0]


def probe_each(
    settings: Settings, state_dir: Path, names: Sequence[str], *, told: Progress | None = None
) -> list[Probe]:
    """Start each backend, list it, ask something harmless of it, and end it again; `AT_ONCE` at a time, in the order given.

    Args:
        settings: The configuration, which has all of them.
        state_dir: Where secrets are read, and the scratch directory is made, if it is there; a bridge that serves from it
            is not touched.
        names: The backends.
        told: Told how far it is.
    """
    vault = Vault(state_dir, Concealment())
    configure_logs("critical", conceal=vault.conceal)
    return anyio.run(try_each, settings, vault, names, told, backend_options={"use_uvloop": os.name != "nt"})


async def try_each(settings: Settings, vault: Vault, names: Sequence[str], told: Progress | None) -> list[Probe]:
    """As `probe_each`, on a loop that runs already."""
    done: dict[str, Probe] = {}
    trying: dict[str, None] = {}
    places = anyio.Semaphore(AT_ONCE)

    def tell() -> None:
        if told is not None:
            told(len(done), len(names), tuple(trying))

    async def one(number: int, name: str, scratch: Path) -> None:
        async with places:
            trying[name] = None
            tell()
            done[name] = await _probe(settings, name, vault, scratch / str(number))
            del trying[name]
            tell()

    place = vault.state_dir if os.access(vault.state_dir, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="probe-", dir=place) as scratch:
        async with anyio.create_task_group() as tasks:
            for number, name in enumerate(names):
                tasks.start_soon(one, number, name, Path(scratch))
    return [done[name] for name in names]


async def _probe(settings: Settings, name: str, vault: Vault, scratch: Path) -> Probe:
    backend = settings.backends[name]
    # Groups are left out, so that a backend can be tried whatever is switched on.
    server = settings.server.model_copy(update={"ungrouped": "show"})
    alone = settings.model_copy(update={"backends": {name: backend}, "groups": {}, "server": server})
    clock: Clock = SystemClock()
    began = clock.monotonic()
    async with running(alone, scratch, os.environ, vault=vault) as bridge:
        with anyio.move_on_after(backend.start_timeout_s + 5):
            while bridge.catalog.statuses[name].state is State.STARTING:  # noqa: ASYNC110 – statuses are not announced
                await anyio.sleep(0.02)
        seconds = clock.monotonic() - began
        status = bridge.backends[name].status if name in bridge.backends else bridge.catalog.statuses[name]
        status = discreet(status, vault.conceal)
        ok = status.state is State.READY
        listing = bridge.catalog.snapshot.listings.get(name) if ok else None
        return Probe(
            name=name,
            ok=ok,
            cause=status.cause,
            seconds=seconds,
            protocol=status.protocol,
            server=status.server,
            tools=tuple(str(tool["name"]) for tool in listing.tools) if listing is not None else (),
            resources=len(listing.resources) + len(listing.templates) if listing is not None else 0,
            prompts=len(listing.prompts) if listing is not None else 0,
            stderr=status.stderr,
            trial=await _try(bridge, name, clock, vault.conceal) if ok else None,
            listing=listing,
        )


async def _try(bridge: Bridge, name: str, clock: Clock, conceal: Concealment) -> Trial:
    """Call one tool that is harmless by its own word, where there is one."""
    for entry in harmless_tools(bridge.catalog.snapshot, name)[:_MOST_TRIALS]:
        call = Call(
            id=CallId(new_id("call")),
            caller=LOCAL_OWNER,
            method=Method.TOOL,
            target=entry.exposed,
            arguments={},
            channel=Silence(),
            surface="doctor",
        )
        began = clock.monotonic()
        try:
            with anyio.fail_after(_TRIAL_S):
                outcome = await bridge.gate.run(call)
        except ArgumentsInvalid:
            continue
        except BridgeError as error:
            return Trial(entry.name, ok=False, answered=False, seconds=clock.monotonic() - began, cause=error.message)
        except TimeoutError:
            return Trial(
                entry.name, ok=False, answered=False, seconds=_TRIAL_S, cause=f"no answer within {_TRIAL_S:g} s."
            )
        cause = _said(outcome, conceal) if outcome.is_error else None
        return Trial(entry.name, ok=not outcome.is_error, seconds=clock.monotonic() - began, cause=cause)
    return Trial(None)


def _said(outcome: Outcome, conceal: Concealment) -> str:
    """The first text of a failure, without the values of secrets that the server was given."""
    content: Any = outcome.result.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [as_mapping(block).get("text") for block in blocks]
    text = next((text for text in texts if isinstance(text, str)), "it does not say why.")
    text = " ".join(conceal(text).split())
    return text if len(text) <= _CAUSE_LENGTH else f"{text[: _CAUSE_LENGTH - 1]}…"

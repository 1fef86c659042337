"""The order in which things are looked at, and what is made of a backend that was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bridgehead.config import (
    Concealment,
    LaunchInvalid,
    NoSecrets,
    Report,
    ResolvedBackend,
    SecretReader,
    Settings,
    check,
    load,
    resolve,
)
from bridgehead.core.errors import BackendNotFound, ConfigInvalid
from bridgehead.diagnosis.address import RunningBridge, bridge_findings, port_findings, running_bridge
from bridgehead.diagnosis.files import configuration_findings, state_findings
from bridgehead.diagnosis.model import Diagnosis, Finding, Level, Probe
from bridgehead.diagnosis.names import name_findings
from bridgehead.diagnosis.programs import interpreter_findings, program_findings, programs_needed

Prober = Callable[[Settings, Sequence[str]], Sequence[Probe]]
"""Starts each of these backends by itself, lists it, asks something harmless of it and ends it; in the order given."""

Keeper = Callable[[Settings], SecretReader]
"""The store of secrets that this configuration means."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to look at.

    Attributes:
        config: The configuration, as `load` takes it.
        backends: The backends to look at; empty for all.
        start: Whether to start them.
    """

    config: Path | None
    state_dir: Path
    backends: tuple[str, ...] = ()
    start: bool = True


def diagnose(
    question: Question, environ: Mapping[str, str], *, prober: Prober, keeper: Keeper | None = None
) -> Diagnosis:
    """Look at everything. A running bridge is asked how it is, and left alone.

    Args:
        question: What to look at.
        environ: What placeholders and programs are looked for in.
        prober: Starts the backends.
        keeper: Gives the store of secrets; None: no secret is set. What is read from it is shown nowhere.

    Raises:
        BackendNotFound: The question names a backend that is not configured.
    """
    findings = state_findings(question.state_dir)
    bridge = running_bridge(question.state_dir)
    if bridge is not None:
        findings += bridge_findings(bridge)
    try:
        settings = load(question.config, environ)
    except ConfigInvalid as error:
        findings.append(Finding(Level.PROBLEM, "configuration", error.message, error.hint))
        return Diagnosis(tuple(findings))
    names = _chosen(settings, question.backends)
    secrets = keeper(settings) if keeper is not None else NoSecrets()
    report = check(settings, environ, secrets)
    findings += _configured(settings, report)
    findings += configuration_findings(settings)
    findings += port_findings(settings.server, bridge)
    # One that was asked for by name is tried whatever groups are on.
    asked = bool(question.backends)
    wanted = tuple(name for name in names if settings.backends[name].enabled and (asked or settings.wants(name)))
    launches = _launches(settings, wanted, environ, secrets)
    conceal = Concealment()
    for launch in launches.values():
        conceal.learn(launch.secrets)
    programs = programs_needed(launches, environ)
    findings += program_findings(programs)
    findings += _not_wanted(settings, names, wanted)
    findings += _obstacles(report, wanted)
    blocked = {obstacle.backend for obstacle in report.would_not_start}
    startable = [name for name in wanted if name not in blocked]
    for name in startable:
        findings += interpreter_findings(launches[name], environ)
    probes = tuple(prober(settings, startable)) if question.start and startable else ()
    for probe in probes:
        findings += _probed(probe, bridge)
    listings = {probe.name: probe.listing for probe in probes if probe.listing is not None}
    findings += name_findings(settings, listings)
    told = tuple(_concealed(finding, conceal) for finding in findings)
    return Diagnosis(told, probes, tuple(replace(each, path=each.path and conceal(each.path)) for each in programs))


def _launches(
    settings: Settings, names: Sequence[str], environ: Mapping[str, str], secrets: SecretReader
) -> dict[str, ResolvedBackend]:
    """How those are launched that can be."""
    launches: dict[str, ResolvedBackend] = {}
    for name in names:
        with suppress(LaunchInvalid):
            launches[name] = resolve(settings.backends[name], environ, secrets)
    return launches


def _concealed(finding: Finding, conceal: Concealment) -> Finding:
    mend = finding.mend and conceal(finding.mend)
    return replace(finding, message=conceal(finding.message), mend=mend)


def _chosen(settings: Settings, backends: tuple[str, ...]) -> tuple[str, ...]:
    for name in backends:
        if name not in settings.backends:
            known = ", ".join(settings.backends) or "none"
            raise BackendNotFound(f"No backend {name!r} is configured.", hint=f"configured are: {known}.")
    return tuple(dict.fromkeys(backends)) or tuple(settings.backends)


def _configured(settings: Settings, report: Report) -> Iterator[Finding]:
    counted = f"{_counted(settings.backends, 'backend')}, {_counted(settings.groups, 'group')}"
    yield Finding(Level.WELL, "configuration", f"{settings.source or 'no file'}: {counted}.")
    yield from (Finding(Level.WARNING, "configuration", warning) for warning in report.warnings)
    for obstacle in report.would_not_start:
        if obstacle.backend is None:
            yield Finding(Level.PROBLEM, "configuration", obstacle.cause, obstacle.mend)


def _not_wanted(settings: Settings, names: Sequence[str], wanted: Sequence[str]) -> Iterator[Finding]:
    for name in names:
        if not settings.backends[name].enabled:
            yield Finding(Level.WELL, f"backend {name}", "it is switched off in the configuration.")
        elif name not in wanted:
            yield Finding(Level.WELL, f"backend {name}", "it is not started, since no group that names it is on.")


def _obstacles(report: Report, wanted: Sequence[str]) -> Iterator[Finding]:
    for obstacle in report.would_not_start:
        if obstacle.backend in wanted:
            yield Finding(Level.PROBLEM, f"backend {obstacle.backend}", obstacle.cause, obstacle.mend)


def _probed(probe: Probe, bridge: RunningBridge | None) -> Iterator[Finding]:
    about = f"backend {probe.name}"
    if not probe.ok:
        # A cause is an error's sentence, with its hint behind it where there is one.
        cause, _, hint = (probe.cause or "it does not say why it does not start.").partition(" hint: ")
        if bridge is not None and bridge.states.get(probe.name) == "ready":
            # Not a fault: some programs hold a lock or a port, and can be there once.
            message = f"{cause} The running bridge has it ready, so it may be one that cannot run twice."
            yield Finding(Level.WARNING, about, message, "stop the bridge and look again, if it should start twice.")
        else:
            again = f"correct [backends.{probe.name}], then: bridgehead backend test {probe.name}"
            yield Finding(Level.PROBLEM, about, cause, hint or again)
        return
    counted = ", ".join(
        _counted(range(count), noun)
        for noun, count in (("tool", len(probe.tools)), ("resource", probe.resources), ("prompt", probe.prompts))
        if count or noun == "tool"
    )
    spoken = " ".join(word for word in (probe.server, probe.protocol and f"(MCP {probe.protocol})") if word)
    ready = f"ready after {probe.seconds:.2f} s with {counted}; {spoken or 'says nothing of itself'}"
    trial = probe.trial
    if trial is None or trial.tool is None:
        yield Finding(Level.WELL, about, f"{ready}; no tool can be called safely, so it was only listed.")
    elif trial.ok:
        yield Finding(Level.WELL, about, f"{ready}; {trial.tool} answered in {trial.seconds:.2f} s.")
    elif trial.answered:
        yield Finding(Level.WELL, about, f"{ready}.")
        yield Finding(Level.WARNING, about, f"{trial.tool} called without arguments says that it failed: {trial.cause}")
    else:
        message = f"{ready}; but {trial.tool} was not answered: {trial.cause}"
        yield Finding(Level.PROBLEM, about, message, f"bridgehead backend test {probe.name}")


def _counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"

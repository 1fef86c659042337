"""Fakes and small builders for tests of the gate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bridgehead.catalog import Catalog, Listing, Rules
from bridgehead.config import BackendSettings, LimitSettings
from bridgehead.core import Call, Caller, CallerId, CallId, Method, Outcome, Risk, Silence, new_id
from bridgehead.gate import AllowAll, AuditRecord, Backend, ConfiguredGate, Confirmer, GateParts, build_gate

OWNER = Caller(CallerId("owner"), "the owner")
FINE = Outcome({"content": [{"type": "text", "text": "fine"}]})
FAILED = Outcome({"content": [{"type": "text", "text": "no"}], "isError": True}, is_error=True)


class OwnClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class Answering:
    """A backend that answers from a script, the last answer for ever, and remembers what it was asked."""

    def __init__(self, name: str, *answers: Outcome | BaseException) -> None:
        self.name = name
        self.answers = list(answers or (FINE,))
        self.calls: list[Call] = []

    async def run(self, call: Call) -> Outcome:
        self.calls.append(call)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class ListAudit:
    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    def append(self, record: AuditRecord) -> None:
        self.records.append(record)


class DictShelf:
    def __init__(self, *, full: bool = False) -> None:
        self.texts: dict[str, tuple[str, str]] = {}
        self.full = full

    async def put(self, owner: str, text: str) -> str | None:
        if self.full:
            return None
        handle = f"handle-{len(self.texts)}"
        self.texts[handle] = (owner, text)
        return handle


class Allowing:
    def __init__(self, *risks: Risk) -> None:
        self.risks = risks or tuple(Risk)

    def allows(self, caller: Caller, risk: Risk) -> bool:
        return risk in self.risks


def catalog_of(listings: Mapping[str, Listing], **rules: Any) -> Catalog:
    settings: dict[str, Any] = {
        "order": tuple(listings),
        "unprefixed": frozenset[str](),
        "groups": {},
        "ungrouped": True,
        **rules,
    }
    catalog = Catalog(Rules(**settings))
    for name, listing in listings.items():
        catalog.publish(name, listing)
    return catalog


def tool(name: str = "read", schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"} if schema is None else schema, **more}


@dataclass
class Bench:
    """A gate with everything around it in view."""

    answering: Mapping[str, Answering]
    catalog: Catalog
    limits: LimitSettings = field(default_factory=LimitSettings)
    overrides: Mapping[str, BackendSettings] = field(default_factory=dict[str, BackendSettings])
    policy: Allowing = field(default_factory=Allowing)
    confirmer: Confirmer = field(default_factory=AllowAll)
    shelf: DictShelf = field(default_factory=DictShelf)
    clock: OwnClock = field(default_factory=OwnClock)
    audit: ListAudit = field(default_factory=ListAudit)
    conceal: Callable[[str], str] = str

    def __post_init__(self) -> None:
        self.backends: dict[str, Backend] = dict(self.answering)
        self.gate: ConfiguredGate = build_gate(
            GateParts(
                snapshot=lambda: self.catalog.snapshot,
                backends=self.backends,
                policy=self.policy,
                audit=self.audit,
                confirmer=self.confirmer,
                shelf=self.shelf,
                clock=self.clock,
                limits=self.limits,
                overrides=self.overrides,
                conceal=self.conceal,
            )
        )

    async def run(self, target: str = "fs__read", arguments: Any = None, **more: Any) -> Outcome:
        return await self.gate.run(call_of(target, {} if arguments is None else arguments, **more))


def call_of(target: str, arguments: Any, **more: Any) -> Call:
    parts: dict[str, Any] = {
        "id": CallId(new_id("call")),
        "caller": OWNER,
        "method": Method.TOOL,
        "target": target,
        "arguments": arguments,
        "channel": Silence(),
        "surface": "test",
    }
    return Call(**{**parts, **more})


def bench(*answers: Outcome | BaseException, schema: Any = None, **more: Any) -> Bench:
    """A gate before one backend `fs` with one tool `read`."""
    catalog = catalog_of({"fs": Listing(tools=(tool("read", schema),))})
    return Bench({"fs": Answering("fs", *answers)}, catalog, **more)

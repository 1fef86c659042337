"""`/health`, `/groups` and `/mcp-servers`, through a Starlette application and an in-process client."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, Listing, Rules, State
from bridgehead.config import ConfigStatus, GroupMember, GroupSettings
from bridgehead.core import Kind
from bridgehead.core.errors import Unauthenticated
from bridgehead.surfaces.errors import http_status
from bridgehead.surfaces.health import health_routes

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
TOKEN = {"Authorization": "Bearer good"}


def needs_good_bearer(request: Request) -> None:
    if request.headers.get("Authorization") != "Bearer good":
        raise Unauthenticated("A token is needed.", hint="send it as a bearer.")


def catalog(*statuses: BackendStatus, box: Listing | None = None) -> Catalog:
    groups = {
        "core": GroupSettings(title="Core Tools", members=(GroupMember(backend=BUILTIN),)),
        "light": GroupSettings(
            title="Light", description="Lamps.", members=(GroupMember(backend="box", prefixes=("lamp",)),)
        ),
        "danger": GroupSettings(members=(GroupMember(backend="box", names=("trap",)),), enabled=False),
        "empty": GroupSettings(members=(GroupMember(backend="gone"),)),
    }
    made = Catalog(Rules(("box", "gone"), frozenset(), groups, ungrouped=True))
    made.publish(BUILTIN, Listing(tools=({"name": "guidance"}, {"name": "read_result"})))
    lamps: tuple[dict[str, Any], ...] = tuple({"name": f"lamp{number}"} for number in range(12))
    made.publish("box", box or Listing(tools=(*lamps, {"name": "trap"})))
    for status in statuses:
        made.report(status)
    return made


IN_FORCE = ConfigStatus(Path("/etc/bridge.toml"), NOON)


def client(held: Catalog, config: ConfigStatus = IN_FORCE) -> TestClient:
    routes = health_routes(held, "9.9.9", needs_good_bearer, lambda: config)
    return TestClient(Starlette(routes=routes), base_url="http://127.0.0.1:3001")


READY = BackendStatus(
    "box", State.READY, NOON, restarts=2, protocol="2025-11-25", server="boxes 1.0", stderr=("token=hunter2",)
)
DOWN = BackendStatus("gone", State.DOWN, NOON, "It exited with code 3.", next_try=NOON)


def test_health_needs_no_token_and_names_every_backend_with_its_cause() -> None:
    answer = client(catalog(READY, DOWN)).get("/health")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json() == {
        "status": "degraded",
        "service": "bridgehead",
        "version": "9.9.9",
        "tools": {"builtin": 2, "external": 12, "total": 14, "hidden": 1},
        "groups": {"enabled": 3, "total": 4},
        "backends": {
            "total": 2,
            "ready": 1,
            "list": [
                {
                    "name": "box",
                    "state": "ready",
                    "cause": None,
                    "since": "2026-11-30T12:00:00+00:00",
                    "next_try": None,
                    "restarts": 2,
                    "protocol": "2025-11-25",
                    "server": "boxes 1.0",
                    "tools": 12,
                    "stale": False,
                    "skipped_lines": 0,
                },
                {
                    "name": "gone",
                    "state": "down",
                    "cause": "It exited with code 3.",
                    "since": "2026-11-30T12:00:00+00:00",
                    "next_try": "2026-11-30T12:00:00+00:00",
                    "restarts": 0,
                    "protocol": None,
                    "server": None,
                    "tools": 0,
                    "stale": False,
                    "skipped_lines": 0,
                },
            ],
        },
    }


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
def test_standard_error_is_shown_with_a_good_token_only(headers: dict[str, str]) -> None:
    reached = client(catalog(READY))

    assert "hunter2" not in reached.get("/health", headers=headers).text
    assert reached.get("/health", headers=TOKEN).json()["backends"]["list"][0]["stderr"] == ["token=hunter2"]


def test_a_configuration_that_is_not_in_force_is_told_with_a_token_only() -> None:
    broken = ConfigStatus(
        Path("/etc/bridge.toml"), NOON, "bridge.toml, line 3: this is not TOML.", NOON, ("server.port",)
    )
    reached = client(catalog(READY), broken)

    assert reached.get("/health").json()["status"] == "degraded"
    assert "config" not in reached.get("/health").json()
    assert reached.get("/health", headers=TOKEN).json()["config"] == {
        "source": "/etc/bridge.toml",
        "loaded": "2026-11-30T12:00:00+00:00",
        "error": {"message": "bridge.toml, line 3: this is not TOML.", "since": "2026-11-30T12:00:00+00:00"},
        "needs_restart": ["server.port"],
    }


def test_health_is_ok_when_all_that_should_run_does() -> None:
    off = BackendStatus("gone", State.DISABLED, NOON, "Switched off.")

    assert client(catalog(READY, off)).get("/health").json()["status"] == "ok"


def test_health_is_degraded_while_a_listing_is_stale() -> None:
    held = catalog(READY, box=Listing(tools=({"name": "lamp0"},), stale=True))

    answer = client(held).get("/health").json()

    assert answer["status"] == "degraded"
    assert answer["backends"]["list"][0]["stale"] is True


def test_groups_are_shown_as_mcp_bridge_shows_them() -> None:
    answer = client(catalog(READY)).get("/groups", headers=TOKEN).json()

    assert list(answer) == ["core", "light", "danger", "empty"]
    assert answer["core"]["toolNames"] == ["guidance", "read_result"]
    assert answer["light"] == {
        "enabled": True,
        "title": "Light",
        "description": "Lamps.",
        "tools": 12,
        "toolNames": [f"box__lamp{number}" for number in range(10)],
    }
    assert answer["danger"]["enabled"] is False
    assert answer["danger"]["toolNames"] == []


def test_servers_are_the_groups_that_are_on_and_hold_a_tool() -> None:
    answer = client(catalog(READY)).get("/mcp-servers", headers=TOKEN).json()

    assert answer == [
        {"name": "Core Tools", "url": "http://127.0.0.1:3001/mcp/core", "tools": 2, "group": "core"},
        {"name": "Light", "url": "http://127.0.0.1:3001/mcp/light", "tools": 12, "group": "light"},
    ]


@pytest.mark.parametrize("path", ["/groups", "/mcp-servers"])
def test_the_lists_need_a_token(path: str) -> None:
    answer = client(catalog(READY)).get(path)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json() == {
        "error": {"code": "unauthenticated", "message": "A token is needed.", "hint": "send it as a bearer."}
    }


@pytest.mark.parametrize("path", ["/health", "/groups", "/mcp-servers"])
def test_head_is_answered_without_a_body(path: str) -> None:
    answer = client(catalog(READY)).head(path, headers=TOKEN)

    assert answer.status_code == 200
    assert not answer.content


def test_every_kind_of_error_has_a_status() -> None:
    assert {kind: http_status(kind) for kind in Kind}[Kind.NOT_FOUND] == 404

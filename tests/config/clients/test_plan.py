"""What an import makes of real files: those that the clients' documentation shows, put where each client has them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bridgehead.config import BackendSettings
from bridgehead.config.clients.places import CLIENTS, Machine, Platform, Scope, place
from bridgehead.config.clients.plan import Planned, Planner, ServerNotFound, Verdict, chosen, legal_name
from bridgehead.config.clients.reading import read_clients, read_place

FILES = Path(__file__).parent / "files"
FIXTURES: Mapping[tuple[str, Scope], str] = {
    ("claude-desktop", "user"): "claude_desktop_config.json",
    ("claude-code", "user"): "claude.json",
    ("claude-code", "project"): "mcp.json",
    ("cursor", "user"): "cursor.json",
    ("vscode", "user"): "vscode.json",
    ("codex", "user"): "config.toml",
    ("windsurf", "user"): "mcp_config.json",
    ("gemini", "user"): "settings.json",
}


def machine_at(home: Path, platform: Platform = "linux") -> Machine:
    return Machine(platform, home, {}, home / "shop")


def lay_out(machine: Machine, *wanted: tuple[str, Scope]) -> None:
    for client, scope in wanted or FIXTURES:
        path = place(CLIENTS[client], machine, scope).path
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILES / FIXTURES[client, scope], path)


def plan(
    machine: Machine, *clients: str, existing: Mapping[str, Any] | None = None, secrets: Mapping[str, str] | None = None
) -> list[Planned]:
    findings = read_clients([CLIENTS[name] for name in clients or CLIENTS], machine)
    assert findings.problems == []
    backends = {name: BackendSettings.model_validate(table) for name, table in (existing or {}).items()}
    planner = Planner(
        machine=machine, existing=backends, read_secret=(secrets or {}).get, bridge_url="http://127.0.0.1:3001"
    )
    return planner.plan(findings.servers)


def tables(planned: list[Planned]) -> dict[str, Any]:
    return {one.name: dict(one.table) for one in planned if one.verdict is Verdict.TAKE}


def verdicts(planned: list[Planned]) -> dict[str, str]:
    return {one.server.name: str(one.verdict) for one in planned if one.verdict is not Verdict.TAKE}


def notes(planned: list[Planned], name: str) -> str:
    return "; ".join(next(one for one in planned if one.server.name == name).notes)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_clients_file_is_found_on_every_platform(tmp_path: Path, platform: Platform) -> None:
    machine = machine_at(tmp_path, platform)
    lay_out(machine)

    assert {one.server.place.client for one in plan(machine)} == set(CLIENTS)


def test_claude_desktop(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("claude-desktop", "user"))

    planned = plan(machine)

    folders = ["/Users/ann/Desktop", "/Users/ann/Downloads"]
    assert tables(planned) == {
        "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", *folders]},
        "brave-search": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-brave-search"],
            "env": {"BRAVE_API_KEY": "${secret:BRAVE_SEARCH_BRAVE_API_KEY}"},
        },
        "remote-docs": {
            "command": "npx",
            "args": [
                "mcp-remote",
                "https://docs.example/sse",
                "--header",
                "Authorization: Bearer ${secret:REMOTE_DOCS_AUTHORIZATION}",
            ],
        },
        "costs-5-literally": {"command": "echo-server", "args": ["$${HOME}"]},
    }
    assert planned[1].secrets == {"BRAVE_SEARCH_BRAVE_API_KEY": "BSAabcdefghijklmnopqrstuvwxyz01"}


def test_claude_code_with_its_projects(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("claude-code", "user"), ("claude-code", "project"))

    planned = plan(machine)

    project = str(machine.project)
    assert tables(planned) == {
        "github": {
            "url": "https://api.githubcopilot.com/mcp/",
            "transport": "http",
            "headers": {"Authorization": "Bearer ${GITHUB_PAT}"},
        },
        "sentry": {"url": "https://mcp.sentry.dev/sse", "transport": "sse", "timeout_s": 120},
        "db": {
            "command": "npx",
            "args": ["-y", "@bytebase/dbhub", "--dsn", "${secret:DB_DSN}"],
            "cwd": "/home/ann/shop",
        },
        "local": {
            "command": f"{project}/tools/server.py",
            "args": ["--config", f"{project}/mcp.yaml", "--level=${LEVEL:-info}"],
            "env": {"CACHE_DIR": "${CACHE_DIR:-/tmp/cache}", "DB_PASSWORD": "${DB_PASSWORD}"},
            "cwd": project,
        },
        "api": {
            "url": "${API_BASE_URL:-https://api.example.com}/mcp",
            "transport": "http",
            "headers": {"Authorization": "Bearer ${API_KEY}"},
        },
    }
    assert [(one.server.name, one.verdict) for one in planned if one.verdict is not Verdict.TAKE] == [
        ("live", "unknown"),
        ("sentry", "duplicate"),
        ("bridgehead", "itself"),
    ]
    assert next(one for one in planned if one.name == "db").secrets == {
        "DB_DSN": "postgresql://ann:s3cr3t-pass@db.example:5432/shop"
    }
    assert "headersHelper" in notes(planned, "api")


def test_cursor(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("cursor", "user"))

    planned = plan(machine)

    assert tables(planned) == {
        "linear": {"url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer ${LINEAR_TOKEN}"}},
        "notes": {
            "command": "uvx",
            "args": ["notes-mcp", "--root", f"{tmp_path}/notes"],
            "env": {"NOTES_KEY": "${secret:NOTES_KEY}"},
        },
        "github": {"url": "https://api.githubcopilot.com/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_PAT}"}},
        "signs-in": {"url": "https://mcp.example.com/mcp"},
    }
    assert verdicts(planned) == {"here": "unknown", "off": "off"}
    assert "envFile" in notes(planned, "notes")
    assert "does not sign in" in notes(planned, "signs-in")


def test_vscode_with_comments_and_inputs(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("vscode", "user"))

    planned = plan(machine)

    assert tables(planned) == {
        "Perplexity": {
            "command": "npx",
            "args": ["-y", "server-perplexity-ask"],
            "env": {"PERPLEXITY_API_KEY": "${secret:PERPLEXITY_KEY}", "REGION": "eu-west-1"},
        },
        "playwright": {"command": "npx", "args": ["-y", "@playwright/mcp@latest"]},
        "fetch": {
            "url": "https://remote.mcpservers.org/fetch/mcp?api_key=${secret:FETCH_API_KEY}",
            "transport": "http",
        },
    }
    assert verdicts(planned) == {"root": "unknown", "command": "unknown"}
    assert "bridgehead secret set PERPLEXITY_KEY" in notes(planned, "Perplexity")
    assert planned[2].secrets == {"FETCH_API_KEY": "q-1234567890"}


def test_a_projects_own_file_knows_its_folder(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    path = place(CLIENTS["vscode"], machine, "project").path
    path.parent.mkdir(parents=True)
    shutil.copy(FILES / "vscode.json", path)

    root = next(one for one in plan(machine) if one.name == "root")

    assert root.table == {"command": f"{machine.project}/run", "cwd": str(machine.project)}
    assert "`dev`" in notes([root], "root")


def test_codex(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("codex", "user"))

    planned = plan(machine)

    assert tables(planned) == {
        "context7": {
            "command": "npx",
            "args": ["-y", "@upstash/context7-mcp"],
            "env": {"MY_ENV_VAR": "$MY_VALUE", "LOCAL_TOKEN": "${LOCAL_TOKEN}", "OTHER": "${OTHER}"},
            "start_timeout_s": 20,
        },
        "figma": {
            "url": "https://mcp.figma.com/mcp",
            "headers": {"X-Figma-Region": "us-east-1", "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}"},
            "timeout_s": 45.5,
        },
        "playwright-tests": {"command": "npx", "args": ["-y", "@playwright/mcp@latest"]},
    }
    assert verdicts(planned) == {"chrome_devtools": "off"}
    assert "enabled_tools" in notes(planned, "figma")


def test_windsurf(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("windsurf", "user"))

    planned = plan(machine)

    variable = "GITHUB_PERSONAL_ACCESS_TOKEN"
    secret = f"GITHUB_MCP_SERVER_{variable}"
    assert tables(planned) == {
        "github-mcp-server": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", f"{variable}=${{secret:{secret}}}", "ghcr.io/github/github-mcp-server"],
        },
        "remote-http-mcp": {"url": "https://mcp.example/mcp", "headers": {"API_KEY": "Bearer ${AUTH_TOKEN}"}},
        "github": {"command": "github-mcp"},
    }
    assert verdicts(planned) == {"from-file": "unknown"}
    assert planned[0].secrets == {secret: "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}


def test_gemini(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("gemini", "user"))

    planned = plan(machine)

    assert tables(planned) == {
        "pythonTools": {
            "command": "python",
            "args": ["-m", "my_mcp_server", "--port", "8080"],
            "env": {"DATABASE_URL": "${DB_CONNECTION_STRING}", "API_KEY": "${EXTERNAL_API_KEY}", "PRICE": "5$ $"},
            "cwd": "./mcp-servers/python",
            "timeout_s": 15,
        },
        "httpServer": {
            "url": "http://localhost:3030/mcp",
            "transport": "http",
            "headers": {
                "Authorization": "Bearer ${secret:HTTPSERVER_AUTHORIZATION}",
                "X-Custom-Header": "custom-value",
            },
        },
        "sseServer": {"url": "http://localhost:8080/sse", "transport": "sse"},
    }
    assert verdicts(planned) == {"experimental": "off"}
    assert "relative" in notes(planned, "pythonTools")


def test_the_same_server_comes_once_and_another_of_its_name_gets_its_own(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine)

    planned = plan(machine)

    github = [(one.server.place.client, one.verdict, one.name) for one in planned if one.server.name == "github"]
    assert github == [
        ("claude-code", "take", "github"),
        ("cursor", "duplicate", "github"),
        ("windsurf", "take", "github-windsurf"),
    ]
    assert len(tables(planned)) == sum(one.verdict is Verdict.TAKE for one in planned)


def test_a_second_import_finds_everything_there(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine)
    first = plan(machine)
    secrets = {name: value for one in first for name, value in one.secrets.items()}

    second = plan(machine, existing=tables(first), secrets=secrets)

    assert {one.verdict for one in second} <= {"duplicate", "off", "unknown", "itself"}


def test_what_the_configuration_has_otherwise_is_only_taken_when_picked(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("cursor", "user"))

    planned = plan(machine, existing={"linear": {"url": "https://other.example/mcp"}})

    assert verdicts(planned)["linear"] == "conflict"
    assert [one.name for one in chosen(planned, ["linear"])] == ["linear-cursor"]


def test_what_is_off_comes_off_when_picked(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("cursor", "user"))

    picked = chosen(plan(machine), ["cursor:off", "notes"])

    assert [(one.name, one.table.get("enabled")) for one in picked] == [("off", False), ("notes", None)]


@pytest.mark.parametrize(
    ("pick", "told"), [("here", "whatever folder is open"), ("nothing", "No server 'nothing' was found")]
)
def test_what_cannot_be_picked_is_told_with_the_reason(tmp_path: Path, pick: str, told: str) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine, ("cursor", "user"))

    with pytest.raises(ServerNotFound, match=told):
        chosen(plan(machine), [pick])


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/opt/bridgehead/bin/bridgehead", "args": ["mcp", "stdio"]},
        {"command": "C:\\Tools\\bridgehead.exe", "args": ["mcp", "stdio", "--config", "x"]},
        {"command": "uvx", "args": ["bridgehead", "mcp", "stdio"]},
        {"url": "http://localhost:3001/mcp/work"},
        {"command": "npx", "args": ["-y", "mcp-remote", "http://127.0.0.1:3001/mcp"]},
    ],
)
def test_the_bridge_is_known_however_it_is_reached(tmp_path: Path, entry: dict[str, Any]) -> None:
    machine = machine_at(tmp_path)
    path = place(CLIENTS["cursor"], machine, "user").path
    path.parent.mkdir()
    near = {"url": "http://localhost:3002/mcp"}, {"command": "git-mcp", "args": ["/src/bridgehead", "--mcp"]}
    servers = {"gateway": entry, "near": near[0], "nearer": near[1]}
    path.write_text(json.dumps({"mcpServers": servers}))

    assert [one.verdict for one in plan(machine)] == ["itself", "take", "take"]


ODD: list[tuple[Any, str]] = [
    ([], "it is no object"),
    ({}, "neither `command` nor `url`"),
    ({"type": "sdk", "name": "x"}, "kind `sdk` is not known"),
    ({"type": "http"}, "it has no `url`"),
    ({"command": 1}, "its `command` is no text"),
    ({"command": "x", "args": "y"}, "its `args` is no list"),
    ({"command": "x", "env": []}, "its `env` is no object"),
    ({"command": "x", "args": [{}]}, "something that is no text"),
    ({"url": "nonsense"}, "needs a `url` that begins with http:// or https://"),
    ({"url": "https://x.example", "headers": {"a b": "c"}}, "cannot be the name of an HTTP header"),
]


@pytest.mark.parametrize(
    ("entry", "told"),
    ODD,
)
def test_what_is_not_understood_stays_behind_with_its_reason(tmp_path: Path, entry: object, told: str) -> None:
    machine = machine_at(tmp_path)
    path = place(CLIENTS["cursor"], machine, "user").path
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"odd": entry}}))

    (planned,) = plan(machine)

    assert planned.verdict is Verdict.UNKNOWN
    assert told in str(planned.reason)


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    lay_out(machine)
    place(CLIENTS["cursor"], machine, "user").path.write_text('{"mcpServers": {')
    place(CLIENTS["codex"], machine, "user").path.write_text("model =")
    place(CLIENTS["gemini"], machine, "user").path.write_bytes(b'{"a": "\xff"}')
    place(CLIENTS["windsurf"], machine, "user").path.write_text("")

    findings = read_clients(CLIENTS.values(), machine)

    assert len(findings.problems) == 3
    assert "line 1, column 17" in findings.problems[0]
    assert {server.place.client for server in findings.servers} == {"claude-desktop", "claude-code", "vscode"}


def test_another_clients_form_is_read_where_it_is_found(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    path = place(CLIENTS["vscode"], machine, "user").path
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')

    assert [server.name for server in read_place(place(CLIENTS["vscode"], machine, "user")).servers] == ["a"]


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("io.github.x/y", "io-github-x-y"),
        ("数", "server"),
        ("builtin", "builtin-server"),
        ("a b", "a-b"),
        ("-", "server"),
    ],
)
def test_names_are_made_legal(name: str, legal: str) -> None:
    assert legal_name(name) == legal

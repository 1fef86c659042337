"""The examples are what they say they are."""

from pathlib import Path

import pytest

from bridgehead.config import StdioLaunch, check, load, resolve

EXAMPLES = Path(__file__).parents[2] / "examples"

BACKENDS = {
    "ruvector": "npx -y ruvector mcp start",
    "ruflo": "npx -y ruflo mcp start",
    "agentic-flow": "npx -y agentic-flow@alpha mcp start",
    "claude": "claude mcp serve",
    "gemini-mcp": "npx -y gemini-mcp-server",
    "codex": "npx -y @openai/codex mcp serve",
}
KEYS = {"claude": "ANTHROPIC_API_KEY", "gemini-mcp": "GOOGLE_API_KEY", "codex": "OPENAI_API_KEY"}
GROUPS = [
    ("core", "Core Tools", True, "builtin", "=search =web_research =guidance"),
    ("intelligence", "Intelligence & Learning", True, "ruvector", "hooks_"),
    (
        "agents",
        "Agents & Orchestration",
        True,
        "ruflo",
        "agent_ swarm_ task_ session_ hive-mind_ workflow_ coordination_",
    ),
    ("memory", "Memory & Knowledge", True, "ruflo", "memory_ agentdb_ embeddings_"),
    (
        "devtools",
        "Dev Tools & Analysis",
        True,
        "ruflo",
        "hooks_ analyze_ performance_ github_ terminal_ config_ system_ progress_",
    ),
    ("security", "Security & Safety", False, "ruflo", "aidefence_ claims_ transfer_"),
    ("browser", "Browser Automation", False, "ruflo", "browser_"),
    ("neural", "Neural & DAA", False, "ruflo", "neural_ daa_"),
    ("agentic-flow", "Agentic Flow", False, "agentic-flow", "agentic_flow_ agent_booster_ agentdb_"),
    ("claude-code", "Claude Code", False, "claude", ""),
    ("gemini", "Gemini", False, "gemini-mcp", ""),
    ("codex", "Codex", False, "codex", ""),
]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.[tj]*")), ids=lambda path: path.name)
def test_every_example_loads(path: Path) -> None:
    assert load(path, {}).backends


def test_mcp_bridge_has_its_twelve_groups() -> None:
    settings = load(EXAMPLES / "ruflo.toml", {})

    assert [
        (
            name,
            group.title,
            group.enabled,
            member.backend,
            " ".join([*member.prefixes, *(f"={exact}" for exact in member.names), *(f"*{g}" for g in member.globs)]),
        )
        for name, group in settings.groups.items()
        for member in group.members
    ] == GROUPS
    assert settings.server.ungrouped == "hide"
    assert settings.warnings == ()


def test_mcp_bridge_has_its_six_backends_and_gives_each_its_own_key_only() -> None:
    settings = load(EXAMPLES / "ruflo.toml", {})

    assert {
        name: " ".join([backend.command or "", *backend.args]) for name, backend in settings.backends.items()
    } == BACKENDS
    assert {name: list(backend.env) for name, backend in settings.backends.items() if backend.env} == {
        name: [key] for name, key in KEYS.items()
    }
    assert all(backend.start_timeout_s == 60 and backend.timeout_s == 30 for backend in settings.backends.values())


@pytest.mark.parametrize("group", [name for name, *_ in GROUPS if name != "core"])
def test_each_of_its_groups_is_switched_by_its_own_variable(group: str) -> None:
    default = load(EXAMPLES / "ruflo.toml", {}).groups
    word = "false" if default[group].enabled else "true"

    switched = load(EXAMPLES / "ruflo.toml", {f"MCP_GROUP_{group.upper().replace('-', '_')}": word}).groups

    assert {name for name in default if default[name].enabled != switched[name].enabled} == {group}


def test_without_node_the_demo_loses_its_node_servers_only() -> None:
    environ = {"BRIDGEHEAD_DEMO_BIN": "/repo/.venv/bin/"}
    settings = load(EXAMPLES / "demo.toml", environ)

    report = check(settings, environ)

    assert set(report.missing) == {"everything", "filesystem", "memory"}
    assert not report.problems
    time = resolve(settings.backends["time"], environ).launch
    assert isinstance(time, StdioLaunch)
    assert time.command == "/repo/.venv/bin/mcp-server-time"


def test_with_node_the_demo_has_six_servers() -> None:
    environ = {"BRIDGEHEAD_DEMO_BIN": "/repo/.venv/bin/", "BRIDGEHEAD_DEMO_NODE_BIN": "/node/"}
    settings = load(EXAMPLES / "demo.toml", environ)

    report = check(settings, environ)
    assert (report.problems, report.missing) == ((), {})
    assert settings.warnings == ()
    assert all(group.notes for group in settings.groups.values())
    files = resolve(settings.backends["filesystem"], environ).launch
    assert isinstance(files, StdioLaunch)
    assert files.command == "/node/mcp-server-filesystem"
    assert files.cwd == EXAMPLES


def test_a_clients_servers_are_used_as_they_stand() -> None:
    settings = load(EXAMPLES / "servers.json", {})

    assert [(name, backend.enabled) for name, backend in settings.backends.items()] == [
        ("time", True),
        ("github", True),
        ("memory", False),
    ]
    assert settings.backends["github"].timeout_s == 60
    assert settings.warnings == (
        "servers.json: mcpServers.memory: `autoApprove` is ignored, since it is a setting of another client.",
    )

"""Where each client keeps its servers, on each platform.

The paths are those of the clients' documentation. Everything they depend on comes in through `Machine`, and only `places`
looks at the disk: to see which of Claude Desktop's directories on Windows is the one in use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from bridgehead.config.placeholders import home
from bridgehead.config.problems import nearest
from bridgehead.core.errors import BridgeError, Kind

Platform = Literal["linux", "darwin", "win32"]
Scope = Literal["user", "project"]


class ClientUnknown(BridgeError):
    """No client of that name is known, or it has no file of that scope."""

    kind = Kind.NOT_FOUND
    code = "unknown_client"


@dataclass(frozen=True, slots=True)
class Machine:
    """What the paths depend on.

    Attributes:
        home: The home directory.
        project: The directory whose project files are meant.
    """

    platform: Platform
    home: Path
    environ: Mapping[str, str]
    project: Path

    @classmethod
    def here(cls, environ: Mapping[str, str], project: Path) -> Self:
        """This machine."""
        platform: Platform = "win32" if os.name == "nt" else "darwin" if sys.platform == "darwin" else "linux"
        return cls(platform, home(environ), environ, project)

    def variable(self, name: str, otherwise: Path) -> Path:
        """The directory that the variable names, where it is an absolute path."""
        named = self.environ.get(name, "")
        return Path(named) if Path(named).is_absolute() else otherwise

    @property
    def settings(self) -> Path:
        """Where programs keep the settings of a user."""
        match self.platform:
            case "darwin":
                return self.home / "Library" / "Application Support"
            case "win32":
                return self.variable("APPDATA", self.home / "AppData" / "Roaming")
            case "linux":
                return self.variable("XDG_CONFIG_HOME", self.home / ".config")


@dataclass(frozen=True, slots=True)
class Place:
    """One file of a client.

    Attributes:
        root: The key that its servers are under.
    """

    client: str
    scope: Scope
    path: Path
    root: str = "mcpServers"

    @property
    def is_toml(self) -> bool:
        """Whether it is TOML; the others are JSON."""
        return self.path.suffix == ".toml"


@dataclass(frozen=True, slots=True)
class Client:
    """A program that people keep MCP servers in.

    Attributes:
        name: As on the command line.
        title: As people call it.
        user: The user's files, the one that is in use first.
        project: The file of a project, below its directory; None where there is none.
        root: The key that its servers are under.
    """

    name: str
    title: str
    user: Callable[[Machine], Iterator[Path]]
    project: str | None = None
    root: str = "mcpServers"


def _claude_desktop(machine: Machine) -> Iterator[Path]:
    file = "claude_desktop_config.json"
    if machine.platform == "win32":
        # The packaged app reads from directories of its own, whatever its menu shows (claude-code issue 26073).
        local = machine.variable("LOCALAPPDATA", machine.home / "AppData" / "Local")
        yield from (found / file for found in sorted(local.glob("Claude-Data/claude_*")))
        yield from (found / file for found in sorted(local.glob("Packages/Claude_*/LocalCache/Roaming/Claude")))
    yield machine.settings / "Claude" / file


def _claude_code(machine: Machine) -> Iterator[Path]:
    yield machine.variable("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


def _cursor(machine: Machine) -> Iterator[Path]:
    yield machine.home / ".cursor" / "mcp.json"


def _vscode(machine: Machine) -> Iterator[Path]:
    if machine.environ.get("VSCODE_PORTABLE"):
        yield Path(machine.environ["VSCODE_PORTABLE"]) / "user-data" / "User" / "mcp.json"
    yield machine.settings / "Code" / "User" / "mcp.json"


def _codex(machine: Machine) -> Iterator[Path]:
    yield machine.variable("CODEX_HOME", machine.home / ".codex") / "config.toml"


def _windsurf(machine: Machine) -> Iterator[Path]:
    yield machine.home / ".codeium" / "windsurf" / "mcp_config.json"


def _gemini(machine: Machine) -> Iterator[Path]:
    yield machine.variable("GEMINI_CLI_HOME", machine.home) / ".gemini" / "settings.json"


_KNOWN = (
    Client("claude-desktop", "Claude Desktop", _claude_desktop),
    Client("claude-code", "Claude Code", _claude_code, project=".mcp.json"),
    Client("cursor", "Cursor", _cursor, project=".cursor/mcp.json"),
    Client("vscode", "VS Code", _vscode, project=".vscode/mcp.json", root="servers"),
    Client("codex", "Codex", _codex, project=".codex/config.toml", root="mcp_servers"),
    Client("windsurf", "Windsurf", _windsurf),
    Client("gemini", "Gemini CLI", _gemini, project=".gemini/settings.json"),
)
CLIENTS: Mapping[str, Client] = {client.name: client for client in _KNOWN}


def client_named(name: str) -> Client:
    """The client of that name.

    Raises:
        ClientUnknown: There is none.
    """
    client = CLIENTS.get(name.lower())
    if client is None:
        near = nearest(name, CLIENTS)
        meant = f"did you mean {near}? " if near else ""
        raise ClientUnknown(f"No client {name!r} is known.", hint=f"{meant}known are {', '.join(CLIENTS)}.")
    return client


def places(client: Client, machine: Machine) -> Iterator[Place]:
    """The client's files, whether they exist or not: the user's, then the project's."""
    own = list(client.user(machine))
    for path in own:
        yield Place(client.name, "user", path, client.root)
    if client.project is not None and (shared := machine.project / client.project) not in own:
        # In the home directory, some clients' two files are one.
        yield Place(client.name, "project", shared, client.root)


def place(client: Client, machine: Machine, scope: Scope) -> Place:
    """The file of that scope that the client reads.

    Raises:
        ClientUnknown: The client has no file of that scope.
    """
    found = next((each for each in places(client, machine) if each.scope == scope), None)
    if found is None:
        raise ClientUnknown(
            f"{client.title} has no file of a project's own.", hint="leave --scope out to use the user's file."
        )
    return found


def place_of_file(path: Path, client: Client | None, machine: Machine) -> Place:
    """A file that was named by its path: as a file of `client`, else of the client whose files are called so.

    JSON that nothing speaks for is read as Claude Code's, whose form most others have taken over.
    """
    for known in (client,) if client is not None else CLIENTS.values():
        own = next((each for each in places(known, machine) if each.path == path), None)
        if own is not None:
            return own
        below = Path(known.project).parts if known.project is not None else None
        if below is not None and path.parts[-len(below) :] == below:
            return Place(known.name, "project", path, known.root)
    if client is None:
        client = CLIENTS["codex" if path.suffix == ".toml" else _FILE_NAMES.get(path.name, "claude-code")]
    return Place(client.name, "user", path, client.root)


_FILE_NAMES = {
    "claude_desktop_config.json": "claude-desktop",
    "mcp.json": "cursor",
    "mcp_config.json": "windsurf",
    "settings.json": "gemini",
}


def project_of(place: Place) -> Path | None:
    """The directory of the project that the file belongs to, or None for a user's file."""
    below = CLIENTS[place.client].project
    if place.scope != "project" or below is None:
        return None
    return place.path.parents[len(Path(below).parts) - 1]

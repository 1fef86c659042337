"""What stands for something else in a client's texts, put in our words.

Each client has a language of its own: `${env:X}`, `$X`, `${input:x}`, `${workspaceFolder}`, or none at all. What has an equal
here is translated, what can be filled in now is filled in, and anything else is named with what to do about it: a text that
means something else than it says would start the wrong thing.

    Claude Code   ${X} ${X:-default}
    Cursor        ${env:X} ${userHome} ${workspaceFolder} ${workspaceFolderBasename} ${pathSeparator} ${/}
    VS Code       as Cursor, and ${input:id}
    Windsurf      ${env:X}
    Gemini CLI    $X ${X} ${X:-default}
    Claude Desktop, Codex   none: the text is what it says
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgehead.config.placeholders import escape

_BRACED = re.compile(r"\$\{(?P<inside>[^}]*)\}")
_SHELL = re.compile(r"\$(?:(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<inside>[^}]*)\})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WITH_DEFAULT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^$]*))?", re.DOTALL)


class Untranslatable(ValueError):
    """A placeholder has no equal here; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that VS Code asks for and keeps to itself, so that it has to be given anew.

    Attributes:
        secret: The name that stands for it here.
        title: What VS Code asks for.
    """

    secret: str
    title: str


@dataclass(slots=True)
class Translator:
    """Translates the texts of one client's file.

    Attributes:
        home: What `${userHome}` is.
        project: What `${workspaceFolder}` is; None for a user's file, where it is whatever is open.
        separator: What `${/}` is.
        inputs: The `inputs` of the file, by id.
        asked: What has to be given anew, as it comes up.
    """

    client: str
    home: Path
    project: Path | None
    separator: str = "/"
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    asked: list[Asked] = field(default_factory=list[Asked])

    def text(self, text: str) -> str:
        """The text with our placeholders.

        Raises:
            Untranslatable: It has a placeholder that nothing here is equal to.
        """
        match self.client:
            case "claude-code":
                return self._replaced(_BRACED, text, self._claude_code)
            case "cursor" | "vscode" | "windsurf":
                return self._replaced(_BRACED, text, self._editor)
            case "gemini":
                return self._replaced(_SHELL, text, self._gemini)
            case _:
                return escape(text)

    def _replaced(self, pattern: re.Pattern[str], text: str, by: Callable[[re.Match[str]], str]) -> str:
        written = ""
        end = 0
        for found in pattern.finditer(text):
            written += escape(text[end : found.start()]) + by(found)
            end = found.end()
        return written + escape(text[end:])

    def _claude_code(self, found: re.Match[str]) -> str:
        inside = found["inside"]
        if inside.partition(":-")[0] == "CLAUDE_PROJECT_DIR":
            return self._folder(inside, self.project)
        return self._variable(found)

    def _gemini(self, found: re.Match[str]) -> str:
        return f"${{{found['bare']}}}" if found["bare"] else self._variable(found)

    def _variable(self, found: re.Match[str]) -> str:
        if _WITH_DEFAULT.fullmatch(found["inside"]) is None:
            raise self._unknown(found[0])
        return found[0]

    def _editor(self, found: re.Match[str]) -> str:
        inside = found["inside"]
        kind, _, name = inside.partition(":")
        if kind == "env" and _NAME.fullmatch(name):
            # An unset variable is an empty text in these clients; here the backend says which one it misses.
            return f"${{{name}}}"
        if self.client == "windsurf":
            raise self._unknown(found[0])
        match inside:
            case "userHome":
                return escape(str(self.home))
            case "workspaceFolder" | "workspaceRoot":
                return self._folder(inside, self.project)
            case "workspaceFolderBasename":
                return self._folder(inside, Path(self.project.name) if self.project else None)
            case "pathSeparator" | "/":
                return self.separator
            case _ if kind == "input" and name in self.inputs and self.client == "vscode":
                return self._input(name)
            case _:
                raise self._unknown(found[0])

    def _folder(self, name: str, folder: Path | None) -> str:
        if folder is None:
            raise Untranslatable(
                f"`${{{name}}}` is whatever folder is open: add it by hand with the path that is meant "
                "(bridgehead backend add)"
            )
        return escape(str(folder))

    def _input(self, name: str) -> str:
        known = self.inputs[name]
        default = known.get("default")
        if isinstance(default, str) and default and known.get("password") is not True:
            return escape(default)
        secret = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_").upper() or "INPUT"
        if secret[0].isdigit():
            secret = f"INPUT_{secret}"
        asked = Asked(secret, str(known.get("description") or name))
        if asked not in self.asked:
            self.asked.append(asked)
        return f"${{secret:{secret}}}"

    def _unknown(self, written: str) -> Untranslatable:
        return Untranslatable(
            f"`{written}` has no equal here: add it by hand with what is meant (bridgehead backend add)"
        )

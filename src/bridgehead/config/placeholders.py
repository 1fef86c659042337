"""From a backend as written to how it is launched: placeholders filled in, paths made absolute.

    ${NAME}  ${env:NAME}  ${NAME:-default}  ${env:NAME:-default}      $${ is a literal ${

A default is used when the variable is unset or empty, as in a POSIX shell; defaults do not nest. Values that
were filled in are not looked at again, so no variable can smuggle a placeholder in. Whatever is wrong here concerns one
backend only: the caller disables it and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bridgehead.config.problems import dotted
from bridgehead.config.secrets import Secret
from bridgehead.config.settings import BackendSettings, is_http_url
from bridgehead.core.errors import ConfigInvalid

_TOKEN = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_INSIDE = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-(?P<text>.*))?", re.DOTALL)


class LaunchInvalid(ConfigInvalid):
    """One backend cannot be launched as it is written; the others can.

    `details["field"]` is the dotted key of what is wrong.
    """

    code = "invalid_backend"


class MissingPlaceholder(LaunchInvalid):
    """A backend names variables that are not set.

    `details["missing"]` lists them as objects with `variable` and `field`.
    """

    code = "missing_placeholder"


@dataclass(frozen=True, slots=True)
class StdioLaunch:
    """How to start a program that speaks over its standard input and output.

    Attributes:
        args: Not shown in `repr`, since a placeholder may have put a secret there.
        env: What is added to the minimal environment that every child gets.
        cwd: Absolute, or None for where the bridge was started.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class HttpLaunch:
    """How to reach a server.

    Attributes:
        url: Absolute, http or https. Not shown in `repr`, since a placeholder may have put a secret there.
    """

    url: str = field(repr=False)
    headers: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    transport: Literal["auto", "http", "sse"] = "auto"


@dataclass(frozen=True, slots=True)
class ResolvedBackend:
    """A backend that can be launched now."""

    name: str
    launch: StdioLaunch | HttpLaunch


@dataclass(slots=True)
class _Filler:
    """Fills placeholders in, and remembers what it could not fill."""

    backend: str
    environ: Mapping[str, str]
    missing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def key(self, *parts: str | int) -> str:
        return dotted("backends", self.backend, *parts) if self.backend else dotted(*parts)

    def fill(self, text: str, *parts: str | int) -> str:
        def replacement(token: re.Match[str]) -> str:
            if token["escape"]:
                return "${"
            inside = _INSIDE.fullmatch(token["inside"])
            if token["inside"].startswith("input:"):
                raise _invalid(
                    self.key(*parts),
                    f"asks for the input `{token['inside'].removeprefix('input:')}`, which only VS Code can ask a person for.",
                    "write `${NAME}` there instead, and set NAME in the environment of the bridge.",
                )
            if inside is None or not token["end"] or "${" in token["inside"]:
                raise _invalid(
                    self.key(*parts),
                    "holds something that looks like a placeholder and is none.",
                    "write `${NAME}`, `${NAME:-default}`, or `$${` for a literal `${`.",
                )
            value = self.environ.get(inside["name"])
            if inside["default"] is not None:
                return value or inside["text"]
            if value is None:
                self.missing.append((inside["name"], self.key(*parts)))
            return value or ""

        return _TOKEN.sub(replacement, text)

    def fill_secrets(self, table: Mapping[str, Secret], part: str) -> dict[str, Secret]:
        return {key: Secret(self.fill(secret.reveal(), part, key)) for key, secret in table.items()}


def escape(text: str) -> str:
    """The text written so that no part of it is a placeholder."""
    return text.replace("${", "$${")


def names_in(text: str) -> Iterator[str]:
    """The variables that the text's placeholders name, with or without a default."""
    for token in _TOKEN.finditer(text):
        inside = None if token["escape"] else _INSIDE.fullmatch(token["inside"])
        if inside is not None:
            yield inside["name"]


def resolve(backend: BackendSettings, environ: Mapping[str, str]) -> ResolvedBackend:
    """Fill the backend's placeholders in from `environ`.

    A leading `~` of `command` and `cwd` is the home directory; a relative `cwd` starts at the configuration file.

    Raises:
        MissingPlaceholder: A variable without a default is not set. The error names each, and the field it is in.
        LaunchInvalid: A placeholder cannot be read, the URL is not http or https, or a value cannot be sent.
    """
    filler = _Filler(backend.name, environ)
    launch = _http(backend, filler) if backend.url is not None else _stdio(backend, filler)
    if filler.missing:
        raise _missing(filler.missing)
    _check(launch, filler)
    return ResolvedBackend(backend.name, launch)


def home(environ: Mapping[str, str]) -> Path:
    """The home directory of whoever runs the bridge."""
    return Path(environ.get("HOME") or Path.home())


def expand_home(path: str, environ: Mapping[str, str]) -> str:
    """The path with a leading `~` replaced; `~name` of other people is left as it is."""
    return str(home(environ)) + path[1:] if path == "~" or path.startswith(("~/", "~\\")) else path


def _stdio(backend: BackendSettings, filler: _Filler) -> StdioLaunch:
    cwd = None
    if backend.cwd is not None:
        base = backend.directory or Path.cwd()
        cwd = base / expand_home(filler.fill(backend.cwd, "cwd"), filler.environ)
    return StdioLaunch(
        command=expand_home(filler.fill(backend.command or "", "command"), filler.environ),
        args=tuple(filler.fill(arg, "args", index) for index, arg in enumerate(backend.args)),
        env=filler.fill_secrets(backend.env, "env"),
        cwd=cwd,
    )


def _http(backend: BackendSettings, filler: _Filler) -> HttpLaunch:
    return HttpLaunch(
        url=filler.fill(backend.url or "", "url"),
        headers=filler.fill_secrets(backend.headers, "headers"),
        transport=backend.transport,
    )


def _check(launch: StdioLaunch | HttpLaunch, filler: _Filler) -> None:
    if isinstance(launch, HttpLaunch):
        if not is_http_url(launch.url):
            raise _invalid(
                filler.key("url"),
                "is not an http or https URL once its placeholders are filled in.",
                "write a URL such as `https://example.com/mcp`, and check the variables it names.",
            )
        texts = {filler.key("headers", name): secret.reveal() for name, secret in launch.headers.items()}
        forbidden = "\r\n\0"
    else:
        if not launch.command:
            raise _invalid(
                filler.key("command"),
                "is empty once its placeholders are filled in.",
                "set the variables it names to the program to start.",
            )
        texts = {filler.key("command"): launch.command, filler.key("cwd"): str(launch.cwd or "")}
        texts |= {filler.key("args", index): arg for index, arg in enumerate(launch.args)}
        texts |= {filler.key("env", name): secret.reveal() for name, secret in launch.env.items()}
        forbidden = "\0"
    for key, text in texts.items():
        if any(character in text for character in forbidden):
            raise _invalid(
                key,
                "holds a line break or a NUL character, which cannot be sent.",
                "check the variables it names; often it is a newline at the end of one.",
            )


def _invalid(key: str, what: str, hint: str) -> LaunchInvalid:
    return LaunchInvalid(f"{key} {what}", hint=hint, details={"field": key})


def _missing(missing: list[tuple[str, str]]) -> MissingPlaceholder:
    named = [f"{variable} (in {where})" for variable, where in dict.fromkeys(missing)]
    names = ", ".join(dict.fromkeys(variable for variable, _ in missing))
    verb = "is" if len(named) == 1 else "are"
    return MissingPlaceholder(
        f"{' and '.join(named)} {verb} not set.",
        hint=f"set {names} in the environment of the bridge, or give a default as in `${{{missing[0][0]}:-…}}`.",
        details={"missing": [{"variable": variable, "field": where} for variable, where in dict.fromkeys(missing)]},
    )

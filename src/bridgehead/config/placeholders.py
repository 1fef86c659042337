"""From a backend as written to how it is launched: placeholders filled in, paths made absolute.

    ${NAME}  ${env:NAME}  ${NAME:-default}  ${env:NAME:-default}      $${ is a literal ${
    ${secret:NAME}  ${secret:NAME:-default}

A default is used when the variable is unset or empty, as in a POSIX shell, or when no secret has that name; defaults do not
nest. Values that were filled in are not looked at again, so no variable can smuggle a placeholder in. Whatever is wrong here
concerns one backend only: the caller disables it and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bridgehead.config.ports import SECRET_NAME, NoSecrets, SecretReader, SecretsUnusable
from bridgehead.config.problems import dotted
from bridgehead.config.secrets import Secret
from bridgehead.config.settings import BackendSettings, is_http_url
from bridgehead.core.errors import ConfigInvalid

_TOKEN = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_INSIDE = re.compile(
    rf"(?:(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)|secret:(?P<secret>{SECRET_NAME.pattern}))(?P<default>:-(?P<text>.*))?",
    re.DOTALL,
)
_NO_SECRETS = NoSecrets()


class LaunchInvalid(ConfigInvalid):
    """One backend cannot be launched as it is written; the others can.

    `details["field"]` is the dotted key of what is wrong.
    """

    code = "invalid_backend"


class MissingPlaceholder(LaunchInvalid):
    """A backend names variables or secrets that are not set.

    `details["missing"]` lists the variables as objects with `variable` and `field`, `details["missing_secrets"]` the secrets
    as objects with `secret` and `field`.
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
    """A backend that can be launched now.

    Attributes:
        launch: Not shown in `repr`, since the value of a secret may be anywhere in it.
        written: The same launch with `${secret:NAME}` where the value of a secret is: what may be shown and kept.
        secrets: The values that were read from the store, which are to be shown nowhere.
    """

    name: str
    launch: StdioLaunch | HttpLaunch = field(repr=False)
    written: StdioLaunch | HttpLaunch
    secrets: tuple[Secret, ...] = ()


class _Names:
    """Reads, as the value of every secret, its placeholder."""

    def read(self, name: str) -> str | None:
        return f"${{secret:{name}}}"


@dataclass(slots=True)
class _Filler:
    """Fills placeholders in, and remembers what it filled in from the store, and what it could not fill."""

    backend: str
    environ: Mapping[str, str]
    store: SecretReader
    secrets: dict[str, str | None] = field(default_factory=dict[str, str | None])
    missing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    missing_secrets: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

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
                    "write `${NAME}`, `${NAME:-default}`, `${secret:NAME}`, or `$${` for a literal `${`.",
                )
            name, missing = inside["secret"], self.missing_secrets
            if name is not None:
                value = self._read(name, *parts)
            else:
                name, missing = inside["name"], self.missing
                value = self.environ.get(name)
            if inside["default"] is not None:
                return value or inside["text"]
            if value is None:
                missing.append((name, self.key(*parts)))
            return value or ""

        return _TOKEN.sub(replacement, text)

    def _read(self, name: str, *parts: str | int) -> str | None:
        """The secret, read once for the whole backend, so that no two fields have different values of it."""
        if name not in self.secrets:
            try:
                self.secrets[name] = self.store.read(name)
            except SecretsUnusable as error:
                raise _invalid(
                    self.key(*parts), f"needs the secret {name}. {error.message}", error.hint or "see to the store."
                ) from error
        return self.secrets[name]

    def fill_secrets(self, table: Mapping[str, Secret], part: str) -> dict[str, Secret]:
        return {key: Secret(self.fill(secret.reveal(), part, key)) for key, secret in table.items()}


def escape(text: str) -> str:
    """The text written so that no part of it is a placeholder."""
    return text.replace("${", "$${")


def names_in(text: str) -> Iterator[str]:
    """The variables that the text's placeholders name, with or without a default."""
    for token in _TOKEN.finditer(text):
        inside = None if token["escape"] else _INSIDE.fullmatch(token["inside"])
        if inside is not None and inside["name"] is not None:
            yield inside["name"]


def secrets_of(backend: BackendSettings) -> tuple[str, ...]:
    """The secrets that the backend's placeholders name, with or without a default, each once."""
    tables = [secret.reveal() for table in (backend.env, backend.headers) for secret in table.values()]
    written = [backend.command or "", *backend.args, *tables, backend.cwd or "", backend.url or ""]
    inside = [
        _INSIDE.fullmatch(token["inside"]) for text in written for token in _TOKEN.finditer(text) if not token["escape"]
    ]
    return tuple(
        dict.fromkeys(found["secret"] for found in inside if found is not None and found["secret"] is not None)
    )


def resolve(
    backend: BackendSettings, environ: Mapping[str, str], secrets: SecretReader = _NO_SECRETS
) -> ResolvedBackend:
    """Fill the backend's placeholders in from `environ` and from the store of secrets, which is asked anew each time.

    A leading `~` of `command` and `cwd` is the home directory; a relative `cwd` starts at the configuration file. Blocks for
    as long as the store does, and only where a placeholder names a secret.

    Raises:
        MissingPlaceholder: A variable or a secret without a default is not set. The error names each, and its field.
        LaunchInvalid: A placeholder cannot be read, the store of secrets cannot be used, the URL is not http or https, or a
            value cannot be sent.
    """
    filler = _Filler(backend.name, environ, secrets)
    launch = _launch(backend, filler)
    if filler.missing or filler.missing_secrets:
        raise _missing(filler.missing, filler.missing_secrets)
    _check(launch, filler)
    values = tuple(Secret(value) for value in filler.secrets.values() if value is not None)
    written = _launch(backend, _Filler(backend.name, environ, _Names())) if filler.secrets else launch
    return ResolvedBackend(backend.name, launch, written, values)


def home(environ: Mapping[str, str]) -> Path:
    """The home directory of whoever runs the bridge."""
    return Path(environ.get("HOME") or Path.home())


def expand_home(path: str, environ: Mapping[str, str]) -> str:
    """The path with a leading `~` replaced; `~name` of other people is left as it is."""
    return str(home(environ)) + path[1:] if path == "~" or path.startswith(("~/", "~\\")) else path


def _launch(backend: BackendSettings, filler: _Filler) -> StdioLaunch | HttpLaunch:
    return _http(backend, filler) if backend.url is not None else _stdio(backend, filler)


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


def _missing(variables: list[tuple[str, str]], secrets: list[tuple[str, str]]) -> MissingPlaceholder:
    variables, secrets = list(dict.fromkeys(variables)), list(dict.fromkeys(secrets))
    named = [f"{name} (in {where})" for name, where in variables]
    named += [f"the secret {name} (in {where})" for name, where in secrets]
    steps: list[str] = []
    if variables:
        names = ", ".join(dict.fromkeys(name for name, _ in variables))
        steps.append(
            f"set {names} in the environment of the bridge, or give a default as in `${{{variables[0][0]}:-…}}`"
        )
    if secrets:
        steps.append(
            "run " + " and ".join(f"`bridgehead secret set {name}`" for name in dict.fromkeys(n for n, _ in secrets))
        )
    sentence = f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} not set."
    return MissingPlaceholder(
        sentence[0].upper() + sentence[1:] if not variables else sentence,
        hint=f"{', and '.join(steps)}.",
        details={
            "missing": [{"variable": name, "field": where} for name, where in variables],
            "missing_secrets": [{"secret": name, "field": where} for name, where in secrets],
        },
    )
